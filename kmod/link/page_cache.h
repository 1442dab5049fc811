/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page cache of a link: pages into which writes were copied, kept for the next writes once they
 * have been sent.  Some kernels clear new pages (CONFIG_INIT_ON_ALLOC_DEFAULT_ON), and cached ones
 * are still in the CPU's caches.
 *
 * All under link->lock.
 */
#ifndef RSTREAM_PAGE_CACHE_H
#define RSTREAM_PAGE_CACHE_H

#include "link_priv.h"

/**
 * rstream_page_cache_put() - keep the page of a frag
 * @link: the link on which it was sent
 * @frag: a completed frag with @copied set
 *
 * If the frag holds the only reference and there is room, takes the page over and clears
 * frag->page.
 */
void rstream_page_cache_put(struct rstream_link *link, struct rstream_frag *frag);

/* Return: a page of RSTREAM_CACHED_PAGE_SIZE bytes, with a reference for the caller; or NULL. */
struct page *rstream_page_cache_get(struct rstream_link *link);

/*
 * Called at each sweep: frees the pages that were not needed since the last sweep, or all of them
 * when memory is short.
 */
void rstream_page_cache_trim(struct rstream_link *link);

/* Called when the link has been drained. */
void rstream_page_cache_free(struct rstream_link *link);

#endif
