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

/* Who ends the link. */
enum rstream_end_by {
	RSTREAM_END_BY_ANY,	/* this host or the peer, or neither wants it */
	RSTREAM_END_BY_HOST,	/* this host, for reasons of its own */
	RSTREAM_END_BY_PEER,	/* the peer, perhaps: this is how its decision may be noticed */
};

#define RSTREAM_LINK_ENDS(X) \
	/* streams */ \
	X(PEER_BROKEN, FAULT, PEER, "peer reports that the link broke") \
	X(PEER_RESUMES, FAULT, PEER, "peer resumes on tcp") \
	X(IPSEC, FAULT, ANY, "IPsec protects one of its connections") \
	/* link_life.c */ \
	X(NO_CELLS, FAULT, ANY, "no memory for credit cells") \
	X(LATE, FAULT, ANY, "not established in time") \
	X(IDLE, IDLE, ANY, "idle") \
	X(STALLED, FAULT, ANY, "nothing completes") \
	X(ORPHANS, RENEWED, ANY, "too many abandoned rings") \
	/* link_net.c: without rings, and with some */ \
	X(DRAINED, DRAINED, HOST, "the host is drained") \
	X(UNUSED, IDLE, HOST, "namespace is unused") \
	X(UNUSED_RINGS, FAULT, HOST, "namespace is unused") \
	X(NET, IDLE, HOST, "namespace ends") \
	X(NET_RINGS, FAULT, HOST, "namespace ends") \
	/* peer.c */ \
	X(REPLACED, FAULT, ANY, "replaced by the peer") \
	/* cm.c */ \
	X(NO_WAY, FAULT, ANY, "cannot resolve the address") \
	X(NO_ROUTE, FAULT, ANY, "cannot resolve the route") \
	X(CM_EVENT, FAULT, ANY, "rdma_cm reports an error") \
	X(REJECTED, REFUSED, ANY, "rejected") \
	X(PEER_DRAINED, REFUSED, ANY, "peer is drained") \
	X(BAD_TOKEN, REFUSED, ANY, "peer does not know the connection") \
	X(OLD_TOKEN, AGAIN, ANY, "peer does not know the connection") \
	X(UNPROVEN, FAULT, ANY, "answer is not authentic") \
	X(BAD_ANSWER, FAULT, ANY, "answer is malformed") \
	X(NOT_CONNECTED, FAULT, ANY, "cannot send the request") \
	X(NOT_ACCEPTED, FAULT, ANY, "cannot accept the request") \
	X(PEER_IDLE, IDLE, ANY, "disconnected") \
	X(DISCONNECTED, FAULT, PEER, "disconnected") \
	/* device.c, qp.c, wr.c */ \
	X(DEVICE, FAULT, HOST, "device was removed") \
	X(QP, FAULT, PEER, "queue pair in error") \
	X(POST_RECV, FAULT, ANY, "ib_post_recv failed") \
	X(POST_SEND, FAULT, ANY, "ib_post_send failed") \
	X(WR, FAULT, PEER, "work request failed") \
	X(NO_IMM, FAULT, ANY, "message without immediate data") \
	X(BAD_SIZE, FAULT, ANY, "message of a wrong size") \
	/* msg.c, rxring.c, txring.c: faults of the peer */ \
	X(UNKNOWN, FAULT, ANY, "unknown message") \
	X(OUT_OF_ORDER, FAULT, ANY, "message lost or repeated") \
	X(STRAY_DATA, FAULT, ANY, "data for an unknown ring") \
	X(EARLY_DATA, FAULT, ANY, "too much data before SWITCH") \
	X(BEYOND, FAULT, ANY, "data beyond the end of a ring") \
	X(STRAY_END, FAULT, ANY, "DONE for an unknown ring") \
	X(STRAY_CREDIT, FAULT, ANY, "credit for an unknown ring") \
	X(STRAY_FREED, FAULT, ANY, "FREED for an unknown ring") \
	X(NOT_FREED, FAULT, ANY, "peer never frees its rings") \
	X(RQ_CREDITS, FAULT, ANY, "too many receive credits") \
	X(NO_RQ_CREDITS, FAULT, ANY, "peer gives no receive credits") \
	/* link.c: after RENEW, instead of faults that the peer's end of the link causes */ \
	X(PEER_RENEWS, RENEWED, ANY, "the peer renews it")

enum rstream_link_end {
	RSTREAM_END_NONE,		/* the link has not ended */
#define X(name, kind, by, text) RSTREAM_END_##name,
	RSTREAM_LINK_ENDS(X)
#undef X
	RSTREAM_ENDS
};

#endif
