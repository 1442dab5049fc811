/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of the first bytes of a connection, until both of its directions have ended: two ends,
 * each with the states of carrier.c, do as plain.c does.  What one says to the other comes in
 * order.
 */
#ifndef RSTREAM_PLAIN_MODEL_H
#define RSTREAM_PLAIN_MODEL_H

#include "carrier.h"

/* Bytes of a prelude; what can be under way. */
enum { PRELUDE = 2, QUEUE = 12 };

/* What is on the way: a byte of the program's, HELLO, a byte in a record, FIN by record, TCP's. */
enum token { BYTE = 1, HELLO, RECORD, END, FIN };

struct half {
	struct rstream_phases dir;
	u8 server;
	u8 sure;		/* it knows that the other end understands HELLO */
	u8 late;		/* and has waited for that */
	u8 plain_tcp;		/* it does not, and is not of ours */
	u8 bytes;		/* that its program has yet to write; then it ends */
	u8 sent;
	u8 fin;			/* our stream has ended, as far as we are to say so */
	u8 got;			/* bytes that have come */
	u8 got_fin;
	u8 n;			/* tokens on their way to the other end */
	u8 way[QUEUE];
};

struct world {
	struct half half[2];
};

/* Returns false, and nothing has happened, if there is nothing to be done now. */
typedef bool plain_event(struct half *h, struct half *other);

enum { PLAIN_WRITES, PLAIN_HEARS, PLAIN_WAITS, PLAIN_EVENTS };
extern plain_event *const plain_events[PLAIN_EVENTS];

/* How often connections ended with records both ways, without, and with records one way. */
extern unsigned int plain_n_records, plain_n_plain, plain_n_mixed;

/* Two ends, before anything happens.  @bytes: of each program; the rest: see struct half */
void plain_start(struct world *w, const u8 bytes[2], bool sure, bool plain_tcp);
/* To be called in every state. */
void plain_check_quiet(const struct world *w);
/* To be called when nothing can happen any more. */
void plain_check_end(const struct world *w, const u8 bytes[2]);

#endif
