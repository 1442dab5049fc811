// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl show, rsctl set: settings of this network namespace, those of
 * /proc/sys/net/rdmastream.  Ranges are the kernel's to know.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

static const struct column columns[] = {
	{ "SETTING", false }, { "VALUE", true }, { "DEFAULT", true },
	{ "RANGE", false },
};

static int get_settings(struct replies *r)
{
	return genl_ask(RDMASTREAM_CMD_SETTING_GET, true, r);
}

static const char *setting_name(const struct nlmsghdr *msg)
{
	struct attrs a;

	attrs_of(&a, msg);
	return attr_str(&a, RDMASTREAM_A_SETTING_NAME);
}

/*
 * The one setting that @word, perhaps abbreviated, names; "-" is as good as "_",
 * and what sysctl(8) puts before it is no harm.  -1: none, or several.
 */
static int find_setting(const struct replies *r, const char *word)
{
	static const char before[] = "net.rdmastream.";
	unsigned int n = 0;
	int found = -1;
	char *plain, *p;
	size_t i;

	if (!strncmp(word, before, strlen(before)))
		word += strlen(before);
	plain = xprintf("%s", word);
	for (p = plain; *p; p++)
		if (*p == '-')
			*p = '_';
	for (i = 0; i < r->n; i++) {
		const char *name = setting_name(r->msg[i]);

		if (!name || !begins(name, plain))
			continue;
		found = i;
		n++;
		if (!strcmp(name, plain)) {
			n = 1;
			break;
		}
	}
	free(plain);
	if (n == 1)
		return found;
	complain(n ? "several settings start with \"%s\", see \"rsctl show\"" :
		     "there is no setting \"%s\", see \"rsctl show\"", word);
	return -1;
}

static char *range(const struct attrs *a)
{
	uint64_t min, max;

	if (a->tb[RDMASTREAM_A_SETTING_READ_ONLY])
		return xprintf("read-only");
	if (!attr_uint(a, RDMASTREAM_A_SETTING_MINIMUM, &min) ||
	    !attr_uint(a, RDMASTREAM_A_SETTING_MAXIMUM, &max))
		return NULL;
	if (max == UINT64_MAX || max == UINT32_MAX)
		return xprintf("from %" PRIu64, min);
	return xprintf("%" PRIu64 " to %" PRIu64 "%s", min, max,
		       a->tb[RDMASTREAM_A_SETTING_POWER_OF_TWO] ?
		       ", powers of 2" : "");
}

static void row(struct table *t, const struct attrs *a)
{
	const char *name = attr_str(a, RDMASTREAM_A_SETTING_NAME);
	uint64_t val = 0, def = 0;
	bool changed = attr_uint(a, RDMASTREAM_A_SETTING_VALUE, &val) &&
		       attr_uint(a, RDMASTREAM_A_SETTING_DEFAULT, &def) &&
		       val != def;

	table_cell(t, name ? xprintf("%s", name) : NULL, PAINT_NONE);
	table_cell(t, xprintf("%" PRIu64, val), changed ? PAINT_WARN : PAINT_NONE);
	table_num(t, a, RDMASTREAM_A_SETTING_DEFAULT);
	table_cell(t, range(a), PAINT_NONE);
}

static void object(const struct attrs *a)
{
	json_object(NULL);
	json_attr_str("name", a, RDMASTREAM_A_SETTING_NAME);
	json_attr("value", a, RDMASTREAM_A_SETTING_VALUE);
	json_attr("default", a, RDMASTREAM_A_SETTING_DEFAULT);
	json_attr("min", a, RDMASTREAM_A_SETTING_MINIMUM);
	json_attr("max", a, RDMASTREAM_A_SETTING_MAXIMUM);
	json_bool("power_of_two", a->tb[RDMASTREAM_A_SETTING_POWER_OF_TWO]);
	json_bool("read_only", a->tb[RDMASTREAM_A_SETTING_READ_ONLY]);
	json_object_end();
}

static const struct entries entries = {
	RDMASTREAM_CMD_SETTING_GET, NULL, columns,
	sizeof(columns) / sizeof(columns[0]), row, object
};

static void show(const struct replies *r, int only)
{
	struct table *t = entries_begin(columns, entries.n_columns);
	struct attrs a;
	size_t i;

	for (i = 0; i < r->n; i++) {
		if (only >= 0 && i != (size_t)only)
			continue;
		attrs_of(&a, r->msg[i]);
		entry_show(&entries, t, &a);
	}
	entries_end(t);
}

void show_json(void)
{
	entries_schema(&entries);
}

int cmd_show(int argc, char **argv)
{
	struct replies r;
	int one = -1;
	int ret;

	if (argc > 2)
		return no_arguments(argc - 1, argv + 1);
	ret = get_settings(&r);
	if (ret)
		return ret;
	if (argc == 2) {
		one = find_setting(&r, argv[1]);
		if (one < 0)
			ret = EXIT_USAGE;
	}
	if (!ret)
		show(&r, one);
	replies_free(&r);
	return ret;
}

/* A number, perhaps with K, M or G behind it.  Return: 0 or EXIT_USAGE */
static int get_value(const char *word, uint64_t *val)
{
	static const char units[] = "KMG";
	unsigned long long num;
	const char *unit;
	unsigned int shift = 0;
	char *end;

	errno = 0;
	num = strtoull(word, &end, 0);
	if (*word >= '0' && *word <= '9' && *end && !end[1]) {
		unit = isalpha((unsigned char)*end) ?
		       strchr(units, toupper((unsigned char)*end)) : NULL;
		if (unit) {
			shift = 10 * (unit - units + 1);
			end++;
		}
	}
	if (*word < '0' || *word > '9' || *end || errno ||
	    num > UINT64_MAX >> shift) {
		complain("set: \"%s\" is not a number", word);
		return EXIT_USAGE;
	}
	*val = (uint64_t)num << shift;
	return 0;
}

int cmd_set(int argc, char **argv)
{
	struct wants wants = { 0 };
	const char *name;
	struct replies r;
	uint64_t val;
	int one, ret;

	/* "set NAME=VALUE", too */
	if (argc == 2 && strchr(argv[1], '=')) {
		char *sign = strchr(argv[1], '=');
		char *words[] = { argv[0], argv[1], sign + 1, NULL };

		*sign = '\0';
		return cmd_set(3, words);
	}
	if (argc != 3) {
		complain("set takes a setting and a value, see \"rsctl show\"");
		return EXIT_USAGE;
	}
	if (get_value(argv[2], &val))
		return EXIT_USAGE;
	ret = get_settings(&r);
	if (ret)
		return ret;
	one = find_setting(&r, argv[1]);
	if (one < 0) {
		ret = EXIT_USAGE;
	} else {
		name = setting_name(r.msg[one]);
		want(&wants, RDMASTREAM_A_SETTING_NAME, name, strlen(name) + 1);
		want(&wants, RDMASTREAM_A_SETTING_VALUE, &val, sizeof(val));
		ret = genl_set(RDMASTREAM_CMD_SETTING_SET, &wants);
	}
	replies_free(&r);
	return ret;
}
