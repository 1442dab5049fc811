/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snapshots of streams for netlink: plain values, no pointers.
 */
#ifndef RSTREAM_STREAM_INFO_H
#define RSTREAM_STREAM_INFO_H

#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>

#include "base/events.h"
#include "base/net.h"

#define RSTREAM_HIST_BUCKETS	24	/* of microseconds: 0, 1, 2-3, 4-7, ... */

/*
 * What a connection is for its user, as in the netlink spec.  It is derived from enum rstream_mode
 * (stream.h) and stored nowhere: a connection in mode FRAMED is PRELUDE, HELLO, FRAMED, FALLBACK or
 * CLOSED here, by its plain.phase, hello.in and close.state, which change independently.
 */
enum rstream_mode_info {
	RSTREAM_INFO_UNCONNECTED,
	RSTREAM_INFO_LISTEN,
	RSTREAM_INFO_CONNECTING,	/* option sent, no answer yet */
	RSTREAM_INFO_HELLO,		/* options agree, the peer's HELLO has not arrived */
	RSTREAM_INFO_FRAMED,		/* records; carriers may change */
	RSTREAM_INFO_FALLBACK,		/* plain TCP */
	RSTREAM_INFO_CLOSED,
	RSTREAM_INFO_PRELUDE,		/* options agree, no HELLO is due yet */
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
 * @switches:	how often the carrier has changed; the next three are valid if not 0
 * @switch_to:	enum rstream_carrier_info, after the last switch
 * @switch_reason: enum rstream_reason of the last switch
 * @switch_ms:	milliseconds since the last switch
 * @stall:	tx: enum rstream_reason: what the sender waits for; or NONE
 * @stall_us:	tx: for how many microseconds it has been waiting
 * @stalls:	tx: how often it has waited for each reason, and for how many microseconds
 * @has_hist:	@hist is valid
 * @hist:	tx: from send to consumed by the peer; rx: from arrival to read
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
	u8 stall;
	u64 stall_us;
	struct {
		u32 count;
		u64 us;
	} stalls[RSTREAM_STALLS];
	bool has_hist;
	u32 hist[RSTREAM_HIST_BUCKETS];
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
 * struct rstream_info_pos - how far a dump of streams has come; zero: to the beginning
 * @list:	index of a list in rstream_net.numbered
 * @number:	of the last stream of that list that was visited; 0: none
 */
struct rstream_info_pos {
	unsigned int list;
	u64 number;
};

/**
 * rstream_info_dump() - visit the streams of a namespace
 * @net:	the namespace
 * @pos:	where to begin; then, behind the last stream for which @fn returned 0
 * @fn:		called under RCU with a snapshot; the dump stops if it returns non-zero
 * @arg:	passed to @fn
 *
 * A dump that is resumed visits each stream once that exists all the time.  Process context, may
 * sleep.
 *
 * Return: what @fn returned last.  Implemented in stream_info.c.
 */
int rstream_info_dump(struct net *net, struct rstream_info_pos *pos,
		      int (*fn)(const struct rstream_info *info, void *arg),
		      void *arg);

#endif
