/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files below link.h: the link, the peer, the namespace's tables.  Locks are
 * explained at the top of link.c, lifetimes at the top of link_life.c.
 */
#ifndef RSTREAM_LINK_PRIV_H
#define RSTREAM_LINK_PRIV_H

#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "base/net.h"
#include "imm.h"
#include "link.h"
#include "link_info.h"

#define RSTREAM_PEERS_MAX	4096U	/* per namespace */
#define RSTREAM_LINK_BYTES	SZ_64K	/* approximate memory of a link and its queues */
#define RSTREAM_HOST_PEERS_MAX	256U	/* per address */
#define RSTREAM_CONNECTING_MAX	64	/* links that a namespace establishes at once */
#define RSTREAM_REQUESTS_MAX	256U	/* authentic ones of peers, without a link yet */
#define RSTREAM_REQUEST_BYTES	SZ_4K	/* approximate memory of one and its rdma_cm id */
#define RSTREAM_PEER_LINKS_MAX	32	/* links of one peer not yet drained */
#define RSTREAM_SLOTS		16	/* live links that one side has established */
#define RSTREAM_MISHAPS_MAX	10U	/* further failures do not count */
#define RSTREAM_PATHS_MAX	8	/* addresses of one peer that are remembered */
#define RSTREAM_ADDRS_MAX	32	/* own RDMA addresses that are considered */
#define RSTREAM_NAMED_MAX	32	/* attempts a second to addresses from HELLOs */

/*
 * Slots of the two queues.  See rstream_dev_depth() for the inequalities
 * that these must satisfy after they were clamped to the device's limits.
 */
#define RSTREAM_DEPTH_MAX	512
#define RSTREAM_DEPTH_MIN	64
#define RSTREAM_SIGNAL_EVERY	16	/* send slots, a divisor of the depth */
#define RSTREAM_SIGNAL_BYTES	SZ_64K
#define RSTREAM_SQ_CTRL		16	/* slots that data may not take */
#define RSTREAM_RQ_RESERVE	4	/* receives kept for RQ_CREDIT messages */
#define RSTREAM_CTRL_BYTES	16	/* a receive buffer, a credit */

#define RSTREAM_BATCH_WRS	16	/* work requests chained in one post */
#define RSTREAM_SGES_MAX	16	/* of one work request */
#define RSTREAM_CACHED_PAGES		16	/* pages in the cache of a link */
#define RSTREAM_TX_MAX		16384	/* sending ends of a link, including zombies */
#define RSTREAM_HOST_TX_MAX	65536	/* likewise, of all links with one address */
#define RSTREAM_NET_TX_MAX	262144	/* likewise, of all links of a namespace */

/* Receive memory or credit cells, see rmb.h. */
enum rstream_rmb_kind {
	RSTREAM_RMB_RINGS,
	RSTREAM_RMB_CELLS,
	RSTREAM_RMB_KINDS
};

/* An RDMA device; exists while it is known to the ib_client. */
struct rstream_dev {
	struct list_head list;		/* rstream_devs, under its lock */
	struct ib_device *ib;
	enum rstream_dev_problem problem;	/* why links cannot use it, on any port */
	bool iwarp;
	struct list_head links;		/* link->dev_list, under the same lock */
	bool gone;			/* being removed: no more links */
	struct completion empty;	/* @gone, and no links left */
};

/* A slot of the send or receive queue; link->tx_bytes including its request. */
struct rstream_slot {
	struct ib_cqe cqe;
	u64 tx_bytes;
};

/* An RDMA address of this host. */
struct rstream_addr {
	struct in6_addr addr;		/* IPv6 or v4-mapped */
	int ifindex;			/* of its netdev */
};

/* Work requests being built for one ib_post_send(). */
struct rstream_batch {
	unsigned int n;
	unsigned int n_sge;
	unsigned int n_signalled;
	__be32 imm;			/* iWARP: of the message that has begun, else 0 */
	union {
		struct ib_rdma_wr rdma;
		struct ib_reg_wr reg;
	} wr[RSTREAM_BATCH_WRS];
	struct ib_sge sge[RSTREAM_BATCH_WRS * RSTREAM_SGES_MAX];
};

/*
 * What the sweep of a link is to do about its load, if it is busy.
 * @surplus:	how many of this host's rings shall move to other links of the peer
 * @more:	a stream shall ask for another link
 */
struct rstream_balance {
	unsigned int surplus;
	bool more;
};

/*
 * Links of one namespace.
 * @rn:	of the same namespace
 * @lock:	bh; guards all up to @drained_dev
 * @peers:	hashed by their instance ids
 * @hosts:	hashed by address, see peer_host.h
 * @seed:	random, of both hashes
 * @links:	every link until it is DEAD
 * @ids:	the same by local id
 * @n_links:	links whose memory is not yet freed
 * @n_attached:	of these: those that may still use a device
 * @n_connecting: of these: those that this host is establishing, or that still end an attempt
 * @n_requests:	requests of peers that have no link yet
 * @drained:	no link is established; read locklessly where a delay does no harm
 * @drained_dev: there was a device when the drain started
 * @wait:	woken when @n_links, @n_peers or @n_requests decreases
 * @users:	rstream_link_use() minus rstream_link_unuse()
 * @memcg:	is charged, see account.h; NULL: nothing is charged
 * @rmb_bytes:	registered memory, bytes
 * @n_ends:	sending ends of its links, including zombies
 * @rmb_short_at: jiffies when its limit was last reached; 0: never
 * @listen_lock: guards @listen, @listening
 * @addr_lock:	bh; guards @addrs, @n_addrs, @addrs_at
 * @addrs_at:	jiffies when @addrs were looked up
 */
struct rstream_link_net {
	struct net *net;
	struct rstream_net *rn;
	spinlock_t lock;		/* see above */
	struct hlist_head peers[256];
	struct hlist_head hosts[256];
	u32 seed;
	unsigned int n_peers;
	struct list_head links;
	struct idr ids;
	unsigned int n_links;
	unsigned int n_attached;
	unsigned int n_connecting;
	unsigned int n_requests;
	bool exiting;
	bool drained;
	bool drained_dev;
	wait_queue_head_t wait;
	atomic_t users;
	struct mem_cgroup *memcg;
	atomic_long_t rmb_bytes;
	atomic_t n_ends;
	unsigned long rmb_short_at;
	struct mutex listen_lock;	/* see above */
	struct rdma_cm_id *listen[2];	/* IPv4, IPv6 */
	bool listening;			/* at least one of them */
	struct delayed_work listen_work;
	spinlock_t addr_lock;		/* see above */
	struct rstream_addr addrs[RSTREAM_ADDRS_MAX];
	unsigned int n_addrs;
	unsigned long addrs_at;
	unsigned long named_since;	/* @lock; jiffies, start of the current second */
	unsigned int n_named;		/* @lock; attempts in it to addresses from HELLOs */
};

/*
 * A pair of addresses over which links to a peer can be established, with its history.
 * @local:	AF_UNSPEC: as routing chooses
 * @remote:	AF_UNSPEC: the entry is free
 * @own:	of a TCP connection; otherwise from the peer's HELLO
 * @fails:	consecutive failed attempts; this and the next two up to RSTREAM_MISHAPS_MAX
 * @refused:	consecutive attempts that the peer refused: the path works, but not now
 * @flaps:	links that broke, minus those made up for by links that lasted
 * @retry_at:	64-bit jiffies; no attempt before
 * @named_at:	jiffies; when a connection named it last
 */
struct rstream_path {
	struct sockaddr_storage local, remote;
	bool own;
	unsigned int fails, refused, flaps;
	u64 retry_at;
	unsigned long named_at;
};

/* A remote address, see peer_host.c; ln->lock. */
struct rstream_host {
	struct hlist_node node;		/* ln->hosts */
	struct in6_addr addr;		/* or its /64, see peer_host.c */
	unsigned int users;		/* peers, including those being created */
	unsigned int n_peers;
	unsigned int n_links;		/* that may still use a device */
	atomic_long_t rmb_bytes;	/* of its links */
	unsigned long rmb_short_at;	/* jiffies, as that of struct rstream_link_net */
	atomic_t n_ends;		/* sending ends of its links, including zombies */
};

struct rstream_peer {
	struct hlist_node node;		/* ln->peers */
	refcount_t ref;
	struct rstream_link_net *ln;
	struct rstream_host *host;	/* of name.remote */
	struct rstream_peer_name name;
	bool active;
	bool self;			/* it has this namespace's instance id */

	spinlock_t lock;		/* bh; guards all below */
	struct list_head links;		/* link->peer_list, newest first */
	unsigned int n_links;
	DECLARE_HASHTABLE(waiters, 6);
	unsigned int n_waiters;
	struct rstream_path paths[RSTREAM_PATHS_MAX];
	struct rstream_path *trying;	/* used without the lock */
	struct rstream_ticket ticket;	/* of the stream that asked for a link last */
	bool want_more;			/* more than the links that are up */
	u64 more_at;			/* 64-bit jiffies; no more links before */
	bool declined;			/* the last attempt, because the peer is drained */
	bool drained;			/* has declined, and not indicated otherwise since */
	bool asked;			/* the peer has requested a link since the last attempt */
	u64 hurried_at;			/* 64-bit jiffies; last expedited attempt because of that */
	const char *why;		/* why the last link ended; NULL: none has */
	u64 why_at;			/* 64-bit jiffies */
	struct delayed_work work;	/* holds a reference while it is pending */
	unsigned long work_at;		/* jiffies, if pending */
};

/*
 * One reliable connection to a peer.
 * @lock:	bh; guards the state, the tables and both queues
 * @ref:	of the tables (dropped by end_work), of each ring, of callers
 * @setup_lock:	held by steps of the CM handler; guards @closing
 */
struct rstream_link {
	refcount_t ref;
	spinlock_t lock;		/* see above */
	enum rstream_link_state state;
	struct rstream_link_net *ln;
	struct rstream_peer *peer;
	struct list_head peer_list;	/* peer->links */
	struct list_head net_list;	/* ln->links */
	u32 id, peer_id;
	bool active;
	u8 slot;			/* among those of the active side */
	struct rstream_path *path;	/* of @peer; NULL: passive */
	unsigned long made_at;		/* jiffies */
	bool was_up;
	bool attempt;			/* counted in @ln->n_connecting */
	u8 end;				/* enum rstream_link_end; NONE: it is alive */
	const char *why;		/* the same as text; a constant */
	struct rstream_ticket ticket;	/* of the connection for which it is established */
	u64 key;			/* random, this end's half */
	siphash_key_t proof_key, peer_proof_key; /* see cm.c; random until it is known */

	/* bring-up and end */
	struct mutex setup_lock;
	bool closing;			/* handlers do nothing more */
	bool established;		/* register_work was queued */
	bool registered;		/* local memory is registered */
	bool peer_ready;		/* READY or a GRANT has arrived */
	struct delayed_work timeout_work;
	struct work_struct setup_work;
	struct rstream_request *request; /* of the peer; NULL: this host connects it.  See cm.c */
	struct work_struct register_work, up_work;
	struct work_struct lost_work;
	struct work_struct down_work;
	struct work_struct end_work;
	struct work_struct free_work;
	struct rdma_cm_id *cm_id;
	struct sockaddr_storage local, remote;
	unsigned long up_at;		/* jiffies */

	/* device.c, qp.c, wr.c */
	struct rstream_dev *dev;
	struct list_head dev_list;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct napi_struct napi;	/* polls both */
	struct ib_wc *wcs;		/* RSTREAM_POLL_BATCH; of the polling one */
	bool polling;			/* @napi is in use */
	struct ib_qp *qp;
	char dev_name[IB_DEVICE_NAME_MAX];
	int node;			/* NUMA node of @dev */
	u32 port, qpn, peer_qpn, path_mtu;
	bool iwarp;			/* @dev is: see struct rstream_notice */
	u8 msg_wrs;			/* work requests of a message: 1, or 2 if @iwarp */
	unsigned int depth;		/* of either queue, without the drain slot */
	unsigned int max_sge;
	struct rstream_slot *sq, *rq;
	void *ctrl;			/* 2 * depth * RSTREAM_CTRL_BYTES, see qp.c */
	u64 ctrl_dma;
	bool ctrl_mapped;
	struct rstream_batch *batch;
	u64 sq_posted, sq_done;		/* work requests, counted from 1 */
	u64 sq_signalled;		/* newest signalled one */
	u32 unsignalled_bytes;
	u64 probed_done;		/* @sq_done at the last probe */
	u64 probed_signalled;		/* @sq_signalled then */
	u64 received;			/* messages of the peer */
	u64 probed_received;		/* @received at the last probe */
	unsigned int misses;		/* consecutive probes without progress */
	u64 timed;			/* work request of the last probe; 0: done or answered */
	ktime_t timed_at;		/* when it was posted */
	bool owes_ack;			/* iWARP: the peer waits for PROBE_ACK */
	bool said_ready;		/* READY was posted */
	u32 rtt_us;			/* time of the last probe; 0: none yet */
	struct work_struct event_work;	/* of some @events */
	unsigned long events;		/* enum in qp.c */
	unsigned int rq_credits;	/* messages that the peer can still receive */
	unsigned int rq_credits_max;
	u8 tx_number;			/* of the next message to the peer, see imm.h */
	u8 rx_number;			/* of the next message from it */
	unsigned int rq_return;		/* reposted receives, not yet reported */
	wait_queue_head_t wait;		/* registrations */

	/* rmb.c */
	struct list_head rmbs[RSTREAM_RMB_KINDS];
	atomic_long_t rmb_bytes[RSTREAM_RMB_KINDS];
	u32 ring_most;			/* bytes; larger rings could recently not be allocated */
	struct work_struct rmb_work;
	struct work_struct trim_work;	/* holds a reference */
	bool down;			/* the device has released all RMBs: they can be freed */
	unsigned int rmb_wanted;	/* bit per kind */
	u32 rmb_least;			/* bytes of the largest ring requested */

	/* ring.c */
	struct idr rx_rings, tx_rings;
	struct idr tx_granted;		/* the latter by the receiver's id */
	unsigned int n_rx, n_tx;	/* of them: those with a stream */
	unsigned int n_rx_most;		/* recent maximum, because some are being replaced */
	struct list_head ctrl_list;	/* rings with messages that found no slot */
	struct list_head ctrl_poor;	/* likewise, that found no receive credit */
	struct list_head tx_waiters;	/* rings that found no slot, in order of arrival */
	unsigned int n_waiting;		/* in it */
	struct list_head tx_scheduled;	/* rings that may post before these */
	unsigned int n_scheduled;	/* in it */
	struct list_head tx_busy;	/* rings of streams that had frags in flight lately */
	unsigned int n_busy;		/* in it */
	struct list_head tx_zombies;	/* closed rings until FREED comes, oldest first */
	unsigned int n_zombies;		/* in it */
	struct list_head tx_ending;	/* of these: DONE has not completed, in order of posting */
	unsigned int sweeps;		/* since it is up */
	unsigned int move_pause;	/* sweeps without moves after the last one that had some */
	unsigned int move_at;		/* @sweeps when rings may move next */
	unsigned int poor_sweeps;	/* sweeps without credits, since the last credit */
	struct list_head tx_dead;	/* frags, see rstream_tx_unlock() */
	struct list_head tx_sent;	/* rings to notify of completions */
	unsigned long used_at;		/* jiffies, last change of n_rx, n_tx */
	struct page *page_cache[RSTREAM_CACHED_PAGES];	/* see page_cache.h */
	unsigned int n_cached, cached_least;	/* cached_least: minimum since the last sweep */
	struct delayed_work probe_work;
	u64 tx_bytes, tx_msgs, rx_bytes, rx_msgs;
	u64 swept_bytes;		/* @tx_bytes and @rx_bytes at the last sweep */
	u64 settled_bytes;		/* of @tx_bytes: known to have completed */
	int routes;			/* rstream_routes_genid() when last checked */
};

/*
 * Workqueues, in the order in which they are destroyed.  Each runs a limited number of works at a
 * time, of all namespaces.  So what may wait for long has a queue for each thing that it waits for.
 */
enum rstream_wq {
	RSTREAM_WQ_REQUESTS,	/* rdma_cm: attempts, requests, listeners */
	RSTREAM_WQ_SETUP,	/* queue pairs; with iWARP, connects that take minutes */
	RSTREAM_WQ_REGISTER,	/* the first memory of a link */
	RSTREAM_WQ_MEMORY,	/* further memory */
	RSTREAM_WQ_LOST,	/* tells streams: never waits */
	RSTREAM_WQ_DOWN,	/* drains queue pairs of links that were up */
	RSTREAM_WQ_FAILED,	/* ... that never were; then their path is tried again */
	RSTREAM_WQ_END,		/* releases what links have */
	RSTREAM_WQ_TIMERS,	/* timers, events, pages: waits for no device and no peer */
	RSTREAM_WQS
};

extern struct workqueue_struct *rstream_wqs[RSTREAM_WQS];
extern const struct rstream_link_ops *rstream_link_ops;	/* callbacks into the layer above */

static inline struct net *rstream_link_netns(const struct rstream_link *link)
{
	return link->ln->net;
}

static inline struct rstream_settings *
rstream_link_set(const struct rstream_link_net *ln)
{
	return &ln->rn->set;
}

/* CONNECTING or UP: the queue pair may be used. */
static inline bool rstream_link_alive(const struct rstream_link *link)
{
	return READ_ONCE(link->state) <= RSTREAM_LINK_UP;
}

/* link_life.c */
struct rstream_link *rstream_link_new(struct rstream_peer *peer,
				      struct rstream_path *path, u8 slot);

/* link.c */
struct rstream_link *rstream_link_next(struct rstream_link_net *ln, int id);
bool rstream_link_set_state(struct rstream_link *link, enum rstream_link_state new);
void rstream_link_attempt_over(struct rstream_link *link);
void rstream_link_disconnected(struct rstream_link *link);
void rstream_link_try_up(struct rstream_link *link);
void rstream_link_tell_streams(struct rstream_link *link, enum rstream_link_event ev);
void rstream_link_break_locked(struct rstream_link *link, enum rstream_link_end end);
bool rstream_link_pause(struct rstream_link *link, unsigned int n);
void rstream_link_ends(struct rstream_link *link, enum rstream_link_end end,
		       const char *why);
enum rstream_end_kind rstream_link_ended(const struct rstream_link *link);
bool rstream_link_flaps(const struct rstream_link *link);
void rstream_link_established(struct rstream_link *link);
void rstream_link_peer_ready(struct rstream_link *link);
void rstream_link_probed(struct rstream_link *link);
void rstream_link_want_rmb(struct rstream_link *link,
			   enum rstream_rmb_kind kind, u32 least,
			   struct rstream *rs);

/* peer.c */
struct rstream_peer *rstream_peer_next(struct rstream_link_net *ln,
				       struct hlist_head *bucket,
				       struct rstream_peer *last);
void rstream_peer_hold(struct rstream_peer *peer);
void rstream_peer_add_link(struct rstream_peer *peer, struct rstream_link *link);
void rstream_peer_link_up(struct rstream_link *link);
void rstream_peer_balance(struct rstream_link *link, struct rstream_balance *balance);
void rstream_peer_link_down(struct rstream_link *link);
void rstream_peer_declines(struct rstream_peer *peer);
bool rstream_peer_bad_token(struct rstream_link *link);
void rstream_peers_retry(struct rstream_link_net *ln);
void rstream_peer_net_exit(struct rstream_link_net *ln);

/* path.c, all but rstream_path_may() with peer->lock held */
void rstream_path_name(struct rstream_peer *peer,
		       const struct sockaddr_storage *local,
		       const struct sockaddr_storage *remote, bool own);
int rstream_path_may(struct rstream_peer *peer,
		     const struct sockaddr_storage *remote);
unsigned long rstream_path_wait(const struct rstream_path *path);
struct rstream_path *rstream_path_best(struct rstream_peer *peer);
struct rstream_path *rstream_path_further(struct rstream_peer *peer, unsigned int most,
					  unsigned int *missing);
bool rstream_path_has_link(struct rstream_link *link);
unsigned long rstream_path_longest(struct rstream_peer *peer);
void rstream_path_works(struct rstream_path *path);
void rstream_path_failed(struct rstream_path *path, bool refused);
void rstream_path_again(struct rstream_path *path);
void rstream_paths_hurry(struct rstream_peer *peer, unsigned int ms);
void rstream_path_broke(struct rstream_link *link);

/* ring.c, all with link->lock held */
void rstream_tx_unlock(struct rstream_link *link)	/* and frees frags */
	__releases(&link->lock);
void rstream_ring_sq_done(struct rstream_link *link);
void rstream_ring_message(struct rstream_link *link, __be32 imm, u32 len);
void rstream_ring_say_ready(struct rstream_link *link);
void rstream_ring_kick(struct rstream_link *link);
void rstream_ring_sweep(struct rstream_link *link, struct rstream_balance *balance);
u64 rstream_ring_look(struct rstream_link *link, struct rstream_balance *balance);
enum rstream_link_end rstream_ring_withheld(struct rstream_link *link);
void rstream_ring_unmap(struct rstream_link *link);	/* without the lock */
void rstream_ring_drained(struct rstream_link *link);
void rstream_ring_dead(struct rstream_link *link);
void rstream_ring_free_all(struct rstream_link *link);
int rstream_ring_init(void);
void rstream_ring_exit(void);

#endif
