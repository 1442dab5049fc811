// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports events: tracepoints, and netlink's multicast group "events".
 *
 * Called where the event happens, often in softirq with the lock of a socket or of a link
 * held.  So it takes none of the module's locks, and allocates only if there is a listener,
 * with GFP_ATOMIC.  If that fails, netlink's ENOBUFS tells listeners that they missed an event.
 */
#include <linux/rdmastream_netlink.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "addr.h"
#include "events.h"
#include "nlattr.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* The largest message, that of a link, has less than 350 bytes. */
#define EVENT_SIZE	512

static const struct genl_family *family;
static unsigned int group;
/* When the module is unloaded, the last links end after the netlink family is gone. */
static bool stopped = true;

void rstream_events_start(const struct genl_family *of, unsigned int number)
{
	family = of;
	group = number;
	/* pairs with listened() */
	smp_store_release(&stopped, false);
}

void rstream_events_stop(void)
{
	WRITE_ONCE(stopped, true);
}

/* ---- messages ---- */

static bool listened(struct net *net)
{
	/* pairs with rstream_events_start() */
	return !smp_load_acquire(&stopped) &&
	       genl_has_listeners(family, net, group);
}

static void event_missed(struct net *net)
{
	genl_set_err(family, net, 0, group, -ENOBUFS);
}

/* Return: NULL if out of memory; listeners are then notified that they missed an event. */
static struct sk_buff *event_new(struct net *net, u8 cmd, void **hdr)
{
	struct sk_buff *skb = genlmsg_new(EVENT_SIZE, GFP_ATOMIC);

	if (skb) {
		*hdr = genlmsg_put(skb, 0, 0, family, 0, cmd);
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
	genlmsg_multicast_netns(family, net, skb, 0, group, GFP_ATOMIC);
}

/* ---- streams ---- */

static int put_addr(struct sk_buff *skb, int attr, const struct sock *sk,
		    bool remote)
{
	struct sockaddr_in6 addr;

	rstream_addr_of(sk, remote, &addr);
	return rstream_nla_put_endpoint(skb, attr, (struct sockaddr *)&addr);
}

static int put_switch(struct sk_buff *skb, const struct rstream_switch_event *ev)
{
	return put_addr(skb, RDMASTREAM_A_SWITCH_LOCAL, ev->sk, false) ||
	       put_addr(skb, RDMASTREAM_A_SWITCH_REMOTE, ev->sk, true) ||
	       nla_put(skb, RDMASTREAM_A_SWITCH_PEER, RSTREAM_INSTANCE_LEN, ev->peer) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_DIR, ev->dir) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_CARRIER, ev->to) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_REASON, ev->reason) ||
	       put_u64(skb, RDMASTREAM_A_SWITCH_OFFSET, ev->offset) ||
	       nla_put_u32(skb, RDMASTREAM_A_SWITCH_EPOCH, ev->epoch) ||
	       (ev->to == RSTREAM_INFO_CARRIER_RING &&
		nla_put_u32(skb, RDMASTREAM_A_SWITCH_LINK, ev->link));
}

void rstream_event_switch(const struct rstream_switch_event *ev)
{
	struct net *net = sock_net(ev->sk);
	struct sk_buff *skb;
	void *hdr;

	trace_rstream_switch(ev->sk, ev->dir, ev->to, ev->epoch, ev->offset,
			     ev->reason);
	if (!listened(net))
		return;
	skb = event_new(net, RDMASTREAM_CMD_SWITCH_NTF, &hdr);
	if (skb)
		event_send(net, skb, hdr, put_switch(skb, ev));
}

void rstream_event_stall(const struct sock *sk, u64 us, enum rstream_reason why)
{
	trace_rstream_stall(sk, us, why);
}

/* ---- links ---- */

static int put_link(struct sk_buff *skb, const struct rstream_link_change *link)
{
	return nla_put_u32(skb, RDMASTREAM_A_LINK_ID, link->id) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_STATE, link->state) ||
	       (link->active && nla_put_flag(skb, RDMASTREAM_A_LINK_ACTIVE)) ||
	       nla_put(skb, RDMASTREAM_A_LINK_PEER, RSTREAM_INSTANCE_LEN,
		       link->peer) ||
	       (link->device[0] &&
		nla_put_string(skb, RDMASTREAM_A_LINK_DEVICE, link->device)) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_PORT, link->port) ||
	       rstream_nla_put_endpoint(skb, RDMASTREAM_A_LINK_LOCAL,
					(const struct sockaddr *)link->local) ||
	       rstream_nla_put_endpoint(skb, RDMASTREAM_A_LINK_REMOTE,
					(const struct sockaddr *)link->remote) ||
	       (!link->up &&
		(nla_put_u32(skb, RDMASTREAM_A_LINK_REASON, link->reason) ||
		 nla_put_string(skb, RDMASTREAM_A_LINK_END_TEXT, link->why)));
}

void rstream_event_link(struct net *net, const struct rstream_link_change *link)
{
	struct sk_buff *skb;
	void *hdr;

	if (link->up)
		trace_rstream_link_up(link->id, link->peer, link->device,
				      link->reason, link->why);
	else
		trace_rstream_link_lost(link->id, link->peer, link->device,
					link->reason, link->why);
	if (!listened(net))
		return;
	skb = event_new(net, RDMASTREAM_CMD_LINK_NTF, &hdr);
	if (skb)
		event_send(net, skb, hdr, put_link(skb, link));
}

void rstream_event_link_refused(const struct sockaddr_storage *from,
				enum rstream_reason reason)
{
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
