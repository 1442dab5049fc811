/* SPDX-License-Identifier: GPL-2.0-only */
/* Private data of rdma_cm's messages, see cm.c: layouts, writing and reading. */
#ifndef RSTREAM_CM_DATA_H
#define RSTREAM_CM_DATA_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>
#else
#include "host.h"
#endif

#define RSTREAM_CM_MAGIC	0x5253544c	/* "RSTL" */
#define RSTREAM_CM_VERSION	3

/**
 * struct rstream_cm_hello - private data of REQ and of REP
 * @magic:	RSTREAM_CM_MAGIC
 * @version:	RSTREAM_CM_VERSION
 * @slot:	number of the link among those of the active side, below RSTREAM_SLOTS: once
 *		up, it replaces an older link in the same slot
 * @rq_depth:	number of receives that the sender of this posts
 * @token:	from the other side's HELLO on a live connection
 * @own_token:	from the sender's HELLO on the same connection
 * @link_id:	the sender's id of the link
 * @reserved:	0
 * @key:	random, the sender's half of the link's key
 * @proof:	shows that this comes from the other end of that connection, see cm.c
 *
 * An IB REQ through rdma_cm has room for 56 bytes (92 minus 36 for the IP
 * header of IBTA annex A11).
 */
struct rstream_cm_hello {
	__be32 magic;
	u8 version;
	u8 slot;
	__be16 rq_depth;
	__be64 token;
	__be64 own_token;
	__be32 link_id;
	__be32 reserved;		/* 0 */
	__be64 key;
	__be64 proof;
};

static_assert(sizeof(struct rstream_cm_hello) == 48);

enum rstream_cm_why {
	RSTREAM_CM_BAD_REQ = 1,		/* not a request of this protocol */
	RSTREAM_CM_BAD_TOKEN = 2,	/* no connection owns the token, or the proof is wrong */
	RSTREAM_CM_BUSY = 3,		/* no memory, too many links, no device */
	RSTREAM_CM_DRAINED = 4,		/* drained: no links at the moment */
};

/* private data of REJ */
struct rstream_cm_reject {
	__be32 magic;
	u8 version;
	u8 why;				/* enum rstream_cm_why */
	__be16 reserved;
};

static_assert(sizeof(struct rstream_cm_reject) == 8);

#define RSTREAM_CM_SECRET_LEN	16

/* For what a struct rstream_cm_transcript is hashed. */
enum rstream_cm_purpose {
	RSTREAM_CM_PROOF_REQ = 1,
	RSTREAM_CM_PROOF_REP = 2,
	RSTREAM_CM_KEY_ACTIVE = 3,	/* keys: two words each */
	RSTREAM_CM_KEY_PASSIVE = 5,
};

/**
 * struct rstream_cm_transcript - input of proofs and keys, the same at both ends
 * @passive_secret: from the HELLO of the passive side
 * @req:	private data of the REQ
 * @rep:	that of the REP
 * @active_gid:	GID or IP address of the active side, see cm.c
 * @passive_gid: that of the passive side
 * @active_qpn:	number of the queue pair of the active side
 * @passive_qpn: that of the passive side
 * @purpose:	enum rstream_cm_purpose
 * @zero:	0
 *
 * In wire format.  Parts not yet known are 0.
 */
struct rstream_cm_transcript {
	u8 passive_secret[RSTREAM_CM_SECRET_LEN];
	struct rstream_cm_hello req, rep;
	u8 active_gid[16], passive_gid[16];
	__be32 active_qpn, passive_qpn;
	__be32 purpose;
	__be32 zero;
};

static_assert(sizeof(struct rstream_cm_transcript) == 160);

/* A struct rstream_cm_hello in host byte order. */
struct rstream_cm_fields {
	u64 token, own_token, key, proof;
	u32 link_id;
	u16 rq_depth;
	u8 slot;
};

static inline void rstream_cm_hello_write(struct rstream_cm_hello *hello,
					  const struct rstream_cm_fields *from)
{
	*hello = (struct rstream_cm_hello){
		.magic = cpu_to_be32(RSTREAM_CM_MAGIC),
		.version = RSTREAM_CM_VERSION,
		.slot = from->slot,
		.rq_depth = cpu_to_be16(from->rq_depth),
		.token = cpu_to_be64(from->token),
		.own_token = cpu_to_be64(from->own_token),
		.link_id = cpu_to_be32(from->link_id),
		.key = cpu_to_be64(from->key),
		.proof = cpu_to_be64(from->proof),
	};
}

/* Return: false if the @len bytes at @hello are no struct rstream_cm_hello. */
static inline bool rstream_cm_hello_read(const struct rstream_cm_hello *hello, u8 len,
					 struct rstream_cm_fields *to)
{
	if (!hello || len < sizeof(*hello) ||
	    hello->magic != cpu_to_be32(RSTREAM_CM_MAGIC) ||
	    hello->version != RSTREAM_CM_VERSION)
		return false;
	*to = (struct rstream_cm_fields){
		.token = be64_to_cpu(hello->token),
		.own_token = be64_to_cpu(hello->own_token),
		.key = be64_to_cpu(hello->key),
		.proof = be64_to_cpu(hello->proof),
		.link_id = be32_to_cpu(hello->link_id),
		.rq_depth = be16_to_cpu(hello->rq_depth),
		.slot = hello->slot,
	};
	return true;
}

static inline void rstream_cm_transcript_qpns(struct rstream_cm_transcript *t,
					      u32 active_qpn, u32 passive_qpn)
{
	t->active_qpn = cpu_to_be32(active_qpn);
	t->passive_qpn = cpu_to_be32(passive_qpn);
}

/* What @t lacks before it is hashed, and the SipHash @key: two words in host byte order. */
static inline void rstream_cm_transcript_for(struct rstream_cm_transcript *t,
					     enum rstream_cm_purpose why,
					     const u8 *active_secret,
					     const u8 *passive_secret, u64 *key)
{
	__le64 words[RSTREAM_CM_SECRET_LEN / sizeof(__le64)];

	memcpy(t->passive_secret, passive_secret, sizeof(t->passive_secret));
	t->purpose = cpu_to_be32(why);
	memcpy(words, active_secret, sizeof(words));
	key[0] = le64_to_cpu(words[0]);
	key[1] = le64_to_cpu(words[1]);
}

static inline void rstream_cm_reject_write(struct rstream_cm_reject *rej,
					   enum rstream_cm_why why)
{
	*rej = (struct rstream_cm_reject){
		.magic = cpu_to_be32(RSTREAM_CM_MAGIC),
		.version = RSTREAM_CM_VERSION,
		.why = why,
	};
}

/* Return: enum rstream_cm_why, or 0 if the @len bytes at @rej come from another protocol. */
static inline u8 rstream_cm_reject_read(const struct rstream_cm_reject *rej, u8 len)
{
	if (!rej || len < sizeof(*rej) || rej->magic != cpu_to_be32(RSTREAM_CM_MAGIC))
		return 0;
	return rej->why;
}

#endif
