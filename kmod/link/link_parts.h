/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of struct rstream_link, each with the file that it belongs to, and in brackets the
 * others that change it.  rstream_life_new() initializes all.  Locks: see link_priv.h.
 */
#ifndef RSTREAM_LINK_PARTS_H
#define RSTREAM_LINK_PARTS_H

#include <linux/idr.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/siphash.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct rdma_cm_id;
struct rstream_request;
struct rx_ring;

#define RSTREAM_BATCH_WRS	16	/* work requests chained in one post */
#define RSTREAM_SGES_MAX	16	/* of one work request */
#define RSTREAM_CACHED_PAGES	16	/* pages in the cache of a link */

/* Receive memory or credit cells, see rmb.h. */
enum rstream_rmb_kind {
	RSTREAM_RMB_RINGS,
	RSTREAM_RMB_CELLS,
	RSTREAM_RMB_KINDS
};

/* How far the bring-up of a link has come at this end. */
enum rstream_link_setup {
	RSTREAM_SETUP_CONNECT,		/* rdma_cm connects */
	RSTREAM_SETUP_REGISTER,		/* connected: register_work was queued */
	RSTREAM_SETUP_REGISTERED,	/* local memory is registered */
	RSTREAM_SETUP_READY,		/* READY was posted */
};

/*
 * A slot of the send or receive queue.
 * @tx_bytes:	link->tx.bytes including the request in this (send) slot
 */
struct rstream_slot {
	struct ib_cqe cqe;
	u64 tx_bytes;
};

/* Work requests being built for one ib_post_send(). */
struct rstream_batch {
	unsigned int n;
	unsigned int n_sge;
	unsigned int n_signalled;
	__be32 imm;			/* iWARP: of a message that has not ended, else 0 */
	union {
		struct ib_rdma_wr rdma;
		struct ib_reg_wr reg;
	} wr[RSTREAM_BATCH_WRS];
	struct ib_sge sge[RSTREAM_BATCH_WRS * RSTREAM_SGES_MAX];
};

/*
 * cm.c: the connection as rdma_cm knows it, and what proves it.  [@closing: link_life.c]
 * @setup_lock:	held by steps of the CM handler; guards @closing
 */
struct rstream_link_cm {
	struct mutex setup_lock;	/* see above */
	bool closing;			/* handlers do nothing more */
	struct rdma_cm_id *id;
	struct rstream_request *request; /* of the peer; NULL: this host connects */
	struct work_struct setup_work;
	u64 key;			/* random, this end's half */
	siphash_key_t proof_key, peer_proof_key; /* random until known */
};

/* link_life.c: bring-up and end.  [@setup, @peer_ready: link.c] */
struct rstream_link_life {
	u8 setup;			/* enum rstream_link_setup */
	bool peer_ready;		/* READY or a GRANT has arrived */
	struct delayed_work timeout_work;
	struct work_struct register_work, up_work;
	struct work_struct lost_work;
	struct work_struct down_work;
	struct work_struct end_work;
	struct work_struct free_work;
};

/* qp.c: the queue pair, its completion queues, and the slots of both queues. */
struct rstream_link_qp {
	struct ib_qp *ib;
	u32 num, peer_num, path_mtu;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct napi_struct napi;	/* polls both */
	struct ib_wc *wcs;		/* RSTREAM_POLL_BATCH of them, used while @napi polls */
	bool polling;			/* @napi is enabled */
	unsigned int depth;		/* of either queue, without the drain slot */
	unsigned int max_sge;
	unsigned int max_inline;	/* bytes of a request that the device copies when it is
					 * posted (IB_SEND_INLINE), 0: it cannot
					 */
	struct rstream_slot *sq, *rq;
	void *ctrl;			/* 2 * depth * RSTREAM_CTRL_BYTES */
	u64 ctrl_dma;
	bool ctrl_mapped;
	struct work_struct event_work;	/* handles events of the QP */
	unsigned long events;		/* bits, see the enum in qp.c */
};

/* wr.c: work requests, counted from 1.  [@batch, @done: qp.c] */
struct rstream_link_wr {
	struct rstream_batch *batch;
	u64 posted, done;
	u64 signalled;			/* newest signalled one */
	u32 unsignalled_bytes;
	u8 number;			/* of the next message to the peer, see imm.h */
};

/*
 * msg.c: messages and their credits.  [@credits: cm.c, link_life.c, txring.c; @credits_max: cm.c;
 * @received: qp.c]
 */
struct rstream_link_msg {
	unsigned int credits;		/* messages that the peer can still receive */
	unsigned int credits_max;
	unsigned int unreported;	/* receives reposted, of which the peer does not know yet */
	u8 number;			/* of the next message from the peer */
	u64 received;			/* messages of the peer */
	bool owes_ack;			/* iWARP: the peer waits for PROBE_ACK */
	struct list_head waiting;	/* rings with control messages that wait */
	struct list_head no_credit;	/* likewise, if only a receive credit is missing */
	unsigned int no_credit_sweeps;	/* sweeps that found no credit, since the last RQ_CREDIT */
};

/*
 * link_life.c: the sweeps of a link that is up, which probe it when it is silent.
 * [@timed, @rtt_us: link.c; @sweeps: txring.c; @renews_until: msg.c]
 */
struct rstream_link_probe {
	struct delayed_work work;
	u64 done;			/* wr.done at the last probe */
	u64 signalled;			/* wr.signalled then */
	u64 received;			/* msg.received then */
	unsigned int misses;		/* consecutive probes without progress */
	u64 timed;			/* work request of the last probe; 0: done or answered */
	ktime_t timed_at;		/* when that was posted */
	u32 rtt_us;			/* round trip of the last probe; 0: none yet */
	unsigned int sweeps;		/* since the link came up */
	u64 swept_bytes;		/* tx.bytes plus rx.bytes at the last sweep */
	unsigned int move_pause;	/* sweeps without moves after the last sweep with moves */
	unsigned int move_at;		/* @sweeps when rings may move next */
	bool renewing;			/* too many abandoned rings: to end at the next sweep */
	u64 renews_until;		/* 64-bit jiffies: the peer has said RENEW */
	int routes;			/* rstream_route_genid() at the last check */
};

/*
 * rmb.c: registered memory.  [@wanted, @least: link.c, link_life.c; @ring_most, @retry_at,
 * @retry_pause, @down: link_life.c]
 */
struct rstream_link_rmb {
	struct list_head lists[RSTREAM_RMB_KINDS];
	atomic_long_t bytes[RSTREAM_RMB_KINDS];
	u32 ring_most;			/* bytes; memory for larger rings could not be registered */
	unsigned int retry_at;		/* probe.sweeps when larger ones are tried again */
	unsigned int retry_pause;	/* sweeps until then; longer after each failure */
	struct work_struct work;
	struct work_struct trim_work;	/* holds a reference */
	bool down;			/* the device has released all RMBs: they can be freed */
	unsigned int wanted;		/* a bit for each kind */
	u32 least;			/* bytes; the largest ring for which memory is wanted */
	wait_queue_head_t wait;		/* registrations */
};

/* rxring.c: receiving ends. */
struct rstream_link_rx {
	struct idr rings;
	struct rx_ring *last;		/* found last, of @rings; may be NULL */
	unsigned int n;			/* rings that belong to a stream */
	unsigned int n_most;		/* recent maximum, because some are being replaced */
	unsigned int n_done;		/* of @n, those that the peer has left */
	u64 bytes, msgs;
};

/* txring.c: sending ends.  [@ending: msg.c] */
struct rstream_link_tx {
	struct idr rings;
	struct idr granted;		/* the same by the receiver's id */
	unsigned int n;			/* rings that belong to a stream */
	struct list_head busy;		/* rings of streams that recently had frags in flight */
	unsigned int n_busy;		/* on @busy */
	struct list_head zombies;	/* closed rings until FREED arrives, oldest first */
	unsigned int n_zombies;		/* on @zombies */
	struct list_head ending;	/* zombies whose DONE is posted, but not completed */
	unsigned int n_refused;		/* DONE without a sending end, for which FREED is due */
	struct list_head dead;		/* frags, see rstream_txring_unlock() */
	struct list_head sent;		/* rings to notify of completions */
	u64 bytes, msgs;
};

/* sched.c: which ring may post.  [@completed_bytes: qp.c] */
struct rstream_link_sched {
	struct list_head waiters;	/* rings that wait to post, in order of arrival */
	unsigned int n_waiting;		/* on @waiters */
	struct list_head scheduled;	/* rings that may post before these */
	unsigned int n_scheduled;	/* on @scheduled */
	struct delayed_work turn_work;	/* ends turns that last too long; while others wait */
	u64 completed_bytes;		/* part of tx.bytes that is known to have completed */
};

/* txring.c: pages that were sent, kept for the next writes */
struct rstream_link_pages {
	struct page *cache[RSTREAM_CACHED_PAGES];
	unsigned int n, least;		/* @least: minimum of @n since the last sweep */
};

#endif
