// SPDX-License-Identifier: GPL-2.0-only
/* rsctl sockets: what carries the bytes of each socket, and why. */
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

static const struct column columns[] = {
	{ "LOCAL", false }, { "REMOTE", false }, { "MODE", false },
	{ "TX", false }, { "RX", false },
	{ "SENT", true }, { "RCVD", true }, { "REASON", false },
};

static char *carrier(const struct attrs *dir)
{
	return attr_word(dir, RDMASTREAM_A_DIRECTION_CARRIER, WORD_CARRIER);
}

static enum paint carrier_paint(const char *name)
{
	if (!name)
		return PAINT_NONE;
	return !strcmp(name, "ring") ? PAINT_GOOD : PAINT_WARN;
}

static char *owner(const struct attrs *a)
{
	const struct passwd *pw;
	uint64_t uid;

	if (!attr_uint(a, RDMASTREAM_A_SOCK_UID, &uid))
		return xprintf("-");
	pw = opt.numeric ? NULL : getpwuid(uid);
	if (pw)
		return xprintf("%s", pw->pw_name);
	return xprintf("%" PRIu64, uid);
}

/* "name value", or "name -" */
static char *pair(const char *name, const struct attrs *a, unsigned int type)
{
	uint64_t val;

	if (!attr_uint(a, type, &val))
		return xprintf("%s -", name);
	return xprintf("%s %" PRIu64, name, val);
}

/* @list: names and attributes, to be freed by nobody */
struct pair {
	const char *name;
	unsigned int type;
};

static char *pairs(const char *head, const struct attrs *a,
		   const struct pair *list, size_t n)
{
	char *text = xprintf("%s", head), *one, *more;
	size_t i;

	for (i = 0; i < n; i++) {
		one = pair(list[i].name, a, list[i].type);
		more = xprintf("%s  %s", text, one);
		free(one);
		free(text);
		text = more;
	}
	return text;
}

/* The last switch: to which carrier, why, when; and how many there were. */
static void note_switch(struct table *t, const char *head,
			const struct attrs *dir)
{
	char *to = attr_word(dir, RDMASTREAM_A_DIRECTION_SWITCH_TO, WORD_CARRIER);
	uint64_t n, ms = 0, why = 0;
	char *name;

	if (!attr_uint(dir, RDMASTREAM_A_DIRECTION_SWITCHES, &n)) {
		table_note(t, xprintf("%s  never switched", head));
		return;
	}
	attr_uint(dir, RDMASTREAM_A_DIRECTION_SWITCH_REASON, &why);
	attr_uint(dir, RDMASTREAM_A_DIRECTION_SWITCH_MS, &ms);
	name = reason_name(why);
	table_note(t, xprintf("%s  last switch to %s  %s  %" PRIu64 ".%03us ago  switches %" PRIu64,
			      head, to ? to : "-", name, ms / 1000,
			      (unsigned int)(ms % 1000), n));
	free(name);
	free(to);
}

#define HIST_BAR	30	/* characters */

static char *hist_line(const uint32_t *count, unsigned int i, unsigned int n,
		       uint64_t most)
{
	unsigned int width = (count[i] * (uint64_t)HIST_BAR + most - 1) / most;
	bool last = i + 1 == n;		/* all that is longer */

	return xprintf("  %8llu%c %-*.*s %u", 1ULL << (last ? i - 1 : i),
		       last ? '+' : ' ', HIST_BAR, width,
		       "##############################", count[i]);
}

/* How the times are spread: a line for each bucket, a gap for many empty ones. */
static void note_hist(struct table *t, const char *head,
		      const struct nlattr *hist)
{
	unsigned int i, n, first, last = 0, empty = 0;
	const uint32_t *count;
	uint64_t most = 0;

	if (!hist)
		return;
	count = mnl_attr_get_payload(hist);
	n = mnl_attr_get_payload_len(hist) / sizeof(*count);
	for (i = 0, first = n; i < n; i++) {
		if (!count[i])
			continue;
		first = first < i ? first : i;
		last = i;
		most = count[i] > most ? count[i] : most;
	}
	if (!most) {
		table_note(t, xprintf("%s  no samples yet", head));
		return;
	}
	table_note(t, xprintf("%s: microseconds below, samples", head));
	for (i = first; i <= last; i++) {
		empty = count[i] ? 0 : empty + 1;
		if (empty <= 2)
			table_note(t, hist_line(count, i, n, most));
		else if (empty == 3)
			table_note(t, xprintf("       ..."));
	}
}

/* Of one thing that the sender has waited for: "stall-ring 12x 0.340s" */
static char *stall(const struct nlattr *nest)
{
	uint64_t why = 0, n = 0, us = 0;
	char *name, *text;
	struct attrs s;

	attrs_nested(&s, nest);
	attr_uint(&s, RDMASTREAM_A_STALL_REASON, &why);
	attr_uint(&s, RDMASTREAM_A_STALL_COUNT, &n);
	attr_uint(&s, RDMASTREAM_A_STALL_US, &us);
	name = reason_name(why);
	text = xprintf("%s %" PRIu64 "x %" PRIu64 ".%06us", name, n,
		       us / 1000000, (unsigned int)(us % 1000000));
	free(name);
	return text;
}

/* What the sender waits for, and has waited for. */
static void note_stalls(struct table *t, const char *head,
			const struct nlattr *nest)
{
	const struct nlattr *attr;
	char *text, *one, *more;
	struct attrs dir;
	uint64_t why, us;
	bool any = false;

	attrs_nested(&dir, nest);
	text = xprintf("%s", head);
	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) != RDMASTREAM_A_DIRECTION_STALLS)
			continue;
		any = true;
		one = stall(attr);
		more = xprintf("%s  %s", text, one);
		free(one);
		free(text);
		text = more;
	}
	if (attr_uint(&dir, RDMASTREAM_A_DIRECTION_STALL, &why) &&
	    attr_uint(&dir, RDMASTREAM_A_DIRECTION_STALL_US, &us)) {
		one = reason_name(why);
		more = xprintf("%s  now %s for %" PRIu64 ".%06us", text, one,
			       us / 1000000, (unsigned int)(us % 1000000));
		free(one);
		free(text);
		text = more;
	}
	if (any)
		table_note(t, text);
	else
		free(text);
}

static void note_direction(struct table *t, const char *head,
			   const struct attrs *dir)
{
	static const struct pair where[] = {
		{ "epoch", RDMASTREAM_A_DIRECTION_EPOCH },
		{ "link", RDMASTREAM_A_DIRECTION_LINK },
		{ "ring", RDMASTREAM_A_DIRECTION_RING_SIZE },
		{ "offset", RDMASTREAM_A_DIRECTION_OFFSET },
		{ "acked", RDMASTREAM_A_DIRECTION_ACKED },
	};
	static const struct pair carried[] = {
		{ "tcp bytes", RDMASTREAM_A_DIRECTION_TCP_BYTES },
		{ "msgs", RDMASTREAM_A_DIRECTION_TCP_MSGS },
		{ "ring bytes", RDMASTREAM_A_DIRECTION_RING_BYTES },
		{ "msgs", RDMASTREAM_A_DIRECTION_RING_MSGS },
	};

	if (opt.details) {
		table_note(t, pairs(head, dir, where,
				    sizeof(where) / sizeof(where[0])));
		note_switch(t, head, dir);
	}
	table_note(t, pairs(head, dir, carried,
			    sizeof(carried) / sizeof(carried[0])));
}

static void note_socket(struct table *t, const struct attrs *a)
{
	static const struct pair inode = { "inode", RDMASTREAM_A_SOCK_INODE };
	char *state = attr_word(a, RDMASTREAM_A_SOCK_TCP_STATE, WORD_TCP_STATE);
	char *peer = attr_hex(a, RDMASTREAM_A_SOCK_PEER);
	char *user = owner(a);
	char *head = xprintf("tcp %s  owner %s", state ? state : "-", user);

	table_note(t, pairs(head, a, &inode, 1));
	table_note(t, xprintf("peer %s", peer ? peer : "-"));
	free(head);
	free(user);
	free(peer);
	free(state);
}

static void note_reason(struct table *t, const struct attrs *a)
{
	const struct item *item;
	uint64_t val;

	if (!attr_uint(a, RDMASTREAM_A_SOCK_REASON, &val) || !val)
		return;
	item = reason_item(val);
	if (item)
		table_note(t, xprintf("%s: %s", item->name, item->text));
}

static void row(struct table *t, const struct attrs *a)
{
	struct attrs tx, rx;
	bool has_tx = attrs_nested(&tx, a->tb[RDMASTREAM_A_SOCK_TX]);
	bool has_rx = attrs_nested(&rx, a->tb[RDMASTREAM_A_SOCK_RX]);
	char *tx_on = carrier(&tx), *rx_on = carrier(&rx);

	table_cell(t, attr_endpoint(a, RDMASTREAM_A_SOCK_LOCAL), PAINT_NONE);
	table_cell(t, attr_endpoint(a, RDMASTREAM_A_SOCK_REMOTE), PAINT_NONE);
	table_cell(t, attr_word(a, RDMASTREAM_A_SOCK_MODE, WORD_MODE), PAINT_NONE);
	table_cell(t, tx_on, carrier_paint(tx_on));
	table_cell(t, rx_on, carrier_paint(rx_on));
	table_bytes(t, &tx, RDMASTREAM_A_DIRECTION_OFFSET);
	table_bytes(t, &rx, RDMASTREAM_A_DIRECTION_OFFSET);
	table_cell(t, attr_reason(a, RDMASTREAM_A_SOCK_REASON), PAINT_NONE);
	if (opt.details) {
		note_socket(t, a);
		note_reason(t, a);
	}
	if ((opt.details || opt.stats) && has_tx) {
		note_direction(t, "tx", &tx);
		note_stalls(t, "tx", a->tb[RDMASTREAM_A_SOCK_TX]);
	}
	if (opt.details)
		note_hist(t, "sent to consumed",
			  tx.tb[RDMASTREAM_A_DIRECTION_HIST]);
	if ((opt.details || opt.stats) && has_rx)
		note_direction(t, "rx", &rx);
	if (opt.details)
		note_hist(t, "arrived to read",
			  rx.tb[RDMASTREAM_A_DIRECTION_HIST]);
}

static void object_stall(const struct nlattr *nest)
{
	struct attrs s;

	attrs_nested(&s, nest);
	json_object(NULL);
	json_attr_reason("reason", &s, RDMASTREAM_A_STALL_REASON);
	json_attr("count", &s, RDMASTREAM_A_STALL_COUNT);
	json_attr("us", &s, RDMASTREAM_A_STALL_US);
	json_object_end();
}

static void object_direction(const char *key, const struct attrs *dir)
{
	json_object(key);
	json_attr_word("carrier", dir, RDMASTREAM_A_DIRECTION_CARRIER, WORD_CARRIER);
	json_attr("epoch", dir, RDMASTREAM_A_DIRECTION_EPOCH);
	json_attr("link", dir, RDMASTREAM_A_DIRECTION_LINK);
	json_attr("ring_size", dir, RDMASTREAM_A_DIRECTION_RING_SIZE);
	json_attr("offset", dir, RDMASTREAM_A_DIRECTION_OFFSET);
	json_attr("acked", dir, RDMASTREAM_A_DIRECTION_ACKED);
	json_attr("tcp_bytes", dir, RDMASTREAM_A_DIRECTION_TCP_BYTES);
	json_attr("tcp_msgs", dir, RDMASTREAM_A_DIRECTION_TCP_MSGS);
	json_attr("ring_bytes", dir, RDMASTREAM_A_DIRECTION_RING_BYTES);
	json_attr("ring_msgs", dir, RDMASTREAM_A_DIRECTION_RING_MSGS);
	json_attr("switches", dir, RDMASTREAM_A_DIRECTION_SWITCHES);
	json_attr_word("switch_to", dir, RDMASTREAM_A_DIRECTION_SWITCH_TO, WORD_CARRIER);
	json_attr_reason("switch_reason", dir, RDMASTREAM_A_DIRECTION_SWITCH_REASON);
	json_attr("switch_ms", dir, RDMASTREAM_A_DIRECTION_SWITCH_MS);
	json_attr_reason("stall", dir, RDMASTREAM_A_DIRECTION_STALL);
	json_attr("stall_us", dir, RDMASTREAM_A_DIRECTION_STALL_US);
	json_list("stalls", dir, RDMASTREAM_A_DIRECTION_STALLS, object_stall);
	json_counts("hist", dir, RDMASTREAM_A_DIRECTION_HIST);
	json_object_end();
}

static void object(const struct attrs *a)
{
	struct attrs tx, rx;

	attrs_nested(&tx, a->tb[RDMASTREAM_A_SOCK_TX]);
	attrs_nested(&rx, a->tb[RDMASTREAM_A_SOCK_RX]);
	json_object(NULL);
	json_attr_endpoint("local", a, RDMASTREAM_A_SOCK_LOCAL);
	json_attr_endpoint("remote", a, RDMASTREAM_A_SOCK_REMOTE);
	json_attr_word("mode", a, RDMASTREAM_A_SOCK_MODE, WORD_MODE);
	json_attr_word("tcp_state", a, RDMASTREAM_A_SOCK_TCP_STATE, WORD_TCP_STATE);
	json_attr_reason("reason", a, RDMASTREAM_A_SOCK_REASON);
	json_attr("uid", a, RDMASTREAM_A_SOCK_UID);
	json_attr("inode", a, RDMASTREAM_A_SOCK_INODE);
	json_attr_id("peer", a, RDMASTREAM_A_SOCK_PEER);
	object_direction("tx", &tx);
	object_direction("rx", &rx);
	json_object_end();
}

static const struct filter_key keys[] = {
	{ "port", FILTER_PORT, RDMASTREAM_A_SOCK_PORT },
	{ "sport", FILTER_PORT, RDMASTREAM_A_SOCK_LOCAL_PORT },
	{ "dport", FILTER_PORT, RDMASTREAM_A_SOCK_REMOTE_PORT },
	{ "src", FILTER_END, RDMASTREAM_A_SOCK_LOCAL },
	{ "dst", FILTER_END, RDMASTREAM_A_SOCK_REMOTE },
	{ "peer", FILTER_PEER, RDMASTREAM_A_SOCK_PEER },
	{ "device", FILTER_ASKED | FILTER_STRING, RDMASTREAM_A_SOCK_DEVICE },
	{ "state", FILTER_STATE, RDMASTREAM_A_SOCK_MODE },
	{ "mode", FILTER_WORD + WORD_MODE, RDMASTREAM_A_SOCK_MODE },
	{ "carrier", FILTER_ASKED | (FILTER_WORD + WORD_CARRIER),
	  RDMASTREAM_A_SOCK_CARRIER },
	{ "reason", FILTER_REASON, RDMASTREAM_A_SOCK_REASON },
	{ NULL }
};

static const struct entries entries = {
	RDMASTREAM_CMD_SOCK_GET, keys, columns,
	sizeof(columns) / sizeof(columns[0]), row, object
};

void sockets_json(void)
{
	entries_schema(&entries);
}

int cmd_sockets(int argc, char **argv)
{
	return entries_show(&entries, argc, argv);
}
