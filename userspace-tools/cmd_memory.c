// SPDX-License-Identifier: GPL-2.0-only
/* rsctl memory: registered receive memory of this network namespace. */
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

#define BAR	20	/* characters */

static const struct column columns[] = {
	{ "LINK", true }, { "DEVICE", false }, { "KIND", false },
	{ "BYTES", true }, { "USED", true }, { "", false },
};

static const struct filter_key keys[] = {
	{ "link", FILTER_U32, RDMASTREAM_A_RMB_LINK },
	{ "device", FILTER_STRING, RDMASTREAM_A_RMB_DEVICE },
	{ NULL }
};

/* How much of @whole @part is. */
static char *bar(uint64_t part, uint64_t whole)
{
	unsigned int i, n = 0;
	char text[BAR + 1];

	if (!whole)
		return NULL;
	if (part)
		n = part >= whole ? BAR : 1 + part * (BAR - 1) / whole;
	for (i = 0; i < BAR; i++)
		text[i] = i < n ? '#' : '.';
	text[BAR] = '\0';
	return xprintf("%s", text);
}

static void row(struct table *t, const struct attrs *a)
{
	uint64_t bytes = 0, used = 0;

	attr_uint(a, RDMASTREAM_A_RMB_BYTES, &bytes);
	attr_uint(a, RDMASTREAM_A_RMB_USED, &used);
	table_num(t, a, RDMASTREAM_A_RMB_LINK);
	table_cell(t, xprintf("%s", attr_str(a, RDMASTREAM_A_RMB_DEVICE) ?: "-"),
		   PAINT_NONE);
	table_cell(t, attr_word(a, RDMASTREAM_A_RMB_KIND, WORD_RMB_KIND),
		   PAINT_NONE);
	table_bytes(t, a, RDMASTREAM_A_RMB_BYTES);
	table_bytes(t, a, RDMASTREAM_A_RMB_USED);
	table_cell(t, bar(used, bytes), PAINT_NONE);
}

static void object(const struct attrs *a)
{
	json_object(NULL);
	json_attr("link", a, RDMASTREAM_A_RMB_LINK);
	json_attr_str("device", a, RDMASTREAM_A_RMB_DEVICE);
	json_attr_word("kind", a, RDMASTREAM_A_RMB_KIND, WORD_RMB_KIND);
	json_attr("bytes", a, RDMASTREAM_A_RMB_BYTES);
	json_attr("used", a, RDMASTREAM_A_RMB_USED);
	json_object_end();
}

/* The namespace as a whole. */
static int total(void)
{
	uint64_t bytes, max;
	char *b, *m, *drawn;
	struct replies r;
	struct attrs a;
	int ret = ask_one(RDMASTREAM_CMD_INFO_GET, &r, &a);

	if (ret)
		return ret;
	if (attr_uint(&a, RDMASTREAM_A_INFO_RMB_BYTES, &bytes) &&
	    attr_uint(&a, RDMASTREAM_A_INFO_RMB_MAX, &max)) {
		b = human_bytes(bytes);
		m = human_bytes(max);
		drawn = bar(bytes, max);
		printf("rings: %s of %s %s%s\n", b, m,
		       drawn ? drawn : "",
		       a.tb[RDMASTREAM_A_INFO_RMB_SHORT] ? "  short" : "");
		free(b);
		free(m);
		free(drawn);
	}
	replies_free(&r);
	return EXIT_OK;
}

static const struct entries entries = {
	RDMASTREAM_CMD_MEMORY_GET, keys, columns,
	sizeof(columns) / sizeof(columns[0]), row, object
};

void memory_json(void)
{
	entries_schema(&entries);
}

int cmd_memory(int argc, char **argv)
{
	int ret = !opt.json && argc == 1 ? total() : EXIT_OK;

	if (ret)
		return ret;
	return entries_show(&entries, argc, argv);
}
