// SPDX-License-Identifier: GPL-2.0-only
/* rsctl version: of the tool, of the module, and the numbers it uses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rsctl.h"

static void text(const struct attrs *a)
{
	static const struct {
		const char *name;
		unsigned int type;
	} list[] = {
		{ "wire version", RDMASTREAM_A_INFO_WIRE_VERSION },
		{ "family", RDMASTREAM_A_INFO_FAMILY },
		{ "protocol", RDMASTREAM_A_INFO_PROTOCOL },
		{ "cm port", RDMASTREAM_A_INFO_CM_PORT },
		{ "sockets", RDMASTREAM_A_INFO_SOCKETS },
		{ "links", RDMASTREAM_A_INFO_LINKS },
	};
	const char *version = attr_str(a, RDMASTREAM_A_INFO_VERSION);
	char *instance = attr_hex(a, RDMASTREAM_A_INFO_INSTANCE);
	uint64_t val;
	size_t i;

	printf("rsctl         %s\n", VERSION);
	printf("module        %s\n", version ? version : "-");
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (attr_uint(a, list[i].type, &val))
			printf("%-13s %" PRIu64 "\n", list[i].name, val);
		else
			printf("%-13s -\n", list[i].name);
	printf("drained       %s\n",
	       !attr_uint(a, RDMASTREAM_A_INFO_DRAIN, &val) ? "-" :
	       val ? "yes" : "no");
	printf("instance      %s\n", instance ? instance : "-");
	free(instance);
}

static void json(const struct attrs *a)
{
	uint64_t drain;

	json_object(NULL);
	json_str("rsctl", VERSION);
	json_attr_str("module", a, RDMASTREAM_A_INFO_VERSION);
	json_attr("wire_version", a, RDMASTREAM_A_INFO_WIRE_VERSION);
	json_attr("family", a, RDMASTREAM_A_INFO_FAMILY);
	json_attr("protocol", a, RDMASTREAM_A_INFO_PROTOCOL);
	json_attr("cm_port", a, RDMASTREAM_A_INFO_CM_PORT);
	json_attr("sockets", a, RDMASTREAM_A_INFO_SOCKETS);
	json_bool("drain", attr_uint(a, RDMASTREAM_A_INFO_DRAIN, &drain) &&
			   drain);
	json_attr("links", a, RDMASTREAM_A_INFO_LINKS);
	json_attr_id("instance", a, RDMASTREAM_A_INFO_INSTANCE);
	json_object_end();
}

void version_json(void)
{
	static const struct attrs none;

	json(&none);
}

int cmd_version(int argc, char **argv)
{
	struct replies r;
	struct attrs a;
	int ret;

	if (no_arguments(argc, argv))
		return EXIT_USAGE;
	ret = ask_one(RDMASTREAM_CMD_INFO_GET, &r, &a);
	if (ret)
		return ret;
	if (opt.json) {
		json_array();
		json(&a);
		json_array_end();
	} else {
		text(&a);
	}
	replies_free(&r);
	return EXIT_OK;
}
