// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of rings in pipes.
 *
 * A pipe can be read by anybody at any time, teed, or spliced into a socket, whose packets
 * may hold the page long after the pipe has released it.  So references are not tracked: a page of
 * a ring is spliced out while it has other references than the one of its RMB.  References of pipe
 * buffers, and of frags that forward the page, are dropped by rstream_page_put(), which
 * notifies waiters.  Other code drops its references without notice, so waiters must also
 * poll.
 *
 * Owns the table of waiters.  Its lock is innermost.
 */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#include "spliced.h"

static DEFINE_HASHTABLE(spliced_waiters, 6);
static DEFINE_SPINLOCK(spliced_lock);	/* bh */
static atomic_t spliced_count;		/* waiters in the table */

static void forget(struct rstream_spliced_waiter *w)
{
	lockdep_assert_held(&spliced_lock);
	hash_del(&w->node);
	WRITE_ONCE(w->page, NULL);
	atomic_dec(&spliced_count);
}

static void tell(const struct page *page)
{
	struct rstream_spliced_waiter *w;
	struct hlist_node *next;

	/* a waiter that is added after this check will see that the page is back */
	if (hlist_empty(&spliced_waiters[hash_min((unsigned long)page,
						  HASH_BITS(spliced_waiters))]))
		return;
	spin_lock_bh(&spliced_lock);
	hash_for_each_possible_safe(spliced_waiters, w, next, node,
				    (unsigned long)page) {
		/* the waiter keeps the page alive */
		if (w->page != page || rstream_page_spliced(page))
			continue;
		forget(w);
		w->returned(w);
	}
	spin_unlock_bh(&spliced_lock);
}

void rstream_page_put(struct page *page)
{
	put_page(page);
	/* pairs with rstream_spliced_wait(): this sees the waiter, or it sees the new count */
	smp_mb();
	if (atomic_read(&spliced_count))
		tell(page);
}

bool rstream_spliced_wait(struct rstream_spliced_waiter *w, struct page *page)
{
	spin_lock_bh(&spliced_lock);
	if (w->page)
		forget(w);
	hash_add(spliced_waiters, &w->node, (unsigned long)page);
	WRITE_ONCE(w->page, page);
	atomic_inc(&spliced_count);
	spin_unlock_bh(&spliced_lock);
	smp_mb();	/* pairs with rstream_page_put() */
	if (rstream_page_spliced(page))
		return true;
	rstream_spliced_cancel(w);
	return false;
}

void rstream_spliced_cancel(struct rstream_spliced_waiter *w)
{
	spin_lock_bh(&spliced_lock);
	if (w->page)
		forget(w);
	spin_unlock_bh(&spliced_lock);
}

static bool spliced_get(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	if (!try_get_page(buf->page))
		return false;
	__module_get(THIS_MODULE);
	return true;
}

static void spliced_release(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	rstream_page_put(buf->page);
	module_put(THIS_MODULE);
}

/* There is no try_steal: the device may write to the page. */
const struct pipe_buf_operations rstream_spliced_ops = {
	.get = spliced_get,
	.release = spliced_release,
};
