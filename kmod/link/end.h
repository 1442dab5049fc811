/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a link ends: each cause, its effect on counters and path, and its text. */
#ifndef RSTREAM_END_H
#define RSTREAM_END_H

/* Kinds of causes, see end_kinds[] in link.c. */
enum rstream_end_kind {
	RSTREAM_END_KIND_FAULT,		/* a loss, which counts against the path */
	RSTREAM_END_KIND_IDLE,		/* no loss: the link had no ring */
	RSTREAM_END_KIND_DRAINED,	/* requested by an administrator */
	RSTREAM_END_KIND_RENEWED,	/* a loss, to reclaim the link's memory */
	RSTREAM_END_KIND_REFUSED,	/* never up: the peer refuses for now */
	RSTREAM_END_KIND_AGAIN,		/* likewise, but retry with another connection's token */
	RSTREAM_END_KINDS
};

#define RSTREAM_LINK_ENDS(X) \
	/* streams */ \
	X(PEER_BROKEN, FAULT, "peer reports that the link broke") \
	X(PEER_RESUMES, FAULT, "peer resumes on tcp") \
	X(IPSEC, FAULT, "IPsec protects one of its connections") \
	/* link_life.c */ \
	X(NO_CELLS, FAULT, "no memory for credit cells") \
	X(LATE, FAULT, "not established in time") \
	X(IDLE, IDLE, "idle") \
	X(STALLED, FAULT, "nothing completes") \
	X(ORPHANS, RENEWED, "too many abandoned rings") \
	/* link_net.c: without rings, and with some */ \
	X(DRAINED, DRAINED, "the host is drained") \
	X(UNUSED, IDLE, "namespace is unused") \
	X(UNUSED_RINGS, FAULT, "namespace is unused") \
	X(NET, IDLE, "namespace ends") \
	X(NET_RINGS, FAULT, "namespace ends") \
	/* peer.c */ \
	X(REPLACED, FAULT, "replaced by the peer") \
	/* cm.c */ \
	X(NO_WAY, FAULT, "cannot resolve the address") \
	X(NO_ROUTE, FAULT, "cannot resolve the route") \
	X(CM_EVENT, FAULT, "rdma_cm reports an error") \
	X(REJECTED, REFUSED, "rejected") \
	X(PEER_DRAINED, REFUSED, "peer is drained") \
	X(BAD_TOKEN, REFUSED, "peer does not know the connection") \
	X(OLD_TOKEN, AGAIN, "peer does not know the connection") \
	X(UNPROVEN, FAULT, "answer is not authentic") \
	X(BAD_ANSWER, FAULT, "answer is malformed") \
	X(NOT_CONNECTED, FAULT, "cannot send the request") \
	X(NOT_ACCEPTED, FAULT, "cannot accept the request") \
	X(PEER_IDLE, IDLE, "disconnected") \
	X(DISCONNECTED, FAULT, "disconnected") \
	/* device.c, qp.c, wr.c */ \
	X(DEVICE, FAULT, "device was removed") \
	X(QP, FAULT, "queue pair in error") \
	X(POST_RECV, FAULT, "ib_post_recv failed") \
	X(POST_SEND, FAULT, "ib_post_send failed") \
	X(WR, FAULT, "work request failed") \
	X(NO_IMM, FAULT, "message without immediate data") \
	X(BAD_SIZE, FAULT, "message of a wrong size") \
	/* msg.c, rxring.c, txring.c: faults of the peer */ \
	X(UNKNOWN, FAULT, "unknown message") \
	X(OUT_OF_ORDER, FAULT, "message lost or repeated") \
	X(STRAY_DATA, FAULT, "data for an unknown ring") \
	X(EARLY_DATA, FAULT, "too much data before SWITCH") \
	X(BEYOND, FAULT, "data beyond the end of a ring") \
	X(STRAY_END, FAULT, "DONE for an unknown ring") \
	X(STRAY_CREDIT, FAULT, "credit for an unknown ring") \
	X(STRAY_FREED, FAULT, "FREED for an unknown ring") \
	X(NOT_FREED, FAULT, "peer never frees its rings") \
	X(RQ_CREDITS, FAULT, "too many receive credits") \
	X(NO_RQ_CREDITS, FAULT, "peer gives no receive credits") \
	/* link.c: after RENEW, instead of faults that the peer's end of the link causes */ \
	X(PEER_RENEWS, RENEWED, "the peer renews it")

enum rstream_link_end {
	RSTREAM_END_NONE,		/* the link has not ended */
#define X(name, kind, text) RSTREAM_END_##name,
	RSTREAM_LINK_ENDS(X)
#undef X
	RSTREAM_ENDS
};

#endif
