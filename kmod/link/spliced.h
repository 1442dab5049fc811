/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spliced-out pages of rings: pages that are in pipes, or were spliced from there to elsewhere.
 * Only their reference count shows this.  A stream can wait here until a page is back.
 */
#ifndef RSTREAM_SPLICED_H
#define RSTREAM_SPLICED_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/pipe_fs_i.h>

/**
 * struct rstream_spliced_waiter - a waiter for a page
 * @node:	in the table, under its lock
 * @page:	NULL: not waiting; changed under the same lock
 * @returned: called once when the page is back, in process or softirq context, under that lock
 */
struct rstream_spliced_waiter {
	struct hlist_node node;
	const struct page *page;
	void (*returned)(struct rstream_spliced_waiter *w);
};

/* Does anything besides its RMB, which holds one reference, refer to this page? */
static inline bool rstream_page_spliced(const struct page *page)
{
	return page_count(page) > 1;
}

/*
 * put_page() for a reference to a page that may be spliced out.  Process or softirq
 * context, hard interrupts enabled.
 */
void rstream_page_put(struct page *page);

/* If @w is already waiting, it now waits for @page.  Return: false if @page is back already. */
bool rstream_spliced_wait(struct rstream_spliced_waiter *w, struct page *page);
/* After return, @returned is not called. */
void rstream_spliced_cancel(struct rstream_spliced_waiter *w);

/* Operations of pipe buffers with spliced-out pages; each buffer holds the module. */
extern const struct pipe_buf_operations rstream_spliced_ops;

#endif
