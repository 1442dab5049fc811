/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remote memory buffers (RMBs): registered memory into which the peer of one link writes, divided
 * into rings or into credit cells.
 */
#ifndef RSTREAM_RMB_H
#define RSTREAM_RMB_H

#include "link_priv.h"

#define RSTREAM_CELL_SIZE	64	/* one cache line per writer */

struct rstream_rmb;

/* A part of an RMB. */
struct rstream_rmb_block {
	struct rstream_rmb *rmb;
	u32 off;			/* bytes from the start of the RMB */
	u32 size;			/* bytes, power of two, divides @off */
};

/* Registers one more RMB, of at least @least bytes.  Process context, may sleep. */
int rstream_rmb_add(struct rstream_link *link, enum rstream_rmb_kind kind,
		    size_t least);

/*
 * Do the limits of the namespace and of the address allow @size more bytes for rings?  If not, the
 * second function also notes that memory is short.  Any context.
 */
bool rstream_rmb_fits(const struct rstream_link *link, u32 size);
bool rstream_rmb_may_add(const struct rstream_link *link, u32 size);

/* With link->lock held.  Is there free registered memory for a ring or cell of @size? */
bool rstream_rmb_has(const struct rstream_link *link,
		     enum rstream_rmb_kind kind, u32 size);
int rstream_rmb_get(struct rstream_link *link, enum rstream_rmb_kind kind,
		    u32 size, struct rstream_rmb_block *block);
void rstream_rmb_put(const struct rstream_rmb_block *block);
u64 rstream_rmb_addr(const struct rstream_rmb_block *block);
u32 rstream_rmb_rkey(const struct rstream_rmb_block *block);
void *rstream_rmb_mem(const struct rstream_rmb_block *block);
struct page *rstream_rmb_page(const struct rstream_rmb_block *block, u32 off);
void rstream_rmb_sync_for_cpu(const struct rstream_rmb_block *block, u32 off, u32 len);
void rstream_rmb_sync_for_device(const struct rstream_rmb_block *block, u32 off, u32 len);
void rstream_rmb_usage(const struct rstream_link *link, u64 *bytes, u64 *used);
/* Describes the @n-th RMB of @link, for netlink; takes the lock.  Return: false if none. */
bool rstream_rmb_info(struct rstream_link *link, unsigned int n,
		      struct rstream_rmb_info *info);

/*
 * Is memory for rings short on the host or in the namespace, or (rstream_rmb_pressure()) for the
 * address of this link?  Any context.
 */
bool rstream_rmb_short(const struct rstream_link_net *ln);
bool rstream_rmb_pressure(const struct rstream_link *link);

/*
 * rstream_rmb_sweep() looks for RMBs that were unused for a while; if memory is short, or the link
 * is down, for all unused ones.  Return: true if there are any for rstream_rmb_trim() to free.  The
 * former is called with link->lock held, the latter, which waits for the device, in a worker.
 */
bool rstream_rmb_sweep(struct rstream_link *link);
void rstream_rmb_trim(struct rstream_link *link);

int rstream_rmb_init(void);	/* registers the shrinker */
void rstream_rmb_exit(void);

/* Unregister all RMBs, when the QP is gone; and later, free those that are left with the link. */
void rstream_rmb_unregister(struct rstream_link *link);
void rstream_rmb_free_all(struct rstream_link *link);

#endif
