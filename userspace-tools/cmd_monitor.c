// SPDX-License-Identifier: GPL-2.0-only
/* rsctl monitor: what happens in this network namespace, as it happens. */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rsctl.h"

/* Begins a line: the time, and with -j an object and the event's name. */
static void begin(const char *event)
{
	struct timespec now;
	char text[16];
	struct tm tm;
	uint64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = now.tv_nsec / 1000000;
	if (opt.json) {
		ms += 1000ULL * now.tv_sec;
		json_object(NULL);
		json_uint("time_ms", &ms);
		json_str("event", event);
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
	json_take("peer", attr_hex(a, RDMASTREAM_A_LINK_PEER));
	json_str("device", attr_str(a, RDMASTREAM_A_LINK_DEVICE));
	json_attr("port", a, RDMASTREAM_A_LINK_PORT);
	json_take("local", attr_endpoint(a, RDMASTREAM_A_LINK_LOCAL));
	json_take("remote", attr_endpoint(a, RDMASTREAM_A_LINK_REMOTE));
	json_take("reason", attr_reason(a, RDMASTREAM_A_LINK_REASON));
	json_str("why", attr_str(a, RDMASTREAM_A_LINK_WHY));
}

static int link_event(const struct attrs *a)
{
	const char *device = attr_str(a, RDMASTREAM_A_LINK_DEVICE);
	const char *why = attr_str(a, RDMASTREAM_A_LINK_WHY);
	uint64_t state = 0;
	bool up;

	attr_uint(a, RDMASTREAM_A_LINK_STATE, &state);
	up = state == RDMASTREAM_LINK_STATE_UP;
	begin(up ? "link-up" : "link-down");
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
	json_take("local", attr_endpoint(a, RDMASTREAM_A_SWITCH_LOCAL));
	json_take("remote", attr_endpoint(a, RDMASTREAM_A_SWITCH_REMOTE));
	json_take("peer", attr_hex(a, RDMASTREAM_A_SWITCH_PEER));
	json_take("way", attr_word(a, RDMASTREAM_A_SWITCH_WAY, WORD_WAY));
	json_take("carrier", attr_word(a, RDMASTREAM_A_SWITCH_CARRIER, WORD_CARRIER));
	json_take("reason", attr_reason(a, RDMASTREAM_A_SWITCH_REASON));
	json_attr("offset", a, RDMASTREAM_A_SWITCH_OFFSET);
	json_attr("epoch", a, RDMASTREAM_A_SWITCH_EPOCH);
	json_attr("link", a, RDMASTREAM_A_SWITCH_LINK);
}

static int switch_event(const struct attrs *a)
{
	begin("switch");
	if (opt.json) {
		json_switch(a);
		return end();
	}
	put("switch ", attr_endpoint(a, RDMASTREAM_A_SWITCH_LOCAL));
	put(" ", attr_endpoint(a, RDMASTREAM_A_SWITCH_REMOTE));
	put(" ", attr_word(a, RDMASTREAM_A_SWITCH_WAY, WORD_WAY));
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
	begin("drain");
	if (opt.json)
		json_bool("drain", drain);
	else
		printf("drain %s", drain ? "on" : "off");
	return end();
}

static int setting_event(const struct attrs *a)
{
	const char *name = attr_str(a, RDMASTREAM_A_SETTING_NAME);

	begin("setting");
	if (opt.json) {
		json_str("name", name);
		json_attr("value", a, RDMASTREAM_A_SETTING_VALUE);
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
		begin("missed");
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

int cmd_monitor(int argc, char **argv)
{
	if (no_arguments(argc, argv))
		return EXIT_USAGE;
	return genl_listen(ready, told);
}
