/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snapshots of streams and links for netlink: plain values, no pointers.
 */
#ifndef RSTREAM_INFO_H
#define RSTREAM_INFO_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>

#include "link.h"
#include "stats.h"

struct sock;

enum rstream_mode_info {		/* as in the netlink spec */
	RSTREAM_INFO_UNCONNECTED,
	RSTREAM_INFO_LISTEN,
	RSTREAM_INFO_CONNECTING,	/* option sent, no answer yet */
	RSTREAM_INFO_HELLO,		/* agreed, a HELLO is awaited */
	RSTREAM_INFO_FRAMED,		/* records; carriers may change */
	RSTREAM_INFO_RAW,		/* plain TCP */
	RSTREAM_INFO_CLOSED,
};

enum rstream_carrier_info {
	RSTREAM_INFO_CARRIER_TCP,
	RSTREAM_INFO_CARRIER_RING,
};

enum rstream_way_info {
	RSTREAM_WAY_TX,			/* towards the peer */
	RSTREAM_WAY_RX,
};

/**
 * struct rstream_dir_info - one direction
 * @carrier:	enum rstream_carrier_info
 * @epoch:	of the present carrier, 0 before the first switch
 * @link:	id of the ring's link, 0 on tcp
 * @ring_size:	bytes, 0 on tcp
 * @offset:	stream offset: bytes taken from (tx) or given to (rx) the program
 * @acked:	tx: consumed by the peer's program; rx: arrived here
 * @tcp_bytes:	stream bytes carried by tcp
 * @ring_bytes:	stream bytes carried by rings
 * @tcp_msgs:	DATA records that carried @tcp_bytes
 * @ring_msgs:	messages that carried @ring_bytes
 * @switches:	how often the carrier has changed; the next three if not 0
 * @switch_to:	enum rstream_carrier_info, behind the last switch
 * @switch_reason: enum rstream_reason
 * @switch_ms:	milliseconds since then
 */
struct rstream_dir_info {
	u8 carrier;
	u32 epoch;
	u32 link;
	u32 ring_size;
	u64 offset;
	u64 acked;
	u64 tcp_bytes, ring_bytes;
	u64 tcp_msgs, ring_msgs;
	u32 switches;
	u8 switch_to;
	u8 switch_reason;
	u64 switch_ms;
};

struct rstream_info {
	struct sockaddr_storage local, remote;	/* AF_UNSPEC: none */
	u8 mode;			/* enum rstream_mode_info */
	u8 tcp_state;			/* TCP_ESTABLISHED ... */
	u8 reason;			/* enum rstream_reason */
	u32 uid;
	u64 inode;
	bool has_peer;
	u8 peer[RSTREAM_INSTANCE_LEN];
	struct rstream_dir_info tx, rx;
};

/**
 * rstream_info_dump() - visit the streams of a namespace
 * @net:	the namespace
 * @skip:	streams to pass over (dump resumption)
 * @fn:		called under RCU with a snapshot; stop when it returns non-zero
 * @arg:	handed to @fn
 *
 * Return: what @fn returned last.  Implemented in stream_info.c.
 */
int rstream_info_dump(struct net *net, unsigned int skip,
		      int (*fn)(const struct rstream_info *info, void *arg),
		      void *arg);

/**
 * rstream_info_addr() - address of a socket
 * @sk:		the socket
 * @remote:	the peer's, else our own
 * @to:		gets a sockaddr_in or sockaddr_in6; AF_UNSPEC: none
 */
void rstream_info_addr(const struct sock *sk, bool remote,
		       struct sockaddr_in6 *to);

struct rstream_link_info {
	u32 id;
	u8 state;			/* enum rstream_link_state */
	bool active;			/* we connected it */
	u8 peer[RSTREAM_INSTANCE_LEN];
	char dev[64];			/* IB_DEVICE_NAME_MAX */
	u32 port;
	u32 qpn, peer_qpn;
	u32 path_mtu;			/* bytes */
	struct sockaddr_storage local, remote;
	u64 tx_bytes, tx_msgs, rx_bytes, rx_msgs;
	u64 up_ms;			/* since it came up */
	u32 tx_rings, rx_rings;
	u64 rmb_bytes, rmb_used;
	u32 rq_credits;			/* that we hold for the peer's receive queue */
	u32 sq_free;
};

/* Implemented in link.c; same rules as rstream_info_dump(). */
int rstream_link_info_dump(struct net *net, unsigned int skip,
			   int (*fn)(const struct rstream_link_info *info,
				     void *arg),
			   void *arg);

#endif
