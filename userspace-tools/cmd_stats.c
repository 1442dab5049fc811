// SPDX-License-Identifier: GPL-2.0-only
/* rsctl stats: the counters of this network namespace. */
#include <inttypes.h>
#include <stdlib.h>

#include "rsctl.h"

static const struct column columns[] = {
	{ "COUNTER", false }, { "VALUE", true }, { "MEANING", false },
};

static void row(struct table *t, char *name, uint64_t val,
		const struct item *item)
{
	table_cell(t, name, PAINT_NONE);
	table_cell(t, xprintf("%" PRIu64, val), PAINT_NONE);
	table_cell(t, item ? xprintf("%s", item->text) : NULL, PAINT_NONE);
}

static void object(const char *kind, char *name, uint64_t val,
		   const struct item *item)
{
	json_object(NULL);
	json_str("kind", kind);
	json_take("name", name);
	json_uint("value", &val);
	json_str("text", item ? item->text : NULL);
	json_object_end();
}

/*
 * @t: NULL for JSON.  A counter's attribute is its place in the list plus one.
 */
static void show(struct table *t, const char *kind, const struct nlattr *nest,
		 const struct item *(*item_of)(uint64_t), const char *prefix)
{
	const struct item *item;
	unsigned int i;
	struct attrs a;
	uint64_t val;
	char *name;

	attrs_nested(&a, nest);
	for (i = 1; i <= a.max && i < sizeof(a.tb) / sizeof(a.tb[0]); i++) {
		if (!attr_uint(&a, i, &val))
			continue;
		if (!val && !opt.stats && !opt.details)
			continue;
		item = item_of(i - 1);
		prefix = t ? prefix : "";
		name = item ? xprintf("%s%s", prefix, item->name) :
			      xprintf("%s%u", prefix, i - 1);
		if (t)
			row(t, name, val, item);
		else
			object(kind, name, val, item);
	}
}

int cmd_stats(int argc, char **argv)
{
	struct table *t = NULL;
	struct replies r;
	struct attrs a;
	int ret;

	if (no_arguments(argc, argv))
		return EXIT_USAGE;
	ret = genl_ask(RDMASTREAM_CMD_STATS_GET, false, &r);
	if (ret)
		return ret;
	if (opt.json)
		json_array();
	else
		t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	if (r.n) {
		attrs_of(&a, r.msg[0]);
		show(t, "counter", a.tb[RDMASTREAM_A_STATS_COUNTERS],
		     counter_item, "");
		show(t, "reason", a.tb[RDMASTREAM_A_STATS_REASONS],
		     reason_item, "reason:");
		show(t, "switch", a.tb[RDMASTREAM_A_STATS_SWITCHES],
		     reason_item, "switch:");
	}
	if (t)
		table_print(t);
	else
		json_array_end();
	replies_free(&r);
	return EXIT_OK;
}
