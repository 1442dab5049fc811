// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page cache of each link, see page_cache.h.  txring.c puts pages into it, and takes them
 * out for streams.  Never allocates a page.
 */
#include <linux/mm.h>

#include "rmb.h"
#include "page_cache.h"

void rstream_page_cache_put(struct rstream_link *link, struct rstream_frag *frag)
{
	struct page *page = frag->page;

	lockdep_assert_held(&link->lock);
	if (link->state != RSTREAM_LINK_UP || link->pages.n == RSTREAM_CACHED_PAGES)
		return;
	/* this is the only reference, so nobody can take another one */
	if (page_ref_count(page) != 1 || page_size(page) != RSTREAM_CACHED_PAGE_SIZE ||
	    page_is_pfmemalloc(page))
		return;
	link->pages.cache[link->pages.n++] = page;
	frag->page = NULL;
}

struct page *rstream_page_cache_get(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	/* a page of another NUMA node would be slow: the next sweep frees it */
	if (!link->pages.n ||
	    page_to_nid(link->pages.cache[link->pages.n - 1]) != numa_mem_id())
		return NULL;
	link->pages.n--;
	link->pages.least = min(link->pages.least, link->pages.n);
	return link->pages.cache[link->pages.n];
}

/* Drops the oldest pages first: the newest are most likely in the CPU's caches. */
static void cache_drop(struct rstream_link *link, unsigned int n)
{
	unsigned int i;

	lockdep_assert_held(&link->lock);
	for (i = 0; i < n; i++)
		put_page(link->pages.cache[i]);
	link->pages.n -= n;
	memmove(link->pages.cache, link->pages.cache + n,
		link->pages.n * sizeof(*link->pages.cache));
	link->pages.least = link->pages.n;
}

void rstream_page_cache_trim(struct rstream_link *link)
{
	cache_drop(link, rstream_rmb_pressure(link) ? link->pages.n : link->pages.least);
}

void rstream_page_cache_free(struct rstream_link *link)
{
	cache_drop(link, link->pages.n);
}
