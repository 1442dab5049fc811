// SPDX-License-Identifier: GPL-2.0-only
/* rsctl links: the queue pairs to other hosts, shared by many sockets. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

static const struct column columns[] = {
	{ "ID", true }, { "STATE", false }, { "DEVICE", false },
	{ "LOCAL", false }, { "REMOTE", false },
	{ "SENT", true }, { "MSGS", true }, { "RCVD", true }, { "MSGS", true },
	{ "RINGS", false }, { "RMB", false }, { "MTU", true },
	{ "PEER", false },
};

static char *device(const struct attrs *a)
{
	const char *name = attr_str(a, RDMASTREAM_A_LINK_DEVICE);
	uint64_t port;

	if (!name)
		return NULL;
	if (!attr_uint(a, RDMASTREAM_A_LINK_PORT, &port))
		return xprintf("%s", name);
	return xprintf("%s/%" PRIu64, name, port);
}

static char *state(const struct attrs *a)
{
	uint64_t val;

	if (!attr_uint(a, RDMASTREAM_A_LINK_STATE, &val))
		return NULL;
	return word_of(WORD_LINK_STATE, val);
}

static enum paint state_paint(const char *word)
{
	if (!word)
		return PAINT_NONE;
	return !strcmp(word, "up") ? PAINT_GOOD :
	       !strcmp(word, "connecting") ? PAINT_WARN : PAINT_BAD;
}

/* "granted to us/granted by us" */
static char *rings(const struct attrs *a)
{
	uint64_t tx, rx;

	if (!attr_uint(a, RDMASTREAM_A_LINK_TX_RINGS, &tx) ||
	    !attr_uint(a, RDMASTREAM_A_LINK_RX_RINGS, &rx))
		return NULL;
	return xprintf("%" PRIu64 "/%" PRIu64, tx, rx);
}

/* "used/registered" */
static char *rmb(const struct attrs *a)
{
	uint64_t used, size;
	char *s, *t, *both;

	if (!attr_uint(a, RDMASTREAM_A_LINK_RMB_USED, &used) ||
	    !attr_uint(a, RDMASTREAM_A_LINK_RMB_BYTES, &size))
		return NULL;
	s = human_bytes(used);
	t = human_bytes(size);
	both = xprintf("%s/%s", s, t);
	free(s);
	free(t);
	return both;
}

static char *details(const struct attrs *a)
{
	static const struct {
		const char *name;
		unsigned int type;
	} list[] = {
		{ "qpn", RDMASTREAM_A_LINK_QPN },
		{ "peer-qpn", RDMASTREAM_A_LINK_PEER_QPN },
		{ "rq-credits", RDMASTREAM_A_LINK_RQ_CREDITS },
		{ "sq-free", RDMASTREAM_A_LINK_SQ_FREE },
		{ "up-ms", RDMASTREAM_A_LINK_UP_MS },
		{ "rtt-us", RDMASTREAM_A_LINK_RTT_US },
	};
	char *text = xprintf("%s", a->tb[RDMASTREAM_A_LINK_ACTIVE] ?
				   "active" : "passive");
	char *more;
	uint64_t val;
	size_t i;

	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		more = attr_uint(a, list[i].type, &val) ?
		       xprintf("%s  %s %" PRIu64, text, list[i].name, val) :
		       xprintf("%s  %s -", text, list[i].name);
		free(text);
		text = more;
	}
	return text;
}

static void row(struct table *t, const struct attrs *a)
{
	char *word = state(a);

	table_num(t, a, RDMASTREAM_A_LINK_ID);
	table_cell(t, word, state_paint(word));
	table_cell(t, device(a), PAINT_NONE);
	table_cell(t, attr_endpoint(a, RDMASTREAM_A_LINK_LOCAL), PAINT_NONE);
	table_cell(t, attr_endpoint(a, RDMASTREAM_A_LINK_REMOTE), PAINT_NONE);
	table_bytes(t, a, RDMASTREAM_A_LINK_TX_BYTES);
	table_num(t, a, RDMASTREAM_A_LINK_TX_MSGS);
	table_bytes(t, a, RDMASTREAM_A_LINK_RX_BYTES);
	table_num(t, a, RDMASTREAM_A_LINK_RX_MSGS);
	table_cell(t, rings(a), PAINT_NONE);
	table_cell(t, rmb(a), PAINT_NONE);
	table_num(t, a, RDMASTREAM_A_LINK_PATH_MTU);
	table_cell(t, attr_peer(a, RDMASTREAM_A_LINK_PEER), PAINT_NONE);
	if (opt.details || opt.stats)
		table_note(t, details(a));
}

static void object(const struct attrs *a)
{
	json_object(NULL);
	json_attr("id", a, RDMASTREAM_A_LINK_ID);
	json_attr_word("state", a, RDMASTREAM_A_LINK_STATE, WORD_LINK_STATE);
	json_bool("active", a->tb[RDMASTREAM_A_LINK_ACTIVE]);
	json_attr_id("peer", a, RDMASTREAM_A_LINK_PEER);
	json_attr_str("device", a, RDMASTREAM_A_LINK_DEVICE);
	json_attr("port", a, RDMASTREAM_A_LINK_PORT);
	json_attr("qpn", a, RDMASTREAM_A_LINK_QPN);
	json_attr("peer_qpn", a, RDMASTREAM_A_LINK_PEER_QPN);
	json_attr("path_mtu", a, RDMASTREAM_A_LINK_PATH_MTU);
	json_attr_endpoint("local", a, RDMASTREAM_A_LINK_LOCAL);
	json_attr_endpoint("remote", a, RDMASTREAM_A_LINK_REMOTE);
	json_attr("tx_bytes", a, RDMASTREAM_A_LINK_TX_BYTES);
	json_attr("tx_msgs", a, RDMASTREAM_A_LINK_TX_MSGS);
	json_attr("rx_bytes", a, RDMASTREAM_A_LINK_RX_BYTES);
	json_attr("rx_msgs", a, RDMASTREAM_A_LINK_RX_MSGS);
	json_attr("up_ms", a, RDMASTREAM_A_LINK_UP_MS);
	json_attr("tx_rings", a, RDMASTREAM_A_LINK_TX_RINGS);
	json_attr("rx_rings", a, RDMASTREAM_A_LINK_RX_RINGS);
	json_attr("rmb_bytes", a, RDMASTREAM_A_LINK_RMB_BYTES);
	json_attr("rmb_used", a, RDMASTREAM_A_LINK_RMB_USED);
	json_attr("rq_credits", a, RDMASTREAM_A_LINK_RQ_CREDITS);
	json_attr("sq_free", a, RDMASTREAM_A_LINK_SQ_FREE);
	json_attr("rtt_us", a, RDMASTREAM_A_LINK_RTT_US);
	json_object_end();
}

static const struct filter_key keys[] = {
	{ "peer", FILTER_PEER, RDMASTREAM_A_LINK_PEER },
	{ "device", FILTER_STRING, RDMASTREAM_A_LINK_DEVICE },
	{ "port", FILTER_U32, RDMASTREAM_A_LINK_PORT },
	{ "state", FILTER_WORD + WORD_LINK_STATE, RDMASTREAM_A_LINK_STATE },
	{ NULL }
};

static const struct entries entries = {
	RDMASTREAM_CMD_LINK_GET, keys, columns,
	sizeof(columns) / sizeof(columns[0]), row, object
};

void links_json(void)
{
	entries_schema(&entries);
}

int cmd_links(int argc, char **argv)
{
	return entries_show(&entries, argc, argv);
}
