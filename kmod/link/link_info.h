/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Snapshots of links, peers, receive memory and devices for netlink: plain values, no
 * pointers.
 */
#ifndef RSTREAM_LINK_INFO_H
#define RSTREAM_LINK_INFO_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>

#include "base/net.h"

#define RSTREAM_INFO_PATHS	8
#define RSTREAM_INFO_ADDRS	32

struct rstream_link_info {
	u32 id;
	u8 state;			/* enum rstream_link_state */
	bool active;			/* this host connected it */
	u8 peer[RSTREAM_INSTANCE_LEN];
	char dev[64];			/* IB_DEVICE_NAME_MAX */
	u32 port;
	u32 qpn, peer_qpn;
	u32 path_mtu;			/* bytes */
	struct sockaddr_storage local, remote;
	u64 tx_bytes, tx_msgs, rx_bytes, rx_msgs;
	bool was_up;
	u64 up_ms;			/* since it came up; 0: never */
	u32 tx_rings, rx_rings;
	u64 rmb_bytes, rmb_used;
	u32 rq_credits;			/* free receives of the peer */
	u32 sq_free;
	u32 rtt_us;			/* of the last probe, 0: none yet */
};

/*
 * The dumps are in link_info.c unless noted.  They skip @skip entries, to resume a dump, call @fn
 * with a snapshot of each other one, and stop if it returns non-zero.  Return: what @fn returned
 * last.
 */
int rstream_link_info_dump(struct net *net, unsigned int skip,
			   int (*fn)(const struct rstream_link_info *info,
				     void *arg),
			   void *arg);

/* Does the link with this id use the device of this name?  Any context. */
bool rstream_link_info_on_device(struct net *net, u32 id, const char *name);

/* A pair of addresses over which links to a peer can be established. */
struct rstream_path_info {
	struct sockaddr_storage local, remote;	/* AF_UNSPEC: routing chooses it */
	bool own;			/* of a TCP connection */
	u32 fails, refused, flaps;
	u64 retry_ms;			/* until the next attempt */
};

struct rstream_peer_info {
	u64 key;			/* unique among peers */
	u8 instance[RSTREAM_INSTANCE_LEN];
	bool active;			/* this host establishes the links */
	bool self;
	bool drained;
	u32 links, connecting;		/* up; being established */
	u32 waiting;			/* sockets */
	const char *why;		/* why the last link ended, or NULL */
	u64 why_ms;			/* time since then */
	unsigned int n_paths;
	struct rstream_path_info paths[RSTREAM_INFO_PATHS];
};

int rstream_link_info_dump_peers(struct net *net, unsigned int skip,
				 int (*fn)(const struct rstream_peer_info *info,
					   void *arg),
				 void *arg);

enum rstream_rmb_kind_info {		/* as in the netlink spec */
	RSTREAM_INFO_RMB_RINGS,
	RSTREAM_INFO_RMB_CELLS,
};

struct rstream_rmb_info {
	u64 serial;			/* unique among RMBs */
	u32 link;
	char dev[64];
	u8 kind;			/* enum rstream_rmb_kind_info */
	u64 bytes, used;
};

int rstream_link_info_dump_rmbs(struct net *net, unsigned int skip,
				int (*fn)(const struct rstream_rmb_info *info,
					  void *arg),
				void *arg);

/*
 * Return: bytes of registered memory of the namespace.  Sets @max to the limit on these, and
 * @is_short if memory for rings is short.
 */
u64 rstream_link_info_rmb_total(struct net *net, u64 *max, bool *is_short);

enum rstream_dev_problem {		/* as in the netlink spec */
	RSTREAM_DEV_GOOD,
	RSTREAM_DEV_NO_REG,		/* no fast memory registration */
	RSTREAM_DEV_SMALL,		/* queues are too short */
	RSTREAM_DEV_DOWN,		/* port is not active */
	RSTREAM_DEV_NO_ADDR,		/* port has no IP address of the namespace */
};

/* One port of a device. */
struct rstream_dev_info {
	char name[64];
	u32 port;
	u8 problem;			/* enum rstream_dev_problem */
	u32 links;			/* of the namespace, on all ports of the device */
	int ifindex;			/* of addrs[0] */
	unsigned int n_addrs;
	struct in6_addr addrs[RSTREAM_INFO_ADDRS];	/* IPv6 or v4-mapped */
};

/* Implemented in device.c; @fn must not sleep. */
int rstream_dev_info_dump(struct net *net, unsigned int skip,
			  int (*fn)(const struct rstream_dev_info *info,
				    void *arg),
			  void *arg);

#endif
