// SPDX-License-Identifier: GPL-2.0-only
/* Words for numbers; those of counters and reasons are the module's own. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <lists.h>
#include "rsctl.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static const char * const modes[] = {
	[RDMASTREAM_MODE_UNCONNECTED] = "unconnected",
	[RDMASTREAM_MODE_LISTEN] = "listen",
	[RDMASTREAM_MODE_CONNECTING] = "connecting",
	[RDMASTREAM_MODE_HELLO] = "hello",
	[RDMASTREAM_MODE_FRAMED] = "framed",
	[RDMASTREAM_MODE_FALLBACK] = "fallback",
	[RDMASTREAM_MODE_PRELUDE] = "prelude",
	[RDMASTREAM_MODE_CLOSED] = "closed",
};

static const char * const carriers[] = {
	[RDMASTREAM_CARRIER_TCP] = "tcp",
	[RDMASTREAM_CARRIER_RING] = "ring",
};

static const char * const dirs[] = {
	[RDMASTREAM_DIR_TX] = "tx",
	[RDMASTREAM_DIR_RX] = "rx",
};

static const char * const link_states[] = {
	[RDMASTREAM_LINK_STATE_CONNECTING] = "connecting",
	[RDMASTREAM_LINK_STATE_UP] = "up",
	[RDMASTREAM_LINK_STATE_BROKEN] = "broken",
	[RDMASTREAM_LINK_STATE_DEAD] = "dead",
};

/* As ss(8) calls them. */
static const char * const tcp_states[] = {
	NULL, "established", "syn-sent", "syn-recv", "fin-wait-1",
	"fin-wait-2", "time-wait", "unconnected", "close-wait", "last-ack",
	"listening", "closing", "new-syn-recv",
};

static const char * const problems[] = {
	[RDMASTREAM_DEVICE_PROBLEM_NONE] = "none",
	[RDMASTREAM_DEVICE_PROBLEM_NO_REGISTRATION] = "no-registration",
	[RDMASTREAM_DEVICE_PROBLEM_SMALL_QUEUES] = "small-queues",
	[RDMASTREAM_DEVICE_PROBLEM_PORT_DOWN] = "port-down",
	[RDMASTREAM_DEVICE_PROBLEM_NO_ADDRESS] = "no-address",
};

static const char * const rmb_kinds[] = {
	[RDMASTREAM_RMB_KIND_RINGS] = "rings",
	[RDMASTREAM_RMB_KIND_CELLS] = "cells",
};

static const struct {
	const char * const *words;
	size_t n;
} words[] = {
	[WORD_MODE] = { modes, COUNT(modes) },
	[WORD_CARRIER] = { carriers, COUNT(carriers) },
	[WORD_DIR] = { dirs, COUNT(dirs) },
	[WORD_LINK_STATE] = { link_states, COUNT(link_states) },
	[WORD_TCP_STATE] = { tcp_states, COUNT(tcp_states) },
	[WORD_PROBLEM] = { problems, COUNT(problems) },
	[WORD_RMB_KIND] = { rmb_kinds, COUNT(rmb_kinds) },
};

bool number_of(enum word list, const char *word, uint32_t *val)
{
	uint32_t i;

	for (i = 0; i < words[list].n; i++) {
		if (words[list].words[i] && begins(words[list].words[i], word)) {
			*val = i;
			return true;
		}
	}
	return false;
}

bool word_at(enum word list, uint32_t val, const char **word)
{
	*word = val < words[list].n ? words[list].words[val] : NULL;
	return val < words[list].n;
}

char *all_words(enum word list)
{
	char *all = xprintf("%s", ""), *more;
	size_t i;

	for (i = 0; i < words[list].n; i++) {
		if (!words[list].words[i])
			continue;
		more = xprintf("%s%s%s", all, *all ? ", " : "",
			       words[list].words[i]);
		free(all);
		all = more;
	}
	return all;
}

char *word_of(enum word list, uint64_t val)
{
	if (val < words[list].n && words[list].words[val])
		return xprintf("%s", words[list].words[val]);
	return xprintf("%llu", (unsigned long long)val);
}

/* NO_ROOM -> no-option-space, once for each entry of a list. */
static void spell(struct item *items, size_t n)
{
	char *name, *p;
	size_t i;

	for (i = 0; i < n; i++) {
		name = xprintf("%s", items[i].name);
		for (p = name; *p; p++)
			*p = *p == '_' ? '-' : tolower((unsigned char)*p);
		items[i].name = name;
	}
}

#define X(name, text) { #name, text },
static struct item reasons[] = { RSTREAM_REASON_LIST(X) };
static struct item counters[] = { RSTREAM_MIB_LIST(X) };
#undef X

_Static_assert(COUNT(reasons) == RDMASTREAM_A_REASON_COUNTERS_MAX,
	       "reasons of the module and of its netlink spec differ");
_Static_assert(COUNT(counters) == RDMASTREAM_A_COUNTERS_MAX,
	       "counters of the module and of its netlink spec differ");

static void spell_all(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	spell(reasons, COUNT(reasons));
	spell(counters, COUNT(counters));
}

const struct item *reason_item(uint64_t reason)
{
	spell_all();
	return reason < COUNT(reasons) ? &reasons[reason] : NULL;
}

const struct item *counter_item(uint64_t counter)
{
	spell_all();
	return counter < COUNT(counters) ? &counters[counter] : NULL;
}

char *reason_name(uint64_t reason)
{
	const struct item *item = reason_item(reason);

	if (item)
		return xprintf("%s", item->name);
	return xprintf("%llu", (unsigned long long)reason);
}

static int plain(char c)
{
	return c == '_' ? '-' : tolower((unsigned char)c);
}

bool same_name(const char *a, const char *b)
{
	while (*a && plain(*a) == plain(*b)) {
		a++;
		b++;
	}
	return plain(*a) == plain(*b);
}
