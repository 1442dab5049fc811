// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams that wait for a link to a peer, or for memory of a link.  Their callbacks run with
 * peer->lock held, and take neither that lock nor the lock of a link.
 */
#include <linux/slab.h>

#include "account.h"
#include "waiter.h"

static struct rstream_waiter *waiter_find(struct rstream_peer *peer, struct rstream *rs)
{
	struct rstream_waiter *w;

	hash_for_each_possible(peer->waiters, w, node, (unsigned long)rs)
		if (w->rs == rs)
			return w;
	return NULL;
}

struct rstream_waiter *rstream_waiter_add(struct rstream_peer *peer, struct rstream *rs)
{
	struct rstream_waiter *w;

	lockdep_assert_held(&peer->lock);
	w = waiter_find(peer, rs);
	if (w)
		return w;
	w = rstream_account_zalloc(peer->ln, sizeof(*w), GFP_ATOMIC);
	if (!w) {
		rstream_link_ops->event(rs, RSTREAM_LINK_EV_FAILED);
		return NULL;
	}
	w->rs = rs;
	hash_add(peer->waiters, &w->node, (unsigned long)rs);
	peer->n_waiters++;
	return w;
}

static void waiter_del(struct rstream_peer *peer, struct rstream_waiter *w)
{
	hash_del(&w->node);
	peer->n_waiters--;
	kfree(w);
}

/* Notifies @n waiters.  If the attempt has failed, they continue to wait for the next one. */
void rstream_waiters_tell(struct rstream_peer *peer, enum rstream_link_event ev,
			  unsigned int n)
{
	struct hlist_node *next;
	struct rstream_waiter *w;
	int i;

	lockdep_assert_held(&peer->lock);
	hash_for_each_safe(peer->waiters, i, next, w, node) {
		if (!n--)
			return;
		rstream_link_ops->event(w->rs, ev);
		if (ev == RSTREAM_LINK_EV_UP)
			waiter_del(peer, w);
	}
}

void rstream_peer_wait(struct rstream_peer *peer, struct rstream *rs)
{
	spin_lock_bh(&peer->lock);
	rstream_waiter_add(peer, rs);
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_tell(struct rstream_peer *peer, enum rstream_link_event ev)
{
	spin_lock_bh(&peer->lock);
	rstream_waiters_tell(peer, ev, UINT_MAX);
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_forget(struct rstream_peer *peer, struct rstream *rs)
{
	struct rstream_waiter *w;

	spin_lock_bh(&peer->lock);
	w = waiter_find(peer, rs);
	if (w)
		waiter_del(peer, w);
	spin_unlock_bh(&peer->lock);
}
