// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which entries are to be told: pairs of words behind a command, which become
 * attributes of the request.  The kernel does the choosing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

/* ss(8) writes "sport = :80": the sign is as good as nothing. */
bool filter_sign(const char *word)
{
	return !strcmp(word, "=") || !strcmp(word, "==") || !strcmp(word, "eq");
}

static bool get_number(const char *word, unsigned long max, unsigned long *val)
{
	char *end;

	errno = 0;
	*val = strtoul(word, &end, 0);
	return *word >= '0' && *word <= '9' && !*end && !errno && *val <= max;
}

static int want_port(const char *name, const char *word, uint16_t type,
		     struct wants *wants)
{
	unsigned long val;
	uint16_t port;

	if (*word == ':')
		word++;
	if (!get_number(word, 65535, &val)) {
		complain("%s: \"%s\" is no port", name, word);
		return EXIT_USAGE;
	}
	port = htons(val);
	want(wants, type, &port, sizeof(port));
	return EXIT_OK;
}

static int want_u32(const char *name, const char *word, uint16_t type,
		    struct wants *wants)
{
	unsigned long val;
	uint32_t u32;

	if (!get_number(word, UINT32_MAX, &val)) {
		complain("%s: \"%s\" is no number", name, word);
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
	complain("unknown reason \"%s\"; \"rsctl explain\" tells them all", word);
	return EXIT_USAGE;
}

static int want_string(const char *name, const char *word, uint16_t type,
		       struct wants *wants)
{
	if (!*word || strlen(word) > 63) {
		complain("%s: \"%s\" is no name", name, word);
		return EXIT_USAGE;
	}
	want(wants, type, word, strlen(word) + 1);
	return EXIT_OK;
}

/* The one peer whose id begins so. */
static int want_peer(const char *word, uint16_t type, struct wants *wants)
{
	const struct nlattr *id = NULL;
	unsigned int found = 0;
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
			id = a.tb[RDMASTREAM_A_PEER_INSTANCE];
			found++;
		}
		free(hex);
	}
	if (found == 1) {
		want(wants, type, mnl_attr_get_payload(id),
		     mnl_attr_get_payload_len(id));
	} else {
		complain(found ? "the ids of several peers begin with \"%s\"" :
				 "no peer's id begins with \"%s\", see \"rsctl peers\"",
			 word);
		ret = EXIT_USAGE;
	}
	replies_free(&r);
	return ret;
}

static int want_value(const struct filter_key *key, const char *word,
		      struct wants *wants)
{
	switch (key->kind) {
	case FILTER_PEER:
		return want_peer(word, key->type, wants);
	case FILTER_STRING:
		return want_string(key->name, word, key->type, wants);
	case FILTER_PORT:
		return want_port(key->name, word, key->type, wants);
	case FILTER_U32:
		return want_u32(key->name, word, key->type, wants);
	case FILTER_REASON:
		return want_reason(word, key->type, wants);
	default:
		return want_word(key->name, word, key->kind - FILTER_WORD,
				 key->type, wants);
	}
}

static const struct filter_key *find_key(const struct filter_key *keys,
					 const char *word)
{
	for (; keys->name; keys++)
		if (begins(keys->name, word))
			return keys;
	return NULL;
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
	complain("%s: \"%s\" is none of %s", command, word, all);
	free(all);
}

int filter_parse(int argc, char **argv, const struct filter_key *keys,
		 struct wants *wants)
{
	const struct filter_key *key;
	int i, ret;

	for (i = 1; i < argc; i++) {
		key = find_key(keys, argv[i]);
		if (!key) {
			complain_key(keys, argv[0], argv[i]);
			return EXIT_USAGE;
		}
		if (i + 1 < argc && filter_sign(argv[i + 1]))
			i++;
		if (++i == argc) {
			complain("%s: \"%s\" needs a value", argv[0], key->name);
			return EXIT_USAGE;
		}
		ret = want_value(key, argv[i], wants);
		if (ret)
			return ret;
	}
	return EXIT_OK;
}

int filter_address(const char *name, const char *word, struct filter_addr *to)
{
	char text[INET6_ADDRSTRLEN];
	const char *slash = strchr(word, '/');
	size_t len = slash ? (size_t)(slash - word) : strlen(word);
	unsigned long bits;

	memset(to, 0, sizeof(*to));
	if (len < sizeof(text)) {
		memcpy(text, word, len);
		text[len] = '\0';
		if (inet_pton(AF_INET, text, to->addr) == 1)
			to->bytes = 4;
		else if (inet_pton(AF_INET6, text, to->addr) == 1)
			to->bytes = 16;
	}
	bits = 8 * to->bytes;
	if (!to->bytes || (slash && !get_number(slash + 1, bits, &bits))) {
		complain("%s: \"%s\" is no address", name, word);
		return EXIT_USAGE;
	}
	to->bits = bits;
	to->set = true;
	return EXIT_OK;
}

bool filter_fits(const struct filter_addr *want, const struct nlattr *nest)
{
	unsigned int whole = want->bits / 8, rest = want->bits % 8;
	const struct nlattr *attr;
	const uint8_t *addr;
	struct attrs a;

	if (!want->set)
		return true;
	if (!attrs_nested(&a, nest))
		return false;
	attr = a.tb[RDMASTREAM_A_ENDPOINT_ADDR];
	if (!attr || mnl_attr_get_payload_len(attr) != want->bytes)
		return false;
	addr = mnl_attr_get_payload(attr);
	return !memcmp(addr, want->addr, whole) &&
	       (!rest || !((addr[whole] ^ want->addr[whole]) >> (8 - rest)));
}
