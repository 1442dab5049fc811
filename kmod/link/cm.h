/* SPDX-License-Identifier: GPL-2.0-only */
/* The connection manager: connects, accepts and disconnects links. */
#ifndef RSTREAM_CM_H
#define RSTREAM_CM_H

#include <linux/build_bug.h>

#include "link_priv.h"

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

struct rstream_cm_reject {
	__be32 magic;
	u8 version;
	u8 why;				/* enum rstream_cm_why */
	__be16 reserved;
};

static_assert(sizeof(struct rstream_cm_reject) == 8);

/* All in process context. */
int rstream_cm_connect(struct rstream_link *link,
		       const struct rstream_peer_route *route);
void rstream_cm_setup_work(struct work_struct *work);
void rstream_cm_disconnect(struct rstream_link *link);
void rstream_cm_destroy(struct rstream_link *link);
int rstream_cm_listen(struct rstream_link_net *ln);
void rstream_cm_unlisten(struct rstream_link_net *ln);

#endif
