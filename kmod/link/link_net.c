// SPDX-License-Identifier: GPL-2.0-only
/*
 * The links of a network namespace: listener, removal, drain; init and exit of this layer.
 *
 * Owns struct rstream_link_net and the workqueues.  An rdma_cm id pins its namespace, so except in
 * the initial namespace, the listener exists only while there are users, and for a second.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "account.h"
#include "cm.h"
#include "ring.h"
#include "device.h"
#include "qp.h"

/* How many namespaces start or end to listen at the same time. */
#define LISTEN_MOST	4

struct workqueue_struct *rstream_wqs[RSTREAM_WQS];
const struct rstream_link_ops *rstream_link_ops;

static void links_break(struct rstream_link_net *ln, enum rstream_link_end idle,
			enum rstream_link_end with_rings)
{
	struct rstream_link *link;
	int id = 0;

	while ((link = rstream_link_next(ln, id))) {
		id = link->id;
		spin_lock_bh(&link->lock);
		rstream_link_break_locked(link, link->rx.n || link->tx.n ? with_rings : idle);
		spin_unlock_bh(&link->lock);
		rstream_link_put(link);
	}
}

unsigned int rstream_link_net_count(const struct net *net)
{
	return READ_ONCE(rstream_net(net)->links->n_attached);
}

void rstream_link_net_drain(struct net *net, bool on)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	bool dev = rstream_link_possible(net);

	spin_lock_bh(&ln->lock);
	WRITE_ONCE(ln->drained, on);
	WRITE_ONCE(ln->drained_dev, on && dev);
	spin_unlock_bh(&ln->lock);
	if (!on) {
		rstream_peers_retry(ln);
		return;
	}
	/* no more links are added, so this catches all of them */
	links_break(ln, RSTREAM_END_DRAINED, RSTREAM_END_DRAINED);
}

/* Jiffies until the namespace may listen again. */
static unsigned long listen_wait(const struct rstream_link_net *ln)
{
	u64 at = READ_ONCE(ln->listen_again), now = get_jiffies_64();

	return at > now ? at - now : 0;
}

static void listen_soon(struct rstream_link_net *ln)
{
	mod_delayed_work(rstream_wqs[RSTREAM_WQ_LISTEN], &ln->listen_work, listen_wait(ln));
}

/* Is there no listener, or one at a port that has been changed since? */
static bool must_listen(const struct rstream_link_net *ln)
{
	return !READ_ONCE(ln->listening) ||
	       READ_ONCE(ln->listen_port) != rstream_link_set(ln)->cm_port;
}

static void listen_or_not(struct rstream_link_net *ln)
{
	unsigned long ms = rstream_link_set(ln)->link_idle_ms;

	if (atomic_read(&ln->users)) {
		if (listen_wait(ln))
			listen_soon(ln);
		else
			rstream_cm_listen(ln);
		return;
	}
	/* do not pin a namespace that is unused; the initial one always exists */
	if (!net_eq(ln->net, &init_net)) {
		links_break(ln, RSTREAM_END_UNUSED, RSTREAM_END_UNUSED_RINGS);
	} else if (READ_ONCE(ln->listening) && !list_empty_careful(&ln->links)) {
		queue_delayed_work(rstream_wqs[RSTREAM_WQ_LISTEN], &ln->listen_work,
				   msecs_to_jiffies(ms));
		return;
	}
	rstream_cm_unlisten(ln);
	smp_mb();	/* pairs with rstream_link_net_use(): one sees the other */
	if (atomic_read(&ln->users))
		listen_soon(ln);
}

static void link_listen_work(struct work_struct *work)
{
	struct rstream_link_net *ln = container_of(to_delayed_work(work),
						   struct rstream_link_net,
						   listen_work);

	/* no new id in a namespace that is being removed: it would pin it */
	if (!maybe_get_net(ln->net))
		return;
	listen_or_not(ln);
	put_net(ln->net);
}

void rstream_link_net_pays(struct net *net, struct mem_cgroup *memcg)
{
	rstream_account_to(rstream_net(net)->links, memcg);
}

void rstream_link_net_use(struct net *net, struct mem_cgroup *memcg)
{
	struct rstream_link_net *ln = rstream_net(net)->links;

	rstream_account_to(ln, memcg);
	atomic_inc(&ln->users);
	smp_mb__after_atomic();	/* pairs with listen_or_not() */
	if (must_listen(ln))
		listen_soon(ln);
}

/*
 * For how long a namespace without sockets keeps its links, and is pinned by its listener: a
 * program that makes one connection after the other does not need a new link for each.
 */
#define UNUSED_MS	1000UL

void rstream_link_net_unuse(struct net *net)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	unsigned long ms = UNUSED_MS;

	if (net_eq(net, &init_net))
		ms = rstream_link_set(ln)->link_idle_ms;
	if (!atomic_dec_and_test(&ln->users))
		return;
	mod_delayed_work(rstream_wqs[RSTREAM_WQ_LISTEN], &ln->listen_work, msecs_to_jiffies(ms));
	smp_mb();	/* pairs with rstream_link_net_use() */
	/* it has not seen this work, which may have replaced its own */
	if (atomic_read(&ln->users) && must_listen(ln))
		listen_soon(ln);
}

int rstream_link_net_init(struct net *net)
{
	struct rstream_link_net *ln = kzalloc(sizeof(*ln), GFP_KERNEL_ACCOUNT);

	if (!ln)
		return -ENOMEM;
	ln->net = net;
	ln->rn = rstream_net(net);
	spin_lock_init(&ln->lock);
	mutex_init(&ln->listen_lock);
	spin_lock_init(&ln->addr_lock);
	ln->addrs_at = jiffies - HZ;
	ln->named_since = jiffies;
	ln->seed = get_random_u32();
	INIT_LIST_HEAD(&ln->links);
	idr_init(&ln->ids);
	init_waitqueue_head(&ln->wait);
	INIT_DELAYED_WORK(&ln->listen_work, link_listen_work);
	ln->rn->links = ln;
	return 0;
}

/*
 * No stream of the namespace is left.  The listener is destroyed first, so no new requests arrive.
 * Then this waits, only for the module's workers, until links, peers (which links and pending
 * attempts hold) and requests are gone; a pending request finds no stream, and gets no link.
 */
void rstream_link_net_exit(struct net *net)
{
	struct rstream_link_net *ln = rstream_net(net)->links;

	if (!ln)
		return;
	spin_lock_bh(&ln->lock);
	ln->exiting = true;
	spin_unlock_bh(&ln->lock);
	cancel_delayed_work_sync(&ln->listen_work);
	rstream_cm_unlisten(ln);
	rstream_peer_net_exit(ln);
	links_break(ln, RSTREAM_END_NET, RSTREAM_END_NET_RINGS);
	wait_event(ln->wait, !READ_ONCE(ln->n_links) && !READ_ONCE(ln->n_peers) &&
		   !READ_ONCE(ln->n_requests));
	/* the waker may still hold the lock: wait until it has released it */
	spin_lock_bh(&ln->lock);
	spin_unlock_bh(&ln->lock);
	WARN_ON_ONCE(atomic_long_read(&ln->rmb_bytes));
	idr_destroy(&ln->ids);
	rstream_net(net)->links = NULL;
	rstream_account_end(ln);
	kfree(ln);
}

static void wqs_exit(void)
{
	int i;

	for (i = 0; i < RSTREAM_WQS; i++)
		if (rstream_wqs[i])
			destroy_workqueue(rstream_wqs[i]);
}

/*
 * WQ_SYSFS: administrators can set the CPUs and the concurrency of each queue.  WQ_MEM_RECLAIM for
 * what streams wait for when a link is lost: dirty pages may be written back over one of them.
 */
static int wqs_init(void)
{
	static const char * const names[] = {
		[RSTREAM_WQ_REQUESTS] = "requests",
		[RSTREAM_WQ_LISTEN] = "listen",
		[RSTREAM_WQ_SETUP] = "setup",
		[RSTREAM_WQ_REGISTER] = "register",
		[RSTREAM_WQ_MEMORY] = "memory",
		[RSTREAM_WQ_LOST] = "lost",
		[RSTREAM_WQ_DOWN] = "down",
		[RSTREAM_WQ_FAILED] = "failed",
		[RSTREAM_WQ_END] = "end",
		[RSTREAM_WQ_TIMERS] = "timers",
	};
	/* link_down_work() cancels work of SETUP */
	const unsigned int reclaim = BIT(RSTREAM_WQ_LOST) | BIT(RSTREAM_WQ_DOWN) |
				     BIT(RSTREAM_WQ_TIMERS) | BIT(RSTREAM_WQ_SETUP);
	unsigned int flags;
	int i;

	static_assert(ARRAY_SIZE(names) == RSTREAM_WQS);
	for (i = 0; i < RSTREAM_WQS; i++) {
		flags = WQ_UNBOUND | WQ_SYSFS | (reclaim & BIT(i) ? WQ_MEM_RECLAIM : 0);
		rstream_wqs[i] = alloc_workqueue("rdmastream_%s", flags,
						 i == RSTREAM_WQ_LISTEN ? LISTEN_MOST : 0,
						 names[i]);
		if (!rstream_wqs[i]) {
			wqs_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

int rstream_link_net_register(const struct rstream_link_ops *ops)
{
	int err;

	rstream_link_ops = ops;
	err = wqs_init();
	if (err)
		return err;
	err = rstream_frag_init();
	if (err)
		goto err_wq;
	err = rstream_rmb_init();
	if (err)
		goto err_ring;
	err = rstream_qp_init();
	if (err)
		goto err_rmb;
	err = rstream_dev_init();
	if (err)
		goto err_qp;
	return 0;

err_qp:
	rstream_qp_exit();
err_rmb:
	rstream_rmb_exit();
err_ring:
	rstream_frag_exit();
err_wq:
	wqs_exit();
	return err;
}

void rstream_link_net_unregister(void)
{
	rstream_dev_exit();
	wqs_exit();
	rstream_qp_exit();
	rstream_rmb_exit();
	rstream_frag_exit();
}
