// SPDX-License-Identifier: GPL-2.0-only
/* rsctl monitor: what happens in this network namespace, as it happens. */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rsctl.h"

/* Each event is an object with one of these names; some share their other keys. */
static const char * const link_events[] = { "link-up", "link-down", NULL };
static const char * const switch_events[] = { "switch", NULL };
static const char * const drain_events[] = { "drain", NULL };
static const char * const setting_events[] = { "setting", NULL };
static const char * const missed_events[] = { "missed", NULL };

static void json_begin(uint64_t ms, const char *event, const char * const *events)
{
	json_object(NULL);
	json_uint("time_ms", &ms);
	json_choice("event", event, events);
}

/* Begins a line: the time, and with -j an object and the event's name. */
static void begin(const char *event, const char * const *events)
{
	struct timespec now;
	char text[16];
	struct tm tm;
	uint64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = now.tv_nsec / 1000000;
	if (opt.json) {
		json_begin(ms + 1000ULL * now.tv_sec, event, events);
		return;
	}
	localtime_r(&now.tv_sec, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	printf("%s.%03u ", text, (unsigned int)ms);
}

/* Nobody shall wait for a line that has happened. */
static int end(void)
{
	if (opt.json)
		json_object_end();
	else
		putchar('\n');
	if (!fflush(stdout))
		return EXIT_OK;
	complain("write: %s", strerror(errno));
	return EXIT_FAILED;
}

/* @text is freed; NULL is "-" */
static void put(const char *before, char *text)
{
	printf("%s%s", before, text ? text : "-");
	free(text);
}

static void json_link(const struct attrs *a)
{
	json_attr("id", a, RDMASTREAM_A_LINK_ID);
	json_bool("active", a->tb[RDMASTREAM_A_LINK_ACTIVE]);
	json_attr_id("peer", a, RDMASTREAM_A_LINK_PEER);
	json_attr_str("device", a, RDMASTREAM_A_LINK_DEVICE);
	json_attr("port", a, RDMASTREAM_A_LINK_PORT);
	json_attr_endpoint("local", a, RDMASTREAM_A_LINK_LOCAL);
	json_attr_endpoint("remote", a, RDMASTREAM_A_LINK_REMOTE);
	json_attr_reason("reason", a, RDMASTREAM_A_LINK_REASON);
	json_attr_str("end_text", a, RDMASTREAM_A_LINK_END_TEXT);
}

static int link_event(const struct attrs *a)
{
	const char *device = attr_str(a, RDMASTREAM_A_LINK_DEVICE);
	const char *why = attr_str(a, RDMASTREAM_A_LINK_END_TEXT);
	uint64_t state = 0;
	bool up;

	attr_uint(a, RDMASTREAM_A_LINK_STATE, &state);
	up = state == RDMASTREAM_LINK_STATE_UP;
	begin(link_events[!up], link_events);
	if (opt.json) {
		json_link(a);
		return end();
	}
	put("link ", attr_number(a, RDMASTREAM_A_LINK_ID));
	printf(" %s ", up ? "up" : "down");
	put("", attr_endpoint(a, RDMASTREAM_A_LINK_LOCAL));
	put(" ", attr_endpoint(a, RDMASTREAM_A_LINK_REMOTE));
	printf(" %s", device ? device : "-");
	if (!up) {
		put(" ", attr_reason(a, RDMASTREAM_A_LINK_REASON));
		printf(" (%s)", why ? why : "-");
	}
	return end();
}

static void json_switch(const struct attrs *a)
{
	json_attr_endpoint("local", a, RDMASTREAM_A_SWITCH_LOCAL);
	json_attr_endpoint("remote", a, RDMASTREAM_A_SWITCH_REMOTE);
	json_attr_id("peer", a, RDMASTREAM_A_SWITCH_PEER);
	json_attr_word("dir", a, RDMASTREAM_A_SWITCH_DIR, WORD_DIR);
	json_attr_word("carrier", a, RDMASTREAM_A_SWITCH_CARRIER, WORD_CARRIER);
	json_attr_reason("reason", a, RDMASTREAM_A_SWITCH_REASON);
	json_attr("offset", a, RDMASTREAM_A_SWITCH_OFFSET);
	json_attr("epoch", a, RDMASTREAM_A_SWITCH_EPOCH);
	json_attr("link", a, RDMASTREAM_A_SWITCH_LINK);
}

static int switch_event(const struct attrs *a)
{
	begin(switch_events[0], switch_events);
	if (opt.json) {
		json_switch(a);
		return end();
	}
	put("switch ", attr_endpoint(a, RDMASTREAM_A_SWITCH_LOCAL));
	put(" ", attr_endpoint(a, RDMASTREAM_A_SWITCH_REMOTE));
	put(" ", attr_word(a, RDMASTREAM_A_SWITCH_DIR, WORD_DIR));
	put(" to ", attr_word(a, RDMASTREAM_A_SWITCH_CARRIER, WORD_CARRIER));
	put(" at ", attr_number(a, RDMASTREAM_A_SWITCH_OFFSET));
	put(" epoch ", attr_number(a, RDMASTREAM_A_SWITCH_EPOCH));
	put(" ", attr_reason(a, RDMASTREAM_A_SWITCH_REASON));
	return end();
}

static int drain_event(const struct attrs *a)
{
	uint64_t drain = 0;

	attr_uint(a, RDMASTREAM_A_INFO_DRAIN, &drain);
	begin(drain_events[0], drain_events);
	if (opt.json)
		json_bool("drain", drain);
	else
		printf("drain %s", drain ? "on" : "off");
	return end();
}

static void json_setting(const struct attrs *a)
{
	json_attr_str("name", a, RDMASTREAM_A_SETTING_NAME);
	json_attr("value", a, RDMASTREAM_A_SETTING_VALUE);
}

static int setting_event(const struct attrs *a)
{
	const char *name = attr_str(a, RDMASTREAM_A_SETTING_NAME);

	begin(setting_events[0], setting_events);
	if (opt.json) {
		json_setting(a);
		return end();
	}
	printf("setting %s ", name ? name : "-");
	put("", attr_number(a, RDMASTREAM_A_SETTING_VALUE));
	return end();
}

static int told(const struct nlmsghdr *msg)
{
	const struct genlmsghdr *genl;
	struct attrs a;

	if (!msg) {
		begin(missed_events[0], missed_events);
		if (!opt.json)
			printf("events were lost");
		return end();
	}
	genl = mnl_nlmsg_get_payload(msg);
	attrs_of(&a, msg);
	switch (genl->cmd) {
	case RDMASTREAM_CMD_LINK_NTF:
		return link_event(&a);
	case RDMASTREAM_CMD_SWITCH_NTF:
		return switch_event(&a);
	case RDMASTREAM_CMD_DRAIN_NTF:
		return drain_event(&a);
	case RDMASTREAM_CMD_SETTING_NTF:
		return setting_event(&a);
	default:
		return EXIT_OK;	/* newer than we are */
	}
}

/* The first line, which also tells that nothing is missed from there on. */
static int ready(void)
{
	struct replies r;
	struct attrs a;
	int ret = ask_one(RDMASTREAM_CMD_INFO_GET, &r, &a);

	if (ret)
		return ret;
	ret = drain_event(&a);
	replies_free(&r);
	return ret;
}

void monitor_json(void)
{
	static const struct attrs none;

	json_begin(0, NULL, link_events);
	json_link(&none);
	json_object_end();
	json_begin(0, NULL, switch_events);
	json_switch(&none);
	json_object_end();
	json_begin(0, NULL, drain_events);
	json_bool("drain", false);
	json_object_end();
	json_begin(0, NULL, setting_events);
	json_setting(&none);
	json_object_end();
	json_begin(0, NULL, missed_events);
	json_object_end();
}

int cmd_monitor(int argc, char **argv)
{
	if (no_arguments(argc, argv))
		return EXIT_USAGE;
	return genl_listen(ready, told);
}
