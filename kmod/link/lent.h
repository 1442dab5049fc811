/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lent pages of rings: pages that are in pipes, or were spliced from there to elsewhere.  Only
 * their reference count shows this.  A stream can wait here until a page is back.
 */
#ifndef RSTREAM_LENT_H
#define RSTREAM_LENT_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/pipe_fs_i.h>

/**
 * struct rstream_lent - a waiter for a page
 * @node:	in the table, under its lock
 * @page:	NULL: not waiting; changed under the same lock
 * @told:	called once when the page is back, in process or softirq context, under that lock
 */
struct rstream_lent {
	struct hlist_node node;
	const struct page *page;
	void (*told)(struct rstream_lent *lent);
};

/* Does anything besides its RMB, which holds one reference, refer to this page? */
static inline bool rstream_page_lent(const struct page *page)
{
	return page_count(page) > 1;
}

/*
 * put_page() for a reference whose release may end the loan of a page.  Process or softirq
 * context, hard interrupts enabled.
 */
void rstream_page_put(struct page *page);

/* If @lent is already waiting, it now waits for @page.  Return: false if @page is back already. */
bool rstream_lent_wait(struct rstream_lent *lent, struct page *page);
/* After return, @told is not called. */
void rstream_lent_forget(struct rstream_lent *lent);

/* Operations of pipe buffers with lent pages; each buffer holds the module. */
extern const struct pipe_buf_operations rstream_lent_ops;

#endif
