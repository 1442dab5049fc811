// SPDX-License-Identifier: GPL-2.0-only
/*
 * What sockets shall be: protocol and rules, from the environment, where rules are
 * text, and onto a socket.  Part of rsctl and of the preload library.
 *
 *	RULES	RULE[,RULE]...
 *	RULE	i WHICH | x WHICH		include, exclude
 *	WHICH	[ADDRESS[/BITS]][:PORT[-PORT]]	IPv6 addresses in brackets
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "run.h"

/* A decimal number up to @max at *@at, which goes on behind it. */
static bool read_number(const char **at, unsigned long max, unsigned long *val)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*val = strtoul(*at, &end, 10);
	*at = end;
	return *val <= max;
}

/* IPv4 as ::ffff:a.b.c.d, which is where its 32 bits of a prefix are. */
static bool read_address(const char **at, struct rdmastream_rule *rule)
{
	bool v6 = **at == '[';
	char word[INET6_ADDRSTRLEN];
	size_t len;
	unsigned long bits = v6 ? 128 : 32;

	*at += v6;
	len = strcspn(*at, v6 ? "]" : "/:,");
	if (len >= sizeof(word) || (v6 && (*at)[len] != ']'))
		return false;
	memcpy(word, *at, len);
	word[len] = '\0';
	*at += len + v6;
	if (!v6)
		rule->addr[10] = rule->addr[11] = 0xff;
	if (inet_pton(v6 ? AF_INET6 : AF_INET, word, rule->addr + (v6 ? 0 : 12)) != 1)
		return false;
	if (**at == '/' && (++*at, !read_number(at, bits, &bits)))
		return false;
	rule->prefix_len = v6 ? bits : 96 + bits;
	return true;
}

static bool read_ports(const char **at, struct rdmastream_rule *rule)
{
	unsigned long min, max;

	++*at;
	if (!read_number(at, 65535, &min))
		return false;
	max = min;
	if (**at == '-' && (++*at, !read_number(at, 65535, &max)))
		return false;
	rule->port_min = min;
	rule->port_max = max;
	return min <= max;
}

static bool read_rule(const char **at, struct rdmastream_rule *rule)
{
	*rule = (struct rdmastream_rule){ .exclude = **at == 'x', .port_max = 65535 };
	if (**at != 'x' && **at != 'i')
		return false;
	++*at;
	if (**at != ':' && !read_address(at, rule))
		return false;
	if (**at == ':' && !read_ports(at, rule))
		return false;
	return !**at || **at == ',';
}

int run_read_rules(const char *text, struct rdmastream_rule *rules)
{
	int n = 0;

	for (;;) {
		if (n == RDMASTREAM_RULES_MAX || !read_rule(&text, &rules[n++]))
			return -1;
		if (!*text++)
			return n;
	}
}

void run_read_wish(struct run_wish *wish)
{
	const char *protocol = getenv(RUN_PROTO), *rules = getenv(RUN_RULES);

	wish->protocol = protocol ? atoi(protocol) : 0;
	if (wish->protocol <= 0)
		wish->protocol = IPPROTO_RDMASTREAM;
	wish->rules = rules && *rules ? run_read_rules(rules, wish->rule) : 0;
}

bool run_set_rules(int fd, const struct run_wish *wish)
{
	if (wish->rules <= 0)
		return !wish->rules;
	return !setsockopt(fd, SOL_RDMASTREAM, RDMASTREAM_RULES, wish->rule,
			   wish->rules * sizeof(wish->rule[0]));
}
