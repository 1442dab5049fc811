// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of rings in pipes.
 *
 * A pipe can be read by anybody at any time, teed, or spliced into a socket, whose packets
 * may hold the page long after the pipe has released it.  So loans are not counted: a page of
 * a ring is lent while it has other references than the one of its RMB.  References of pipe
 * buffers, and of frags that forward the page, are dropped by rstream_page_put(), which
 * notifies waiters.  Other code drops its references without notice, so waiters must also
 * poll.
 *
 * Owns the table of waiters.  Its lock is innermost.
 */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#include "lent.h"

static DEFINE_HASHTABLE(lent_waits, 6);
static DEFINE_SPINLOCK(lent_lock);	/* bh */
static atomic_t lent_count;		/* waiters in the table */

static void forget(struct rstream_lent *lent)
{
	lockdep_assert_held(&lent_lock);
	hash_del(&lent->node);
	WRITE_ONCE(lent->page, NULL);
	atomic_dec(&lent_count);
}

static void tell(const struct page *page)
{
	struct rstream_lent *lent;
	struct hlist_node *next;

	/* a waiter that is added after this check will see that the page is back */
	if (hlist_empty(&lent_waits[hash_min((unsigned long)page,
					     HASH_BITS(lent_waits))]))
		return;
	spin_lock_bh(&lent_lock);
	hash_for_each_possible_safe(lent_waits, lent, next, node,
				    (unsigned long)page) {
		/* the waiter keeps the page alive */
		if (lent->page != page || rstream_page_lent(page))
			continue;
		forget(lent);
		lent->told(lent);
	}
	spin_unlock_bh(&lent_lock);
}

void rstream_page_put(struct page *page)
{
	put_page(page);
	/* pairs with rstream_lent_wait(): this sees the waiter, or the waiter sees the new count */
	smp_mb();
	if (atomic_read(&lent_count))
		tell(page);
}

bool rstream_lent_wait(struct rstream_lent *lent, struct page *page)
{
	spin_lock_bh(&lent_lock);
	if (lent->page)
		forget(lent);
	hash_add(lent_waits, &lent->node, (unsigned long)page);
	WRITE_ONCE(lent->page, page);
	atomic_inc(&lent_count);
	spin_unlock_bh(&lent_lock);
	smp_mb();	/* pairs with rstream_page_put() */
	if (rstream_page_lent(page))
		return true;
	rstream_lent_forget(lent);
	return false;
}

void rstream_lent_forget(struct rstream_lent *lent)
{
	spin_lock_bh(&lent_lock);
	if (lent->page)
		forget(lent);
	spin_unlock_bh(&lent_lock);
}

static bool lent_get(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	if (!try_get_page(buf->page))
		return false;
	__module_get(THIS_MODULE);
	return true;
}

static void lent_release(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	rstream_page_put(buf->page);
	module_put(THIS_MODULE);
}

/* There is no try_steal: the device may write to the page. */
const struct pipe_buf_operations rstream_lent_ops = {
	.get = lent_get,
	.release = lent_release,
};
