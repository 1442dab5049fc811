/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reporting of events: tracepoints, and netlink's group "events".  Without a listener, no
 * message is built.
 *
 * A leaf: it gets plain values, and calls no other part of the module.
 */
#ifndef RSTREAM_EVENTS_H
#define RSTREAM_EVENTS_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>

#include "stats.h"

struct genl_family;
struct sock;

enum rstream_carrier_info {		/* as in the netlink spec */
	RSTREAM_INFO_CARRIER_TCP,
	RSTREAM_INFO_CARRIER_RING,
};

enum rstream_dir {			/* likewise */
	RSTREAM_DIR_TX,			/* to the peer */
	RSTREAM_DIR_RX,
};

/**
 * struct rstream_switch_event - one direction has changed its carrier
 * @sk:		the socket
 * @peer:	instance id of the peer
 * @dir:	the direction
 * @to:		the new carrier
 * @epoch:	epoch of the new carrier
 * @link:	id of the link, if the new carrier is a ring
 * @offset:	stream offset of the first byte on the new carrier
 * @reason:	why it has changed
 */
struct rstream_switch_event {
	const struct sock *sk;
	const u8 *peer;
	enum rstream_dir dir;
	enum rstream_carrier_info to;
	u32 epoch;
	u32 link;
	u64 offset;
	enum rstream_reason reason;
};

/**
 * struct rstream_link_change - a link has come up or ended
 * @id:		local id, unique in the namespace
 * @state:	enum rstream_link_state
 * @up:		the link has come up
 * @active:	this host connected it
 * @peer:	instance id of the peer
 * @device:	name of the RDMA device, or ""
 * @port:	port of the device; 0: none
 * @local:	local RDMA address; AF_UNSPEC: none
 * @remote:	the peer's RDMA address, likewise
 * @reason:	why the link ended, or NONE
 * @why:	the same as text, or ""
 */
struct rstream_link_change {
	u32 id;
	u8 state;
	bool up;
	bool active;
	const u8 *peer;
	const char *device;
	u32 port;
	const struct sockaddr_storage *local, *remote;
	enum rstream_reason reason;
	const char *why;
};

/* Any context, with any lock of the module held. */
void rstream_event_switch(const struct rstream_switch_event *ev);
void rstream_event_stall(const struct sock *sk, u64 us, enum rstream_reason why);
void rstream_event_link(struct net *net, const struct rstream_link_change *link);
void rstream_event_link_refused(const struct sockaddr_storage *from,
				enum rstream_reason reason);

/* A drain of the namespace has started or ended.  Process context. */
void rstream_event_drain(struct net *net, bool on);

/* A setting of the namespace has changed.  Process context. */
void rstream_event_setting(struct net *net, const char *name, u64 val);

/**
 * rstream_events_start() - start to send events by netlink
 * @family:	the netlink family
 * @group:	multicast group within the family
 */
void rstream_events_start(const struct genl_family *family, unsigned int group);
void rstream_events_stop(void);		/* call before the family is unregistered */

#endif
