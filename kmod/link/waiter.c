// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams that wait for a link to a peer, or for memory of a link.  Their callbacks run with
 * peer->lock held, and take neither that lock nor the lock of a link.
 *
 * A waiter is notified of one failure each time that it has asked.  It continues to wait, and asks
 * again by its own timer, whose pauses grow.  So the work does not depend on how often attempts
 * fail, which the peer may control.
 */
#include <linux/slab.h>

#include "account.h"
#include "waiter.h"

/* Number of waiters to notify before giving up the lock and the CPU for a moment. */
#define NOTIFY_MAX	64U

/* Where the waiter of @rs is, NULL if it does not wait.  The lock of its only peer guards this. */
static struct rstream_waiter **waiter_of(struct rstream *rs)
{
	return rstream_link_ops->waiter(rs);
}

static void waiter_set_notified(struct rstream_peer *peer, struct rstream_waiter *w, bool notified)
{
	w->notified = notified;
	list_move_tail(&w->list, notified ? &peer->notified : &peer->asking);
	if (notified)
		peer->n_asking--;
	else
		peer->n_asking++;
}

struct rstream_waiter *rstream_waiter_add(struct rstream_peer *peer, struct rstream *rs)
{
	struct rstream_waiter *w;

	lockdep_assert_held(&peer->lock);
	w = *waiter_of(rs);
	if (w) {
		if (w->notified)
			waiter_set_notified(peer, w, false);
		return w;
	}
	w = rstream_account_zalloc(peer->ln, sizeof(*w), GFP_ATOMIC);
	if (!w) {
		rstream_link_ops->event(rs, RSTREAM_LINK_EV_FAILED);
		return NULL;
	}
	w->rs = rs;
	*waiter_of(rs) = w;
	list_add_tail(&w->list, &peer->asking);
	peer->n_waiters++;
	peer->n_asking++;
	return w;
}

static void waiter_del(struct rstream_peer *peer, struct rstream_waiter *w)
{
	*waiter_of(w->rs) = NULL;
	list_del(&w->list);
	peer->n_waiters--;
	peer->n_asking -= !w->notified;
	kfree(w);
}

static void waiter_notify(struct rstream_peer *peer, struct rstream_waiter *w,
			  enum rstream_link_event ev)
{
	rstream_link_ops->event(w->rs, ev);
	if (ev == RSTREAM_LINK_EV_UP)
		waiter_del(peer, w);
	else
		waiter_set_notified(peer, w, true);
}

/*
 * Notifies @n waiters, of a failure only those that have asked since the last one.  Streams that
 * ask meanwhile go to the tail, so the loop ends.
 */
void rstream_waiter_notify_some(struct rstream_peer *peer, enum rstream_link_event ev,
				unsigned int n)
{
	bool up = ev == RSTREAM_LINK_EV_UP;
	struct rstream_waiter *w;
	unsigned int i;

	lockdep_assert_held(&peer->lock);
	n = min(n, up ? peer->n_waiters : peer->n_asking);
	for (i = 1; i <= n; i++) {
		w = NULL;
		if (up)
			w = list_first_entry_or_null(&peer->notified, struct rstream_waiter, list);
		w = w ?: list_first_entry_or_null(&peer->asking, struct rstream_waiter, list);
		if (!w)
			return;
		waiter_notify(peer, w, ev);
		if (i % NOTIFY_MAX == 0) {
			spin_unlock_bh(&peer->lock);
			cond_resched();
			spin_lock_bh(&peer->lock);
		}
	}
}

void rstream_waiter_wait(struct rstream_peer *peer, struct rstream *rs)
{
	spin_lock_bh(&peer->lock);
	rstream_waiter_add(peer, rs);
	spin_unlock_bh(&peer->lock);
}

void rstream_waiter_notify(struct rstream_peer *peer, enum rstream_link_event ev)
{
	spin_lock_bh(&peer->lock);
	rstream_waiter_notify_some(peer, ev, UINT_MAX);
	spin_unlock_bh(&peer->lock);
}

void rstream_waiter_failed(struct rstream_peer *peer, struct rstream *rs)
{
	struct rstream_waiter *w;

	spin_lock_bh(&peer->lock);
	w = *waiter_of(rs);
	if (w && !w->notified)
		waiter_notify(peer, w, RSTREAM_LINK_EV_FAILED);
	spin_unlock_bh(&peer->lock);
}

void rstream_waiter_forget(struct rstream_peer *peer, struct rstream *rs)
{
	struct rstream_waiter *w;

	spin_lock_bh(&peer->lock);
	w = *waiter_of(rs);
	if (w)
		waiter_del(peer, w);
	spin_unlock_bh(&peer->lock);
}
