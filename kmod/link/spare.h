/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages into which writes were copied and that have been sent: the link keeps some for
 * what is written next.  An allocator would clear them first, where the kernel is made
 * so (CONFIG_INIT_ON_ALLOC_DEFAULT_ON), and they are in the CPU's caches still.
 *
 * All under link->lock.
 */
#ifndef RSTREAM_SPARE_H
#define RSTREAM_SPARE_H

#include "link_priv.h"

/**
 * rstream_spare_put() - keep what a frag refers to
 * @link: on which it was sent
 * @frag: has completed; with @copied
 *
 * Takes over the reference and clears @page, if it is the last one and there is room.
 */
void rstream_spare_put(struct rstream_link *link, struct rstream_frag *frag);

/* Return: a page of RSTREAM_SPARE_SIZE bytes with a reference of the caller's, or NULL. */
struct page *rstream_spare_get(struct rstream_link *link);

/*
 * At each sweep: frees those that nobody has wanted since the last one, or all when
 * memory is short.
 */
void rstream_spare_trim(struct rstream_link *link);

/* When the link is down. */
void rstream_spare_free(struct rstream_link *link);

#endif
