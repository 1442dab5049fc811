// SPDX-License-Identifier: GPL-2.0-only
/* rsctl peers: other network namespaces, and how links to them went. */
#include <inttypes.h>
#include <linux/genetlink.h>
#include <stdlib.h>

#include "rsctl.h"

static const struct column columns[] = {
	{ "PEER", false }, { "LINKS", true }, { "CONNECTING", true },
	{ "WAITING", true }, { "MADE BY", false }, { "STATE", false },
	{ "LAST LINK ENDED", false },
};

static const char *made_by(const struct attrs *a)
{
	return a->tb[RDMASTREAM_A_PEER_ACTIVE] ? "us" : "peer";
}

static char *state(const struct attrs *a)
{
	return xprintf("%s", a->tb[RDMASTREAM_A_PEER_SELF] ? "self" :
			     a->tb[RDMASTREAM_A_PEER_DRAINED] ? "drained" : "-");
}

/* "why, 1.234s ago" */
static char *ended(const struct attrs *a)
{
	const char *why = attr_str(a, RDMASTREAM_A_PEER_END_TEXT);
	uint64_t ms;

	if (!why || !attr_uint(a, RDMASTREAM_A_PEER_END_MS, &ms))
		return NULL;
	return xprintf("%s, %" PRIu64 ".%03us ago", why, ms / 1000,
		       (unsigned int)(ms % 1000));
}

static void note_path(struct table *t, const struct nlattr *nest)
{
	char *local, *remote, *fails, *refused, *flaps, *retry;
	struct attrs p;

	attrs_nested(&p, nest);
	local = attr_address(&p, RDMASTREAM_A_PATH_LOCAL);
	remote = attr_endpoint(&p, RDMASTREAM_A_PATH_REMOTE);
	fails = attr_number(&p, RDMASTREAM_A_PATH_FAILS);
	refused = attr_number(&p, RDMASTREAM_A_PATH_REFUSED);
	flaps = attr_number(&p, RDMASTREAM_A_PATH_FLAPS);
	retry = attr_number(&p, RDMASTREAM_A_PATH_RETRY_MS);
	table_note(t, xprintf("path %s > %s  %s  failed %s  refused %s  flaps %s  retry-ms %s",
			      local ? local : "*", remote ? remote : "-",
			      p.tb[RDMASTREAM_A_PATH_TCP] ? "tcp" : "advertised",
			      fails, refused, flaps, retry ? retry : "-"));
	free(local);
	free(remote);
	free(fails);
	free(refused);
	free(flaps);
	free(retry);
}

static void row(struct table *t, const struct attrs *a)
{
	const struct nlattr *attr;
	uint64_t links = 0;

	attr_uint(a, RDMASTREAM_A_PEER_LINKS, &links);
	table_cell(t, attr_peer(a, RDMASTREAM_A_PEER_INSTANCE),
		   links ? PAINT_GOOD : PAINT_NONE);
	table_num(t, a, RDMASTREAM_A_PEER_LINKS);
	table_num(t, a, RDMASTREAM_A_PEER_CONNECTING);
	table_num(t, a, RDMASTREAM_A_PEER_WAITING);
	table_cell(t, xprintf("%s", made_by(a)), PAINT_NONE);
	table_cell(t, state(a), PAINT_NONE);
	table_cell(t, ended(a), PAINT_NONE);
	if (opt.details || opt.stats)
		each_attr(attr, a->msg, RDMASTREAM_A_PEER_PATH)
			note_path(t, attr);
}

static void object_path(const struct nlattr *nest)
{
	struct attrs p;

	attrs_nested(&p, nest);
	json_object(NULL);
	json_attr_address("local", &p, RDMASTREAM_A_PATH_LOCAL);
	json_attr_endpoint("remote", &p, RDMASTREAM_A_PATH_REMOTE);
	json_bool("tcp", p.tb[RDMASTREAM_A_PATH_TCP]);
	json_attr("fails", &p, RDMASTREAM_A_PATH_FAILS);
	json_attr("refused", &p, RDMASTREAM_A_PATH_REFUSED);
	json_attr("flaps", &p, RDMASTREAM_A_PATH_FLAPS);
	json_attr("retry_ms", &p, RDMASTREAM_A_PATH_RETRY_MS);
	json_object_end();
}

static void object(const struct attrs *a)
{
	json_object(NULL);
	json_attr_id("peer", a, RDMASTREAM_A_PEER_INSTANCE);
	json_bool("active", a->tb[RDMASTREAM_A_PEER_ACTIVE]);
	json_bool("self", a->tb[RDMASTREAM_A_PEER_SELF]);
	json_bool("drained", a->tb[RDMASTREAM_A_PEER_DRAINED]);
	json_attr("links", a, RDMASTREAM_A_PEER_LINKS);
	json_attr("connecting", a, RDMASTREAM_A_PEER_CONNECTING);
	json_attr("waiting", a, RDMASTREAM_A_PEER_WAITING);
	json_attr_str("end_text", a, RDMASTREAM_A_PEER_END_TEXT);
	json_attr("end_ms", a, RDMASTREAM_A_PEER_END_MS);
	json_list("paths", a, RDMASTREAM_A_PEER_PATH, object_path);
	json_object_end();
}

static const struct filter_key keys[] = {
	{ "peer", FILTER_PEER, RDMASTREAM_A_PEER_INSTANCE },
	{ NULL }
};

static const struct entries entries = {
	RDMASTREAM_CMD_PEER_GET, keys, columns,
	sizeof(columns) / sizeof(columns[0]), row, object
};

void peers_json(void)
{
	entries_schema(&entries);
}

int cmd_peers(int argc, char **argv)
{
	return entries_show_one(&entries, argc, argv);
}
