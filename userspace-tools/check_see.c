// SPDX-License-Identifier: GPL-2.0-only
/* What the kernel knows of this host, a socket and a peer, for rsctl check. */
#include <inttypes.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"
#include "check.h"

static void direction(const struct nlattr *nest, bool *ring, bool *lost)
{
	uint64_t carrier = 0, to = 0, why = 0;
	struct attrs d;

	if (!attrs_nested(&d, nest))
		return;
	attr_uint(&d, RDMASTREAM_A_DIRECTION_CARRIER, &carrier);
	attr_uint(&d, RDMASTREAM_A_DIRECTION_SWITCH_TO, &to);
	attr_uint(&d, RDMASTREAM_A_DIRECTION_SWITCH_REASON, &why);
	*ring = carrier == RDMASTREAM_CARRIER_RING;
	if (why == RDMASTREAM_REASON_LINK_LOST &&
	    to == RDMASTREAM_CARRIER_TCP)
		*lost = true;
}

int see_socket(ino_t inode, struct seen *seen)
{
	const struct nlattr *peer;
	struct wants wants = { 0 };
	uint64_t num = inode;
	struct replies r;
	struct attrs a;
	int ret;

	memset(seen, 0, sizeof(*seen));
	want(&wants, RDMASTREAM_A_SOCK_INODE, &num, sizeof(num));
	ret = genl_ask_for(RDMASTREAM_CMD_SOCK_GET, true, &wants, &r);
	if (ret)
		return ret;
	seen->found = r.n;
	if (r.n) {
		attrs_of(&a, r.msg[0]);
		attr_in6(&a, RDMASTREAM_A_SOCK_LOCAL, &seen->ends.local);
		attr_in6(&a, RDMASTREAM_A_SOCK_REMOTE, &seen->ends.remote);
		attr_uint(&a, RDMASTREAM_A_SOCK_MODE, &seen->mode);
		attr_uint(&a, RDMASTREAM_A_SOCK_REASON, &seen->reason);
		peer = a.tb[RDMASTREAM_A_SOCK_PEER];
		seen->has_peer = peer && mnl_attr_get_payload_len(peer) ==
					 sizeof(seen->peer);
		if (seen->has_peer)
			memcpy(seen->peer, mnl_attr_get_payload(peer),
			       sizeof(seen->peer));
		direction(a.tb[RDMASTREAM_A_SOCK_TX], &seen->tx_ring,
			  &seen->lost);
		direction(a.tb[RDMASTREAM_A_SOCK_RX], &seen->rx_ring,
			  &seen->lost);
	}
	replies_free(&r);
	return EXIT_OK;
}

static int see_info(struct here *here)
{
	const char *version;
	uint64_t drain = 0;
	struct replies r;
	struct attrs a;
	int ret = ask_one(RDMASTREAM_CMD_INFO_GET, &r, &a);

	if (ret)
		return ret;
	version = attr_str(&a, RDMASTREAM_A_INFO_VERSION);
	here->module = true;
	snprintf(here->version, sizeof(here->version), "%s",
		 version ? version : "?");
	attr_uint(&a, RDMASTREAM_A_INFO_WIRE_VERSION, &here->wire_version);
	attr_uint(&a, RDMASTREAM_A_INFO_DRAIN, &drain);
	attr_uint(&a, RDMASTREAM_A_INFO_RMB_BYTES, &here->rmb_bytes);
	attr_uint(&a, RDMASTREAM_A_INFO_RMB_MAX, &here->rmb_max);
	here->drain = drain;
	replies_free(&r);
	return EXIT_OK;
}

static int see_settings(struct here *here)
{
	const struct {
		const char *name;
		uint64_t *val;
	} list[] = {
		{ "negotiate", &here->negotiate },
		{ "ring_mode", &here->ring_mode },
		{ "ring_threshold", &here->ring_threshold },
		{ "loopback", &here->loopback },
		{ "cm_port", &here->cm_port },
		{ "cm_timeout_ms", &here->cm_timeout_ms },
		{ "link_probe_ms", &here->link_probe_ms },
	};
	const char *name;
	struct replies r;
	struct attrs a;
	size_t i, j;
	int ret = genl_ask(RDMASTREAM_CMD_SETTING_GET, true, &r);

	if (ret)
		return ret;
	for (i = 0; i < r.n; i++) {
		attrs_of(&a, r.msg[i]);
		name = attr_str(&a, RDMASTREAM_A_SETTING_NAME);
		for (j = 0; name && j < sizeof(list) / sizeof(list[0]); j++)
			if (!strcmp(name, list[j].name))
				attr_uint(&a, RDMASTREAM_A_SETTING_VALUE,
					  list[j].val);
	}
	replies_free(&r);
	return EXIT_OK;
}

static void note_device(struct here *here, const struct nlmsghdr *msg)
{
	const struct nlattr *attr;
	uint64_t port = 0, problem = 0;
	struct attrs a;
	char *addr = NULL;

	attrs_of(&a, msg);
	attr_uint(&a, RDMASTREAM_A_DEVICE_PORT, &port);
	attr_uint(&a, RDMASTREAM_A_DEVICE_PROBLEM, &problem);
	here->devices++;
	here->usable += !problem;
	if (here->device[0] && (problem || here->usable > 1))
		return;
	each_attr(attr, msg, RDMASTREAM_A_DEVICE_ADDR)
		if (!addr)
			addr = endpoint_of(attr, false);
	here->problem = problem;
	snprintf(here->device, sizeof(here->device), "%s/%" PRIu64 " %s",
		 attr_str(&a, RDMASTREAM_A_DEVICE_NAME) ?: "-", port,
		 addr ? addr : "-");
	free(addr);
}

static int see_devices(struct here *here)
{
	struct replies r;
	size_t i;
	int ret = genl_ask(RDMASTREAM_CMD_DEVICE_GET, true, &r);

	if (ret)
		return ret;
	for (i = 0; i < r.n; i++)
		note_device(here, r.msg[i]);
	replies_free(&r);
	return EXIT_OK;
}

int see_here(struct here *here)
{
	int ret;

	memset(here, 0, sizeof(*here));
	ret = see_info(here);
	if (!ret)
		ret = see_settings(here);
	if (!ret)
		ret = see_devices(here);
	return ret;
}

/* ---- links ---- */

static bool is_between(const struct attrs *a, unsigned int local, unsigned int remote,
		       const struct ends *ends)
{
	struct ends is;

	return attr_in6(a, local, &is.local) && attr_in6(a, remote, &is.remote) &&
	       IN6_ARE_ADDR_EQUAL(&is.local, &ends->local) &&
	       IN6_ARE_ADDR_EQUAL(&is.remote, &ends->remote);
}

/* Is it the peer of a socket?  There is one for each pair of addresses of connections. */
enum fit {
	FIT_NOT,	/* its addresses are others */
	FIT_MAYBE,	/* they are not told */
	FIT_LINK,	/* likewise, and it has a link */
	FIT_SURE
};

static enum fit fit(const struct nlmsghdr *msg, const struct ends *ends)
{
	const struct nlattr *attr;
	struct attrs a, p;
	uint64_t links = 0;

	each_attr(attr, msg, RDMASTREAM_A_PEER_PATH) {
		attrs_nested(&p, attr);
		if (!p.tb[RDMASTREAM_A_PATH_TCP])
			continue;
		return is_between(&p, RDMASTREAM_A_PATH_LOCAL, RDMASTREAM_A_PATH_REMOTE,
				  ends) ? FIT_SURE : FIT_NOT;
	}
	attrs_of(&a, msg);
	attr_uint(&a, RDMASTREAM_A_PEER_LINKS, &links);
	return links ? FIT_LINK : FIT_MAYBE;
}

/* Return: NULL if none fits. */
static const struct nlmsghdr *find_peer(const struct replies *r, const struct ends *ends,
					bool *sure)
{
	const struct nlmsghdr *found = NULL;
	enum fit best = FIT_NOT, one;
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < r->n; i++) {
		one = fit(r->msg[i], ends);
		n += one != FIT_NOT;
		if (one <= best)
			continue;
		best = one;
		found = r->msg[i];
	}
	*sure = best == FIT_SURE || n == 1;
	return found;
}

static void note_peer(struct links *l, const struct nlmsghdr *msg)
{
	const struct nlattr *attr;
	const char *why;
	struct attrs a, p;
	uint64_t n;

	attrs_of(&a, msg);
	l->known = true;
	l->active = a.tb[RDMASTREAM_A_PEER_ACTIVE];
	l->self = a.tb[RDMASTREAM_A_PEER_SELF];
	l->drained = a.tb[RDMASTREAM_A_PEER_DRAINED];
	attr_uint(&a, RDMASTREAM_A_PEER_LINKS, &l->up);
	why = attr_str(&a, RDMASTREAM_A_PEER_END_TEXT);
	snprintf(l->why, sizeof(l->why), "%s", why ? why : "");
	attr_uint(&a, RDMASTREAM_A_PEER_END_MS, &l->why_ms);
	each_attr(attr, msg, RDMASTREAM_A_PEER_PATH) {
		attrs_nested(&p, attr);
		if (attr_uint(&p, RDMASTREAM_A_PATH_FAILS, &n))
			l->fails += n;
		if (attr_uint(&p, RDMASTREAM_A_PATH_REFUSED, &n))
			l->refused += n;
	}
}

/* May it be a link over a path that @peer has advertised? */
static bool is_advertised(const struct attrs *link, const struct nlmsghdr *peer)
{
	struct in6_addr remote, is;
	const struct nlattr *attr;
	struct attrs p;

	if (!attr_in6(link, RDMASTREAM_A_LINK_REMOTE, &remote))
		return false;
	each_attr(attr, peer, RDMASTREAM_A_PEER_PATH) {
		attrs_nested(&p, attr);
		if (!p.tb[RDMASTREAM_A_PATH_TCP] &&
		    attr_in6(&p, RDMASTREAM_A_PATH_REMOTE, &is) &&
		    IN6_ARE_ADDR_EQUAL(&is, &remote))
			return true;
	}
	return false;
}

/* Of the links to a host, the one that is most probably to @peer; a link does not tell. */
static const struct nlmsghdr *find_link(const struct replies *r, const struct nlmsghdr *peer,
					const struct ends *ends)
{
	const struct nlmsghdr *found = r->n ? r->msg[0] : NULL;
	struct attrs a;
	size_t i;

	for (i = r->n; i-- > 0; ) {
		attrs_of(&a, r->msg[i]);
		if (is_between(&a, RDMASTREAM_A_LINK_LOCAL, RDMASTREAM_A_LINK_REMOTE, ends))
			return r->msg[i];
		if (is_advertised(&a, peer))
			found = r->msg[i];
	}
	return found;
}

static void note_link(struct links *l, const struct nlmsghdr *msg)
{
	char *local, *remote;
	struct attrs a;

	attrs_of(&a, msg);
	attr_uint(&a, RDMASTREAM_A_LINK_RTT_US, &l->rtt_us);
	local = attr_address(&a, RDMASTREAM_A_LINK_LOCAL);
	remote = attr_address(&a, RDMASTREAM_A_LINK_REMOTE);
	snprintf(l->text, sizeof(l->text), "%s %s > %s",
		 attr_str(&a, RDMASTREAM_A_LINK_DEVICE) ?: "-",
		 local ? local : "-", remote ? remote : "-");
	free(local);
	free(remote);
}

static int see_up(const struct seen *seen, const struct nlmsghdr *peer, struct links *l)
{
	uint32_t up = RDMASTREAM_LINK_STATE_UP;
	const struct nlmsghdr *link;
	struct wants wants = { 0 };
	struct replies r;
	int ret;

	want(&wants, RDMASTREAM_A_LINK_PEER, seen->peer, sizeof(seen->peer));
	want(&wants, RDMASTREAM_A_LINK_STATE, &up, sizeof(up));
	ret = genl_ask_for(RDMASTREAM_CMD_LINK_GET, true, &wants, &r);
	if (ret)
		return ret;
	link = find_link(&r, peer, &seen->ends);
	if (!link)
		l->up = 0;	/* it has just ended */
	else if (l->up)
		note_link(l, link);
	replies_free(&r);
	return EXIT_OK;
}

int see_links(const struct seen *seen, struct links *l)
{
	const struct nlmsghdr *peer;
	struct wants wants = { 0 };
	struct replies r;
	int ret;

	memset(l, 0, sizeof(*l));
	want(&wants, RDMASTREAM_A_PEER_INSTANCE, seen->peer, sizeof(seen->peer));
	ret = genl_ask_for(RDMASTREAM_CMD_PEER_GET, true, &wants, &r);
	if (ret)
		return ret;
	peer = find_peer(&r, &seen->ends, &l->sure);
	if (peer) {
		note_peer(l, peer);
		ret = see_up(seen, peer, l);
	}
	replies_free(&r);
	return ret;
}
