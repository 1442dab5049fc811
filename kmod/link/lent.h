/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lent pages of rings: pipes refer to them, or whatever they were spliced to.  Only the
 * reference count shows this.  A stream that needs to know when a page is back waits here.
 */
#ifndef RSTREAM_LENT_H
#define RSTREAM_LENT_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/pipe_fs_i.h>

/**
 * struct rstream_lent - waits for a page
 * @node:	in the table, under its lock
 * @page:	NULL: does not wait; changed under the same lock
 * @told:	called once when it is back: process or softirq, under that lock
 */
struct rstream_lent {
	struct hlist_node node;
	const struct page *page;
	void (*told)(struct rstream_lent *lent);
};

/* Does anything but its RMB, which holds one reference, refer to this page? */
static inline bool rstream_page_lent(const struct page *page)
{
	return page_count(page) > 1;
}

/*
 * put_page(), for references that may be the last ones of a lent page.  Process or softirq
 * context, hard interrupts on.
 */
void rstream_page_put(struct page *page);

/* Return: false if the page is back already.  Moves a waiter to another page. */
bool rstream_lent_wait(struct rstream_lent *lent, struct page *page);
/* @told is not called after return. */
void rstream_lent_forget(struct rstream_lent *lent);

/* Operations of pipe buffers with lent pages; each buffer holds the module. */
extern const struct pipe_buf_operations rstream_lent_ops;

#endif
