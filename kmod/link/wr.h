/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Building and posting work requests, with link->lock held: begin one, add SGEs, repeat, post.
 * rstream_wr_room() returns how many may be begun.
 *
 * A message takes one request, an RDMA_WRITE_WITH_IMM, or with iWARP two: an RDMA_WRITE and the
 * SEND that reports it.  A message without data always takes one.
 */
#ifndef RSTREAM_WR_H
#define RSTREAM_WR_H

#include "link_priv.h"

unsigned int rstream_wr_room(const struct rstream_link *link);
void rstream_wr_write(struct rstream_link *link, u64 raddr, u32 rkey);

static inline unsigned int rstream_wr_per_message(const struct rstream_link *link)
{
	return link->iwarp ? 2 : 1;
}

/* Is there room for a message? */
static inline bool rstream_wr_fits(const struct rstream_link *link)
{
	return rstream_wr_room(link) >= rstream_wr_per_message(link);
}

/*
 * A message with data: begin it, add its SGEs, end it with the sum of their bytes.  By then
 * link->tx.bytes includes what the stream has sent in it.
 */
void rstream_wr_message(struct rstream_link *link, u64 raddr, u32 rkey,
			enum rstream_imm_type type, u32 id);
void rstream_wr_message_end(struct rstream_link *link, u32 len);
/* A message without data. */
void rstream_wr_notice(struct rstream_link *link, enum rstream_imm_type type, u32 id);
/* Changes the type of the last message of the batch. */
void rstream_wr_retype(struct rstream_link *link, enum rstream_imm_type type);
void rstream_wr_reg(struct rstream_link *link, struct ib_mr *mr);
void rstream_wr_sge(struct rstream_link *link, u64 addr, u32 len);
/*
 * The only SGE of a request: up to link->qp.max_inline bytes at @mem, which the device copies when
 * the batch is posted.
 */
void rstream_wr_inline(struct rstream_link *link, const void *mem, u32 len);
void rstream_wr_credit(struct rstream_link *link, u64 value);
void rstream_wr_signal(struct rstream_link *link);
int rstream_wr_post(struct rstream_link *link);

/* DMA mapping of data.  Mapping without the lock, unless the device uses virtual addresses. */
bool rstream_wr_map(struct rstream_link *link, struct rstream_frag *frag);
void rstream_wr_unmap(struct rstream_frag *frag);

#endif
