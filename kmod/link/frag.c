// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frags: pieces of pages that a stream gives to a ring, see struct rstream_frag.
 *
 * Owns their cache.
 */
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "ring.h"
#include "wr.h"

#define FRAGS_AT_ONCE	16	/* that are given back to the cache */

static struct kmem_cache *frag_cache;

struct rstream_frag *rstream_frag_alloc(gfp_t gfp)
{
	return kmem_cache_zalloc(frag_cache, gfp);
}

/* Releases all that @frag refers to. */
static void frag_release(struct rstream_frag *frag)
{
	rstream_wr_unmap(frag);
	if (frag->page)
		put_page(frag->page);
	net_zcopy_put(frag->uarg);
}

void rstream_frag_free(struct rstream_frag *frag)
{
	frag_release(frag);
	kmem_cache_free(frag_cache, frag);
}

struct rstream_frag *rstream_frag_split(struct rstream_frag *frag, u32 len)
{
	struct rstream_frag *rest = rstream_frag_alloc(GFP_ATOMIC);

	if (!rest)
		return NULL;
	get_page(frag->page);
	rest->page = frag->page;
	rest->off = frag->off + len;
	rest->len = frag->len - len;
	if (frag->uarg)
		net_zcopy_get(frag->uarg);
	rest->uarg = frag->uarg;
	rest->copied = frag->copied;
	frag->len = len;
	return rest;
}

void rstream_frags_free(struct list_head *frags)
{
	struct rstream_frag *frag, *next;
	void *gone[FRAGS_AT_ONCE];
	unsigned int n = 0;

	list_for_each_entry_safe(frag, next, frags, list) {
		frag_release(frag);
		gone[n++] = frag;
		if (n == ARRAY_SIZE(gone)) {
			kmem_cache_free_bulk(frag_cache, n, gone);
			n = 0;
		}
	}
	if (n)
		kmem_cache_free_bulk(frag_cache, n, gone);
	INIT_LIST_HEAD(frags);
}

int rstream_frag_init(void)
{
	frag_cache = KMEM_CACHE(rstream_frag, 0);
	return frag_cache ? 0 : -ENOMEM;
}

void rstream_frag_exit(void)
{
	kmem_cache_destroy(frag_cache);
}
