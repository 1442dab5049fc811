// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens, told: counters of switches, tracepoints, and netlink's multicast
 * group "events".
 *
 * Called where something happens, often in softirq with the lock of a socket or
 * of a link held.  So it takes no lock of ours and allocates with GFP_ATOMIC,
 * and that only if somebody listens.  A listener from whom an event had to be
 * kept is told so by netlink's ENOBUFS.
 */
#include <linux/rdmastream_netlink.h>
#include <net/genetlink.h>

#include "events.h"
#include "link_priv.h"
#include "netlink.h"
#include "netlink_gen.h"
#include "stream.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* The greatest, of a link, has less than 350 bytes. */
#define EVENT_SIZE	512

/* The last links of a module that is unloaded end behind netlink's family. */
static bool stopped;

void rstream_events_stop(void)
{
	WRITE_ONCE(stopped, true);
}

/* ---- messages ---- */

static bool listened(struct net *net)
{
	return !READ_ONCE(stopped) &&
	       genl_has_listeners(&rdmastream_nl_family, net,
				  RDMASTREAM_NLGRP_EVENTS);
}

static void event_missed(struct net *net)
{
	genl_set_err(&rdmastream_nl_family, net, 0, RDMASTREAM_NLGRP_EVENTS,
		     -ENOBUFS);
}

/* Return: NULL if there is no memory. */
static struct sk_buff *event_new(struct net *net, u8 cmd, void **hdr)
{
	struct sk_buff *skb = genlmsg_new(EVENT_SIZE, GFP_ATOMIC);

	if (skb) {
		*hdr = genlmsg_put(skb, 0, 0, &rdmastream_nl_family, 0, cmd);
		if (*hdr)
			return skb;
		nlmsg_free(skb);
	}
	event_missed(net);
	return NULL;
}

static void event_send(struct net *net, struct sk_buff *skb, void *hdr, int err)
{
	if (WARN_ON_ONCE(err)) {
		nlmsg_free(skb);
		event_missed(net);
		return;
	}
	genlmsg_end(skb, hdr);
	genlmsg_multicast_netns(&rdmastream_nl_family, net, skb, 0,
				RDMASTREAM_NLGRP_EVENTS, GFP_ATOMIC);
}

/* ---- switches ---- */

static int put_addr(struct sk_buff *skb, int attr, const struct sock *sk,
		    bool remote)
{
	struct sockaddr_in6 addr;

	rstream_info_addr(sk, remote, &addr);
	return rstream_nl_put_endpoint(skb, attr, (struct sockaddr *)&addr);
}

static int put_switch(struct sk_buff *skb, const struct rstream *rs,
		      enum rstream_way_info way, u64 offset)
{
	bool tx = way == RSTREAM_WAY_TX;
	const struct rstream_switched *sw = tx ? &rs->tx_switched :
						 &rs->rx_switched;
	u32 link = tx ? rs->tx_link : rs->rx_link;

	return put_addr(skb, RDMASTREAM_A_SWITCH_LOCAL, rs->sk, false) ||
	       put_addr(skb, RDMASTREAM_A_SWITCH_REMOTE, rs->sk, true) ||
	       nla_put(skb, RDMASTREAM_A_SWITCH_PEER, RSTREAM_INSTANCE_LEN,
		       rs->peer_name.instance) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_WAY, way) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_CARRIER, sw->to) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_REASON, sw->reason) ||
	       put_u64(skb, RDMASTREAM_A_SWITCH_OFFSET, offset) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_EPOCH,
			   tx ? rs->tx.epoch : rs->rx.epoch) ||
	       (sw->to == RSTREAM_INFO_CARRIER_RING &&
		nla_put_u32(skb, RDMASTREAM_A_SWITCH_LINK, link));
}

void rstream_event_switch(struct rstream *rs, enum rstream_way_info way,
			  enum rstream_carrier_info to, u64 offset,
			  enum rstream_reason reason)
{
	bool tx = way == RSTREAM_WAY_TX;
	struct rstream_switched *sw = tx ? &rs->tx_switched : &rs->rx_switched;
	struct net *net = sock_net(rs->sk);
	struct sk_buff *skb;
	void *hdr;

	rstream_assert_held(rs);
	sw->to = to;
	sw->reason = reason;
	WRITE_ONCE(sw->at, jiffies);
	WRITE_ONCE(sw->count, sw->count + 1);
	rstream_mib_inc(rs->rn, tx ? RSTREAM_MIB_SWITCHES_TX :
				  RSTREAM_MIB_SWITCHES_RX);
	rstream_mib_switched(rs->rn, reason);
	trace_rstream_switch(rs->sk, way, to,
			     tx ? rs->tx.epoch : rs->rx.epoch, offset, reason);
	if (!listened(net))
		return;
	skb = event_new(net, RDMASTREAM_CMD_SWITCH_NTF, &hdr);
	if (skb)
		event_send(net, skb, hdr, put_switch(skb, rs, way, offset));
}

/* ---- stalls ---- */

static void stall_ends(struct rstream *rs, u64 now)
{
	struct rstream_stalls *stalls = &rs->stalls;
	unsigned int i = stalls->why - RSTREAM_R_STALL_WINDOW;
	u64 ns = now - stalls->since;

	WRITE_ONCE(stalls->ns[i], stalls->ns[i] + ns);
	rstream_mib_add(rs->rn, RSTREAM_MIB_STALL_WINDOW_US + i,
			div_u64(ns, NSEC_PER_USEC));
	trace_rstream_stall(rs->sk, div_u64(ns, NSEC_PER_USEC), stalls->why);
}

void rstream_event_stall(struct rstream *rs, enum rstream_reason why)
{
	struct rstream_stalls *stalls = &rs->stalls;
	u64 now = ktime_get_ns();

	if (stalls->why)
		stall_ends(rs, now);
	WRITE_ONCE(stalls->since, now);
	WRITE_ONCE(stalls->why, why);
	if (why)
		stalls->count[why - RSTREAM_R_STALL_WINDOW]++;
}

/* ---- links ---- */

static int put_link(struct sk_buff *skb, const struct rstream_link *link,
		    enum rstream_reason reason, const char *why)
{
	return nla_put_u32(skb, RDMASTREAM_A_LINK_ID, link->id) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_STATE, link->state) ||
	       (link->active && nla_put_flag(skb, RDMASTREAM_A_LINK_ACTIVE)) ||
	       nla_put(skb, RDMASTREAM_A_LINK_PEER, RSTREAM_INSTANCE_LEN,
		       link->peer->name.instance) ||
	       (link->dev_name[0] &&
		nla_put_string(skb, RDMASTREAM_A_LINK_DEVICE,
			       link->dev_name)) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_PORT, link->port) ||
	       rstream_nl_put_endpoint(skb, RDMASTREAM_A_LINK_LOCAL,
				       (struct sockaddr *)&link->local) ||
	       rstream_nl_put_endpoint(skb, RDMASTREAM_A_LINK_REMOTE,
				       (struct sockaddr *)&link->remote) ||
	       (link->state != RSTREAM_LINK_UP &&
		(nla_put_u32(skb, RDMASTREAM_A_LINK_REASON, reason) ||
		 nla_put_string(skb, RDMASTREAM_A_LINK_WHY, why)));
}

void rstream_event_link(const struct rstream_link *link,
			enum rstream_reason reason, const char *why)
{
	struct net *net = rstream_link_netns(link);
	struct sk_buff *skb;
	void *hdr;

	lockdep_assert_held(&link->lock);
	if (link->state == RSTREAM_LINK_UP)
		trace_rstream_link_up(link->id, link->peer->name.instance,
				      link->dev_name, reason, why);
	else
		trace_rstream_link_lost(link->id, link->peer->name.instance,
					link->dev_name, reason, why);
	if (!listened(net))
		return;
	skb = event_new(net, RDMASTREAM_CMD_LINK_NTF, &hdr);
	if (skb)
		event_send(net, skb, hdr, put_link(skb, link, reason, why));
}

void rstream_event_link_refused(struct net *net,
				const struct sockaddr_storage *from,
				enum rstream_reason reason)
{
	struct rstream_net *rn = rstream_net(net);

	rstream_mib_inc(rn, RSTREAM_MIB_CM_REJECTED);
	rstream_mib_reason(rn, reason);
	trace_rstream_link_refused(from, reason);
}

/* ---- the namespace ---- */

void rstream_event_drain(struct net *net, bool on)
{
	struct sk_buff *skb;
	void *hdr;

	if (!listened(net))
		return;
	skb = event_new(net, RDMASTREAM_CMD_DRAIN_NTF, &hdr);
	if (skb)
		event_send(net, skb, hdr,
			   nla_put_u8(skb, RDMASTREAM_A_INFO_DRAIN, on));
}

void rstream_event_setting(struct net *net, const char *name, u64 val)
{
	struct sk_buff *skb;
	void *hdr;

	if (!listened(net))
		return;
	skb = event_new(net, RDMASTREAM_CMD_SETTING_NTF, &hdr);
	if (skb)
		event_send(net, skb, hdr,
			   nla_put_string(skb, RDMASTREAM_A_SETTING_NAME, name) ||
			   put_u64(skb, RDMASTREAM_A_SETTING_VALUE, val));
}
