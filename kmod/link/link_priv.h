/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of this directory: the link, the peer, the namespace's tables.  Locks are
 * explained at the top of link.c, lifetimes at the top of link_life.c.
 */
#ifndef RSTREAM_LINK_PRIV_H
#define RSTREAM_LINK_PRIV_H

#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "base/net.h"
#include "imm.h"
#include "link.h"
#include "link_info.h"
#include "link_parts.h"

#define RSTREAM_PEERS_MAX	4096U	/* per namespace */
#define RSTREAM_LINK_BYTES	SZ_64K	/* approximate memory of a link and its queues */
#define RSTREAM_HOST_PEERS_MAX	256U	/* per address */
#define RSTREAM_CONNECTING_MAX	64U	/* links that a namespace establishes at once */
#define RSTREAM_REQUESTS_MAX	256U	/* authentic requests of peers that have no link yet */
#define RSTREAM_REQUEST_BYTES	SZ_4K	/* approximate memory of a request and its rdma_cm id */
#define RSTREAM_PEER_LINKS_MAX	32	/* links of one peer not yet drained */
#define RSTREAM_SLOTS		16	/* live links that one side has established */
#define RSTREAM_FAILURES_MAX	10U	/* further failures do not count */
#define RSTREAM_PATHS_MAX	8	/* addresses of one peer that are remembered */
#define RSTREAM_ADDRS_MAX	32	/* own RDMA addresses that are considered */
#define RSTREAM_NAMED_MAX	32	/* attempts a second to addresses from HELLOs */
#define RSTREAM_YOUNG		(30 * HZ)	/* a link that ends sooner counts as young */
#define RSTREAM_YOUNG_MAX	128U	/* of these of an address, in as much time, at least */

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

#define RSTREAM_INLINE_MAX	64	/* bytes that a device is asked to copy when posted */
#define RSTREAM_TX_MAX		16384	/* sending ends of a link, including zombies */
#define RSTREAM_NET_TX_MAX	262144	/* likewise, of all links of a namespace */

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

/* An RDMA address of this host. */
struct rstream_addr {
	struct in6_addr addr;		/* IPv6 or v4-mapped */
	int ifindex;			/* of its netdev */
};

/*
 * How the sweep of a busy link should balance its load.
 * @surplus:	number of this host's receiving rings to move to other links of the peer
 * @more:	one stream should ask for another link
 */
struct rstream_balance {
	unsigned int surplus;
	bool more;
};

/*
 * Links of one namespace.
 * @rn:	of the same namespace
 * @lock:	bh; guards everything up to @drained_dev
 * @peers:	hashed by instance id
 * @hosts:	hashed by address, see peer_host.h
 * @seed:	random, of both hashes
 * @links:	all links that are not DEAD
 * @ids:	the same links by local id
 * @n_links:	links whose memory is not yet freed
 * @n_attached:	of these, those that may still use a device
 * @n_connecting: of these, those that this host is establishing, or whose failed attempt has
 *		not been cleaned up
 * @n_requests:	requests of peers that have no link yet
 * @drained:	no link may be established; read locklessly where a delay is harmless
 * @drained_dev: there was a device when the drain started
 * @wait:	woken when @n_links, @n_peers or @n_requests decreases
 * @users:	calls of rstream_link_net_use() minus calls of rstream_link_net_unuse()
 * @memcg:	group to charge, see account.h; NULL: none
 * @rmb_bytes:	registered memory, bytes
 * @n_ends:	sending ends of its links, including zombies
 * @rmb_short_at: jiffies when its limit was last reached; 0: never
 * @listen_lock: guards @listen, @listen_again, @listen_port, @listening
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
	u64 listen_again;		/* jiffies; when to listen (again) */
	u16 listen_port;
	bool listening;			/* all of them that the kernel supports */
	struct delayed_work listen_work;
	spinlock_t addr_lock;		/* see above */
	struct rstream_addr addrs[RSTREAM_ADDRS_MAX];
	unsigned int n_addrs;
	unsigned long addrs_at;
	unsigned long named_since;	/* @lock; jiffies, start of the current second */
	unsigned int n_named;		/* @lock; attempts in it to addresses from HELLOs */
	u64 young_since;		/* @lock; jiffies, when @n_young was last reset */
	u16 n_young[256];		/* @lock; see peer_host.c, by bucket of @hosts */
};

/*
 * A pair of addresses over which links to a peer can be established, with its history.
 * @local:	AF_UNSPEC: routing chooses it
 * @remote:	AF_UNSPEC: the entry is free
 * @own:	the addresses of a TCP connection; otherwise @remote is from the peer's HELLO
 * @fails:	consecutive failed attempts; this and the next two up to RSTREAM_FAILURES_MAX
 * @agains:	consecutive attempts that were not possible, through no fault of the path
 * @refused:	consecutive attempts that the peer refused: the path works, but not now
 * @flaps:	links that broke, minus one for each link_flap_decay_ms that later links were up
 * @retry_at:	64-bit jiffies; no attempt before
 * @named_at:	jiffies; when a connection last used or advertised it
 */
struct rstream_path {
	struct sockaddr_storage local, remote;
	bool own;
	unsigned int fails, refused, flaps, agains;
	u64 retry_at;
	unsigned long named_at;
};

/* A remote address, see peer_host.c; ln->lock. */
struct rstream_host {
	struct hlist_node node;		/* ln->hosts */
	struct in6_addr addr;		/* or its /64, see peer_host.c */
	unsigned int users;		/* peers, including those being created */
	unsigned int n_peers;
	unsigned int n_links;		/* links that may still use a device */
	unsigned int n_connecting;	/* as in struct rstream_link_net */
	unsigned int n_requests;	/* likewise */
	unsigned int n_named;		/* likewise; of the second that began at @named_since */
	unsigned long named_since;
	atomic_long_t rmb_bytes;	/* of its links */
	unsigned long rmb_short_at;	/* jiffies, as in struct rstream_link_net */
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

	spinlock_t lock;		/* bh; guards everything below */
	struct list_head links;		/* link->peer_list, newest first */
	unsigned int n_links;
	struct list_head asking, notified;	/* waiters, see waiter.c */
	unsigned int n_waiters;
	unsigned int n_asking;
	struct rstream_path paths[RSTREAM_PATHS_MAX];
	struct rstream_path *trying;	/* the path that peer_work() is trying, without the lock */
	struct rstream_ticket ticket;	/* of the stream that last asked for a link */
	bool want_more;			/* another link besides those that are up */
	u64 more_at;			/* 64-bit jiffies; no further links before */
	bool declined;			/* the last attempt was, because the peer is drained */
	bool drained;			/* the peer is, as far as known */
	bool asked;			/* the peer has requested a link since the last attempt */
	u64 hurried_at;			/* 64-bit jiffies; when a request lets the peer be tried */
	u64 retried_at;			/* likewise; when the end of a drain does */
	const char *why;		/* why the last link ended; NULL: none has */
	u64 why_at;			/* 64-bit jiffies */
	struct delayed_work work;	/* holds a reference while it is pending */
	unsigned long work_at;		/* jiffies, if pending */
};

/*
 * One reliable connection to a peer.
 * @lock:	bh; guards the state, the tables and both queues
 * @ref:	held by the tables (dropped by life.end_work), by each ring, by callers
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
	u8 slot;			/* of the active side, see struct rstream_cm_hello */
	struct rstream_path *path;	/* of @peer; NULL: passive */
	struct sockaddr_storage local, remote;
	struct rstream_ticket ticket;	/* of the connection for which the link is established */
	bool attempt;			/* counted in @ln->n_connecting */
	bool was_up;
	u8 end;				/* enum rstream_link_end; NONE: the link is alive */
	const char *why;		/* the same as text; a constant */
	unsigned long made_at, up_at;	/* jiffies */
	unsigned long used_at;		/* jiffies, last change of rx.n or tx.n */

	/* device.c */
	struct rstream_dev *dev;
	struct list_head dev_list;
	char dev_name[IB_DEVICE_NAME_MAX];
	int node;			/* NUMA node of @dev */
	u32 port;
	bool iwarp;			/* @dev is an iWARP device, see struct rstream_notice */

	struct rstream_link_cm cm;
	struct rstream_link_life life;
	struct rstream_link_qp qp;
	struct rstream_link_wr wr;
	struct rstream_link_msg msg;
	struct rstream_link_sched sched;
	struct rstream_link_tx tx;
	struct rstream_link_rx rx;
	struct rstream_link_rmb rmb;
	struct rstream_link_pages pages;
	struct rstream_link_probe probe;
};

/*
 * Workqueues, in the order in which they are destroyed.  Each runs a limited number of works at a
 * time, for all namespaces.  So there is one for each thing that a work may block on for long.
 */
enum rstream_wq {
	RSTREAM_WQ_REQUESTS,	/* rdma_cm: attempts, requests */
	RSTREAM_WQ_LISTEN,	/* its listeners; few at a time */
	RSTREAM_WQ_SETUP,	/* queue pairs; with iWARP, connects that take minutes */
	RSTREAM_WQ_REGISTER,	/* the first memory of a link */
	RSTREAM_WQ_MEMORY,	/* further memory */
	RSTREAM_WQ_LOST,	/* notifies streams; never waits */
	RSTREAM_WQ_DOWN,	/* drains queue pairs of links that were up */
	RSTREAM_WQ_FAILED,	/* ... of links that were not; then their path is tried again */
	RSTREAM_WQ_END,		/* releases the resources of links */
	RSTREAM_WQ_TIMERS,	/* timers, events, pages: waits for no device and no peer */
	RSTREAM_WQS
};

extern struct workqueue_struct *rstream_wqs[RSTREAM_WQS];
extern const struct rstream_link_ops *rstream_link_ops;	/* callbacks into the layer above */

static inline void rstream_link_count(struct rstream_link *link, enum rstream_mib_item item)
{
	rstream_mib_inc(link->ln->rn, item);
}

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
struct rstream_link *rstream_life_new(struct rstream_peer *peer,
				      struct rstream_path *path, u8 slot);

/* link.c */
struct rstream_link *rstream_link_next(struct rstream_link_net *ln, int id);
bool rstream_link_set_state(struct rstream_link *link, enum rstream_link_state new);
void rstream_link_set_setup(struct rstream_link *link, enum rstream_link_setup new);
void rstream_link_attempt_over(struct rstream_link *link);
void rstream_link_disconnected(struct rstream_link *link);
void rstream_link_try_up(struct rstream_link *link);
void rstream_link_tell_streams(struct rstream_link *link, enum rstream_link_event ev);
void rstream_link_break_locked(struct rstream_link *link, enum rstream_link_end end);
bool rstream_link_pause(struct rstream_link *link, unsigned int n);
void rstream_link_ends(struct rstream_link *link, enum rstream_link_end end,
		       const char *why);
enum rstream_end_kind rstream_link_ended(const struct rstream_link *link);
bool rstream_link_ended_by_host(const struct rstream_link *link);
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

/* path.c, with peer->lock held, except for rstream_path_may() */
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
void rstream_paths_hurry(struct rstream_peer *peer, u64 at, bool all);
void rstream_path_broke(struct rstream_link *link);

/* msg.c, rxring.c and txring.c, with link->lock held unless noted */
void rstream_txring_unlock(struct rstream_link *link)	/* and frees frags */
	__releases(&link->lock);
void rstream_txring_sq_done(struct rstream_link *link);
void rstream_msg_got(struct rstream_link *link, __be32 imm, u32 len);
void rstream_msg_say_ready(struct rstream_link *link);
void rstream_msg_kick(struct rstream_link *link);
void rstream_txring_sweep(struct rstream_link *link, struct rstream_balance *balance);
u64 rstream_rxring_look(struct rstream_link *link, struct rstream_balance *balance);
enum rstream_link_end rstream_txring_overdue(struct rstream_link *link, unsigned int most,
					     unsigned int done);
bool rstream_msg_overdue(struct rstream_link *link, unsigned int most);
void rstream_txring_unmap(struct rstream_link *link);	/* without the lock */
void rstream_txring_drained(struct rstream_link *link);
void rstream_txring_dead(struct rstream_link *link);
void rstream_rxring_free_all(struct rstream_link *link);	/* without the lock */
void rstream_txring_free_all(struct rstream_link *link);	/* likewise */

#endif
