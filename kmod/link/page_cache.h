/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page cache of a link: pages that writes were copied into and that have been sent are
 * kept for the next writes.  A fresh page would be cleared first where the kernel is built
 * that way (CONFIG_INIT_ON_ALLOC_DEFAULT_ON), and these are still in the CPU's caches.
 *
 * All under link->lock.
 */
#ifndef RSTREAM_PAGE_CACHE_H
#define RSTREAM_PAGE_CACHE_H

#include "link_priv.h"

/**
 * rstream_page_cache_put() - keep what a frag refers to
 * @link: on which it was sent
 * @frag: has completed; with @copied
 *
 * Takes over the reference and clears frag->page, if it is the last reference and there is
 * room.
 */
void rstream_page_cache_put(struct rstream_link *link, struct rstream_frag *frag);

/* Return: a page of RSTREAM_CACHED_PAGE_SIZE bytes with a reference of the caller's, or NULL. */
struct page *rstream_page_cache_get(struct rstream_link *link);

/*
 * At each sweep: frees the pages that were not needed since the last one, or all of them
 * when memory is short.
 */
void rstream_page_cache_trim(struct rstream_link *link);

/* When the link is down. */
void rstream_page_cache_free(struct rstream_link *link);

#endif
