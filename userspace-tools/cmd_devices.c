// SPDX-License-Identifier: GPL-2.0-only
/* rsctl devices: ports of RDMA devices: which can be used, which not and why. */
#include <inttypes.h>
#include <linux/genetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

static const struct column columns[] = {
	{ "DEVICE", false }, { "USABLE", false }, { "WHY NOT", false },
	{ "LINKS", true }, { "NETDEV", false }, { "ADDRESSES", false },
};

/* By the numbers of the netlink spec; device_advice() for check. */
static const char * const advices[] = {
	[RDMASTREAM_DEVICE_PROBLEM_NO_REGISTRATION] =
		"the device does not support fast memory registration; it is too old",
	[RDMASTREAM_DEVICE_PROBLEM_SMALL_QUEUES] =
		"the queues of the device are too short",
	[RDMASTREAM_DEVICE_PROBLEM_PORT_DOWN] =
		"see \"rdma link\"; set the network interface up, check the cable, or InfiniBand's subnet manager",
	[RDMASTREAM_DEVICE_PROBLEM_NO_ADDRESS] =
		"give its network interface (InfiniBand: that of ib_ipoib) an address in this network namespace",
};

const char *device_advice(uint64_t problem)
{
	if (problem < sizeof(advices) / sizeof(advices[0]))
		return advices[problem];
	return NULL;
}

static char *name(const struct attrs *a)
{
	const char *dev = attr_str(a, RDMASTREAM_A_DEVICE_NAME);
	uint64_t port = 0;

	attr_uint(a, RDMASTREAM_A_DEVICE_PORT, &port);
	return xprintf("%s/%" PRIu64, dev ? dev : "-", port);
}

static char *netdev(const struct attrs *a)
{
	char text[IF_NAMESIZE];
	uint64_t ifindex;

	if (!attr_uint(a, RDMASTREAM_A_DEVICE_IFINDEX, &ifindex))
		return NULL;
	if (!opt.numeric && if_indextoname(ifindex, text))
		return xprintf("%s", text);
	return xprintf("%" PRIu64, ifindex);
}

static char *problem(const struct attrs *a, uint64_t *val)
{
	*val = 0;
	attr_uint(a, RDMASTREAM_A_DEVICE_PROBLEM, val);
	return *val ? word_of(WORD_PROBLEM, *val) : NULL;
}

static char *addresses(const struct attrs *a)
{
	char *all = NULL, *one, *more;
	const struct nlattr *attr;

	each_attr(attr, a->msg, RDMASTREAM_A_DEVICE_ADDR) {
		one = endpoint_of(attr, false);
		if (!one)
			continue;
		more = xprintf("%s%s%s", all ? all : "", all ? " " : "", one);
		free(all);
		free(one);
		all = more;
	}
	return all;
}

static void row(struct table *t, const struct attrs *a)
{
	uint64_t val;
	char *why = problem(a, &val);
	const char *advice = device_advice(val);

	table_cell(t, name(a), PAINT_NONE);
	table_cell(t, xprintf("%s", val ? "no" : "yes"),
		   val ? PAINT_BAD : PAINT_GOOD);
	table_cell(t, why, PAINT_NONE);
	table_num(t, a, RDMASTREAM_A_DEVICE_LINKS);
	table_cell(t, netdev(a), PAINT_NONE);
	table_cell(t, addresses(a), PAINT_NONE);
	if (opt.details && advice)
		table_note(t, xprintf("%s", advice));
}

static void object(const struct attrs *a)
{
	uint64_t val;
	char *why = problem(a, &val);

	json_object(NULL);
	json_attr_str("device", a, RDMASTREAM_A_DEVICE_NAME);
	json_attr("port", a, RDMASTREAM_A_DEVICE_PORT);
	json_bool("usable", !val);
	json_take("problem", why);
	json_attr("links", a, RDMASTREAM_A_DEVICE_LINKS);
	json_take("netdev", netdev(a));
	json_list("addresses", a, RDMASTREAM_A_DEVICE_ADDR, json_address);
	json_object_end();
}

static const struct filter_key keys[] = {
	{ "device", FILTER_STRING, RDMASTREAM_A_DEVICE_NAME },
	{ NULL }
};

static const struct entries entries = {
	RDMASTREAM_CMD_DEVICE_GET, keys, columns,
	sizeof(columns) / sizeof(columns[0]), row, object
};

void devices_json(void)
{
	entries_schema(&entries);
}

int cmd_devices(int argc, char **argv)
{
	return entries_show_one(&entries, argc, argv);
}
