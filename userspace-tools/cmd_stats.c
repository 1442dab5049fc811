// SPDX-License-Identifier: GPL-2.0-only
/* rsctl stats: the counters of this network namespace. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static const char * const kinds[] = { "counter", "reason", "switch", NULL };

static void object(const char *kind, char *name, uint64_t val,
		   const struct item *item)
{
	json_object(NULL);
	json_choice("kind", kind, kinds);
	json_take("name", name);
	json_uint("value", &val);
	json_str("text", item ? item->text : NULL);
	json_object_end();
}

#define SAMPLES	16

/* One counter; what was when the watching began is the zero of "since". */
struct watched {
	uint64_t first, last;
	double rates[SAMPLES];	/* per second, the newest last */
};

static struct group {
	const char *kind, *prefix;
	unsigned int attr;
	const struct item *(*item_of)(uint64_t);
	struct watched counters[ATTRS_MAX];
} groups[] = {
	{ "counter", "", RDMASTREAM_A_STATS_COUNTERS, counter_item, { { 0 } } },
	{ "reason", "reason:", RDMASTREAM_A_STATS_REASONS, reason_item,
	  { { 0 } } },
	{ "switch", "switch:", RDMASTREAM_A_STATS_SWITCHES, reason_item,
	  { { 0 } } },
};

#define N_GROUPS	(sizeof(groups) / sizeof(groups[0]))

_Static_assert(RDMASTREAM_A_COUNTERS_MAX <= ATTRS_MAX &&
	       RDMASTREAM_A_REASON_COUNTERS_MAX <= ATTRS_MAX,
	       "rsctl stats does not see all counters of the netlink spec");

/*
 * @t: NULL for JSON.  A counter's attribute is its place in the list plus one.
 */
static void show(struct table *t, const struct group *g, const struct nlattr *nest)
{
	const char *prefix = t ? g->prefix : "";
	const struct item *item;
	unsigned int i;
	struct attrs a;
	uint64_t val;
	char *name;

	attrs_nested(&a, nest);
	for (i = 1; i <= a.max && i <= ATTRS_MAX; i++) {
		if (!attr_uint(&a, i, &val))
			continue;
		if (!val && !opt.stats && !opt.details)
			continue;
		item = g->item_of(i - 1);
		name = item ? xprintf("%s%s", prefix, item->name) :
			      xprintf("%s%u", prefix, i - 1);
		if (t)
			row(t, name, val, item);
		else
			object(g->kind, name, val, item);
	}
}

/* ---- again and again, with rates ---- */

static const struct column watch_columns[] = {
	{ "COUNTER", false }, { "SINCE", true }, { "PER SECOND", true },
	{ "", false },
};

static void watch_row(struct table *t, const char *prefix, const char *name,
		      const struct watched *w)
{
	double rate = w->rates[SAMPLES - 1];

	table_cell(t, xprintf("%s%s", prefix, name), PAINT_NONE);
	table_cell(t, human_number(w->last - w->first), PAINT_NONE);
	table_cell(t, rate < 10 ? xprintf("%.1f", rate) : human_number(rate),
		   rate > 0 ? PAINT_GOOD : PAINT_NONE);
	table_cell(t, spark(w->rates, SAMPLES), PAINT_NONE);
}

static void watch_object(const char *kind, const char *name,
			 const struct watched *w)
{
	uint64_t since = w->last - w->first;

	json_object(NULL);
	json_choice("kind", kind, kinds);
	json_str("name", name);
	json_uint("value", &w->last);
	json_uint("since", &since);
	json_double("rate", &w->rates[SAMPLES - 1]);
	json_object_end();
}

/* @seconds since the last look, 0: this is the first one. */
static void watch_counter(struct watched *w, uint64_t val, double seconds)
{
	if (seconds > 0) {
		memmove(w->rates, w->rates + 1,
			sizeof(w->rates) - sizeof(w->rates[0]));
		w->rates[SAMPLES - 1] = val >= w->last ?
					(val - w->last) / seconds : 0;
	}
	/* the module may have been loaded anew */
	if (seconds <= 0 || val < w->last)
		w->first = val;
	w->last = val;
}

static void watch_group(struct table *t, unsigned int g, const struct attrs *a,
			double seconds)
{
	const struct item *item;
	struct watched *w;
	struct attrs list;
	uint64_t val;
	unsigned int i;

	attrs_nested(&list, a->tb[groups[g].attr]);
	for (i = 1; (item = groups[g].item_of(i - 1)) && i <= ATTRS_MAX; i++) {
		if (!attr_uint(&list, i, &val))
			continue;
		w = &groups[g].counters[i - 1];
		watch_counter(w, val, seconds);
		if (seconds <= 0 || (w->last == w->first && !opt.stats))
			continue;
		if (t)
			watch_row(t, groups[g].prefix, item->name, w);
		else
			watch_object(groups[g].kind, item->name, w);
	}
}

static int look(double seconds)
{
	unsigned int n = sizeof(watch_columns) / sizeof(watch_columns[0]);
	struct table *t = NULL;
	struct replies r;
	struct attrs a;
	unsigned int g;
	int ret = ask_one(RDMASTREAM_CMD_STATS_GET, &r, &a);

	if (ret)
		return ret;
	if (opt.json && seconds > 0)
		json_array();
	if (!opt.json)
		t = table_new(watch_columns, n);
	for (g = 0; g < N_GROUPS; g++)
		watch_group(t, g, &a, seconds);
	replies_free(&r);
	if (t && seconds > 0 && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	if (t)
		table_print(t);
	else if (seconds > 0)
		json_array_end();
	if (seconds > 0 && !opt.json && !isatty(STDOUT_FILENO))
		putchar('\n');
	return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

static int watch(void)
{
	int64_t last = now_ms(), at;
	int ret = look(0);

	while (!ret) {
		sleep(opt.watch);
		at = now_ms();
		ret = look((at - last) / 1000.0);
		last = at;
	}
	return ret;
}

void stats_json(void)
{
	object(NULL, xprintf("%s", ""), 0, NULL);
}

void stats_watch_json(void)
{
	static const struct watched none;

	watch_object(NULL, "", &none);
}

int cmd_stats(int argc, char **argv)
{
	struct replies r;
	struct table *t;
	struct attrs a;
	unsigned int g;
	int ret;

	if (no_arguments(argc, argv))
		return EXIT_USAGE;
	if (opt.watch)
		return watch();
	ret = ask_one(RDMASTREAM_CMD_STATS_GET, &r, &a);
	if (ret)
		return ret;
	t = entries_begin(columns, sizeof(columns) / sizeof(columns[0]));
	for (g = 0; g < N_GROUPS; g++)
		show(t, &groups[g], a.tb[groups[g].attr]);
	entries_end(t);
	replies_free(&r);
	return EXIT_OK;
}
