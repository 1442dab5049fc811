// SPDX-License-Identifier: GPL-2.0-only
/* Attributes of netlink messages: by number, as values, as words. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/genetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

static void note(struct attrs *a, const struct nlattr *attr)
{
	unsigned int type = mnl_attr_get_type(attr);

	if (type <= ATTRS_MAX)
		a->tb[type] = attr;
	if (type > a->max)
		a->max = type;
}

void attrs_of(struct attrs *a, const struct nlmsghdr *msg)
{
	const struct nlattr *attr;

	memset(a, 0, sizeof(*a));
	a->msg = msg;
	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
		note(a, attr);
}

bool attrs_nested(struct attrs *a, const struct nlattr *nest)
{
	const struct nlattr *attr;

	memset(a, 0, sizeof(*a));
	a->nest = nest;
	if (!nest)
		return false;
	mnl_attr_for_each_nested(attr, nest)
		note(a, attr);
	return true;
}

bool attr_uint(const struct attrs *a, unsigned int type, uint64_t *val)
{
	const struct nlattr *attr = a->tb[type];

	if (!attr)
		return false;
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		*val = mnl_attr_get_u8(attr);
		return true;
	case 2:
		*val = mnl_attr_get_u16(attr);
		return true;
	case 4:
		*val = mnl_attr_get_u32(attr);
		return true;
	case 8:
		*val = mnl_attr_get_u64(attr);
		return true;
	default:
		return false;
	}
}

const char *attr_str(const struct attrs *a, unsigned int type)
{
	const struct nlattr *attr = a->tb[type];

	if (!attr || mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) < 0)
		return NULL;
	return mnl_attr_get_str(attr);
}

char *attr_hex(const struct attrs *a, unsigned int type)
{
	const struct nlattr *attr = a->tb[type];
	const uint8_t *bytes;
	size_t i, len;
	char *hex;

	if (!attr)
		return NULL;
	bytes = mnl_attr_get_payload(attr);
	len = mnl_attr_get_payload_len(attr);
	hex = xcalloc(len + 1, 2);
	for (i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
	return hex;
}

static char *scope_name(const struct attrs *a)
{
	char name[IF_NAMESIZE];
	uint64_t scope;

	if (!attr_uint(a, RDMASTREAM_A_ENDPOINT_SCOPE, &scope))
		return xprintf("%s", "");
	if (!opt.numeric && if_indextoname(scope, name))
		return xprintf("%%%s", name);
	return xprintf("%%%u", (unsigned int)scope);
}

char *endpoint_of(const struct nlattr *nest, bool with_port)
{
	char text[INET6_ADDRSTRLEN];
	const struct nlattr *addr;
	char *scope, *all;
	uint64_t port = 0;
	struct attrs a;
	size_t len;

	if (!attrs_nested(&a, nest))
		return NULL;
	addr = a.tb[RDMASTREAM_A_ENDPOINT_ADDR];
	len = addr ? mnl_attr_get_payload_len(addr) : 0;
	if (len != 4 && len != 16)
		return NULL;
	if (!inet_ntop(len == 4 ? AF_INET : AF_INET6,
		       mnl_attr_get_payload(addr), text, sizeof(text)))
		return NULL;
	attr_uint(&a, RDMASTREAM_A_ENDPOINT_PORT, &port);
	if (len == 4)
		return with_port ? xprintf("%s:%u", text, ntohs(port)) :
				   xprintf("%s", text);
	scope = scope_name(&a);
	all = with_port ? xprintf("[%s%s]:%u", text, scope, ntohs(port)) :
			  xprintf("%s%s", text, scope);
	free(scope);
	return all;
}

char *attr_endpoint(const struct attrs *a, unsigned int type)
{
	return endpoint_of(a->tb[type], true);
}

char *attr_address(const struct attrs *a, unsigned int type)
{
	return endpoint_of(a->tb[type], false);
}

bool attr_in6(const struct attrs *a, unsigned int type, struct in6_addr *addr)
{
	static const struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	const struct nlattr *bytes;
	struct attrs end;
	size_t len;

	attrs_nested(&end, a->tb[type]);
	bytes = end.tb[RDMASTREAM_A_ENDPOINT_ADDR];
	len = bytes ? mnl_attr_get_payload_len(bytes) : 0;
	if (len != 4 && len != 16)
		return false;
	*addr = mapped;
	memcpy(addr->s6_addr + 16 - len, mnl_attr_get_payload(bytes), len);
	return true;
}

char *attr_word(const struct attrs *a, unsigned int type, int list)
{
	uint64_t val;

	return attr_uint(a, type, &val) ? word_of(list, val) : NULL;
}

char *attr_reason(const struct attrs *a, unsigned int type)
{
	uint64_t val;

	return attr_uint(a, type, &val) ? reason_name(val) : NULL;
}

char *attr_number(const struct attrs *a, unsigned int type)
{
	uint64_t val;

	return attr_uint(a, type, &val) ? xprintf("%" PRIu64, val) : NULL;
}

char *attr_peer(const struct attrs *a, unsigned int type)
{
	char *hex = attr_hex(a, type);

	if (hex && !opt.details && strlen(hex) > 8)
		hex[8] = '\0';
	return hex;
}
