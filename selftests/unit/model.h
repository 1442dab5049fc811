/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of one small stream.
 *
 * An honest sender and an honest receiver, each with the state machine of
 * carrier.c, are joined by three channels: records to the receiver, records to
 * the sender, ring writes.  Each keeps its own order; between them there is
 * none, as between a TCP connection and a QP.
 *
 * The link under a ring may be lost, at either end first: then what is under
 * way may be lost from any write on, or land where nobody counts it any more.
 *
 * explore_test.c tries every order of events.  The target *pair* of
 * fuzz_carrier.c tries long ones that a fuzzer chooses, and lets the channels lie.
 */
#ifndef RSTREAM_MODEL_H
#define RSTREAM_MODEL_H

#include "carrier.h"

#define BYTES_MAX	16
#define RING_MAX	8
#define QUEUE_MAX	16

/**
 * struct shape - sizes of the stream
 * @start:	stream offset at its beginning
 * @epoch:	last epoch before
 * @bytes:	what the sender's program writes, then it closes
 * @window:	that the receiver keeps open on tcp
 * @ring:	bytes of the ring that may be granted
 * @grants:	how often a ring is granted, at most
 * @losses:	how often a link is lost, at most
 * @revokes:	how often the receiver wants its ring back, at most
 */
struct shape {
	u64 start;
	u32 epoch;
	u8 bytes, window, ring, grants, losses, revokes;
};

enum msg_type {
	DATA, SWITCH, BACK, FIN, BROKEN, STOPPED, ACK, GRANT, REVOKE, RESUME, WRITE
};

/* Offsets are relative to the start of the shape. */
struct msg {
	u8 type;
	u8 at;			/* first byte, offset, bytes consumed; number of a grant */
	u8 len;			/* bytes, or limit; RESUME: number of the grant */
};

struct queue {
	u8 n;
	struct msg msg[QUEUE_MAX];
};

/* Compared as a whole, so it is initialised with memset() because of the padding. */
struct world {
	struct rstream_tx tx;
	struct rstream_rx rx;
	struct queue to_rx, to_tx, writes;
	u8 tcp[BYTES_MAX];	/* bytes from DATA records, by offset */
	u8 tcp_n;
	u8 ring[RING_MAX];	/* its memory */
	u8 landed;		/* bytes written to it */
	u8 posted;		/* bytes that the sender wrote into it */
	u8 cell;		/* the sender's credit cell */
	u8 grants, losses;	/* so far */
	u8 revokes;		/* so far */
	u8 moved;		/* ring bytes that were moved to the queue */
	bool tx_link, rx_link;	/* the two ends of the ring's link are up */
};

enum event_flags {
	MAY = 0,
	MUST = 1,		/* happens eventually, if nothing else does */
	TAKES = 2,		/* takes something from a channel */
};

/**
 * struct event - what may happen
 * @run:	let it happen; @n: how many bytes, where that matters, else 1.
 *		Return: false, and nothing has, if it can't
 * @flags:	enum event_flags
 * @name:	for messages
 */
struct event {
	bool (*run)(struct world *w, u8 n);
	u8 flags;
	const char *name;
};

#define EVENTS	19

extern const struct event model_events[EVENTS];
extern struct shape shape;
/* bytes sent again since the last model_start() */
extern bool model_resent;
/*
 * What is on its way has been changed: what the ends say of it is not a fault.
 * The first reason that one of them gave.
 */
extern bool model_lied;
extern enum rstream_reason model_reason;

/* Both ends after their HELLOs. */
void model_start(struct world *w, const struct shape *s);
/* invariants of every state, with honest channels */
void model_check(const struct world *w);
/* conditions when no more event must happen */
void model_check_end(const struct world *w);

#endif
