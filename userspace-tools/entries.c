// SPDX-License-Identifier: GPL-2.0-only
/* What the module is asked for and how it is shown: entries, as a table or as JSON. */
#include "rsctl.h"

int ask_one(uint8_t cmd, struct replies *r, struct attrs *a)
{
	int ret = genl_ask(cmd, false, r);

	if (ret)
		return ret;
	if (!r->n) {
		complain("netlink: no answer");
		replies_free(r);
		return EXIT_FAILED;
	}
	attrs_of(a, r->msg[0]);
	return EXIT_OK;
}

struct table *entries_begin(const struct column *columns, unsigned int n)
{
	if (!opt.json)
		return table_new(columns, n);
	json_array();
	return NULL;
}

void entries_end(struct table *t)
{
	if (t)
		table_print(t);
	else
		json_array_end();
}

void entry_show(const struct entries *e, struct table *t, const struct attrs *a)
{
	if (t)
		e->row(t, a);
	else
		e->object(a);
}

void entries_schema(const struct entries *e)
{
	static const struct attrs none;

	e->object(&none);
}

int entries_show(const struct entries *e, int argc, char **argv)
{
	struct filter filter = { 0 };
	struct replies r;
	struct table *t;
	struct attrs a;
	size_t i;
	int ret = filter_parse(argc, argv, e->keys, &filter);

	if (!ret)
		ret = genl_ask_for(e->cmd, true, &filter.wants, &r);
	if (ret)
		return ret;
	t = entries_begin(e->columns, e->n_columns);
	for (i = 0; i < r.n; i++) {
		attrs_of(&a, r.msg[i]);
		if (filter_fits(&filter, &a))
			entry_show(e, t, &a);
	}
	entries_end(t);
	replies_free(&r);
	return EXIT_OK;
}

int entries_show_one(const struct entries *e, int argc, char **argv)
{
	char *words[] = { argv[0], (char *)e->keys[0].name, argv[1] };

	if (argc > 2)
		return no_arguments(argc - 1, argv + 1);
	return entries_show(e, argc > 1 ? 3 : 1, words);
}
