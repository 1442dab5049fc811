/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page cache of a link: pages into which writes were copied and which have been sent are
 * kept for the next writes.  A new page would have to be cleared on some kernels
 * (CONFIG_INIT_ON_ALLOC_DEFAULT_ON), and the cached ones are still in the CPU's caches.
 *
 * All under link->lock.
 */
#ifndef RSTREAM_PAGE_CACHE_H
#define RSTREAM_PAGE_CACHE_H

#include "link_priv.h"

/**
 * rstream_page_cache_put() - keep the page of a frag
 * @link: on which it was sent
 * @frag: has completed; with @copied
 *
 * If it is the last reference and there is room, takes it over and clears frag->page.
 */
void rstream_page_cache_put(struct rstream_link *link, struct rstream_frag *frag);

/* Return: a page of RSTREAM_CACHED_PAGE_SIZE bytes, with a reference for the caller; or NULL. */
struct page *rstream_page_cache_get(struct rstream_link *link);

/*
 * At each sweep: frees pages that were not needed since the last one, or all of them when memory
 * is short.
 */
void rstream_page_cache_trim(struct rstream_link *link);

/* When the link is down. */
void rstream_page_cache_free(struct rstream_link *link);

#endif
