// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl drain: stop using RDMA for a while, so that drivers can be unloaded.
 *
 * The kernel gives up all links at once; this waits until they are gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

#define PATIENCE	30	/* seconds, if none are told */
#define LOOK_MS		20	/* at first; doubled up to ten times that */

struct state {
	bool drain;
	uint64_t links;
};

static int get_state(struct state *state)
{
	struct replies r;
	struct attrs a;
	uint64_t val;
	int ret = ask_one(RDMASTREAM_CMD_INFO_GET, &r, &a);

	if (ret)
		return ret;
	if (!attr_uint(&a, RDMASTREAM_A_INFO_DRAIN, &val) ||
	    !attr_uint(&a, RDMASTREAM_A_INFO_LINKS, &state->links)) {
		complain("this version of the module cannot be drained");
		ret = EXIT_FAILED;
	} else {
		state->drain = val;
	}
	replies_free(&r);
	return ret;
}

static void object(const struct state *state)
{
	json_object(NULL);
	json_bool("drain", state->drain);
	json_uint("links", &state->links);
	json_object_end();
}

void drain_json(void)
{
	static const struct state none;

	object(&none);
}

static int show(void)
{
	struct state state;
	int ret = get_state(&state);

	if (ret)
		return ret;
	if (opt.json) {
		json_array();
		object(&state);
		json_array_end();
	} else {
		printf("drain %s, links %" PRIu64 "\n",
		       state.drain ? "on" : "off", state.links);
	}
	return EXIT_OK;
}

/* Until no link holds a device any more. */
static int wait_for_links(unsigned int seconds)
{
	int64_t end = now_ms() + 1000LL * seconds;
	unsigned int ms = LOOK_MS;
	struct state state;
	int ret;

	for (;;) {
		ret = get_state(&state);
		if (ret)
			return ret;
		if (!state.drain) {
			complain("the drain was ended meanwhile");
			return EXIT_FAILED;
		}
		if (!state.links)
			return EXIT_OK;
		if (now_ms() >= end) {
			complain("%" PRIu64 " links are still there after %u s, see \"rsctl links\"; no new ones are established",
				 state.links, seconds);
			return EXIT_FAILED;
		}
		pause_ms(ms);
		ms = ms < 10 * LOOK_MS ? 2 * ms : ms;
	}
}

/* Return: 0 or EXIT_USAGE */
static int get_seconds(const char *word, unsigned int *seconds)
{
	unsigned long val;
	char *end;

	errno = 0;
	val = strtoul(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || errno || val > 86400) {
		complain("drain on: \"%s\" is not a number of seconds from 0 to 86400",
			 word);
		return EXIT_USAGE;
	}
	*seconds = val;
	return 0;
}

int cmd_drain(int argc, char **argv)
{
	unsigned int seconds = PATIENCE;
	struct wants wants = { 0 };
	uint8_t word;
	bool on;
	int ret;

	if (argc == 1)
		return show();
	on = !strcmp(argv[1], "on");
	if (!on && strcmp(argv[1], "off")) {
		complain("drain takes \"on\" or \"off\", not \"%s\"", argv[1]);
		return EXIT_USAGE;
	}
	if (argc > (on ? 3 : 2)) {
		complain("drain %s: unexpected argument \"%s\"", argv[1],
			 argv[on ? 3 : 2]);
		return EXIT_USAGE;
	}
	if (argc == 3 && get_seconds(argv[2], &seconds))
		return EXIT_USAGE;
	word = on;
	want(&wants, RDMASTREAM_A_INFO_DRAIN, &word, sizeof(word));
	ret = genl_set(RDMASTREAM_CMD_DRAIN_SET, &wants);
	if (!ret && on)
		ret = wait_for_links(seconds);
	if (!ret && opt.json)
		ret = show();
	return ret;
}
