// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which entries are to be told: words behind a command, in the manner of ss(8).
 *
 * Most become attributes of the request, and the kernel chooses.  What it cannot
 * choose by is looked at here, in its answers: addresses, what must not be ("!="),
 * and the states of TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static bool get_number(const char *word, unsigned long max, unsigned long *val)
{
	char *end;

	errno = 0;
	*val = strtoul(word, &end, 0);
	return *word >= '0' && *word <= '9' && !*end && !errno && *val <= max;
}

/* A number, or the name of a service. */
static bool get_port(const char *word, uint16_t *port)
{
	const struct servent *service;
	unsigned long val;

	if (get_number(word, 65535, &val)) {
		*port = val;
		return true;
	}
	service = getservbyname(word, "tcp");
	if (service)
		*port = ntohs(service->s_port);
	return service;
}

/* ---- ends of a connection ---- */

/* What is mapped into IPv6 is IPv4. */
static void unmap(struct filter_end *end)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (end->bytes != 16 || end->bits < 96 ||
	    memcmp(end->addr, mapped, sizeof(mapped)))
		return;
	memmove(end->addr, end->addr + 12, 4);
	end->bytes = 4;
	end->bits -= 96;
}

/* "10.77.0.1", "fe80::1%eth0", "*" */
static bool get_address(char *word, struct filter_end *end)
{
	char *scope = strchr(word, '%');

	if (!*word || !strcmp(word, "*"))
		return true;
	if (scope) {
		*scope++ = '\0';
		end->scope = if_nametoindex(scope) ?: strtoul(scope, NULL, 10);
		if (!end->scope)
			return false;
	}
	if (inet_pton(AF_INET, word, end->addr) == 1)
		end->bytes = 4;
	else if (inet_pton(AF_INET6, word, end->addr) == 1)
		end->bytes = 16;
	return end->bytes;
}

/* The colon before a port, NULL: there is none; those of an address are two. */
static char *port_colon(char *word)
{
	char *behind = strrchr(word, ']');
	char *colon = strchr(behind ? behind : word, ':');

	return colon && strchr(colon + 1, ':') ? NULL : colon;
}

/* "ADDRESS/BITS:PORT", any of which may be left out, or "[ADDRESS]..." */
static bool get_end(char *word, struct filter_end *end)
{
	char *colon = port_colon(word), *slash = strchr(word, '/'), *bracket;
	unsigned long bits;

	if (colon) {
		*colon++ = '\0';
		end->has_port = strcmp(colon, "*");
		if (end->has_port && !get_port(colon, &end->port))
			return false;
	}
	if (slash)
		*slash++ = '\0';
	if (*word == '[') {
		bracket = strchr(++word, ']');
		if (!bracket || bracket[1])
			return false;
		*bracket = '\0';
	}
	if (!get_address(word, end))
		return false;
	bits = 8 * end->bytes;
	if (slash && !get_number(slash, bits, &bits))
		return false;
	end->bits = bits;
	unmap(end);
	return true;
}

static struct filter_end *new_end(struct filter *f, uint16_t type, bool unequal)
{
	struct filter_end *end = &f->ends[f->n_ends++];

	if (f->n_ends > COUNT(f->ends)) {
		complain("too many filters");
		exit(EXIT_USAGE);
	}
	*end = (struct filter_end){ .type = type, .unequal = unequal };
	return end;
}

static int want_end(const char *name, const char *word, uint16_t type,
		    bool unequal, struct filter *f)
{
	char *copy = xprintf("%s", word);
	bool good = *word && get_end(copy, new_end(f, type, unequal));

	free(copy);
	if (good)
		return EXIT_OK;
	complain("%s: \"%s\" is not an address", name, word);
	return EXIT_USAGE;
}

/* The kernel has no "but this port". */
static void not_port(struct filter *f, uint16_t type, uint16_t port)
{
	struct filter_end *end = new_end(f, type, true);

	end->has_port = true;
	end->port = port;
}

static int want_port(const char *name, const char *word, uint16_t type,
		     bool unequal, struct filter *f)
{
	uint16_t port;

	if (*word == ':')
		word++;
	if (!get_port(word, &port)) {
		complain("%s: \"%s\" is not a port", name, word);
		return EXIT_USAGE;
	}
	if (unequal) {
		if (type != RDMASTREAM_A_SOCK_REMOTE_PORT)
			not_port(f, RDMASTREAM_A_SOCK_LOCAL, port);
		if (type != RDMASTREAM_A_SOCK_LOCAL_PORT)
			not_port(f, RDMASTREAM_A_SOCK_REMOTE, port);
		return EXIT_OK;
	}
	port = htons(port);
	want(&f->wants, type, &port, sizeof(port));
	return EXIT_OK;
}

static bool has_address(const struct filter_end *want, const struct attrs *a)
{
	const struct nlattr *attr = a->tb[RDMASTREAM_A_ENDPOINT_ADDR];
	unsigned int whole = want->bits / 8, rest = want->bits % 8;
	struct filter_end is = { 0 };

	if (!want->bytes)
		return true;
	if (!attr || mnl_attr_get_payload_len(attr) > sizeof(is.addr))
		return false;
	is.bytes = mnl_attr_get_payload_len(attr);
	is.bits = 8 * is.bytes;
	memcpy(is.addr, mnl_attr_get_payload(attr), is.bytes);
	unmap(&is);
	return is.bytes == want->bytes && !memcmp(is.addr, want->addr, whole) &&
	       (!rest || !((is.addr[whole] ^ want->addr[whole]) >> (8 - rest)));
}

static bool end_fits(const struct filter_end *want, const struct attrs *entry)
{
	uint64_t port = 0, scope = 0;
	struct attrs a;
	bool equal;

	equal = attrs_nested(&a, entry->tb[want->type]);
	attr_uint(&a, RDMASTREAM_A_ENDPOINT_PORT, &port);
	attr_uint(&a, RDMASTREAM_A_ENDPOINT_SCOPE, &scope);
	equal = equal && has_address(want, &a) &&
		(!want->has_port || want->port == ntohs(port)) &&
		(!want->scope || want->scope == scope);
	return equal != want->unequal;
}

/* ---- states of TCP ---- */

#define BIT(state)	(1U << (state))
#define TCP_ALL		(~0U)
#define TCP_CONNECTED	(TCP_ALL & ~(BIT(TCP_CLOSE) | BIT(TCP_LISTEN)))

/* Return: as bits, 0: none is called so. */
static uint32_t tcp_states(const char *word)
{
	static const struct {
		const char *name;
		uint32_t states;
	} several[] = {
		{ "all", TCP_ALL },
		{ "connected", TCP_CONNECTED },
		{ "synchronized", TCP_CONNECTED & ~BIT(TCP_SYN_SENT) },
	};
	uint32_t state;
	size_t i;

	for (i = 0; i < COUNT(several); i++)
		if (!strcmp(several[i].name, word))
			return several[i].states;
	return number_of(WORD_TCP_STATE, word, &state) ? BIT(state) : 0;
}

/* Ours, which come first, or those of TCP. */
static int want_state(const char *name, const char *word, uint16_t type,
		      bool unequal, struct filter *f)
{
	uint32_t mode, states;
	char *modes, *tcp;

	if (number_of(WORD_MODE, word, &mode)) {
		want(unequal ? &f->unwanted : &f->wants, type, &mode,
		     sizeof(mode));
		return EXIT_OK;
	}
	states = tcp_states(word);
	if (!states) {
		modes = all_words(WORD_MODE);
		tcp = all_words(WORD_TCP_STATE);
		complain("%s is one of: %s; or a TCP state: %s, connected, synchronized, all; not \"%s\"",
			 name, modes, tcp, word);
		free(modes);
		free(tcp);
		return EXIT_USAGE;
	}
	f->not_states |= unequal ? states : ~states;
	return EXIT_OK;
}

/* ---- the others ---- */

static int want_u32(const char *name, const char *word, uint16_t type,
		    struct wants *wants)
{
	unsigned long val;
	uint32_t u32;

	if (!get_number(word, UINT32_MAX, &val)) {
		complain("%s: \"%s\" is not a number", name, word);
		return EXIT_USAGE;
	}
	u32 = val;
	want(wants, type, &u32, sizeof(u32));
	return EXIT_OK;
}

static int want_word(const char *name, const char *word, enum word list,
		     uint16_t type, struct wants *wants)
{
	uint32_t val;
	char *all;

	if (!number_of(list, word, &val)) {
		all = all_words(list);
		complain("%s is one of: %s; not \"%s\"", name, all, word);
		free(all);
		return EXIT_USAGE;
	}
	want(wants, type, &val, sizeof(val));
	return EXIT_OK;
}

static int want_reason(const char *word, uint16_t type, struct wants *wants)
{
	const struct item *item;
	uint32_t val;

	for (val = 0; (item = reason_item(val)); val++) {
		if (!same_name(word, item->name))
			continue;
		want(wants, type, &val, sizeof(val));
		return EXIT_OK;
	}
	complain("unknown reason \"%s\"; \"rsctl explain\" lists all", word);
	return EXIT_USAGE;
}

static int want_string(const char *name, const char *word, uint16_t type,
		       struct wants *wants)
{
	if (!*word || strlen(word) > 63) {
		complain("%s: \"%s\" is not a valid name", name, word);
		return EXIT_USAGE;
	}
	want(wants, type, word, strlen(word) + 1);
	return EXIT_OK;
}

static bool same_value(const struct nlattr *a, const struct nlattr *b)
{
	return mnl_attr_get_payload_len(a) == mnl_attr_get_payload_len(b) &&
	       !memcmp(mnl_attr_get_payload(a), mnl_attr_get_payload(b),
		       mnl_attr_get_payload_len(a));
}

/* The one id that begins so, which is that of a peer for each pair of addresses. */
static int want_peer(const char *word, uint16_t type, struct wants *wants)
{
	const struct nlattr *id = NULL, *this;
	bool several = false;
	struct replies r;
	struct attrs a;
	char *hex;
	size_t i;
	int ret;

	ret = genl_ask(RDMASTREAM_CMD_PEER_GET, true, &r);
	if (ret)
		return ret;
	for (i = 0; i < r.n; i++) {
		attrs_of(&a, r.msg[i]);
		hex = attr_hex(&a, RDMASTREAM_A_PEER_INSTANCE);
		if (hex && begins(hex, word)) {
			this = a.tb[RDMASTREAM_A_PEER_INSTANCE];
			several |= id && !same_value(id, this);
			id = this;
		}
		free(hex);
	}
	if (id && !several) {
		want(wants, type, mnl_attr_get_payload(id),
		     mnl_attr_get_payload_len(id));
	} else {
		complain(several ? "the ids of several peers start with \"%s\"" :
				   "no peer's id starts with \"%s\", see \"rsctl peers\"",
			 word);
		ret = EXIT_USAGE;
	}
	replies_free(&r);
	return ret;
}

static int want_value(const struct filter_key *key, const char *word,
		      bool unequal, struct filter *f)
{
	struct wants *wants = unequal ? &f->unwanted : &f->wants;
	int kind = key->kind & ~FILTER_ASKED;

	switch (kind) {
	case FILTER_PEER:
		return want_peer(word, key->type, wants);
	case FILTER_STRING:
		return want_string(key->name, word, key->type, wants);
	case FILTER_PORT:
		return want_port(key->name, word, key->type, unequal, f);
	case FILTER_END:
		return want_end(key->name, word, key->type, unequal, f);
	case FILTER_STATE:
		return want_state(key->name, word, key->type, unequal, f);
	case FILTER_U32:
		return want_u32(key->name, word, key->type, wants);
	case FILTER_REASON:
		return want_reason(word, key->type, wants);
	default:
		return want_word(key->name, word, kind - FILTER_WORD,
				 key->type, wants);
	}
}

/* ---- words ---- */

/* ss(8) writes "sport = :80"; "=" is as good as nothing. */
static bool is_sign(const char *word, bool *unequal)
{
	*unequal = !strcmp(word, "!=") || !strcmp(word, "ne") ||
		   !strcmp(word, "neq");
	return *unequal || !strcmp(word, "=") || !strcmp(word, "==") ||
	       !strcmp(word, "eq");
}

static bool is_and(const char *word)
{
	return !strcmp(word, "and") || !strcmp(word, "&") || !strcmp(word, "&&");
}

static const struct filter_key *find_key(const struct filter_key *keys,
					 const char *word)
{
	for (; keys->name; keys++)
		if (begins(keys->name, word))
			return keys;
	return NULL;
}

/* The kernel chooses by one value of a type, and would forget the first. */
static bool is_twice(const struct wants *wants)
{
	unsigned int i;

	for (i = 0; i + 1 < wants->n; i++)
		if (wants->list[i].type == wants->list[wants->n - 1].type)
			return true;
	return false;
}

static void complain_key(const struct filter_key *keys, const char *command,
			 const char *word)
{
	char *all = xprintf("%s", keys->name), *more;

	for (keys++; keys->name; keys++) {
		more = xprintf("%s, %s", all, keys->name);
		free(all);
		all = more;
	}
	complain("%s: unknown filter \"%s\"; there are %s", command, word, all);
	free(all);
}

int filter_parse(int argc, char **argv, const struct filter_key *keys,
		 struct filter *f)
{
	const struct filter_key *key;
	bool unequal;
	int i, ret;

	for (i = 1; i < argc; i++) {
		if (i > 1 && is_and(argv[i]))
			continue;
		key = find_key(keys, argv[i]);
		if (!key) {
			complain_key(keys, argv[0], argv[i]);
			return EXIT_USAGE;
		}
		unequal = false;
		if (i + 1 < argc && is_sign(argv[i + 1], &unequal))
			i++;
		if (++i == argc) {
			complain("%s: \"%s\" needs a value", argv[0], key->name);
			return EXIT_USAGE;
		}
		if (unequal && key->kind & FILTER_ASKED) {
			complain("%s: %s does not support \"!=\"", argv[0], key->name);
			return EXIT_USAGE;
		}
		ret = want_value(key, argv[i], unequal, f);
		if (ret)
			return ret;
		if (is_twice(&f->wants)) {
			complain("%s: %s is given twice", argv[0], key->name);
			return EXIT_USAGE;
		}
	}
	return EXIT_OK;
}

bool filter_fits(const struct filter *f, const struct attrs *a)
{
	const struct nlattr *attr;
	uint64_t state = 0;
	unsigned int i;

	for (i = 0; i < f->n_ends; i++)
		if (!end_fits(&f->ends[i], a))
			return false;
	for (i = 0; i < f->unwanted.n; i++) {
		attr = a->tb[f->unwanted.list[i].type];
		if (attr && mnl_attr_get_payload_len(attr) == f->unwanted.list[i].len &&
		    !memcmp(mnl_attr_get_payload(attr), f->unwanted.list[i].data,
			    f->unwanted.list[i].len))
			return false;
	}
	return !f->not_states ||
	       (attr_uint(a, RDMASTREAM_A_SOCK_TCP_STATE, &state) &&
		!(f->not_states & BIT(state & 31)));
}
