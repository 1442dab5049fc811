/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Header of a message between the two ends of a link: 4 bits of type, 8 bits of sequence number,
 * 20 bits of a ring's id or a count, in network byte order on the wire.  It is the immediate data
 * of an RDMA_WRITE_WITH_IMM; iWARP has no immediate data and sends a struct rstream_notice instead.
 * Documentation/links.rst describes when each message is sent, and the purpose of the sequence
 * number.
 */
#ifndef RSTREAM_IMM_H
#define RSTREAM_IMM_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <asm/byteorder.h>
#else
#include "host.h"
#endif

#define RSTREAM_IMM_ID_BITS	20
#define RSTREAM_IMM_ID_MAX	((1U << RSTREAM_IMM_ID_BITS) - 1)
#define RSTREAM_IMM_TYPE_SHIFT	28

enum rstream_imm_type {
	RSTREAM_IMM_DATA = 1,		/* id: receiver's ring that was written */
	RSTREAM_IMM_DATA_WANT = 2,	/* the same; the sender wants an interrupting credit */
	RSTREAM_IMM_CREDIT = 3,		/* id: sender's end, whose cell was written */
	RSTREAM_IMM_DONE = 4,		/* id: receiver's ring, no more writes */
	RSTREAM_IMM_FREED = 5,		/* id: receiver's ring, no more credits */
	RSTREAM_IMM_RQ_CREDIT = 6,	/* count: reposted receives */
	RSTREAM_IMM_READY = 7,		/* 0: this end can serve rings */
	RSTREAM_IMM_PROBE = 8,		/* 0; iWARP only: answer PROBE_ACK */
	RSTREAM_IMM_PROBE_ACK = 9,	/* 0; iWARP only */
	RSTREAM_IMM_RENEW = 10,		/* 0: this end will end the link, to reclaim memory */
};

/**
 * struct rstream_notice - payload of the SEND that follows the write of a message on iWARP
 * @imm:	takes the place of the immediate data
 * @len:	bytes of the write, which other transports report in the completion
 *
 * It is delivered only after all earlier writes have been placed (RFC 5040, 5.5).
 */
struct rstream_notice {
	__be32 imm;
	__be32 len;
};

static_assert(sizeof(struct rstream_notice) == 8);

static inline void rstream_notice_write(struct rstream_notice *n, __be32 imm, u32 len)
{
	n->imm = imm;
	n->len = cpu_to_be32(len);
}

static inline void rstream_notice_read(const struct rstream_notice *n, __be32 *imm, u32 *len)
{
	*imm = n->imm;
	*len = be32_to_cpu(n->len);
}

static inline __be32 rstream_imm(enum rstream_imm_type type, u8 number, u32 id)
{
	return cpu_to_be32((u32)type << RSTREAM_IMM_TYPE_SHIFT |
			   (u32)number << RSTREAM_IMM_ID_BITS |
			   (id & RSTREAM_IMM_ID_MAX));
}

static inline unsigned int rstream_imm_type(__be32 imm)
{
	return be32_to_cpu(imm) >> RSTREAM_IMM_TYPE_SHIFT;
}

static inline u8 rstream_imm_number(__be32 imm)
{
	return be32_to_cpu(imm) >> RSTREAM_IMM_ID_BITS;
}

static inline u32 rstream_imm_id(__be32 imm)
{
	return be32_to_cpu(imm) & RSTREAM_IMM_ID_MAX;
}

#endif
