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

#define RSTREAM_HIST_BUCKETS	24	/* of microseconds: 0, 1, 2-3, 4-7, ... */
#define RSTREAM_INFO_PATHS	8
#define RSTREAM_INFO_ADDRS	32

enum rstream_mode_info {		/* as in the netlink spec */
	RSTREAM_INFO_UNCONNECTED,
	RSTREAM_INFO_LISTEN,
	RSTREAM_INFO_CONNECTING,	/* option sent, no answer yet */
	RSTREAM_INFO_HELLO,		/* agreed, a HELLO is awaited */
	RSTREAM_INFO_FRAMED,		/* records; carriers may change */
	RSTREAM_INFO_RAW,		/* plain TCP */
	RSTREAM_INFO_CLOSED,
	RSTREAM_INFO_PRELUDE,		/* agreed, no HELLO is due yet */
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
 * @stall:	tx: enum rstream_reason: what the sender waits for; or NONE
 * @stall_us:	tx: microseconds since it waits for that
 * @stalls:	tx: how often it has waited for each, and for how many microseconds
 * @has_hist:	the next one is there
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
	bool was_up;
	u64 up_ms;			/* since it came up, if it did */
	u32 tx_rings, rx_rings;
	u64 rmb_bytes, rmb_used;
	u32 rq_credits;			/* that we hold for the peer's receive queue */
	u32 sq_free;
	u32 rtt_us;			/* of the last probe, 0: none yet */
};

/* Implemented in link_info.c, as the next three; same rules as rstream_info_dump(). */
int rstream_link_info_dump(struct net *net, unsigned int skip,
			   int (*fn)(const struct rstream_link_info *info,
				     void *arg),
			   void *arg);

/* Is the link of this id on the device of this name?  Any context. */
bool rstream_link_on_device(struct net *net, u32 id, const char *name);

/* Between which addresses links to a peer can be made. */
struct rstream_path_info {
	struct sockaddr_storage local, remote;	/* AF_UNSPEC: as routing chooses */
	bool own;			/* of a TCP connection */
	u32 fails, refused, flaps;
	u64 retry_ms;			/* until it may be tried */
};

struct rstream_peer_info {
	u64 key;			/* of no two peers the same */
	u8 instance[RSTREAM_INSTANCE_LEN];
	bool active;			/* we make the links */
	bool self;
	bool drained;
	u32 links, connecting;		/* up; being made */
	u32 waiting;			/* sockets */
	const char *why;		/* the last link ended, or NULL */
	u64 why_ms;			/* since then */
	unsigned int n_paths;
	struct rstream_path_info paths[RSTREAM_INFO_PATHS];
};

int rstream_peer_info_dump(struct net *net, unsigned int skip,
			   int (*fn)(const struct rstream_peer_info *info,
				     void *arg),
			   void *arg);

enum rstream_rmb_kind_info {		/* as in the netlink spec */
	RSTREAM_INFO_RMB_RINGS,
	RSTREAM_INFO_RMB_CELLS,
};

struct rstream_rmb_info {
	u64 serial;			/* of no two RMBs the same */
	u32 link;
	char dev[64];
	u8 kind;			/* enum rstream_rmb_kind_info */
	u64 bytes, used;
};

int rstream_rmb_info_dump(struct net *net, unsigned int skip,
			  int (*fn)(const struct rstream_rmb_info *info,
				    void *arg),
			  void *arg);

/* Registered memory of the namespace; is it short? */
u64 rstream_rmb_total(struct net *net, bool *is_short);

enum rstream_dev_problem {		/* as in the netlink spec */
	RSTREAM_DEV_GOOD,
	RSTREAM_DEV_NO_REG,		/* no fast memory registration */
	RSTREAM_DEV_IWARP,
	RSTREAM_DEV_SMALL,		/* queues */
	RSTREAM_DEV_DOWN,		/* port */
	RSTREAM_DEV_NO_ADDR,		/* of the namespace */
};

/* One port of a device. */
struct rstream_dev_info {
	char name[64];
	u32 port;
	u8 problem;			/* enum rstream_dev_problem */
	u32 links;			/* of the namespace, on all ports */
	int ifindex;			/* of addrs[0] */
	unsigned int n_addrs;
	struct in6_addr addrs[RSTREAM_INFO_ADDRS];	/* IPv6 or v4-mapped */
};

/* Implemented in verbs.c; @fn must not sleep. */
int rstream_dev_info_dump(struct net *net, unsigned int skip,
			  int (*fn)(const struct rstream_dev_info *info,
				    void *arg),
			  void *arg);

struct rstream_setting_info {
	const char *name;
	u64 val;
	u64 def, min, max;		/* unless it is fixed */
	bool pow2;
	bool fixed;			/* cannot be set in this namespace */
};

/* Implemented in sysctl.c. */
int rstream_setting_info_dump(struct net *net, unsigned int skip,
			      int (*fn)(const struct rstream_setting_info *info,
					void *arg),
			      void *arg);

#endif
