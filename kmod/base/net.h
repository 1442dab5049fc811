/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of the module in one network namespace, and its settings.
 */
#ifndef RSTREAM_NET_H
#define RSTREAM_NET_H

#include <linux/list_nulls.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "stats.h"

#define RSTREAM_INSTANCE_LEN 16

struct ctl_table;
struct ctl_table_header;
struct rstream_link_net;	/* link_net.c: peers, links, the rdma_cm listener */

/* When a receiver grants a ring. */
enum rstream_ring_mode {
	RSTREAM_RING_OFF,	/* never: received data stays on TCP */
	RSTREAM_RING_ALWAYS,	/* as soon as the HELLOs have been exchanged */
	RSTREAM_RING_THRESHOLD,	/* after ring_threshold bytes in either direction */
};

/**
 * struct rstream_settings - sysctl net.rdmastream.*
 * @negotiate:	send and answer the TCP option (0: all sockets are plain TCP)
 * @prelude:	connections of local clients start without records; if set on both hosts,
 *		connections also leave records while no ring is possible (spans)
 * @ring_mode:	enum rstream_ring_mode
 * @ring_threshold: threshold of RSTREAM_RING_THRESHOLD, bytes
 * @loopback: also negotiate for connections within the namespace
 * @ring_size:	maximum size of a ring, bytes, power of two, 16 KiB to 4 MiB; a
 *		program's SO_RCVBUF takes precedence
 * @ring_idle_ms: a ring that has received nothing for this time is taken back
 * @rmb_max:	limit on registered receive memory of the namespace, bytes; a control
 *		group may have a lower one (link/account.h)
 * @hello_timeout_ms: how long to wait for a HELLO
 * @cm_port:	rdma_cm port of the listener (RDMA_PS_TCP)
 * @cm_timeout_ms: time limit of one attempt to establish a link
 * @link_idle_ms: an unused link is closed after this
 * @link_probe_ms:	interval of liveness probes and sweeps of a link
 * @link_stall_ms:	a link on which nothing completes for this time is given up; 0: never
 * @ack_timeout: local ACK timeout exponent (4.096 us * 2^n), IB spec 9.7.6.1.3
 * @retry_count: transport retries, 0 to 6 (7, forever on rxe, is refused)
 * @links_per_path: number of links over each path to a peer; streams are spread over them
 * @links_per_address: limit on links to one address, whichever side connects them
 * @links_max:	limit on links in the namespace
 * @max_orphans:	limit on closed sockets of the host that still have data to deliver
 * @link_flap_decay_ms: a link that was up for this time makes up for one that broke
 * @advertise_addrs: list further RDMA addresses in HELLO
 * @accept_addrs: which addresses in a peer's HELLO to use: 0 none, 1 those on
 *		networks of this host, 2 also those behind gateways
 * @histograms:	sample latencies of sockets
 */
struct rstream_settings {
	int negotiate;
	int prelude;
	int ring_mode;
	unsigned long ring_threshold;
	int loopback;
	unsigned int ring_size;
	int ring_idle_ms;
	unsigned long rmb_max;
	int hello_timeout_ms;
	int cm_port;
	int cm_timeout_ms;
	int link_idle_ms;
	int link_probe_ms;
	int link_stall_ms;
	int ack_timeout;
	int retry_count;
	int links_per_path;
	int links_per_address;
	int links_max;
	int max_orphans;
	int link_flap_decay_ms;
	int advertise_addrs;
	int accept_addrs;
	int histograms;
};

struct rstream_net {
	struct net *net;
	struct rstream_settings set;
	u8 instance[RSTREAM_INSTANCE_LEN];
	struct rstream_mib __percpu *mib;
	struct ctl_table_header *sysctl;
	struct ctl_table *sysctl_table;
	struct list_head follow_node;	/* sysctl.c: whose settings of the host follow the host's */
	struct rstream_link_net *links;

	/* option_server.c */
	struct mutex hook_lock;		/* guards the next two */
	unsigned int hook_users;	/* listeners (and connects to v4-mapped addresses) */
	bool hooked;
	struct delayed_work unhook_work;

	/*
	 * stream.c: all streams of the namespace by number, the latest of a list first, and by
	 * token those that own one
	 */
	spinlock_t streams_lock;	/* bh; guards what follows */
	struct hlist_head numbered[256];
	struct hlist_nulls_head tokens[256];
	unsigned int n_streams;
	u64 last_number;
	atomic_t n_closed;	/* closed, but not all is delivered */
	atomic_t n_fin_wait;	/* closed, all delivered, wait for the peer's end */
};

extern unsigned int rstream_net_id;

/* Not cheap: callers that need it often should keep the pointer. */
static inline struct rstream_net *rstream_net(const struct net *net)
{
	return net_generic(net, rstream_net_id);
}

/* ---- counting; any context ---- */

static inline void rstream_mib_add(const struct rstream_net *rn,
				   enum rstream_mib_item item, u64 n)
{
	this_cpu_add(rn->mib->item[item], n);
}

static inline void rstream_mib_inc(const struct rstream_net *rn,
				   enum rstream_mib_item item)
{
	rstream_mib_add(rn, item, 1);
}

static inline void rstream_mib_reason(const struct rstream_net *rn,
				      enum rstream_reason reason)
{
	this_cpu_inc(rn->mib->reason[reason]);
}

static inline void rstream_mib_switched(const struct rstream_net *rn,
					enum rstream_reason reason)
{
	this_cpu_inc(rn->mib->switched[reason]);
}

#endif
