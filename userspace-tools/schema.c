// SPDX-License-Identifier: GPL-2.0-only
/* rsctl -j help: the JSON schema of what the commands write. */
#include <stdio.h>

#include "rsctl.h"

static const struct def {
	const char *name, *text;
	void (*json)(void);
} defs[] = {
	{ "links", "RDMA links to other hosts.", links_json },
	{ "sockets", "Sockets, and what carries their data.", sockets_json },
	{ "stats", "Counters that are not zero; with -s or -d, all.", stats_json },
	{ "stats-watch", "stats -w: one such array per line, of counters that have changed.",
	  stats_watch_json },
	{ "peers", "Other hosts, and the state of links to them.", peers_json },
	{ "devices", "Ports of RDMA devices.", devices_json },
	{ "memory", "Registered receive memory.", memory_json },
	{ "show", "Settings and their ranges.", show_json },
	{ "explain", "Reasons.", explain_json },
	{ "version", "Versions, and the numbers in use.", version_json },
	{ "drain", "Whether the network namespace is drained.", drain_json },
	{ "cgroup", "Control groups whose processes get rdmastream sockets.", cgroup_json },
	{ "check", "The steps of a check, up to the first that fails.", check_json },
};

static void write_def(const struct def *def)
{
	json_object(def->name);
	json_str("description", def->text);
	json_str("type", "array");
	json_schema(true, "items");
	def->json();
	json_schema(false, NULL);
	json_object_end();
}

/* Objects without an array around them. */
static void write_monitor(void)
{
	json_object("monitor");
	json_str("description", "Events, one object per line.");
	json_array_in("oneOf");
	json_schema(true, NULL);
	monitor_json();
	json_schema(false, NULL);
	json_array_end();
	json_object_end();
}

void schema_write(void)
{
	size_t i;

	json_object(NULL);
	json_str("$schema", "https://json-schema.org/draft/2020-12/schema");
	json_str("title", "JSON of rsctl");
	json_str("description", "$defs/COMMAND describes the output of \"rsctl -j COMMAND\".  "
		 "Keys are never removed or renamed, but new ones may be added.  null: unknown.  "
		 "Sizes are in bytes, ids hexadecimal.");
	json_object("$defs");
	for (i = 0; i < sizeof(defs) / sizeof(defs[0]); i++)
		write_def(&defs[i]);
	write_monitor();
	json_object_end();
	json_object_end();
}
