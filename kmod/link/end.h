/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a link ends: each cause with what it means for counters and path, and its words. */
#ifndef RSTREAM_END_H
#define RSTREAM_END_H

/* What the end of a link was. */
enum rstream_end_kind {
	RSTREAM_END_KIND_FAULT,		/* a loss; the path is the worse for it */
	RSTREAM_END_KIND_IDLE,		/* no loss: no ring was on it */
	RSTREAM_END_KIND_DRAINED,	/* as an administrator wants it */
	RSTREAM_END_KIND_RENEWED,	/* a loss, to get its memory back */
	RSTREAM_END_KIND_REFUSED,	/* before it was up: the other end does not want it now */
	RSTREAM_END_KIND_AGAIN,		/* likewise, but may if it hears of another connection */
	RSTREAM_END_KINDS
};

#define RSTREAM_LINK_ENDS(X) \
	/* streams */ \
	X(PEER_BROKEN, FAULT, "peer says that it is broken") \
	X(PEER_RESUMES, FAULT, "peer resumes on tcp") \
	X(IPSEC, FAULT, "IPsec protects a connection of it") \
	/* link_life.c */ \
	X(NO_CELLS, FAULT, "no memory for credit cells") \
	X(LATE, FAULT, "not connected in time") \
	X(IDLE, IDLE, "idle") \
	X(STALLED, FAULT, "nothing completes") \
	X(ORPHANS, RENEWED, "rings that nobody ends") \
	/* link_net.c: without rings, and with some */ \
	X(DRAINED, DRAINED, "the host is drained") \
	X(UNUSED, IDLE, "namespace is unused") \
	X(UNUSED_RINGS, FAULT, "namespace is unused") \
	X(NET, IDLE, "namespace ends") \
	X(NET_RINGS, FAULT, "namespace ends") \
	/* peer.c */ \
	X(REPLACED, FAULT, "peer made a new one") \
	/* cm.c */ \
	X(NO_WAY, FAULT, "no way to the address") \
	X(CM_EVENT, FAULT, "rdma_cm") \
	X(REJECTED, REFUSED, "rejected") \
	X(PEER_DRAINED, REFUSED, "peer is drained") \
	X(BAD_TOKEN, REFUSED, "peer does not know the connection") \
	X(OLD_TOKEN, AGAIN, "peer does not know the connection") \
	X(UNPROVEN, FAULT, "answer does not prove whose it is") \
	X(NOT_ACCEPTED, FAULT, "cannot accept") \
	X(PEER_IDLE, IDLE, "disconnected") \
	X(DISCONNECTED, FAULT, "disconnected") \
	/* device.c, qp.c, wr.c */ \
	X(DEVICE, FAULT, "device is removed") \
	X(QP, FAULT, "queue pair in error") \
	X(POST_RECV, FAULT, "ib_post_recv failed") \
	X(POST_SEND, FAULT, "ib_post_send failed") \
	X(WR, FAULT, "work request failed") \
	X(NO_IMM, FAULT, "message without an immediate value") \
	/* ring.c, ring_tx.c: what the peer must not do */ \
	X(UNKNOWN, FAULT, "unknown message") \
	X(OUT_OF_ORDER, FAULT, "message lost or repeated") \
	X(STRAY_DATA, FAULT, "data for no ring") \
	X(EARLY_DATA, FAULT, "too much for a ring not switched to") \
	X(BEYOND, FAULT, "data beyond the end of a ring") \
	X(STRAY_END, FAULT, "end of no ring") \
	X(STRAY_CREDIT, FAULT, "credit for no ring") \
	X(STRAY_FREED, FAULT, "no ring to free") \
	X(NOT_FREED, FAULT, "rings that the peer never frees") \
	X(RQ_CREDITS, FAULT, "too many credits") \
	X(NO_RQ_CREDITS, FAULT, "the peer gives no credits")

enum rstream_link_end {
	RSTREAM_END_NONE,		/* the link has not ended */
#define X(name, kind, text) RSTREAM_END_##name,
	RSTREAM_LINK_ENDS(X)
#undef X
	RSTREAM_ENDS
};

#endif
