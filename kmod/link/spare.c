// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that were sent, for what is written next: see spare.h.  Owns those of each link;
 * ring_tx.c brings them, streams take them by it.  Never allocates one.
 */
#include <linux/mm.h>

#include "rmb.h"
#include "spare.h"

void rstream_spare_put(struct rstream_link *link, struct rstream_frag *frag)
{
	struct page *page = frag->page;

	lockdep_assert_held(&link->lock);
	if (link->state != RSTREAM_LINK_UP || link->n_spare == RSTREAM_SPARES)
		return;
	/* with the last reference: nobody can take another */
	if (page_ref_count(page) != 1 || page_size(page) != RSTREAM_SPARE_SIZE ||
	    page_is_pfmemalloc(page))
		return;
	link->spare[link->n_spare++] = page;
	frag->page = NULL;
}

struct page *rstream_spare_get(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	/* one of another node would be slow: the next sweep frees it */
	if (!link->n_spare ||
	    page_to_nid(link->spare[link->n_spare - 1]) != numa_mem_id())
		return NULL;
	link->n_spare--;
	link->spare_least = min(link->spare_least, link->n_spare);
	return link->spare[link->n_spare];
}

/* The oldest go first. */
static void spare_drop(struct rstream_link *link, unsigned int n)
{
	unsigned int i;

	lockdep_assert_held(&link->lock);
	for (i = 0; i < n; i++)
		put_page(link->spare[i]);
	link->n_spare -= n;
	memmove(link->spare, link->spare + n, link->n_spare * sizeof(*link->spare));
	link->spare_least = link->n_spare;
}

void rstream_spare_trim(struct rstream_link *link)
{
	spare_drop(link, rstream_rmb_pressure(link) ? link->n_spare : link->spare_least);
}

void rstream_spare_free(struct rstream_link *link)
{
	spare_drop(link, link->n_spare);
}
