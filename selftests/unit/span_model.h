/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of two ends that leave their records for spans and come back, each with the states of
 * carrier.c, as plain.c does it.  What one end says to the other comes in order.
 */
#ifndef RSTREAM_SPAN_MODEL_H
#define RSTREAM_SPAN_MODEL_H

#include "carrier.h"

/* Bytes of a span; what can be under way. */
enum { SPAN = 2, QUEUE = 16 };

/* What is on the way.  END: FIN by record; FIN: TCP's. */
enum token { BYTE = 1, RECORD, PLAIN, HELLO, GRANT, SWITCH, LEFT, END, FIN };

struct half {
	struct rstream_phases dir;
	u8 bytes;		/* that its program has yet to write; then it ends */
	u8 sent;
	u8 begins;		/* spans that it may still begin by itself */
	u8 grants;
	u8 owed;		/* PLAIN is to be said */
	u8 granted;		/* a GRANT of ours is unanswered */
	u8 switching;		/* one of the peer's is: SWITCH is to be said */
	u8 on_ring;		/* what we send is */
	u8 rx_ring;		/* what comes is */
	u8 ended;		/* our stream has: END or FIN is said */
	u8 closed;		/* by FIN: nothing more can be said */
	u8 got;
	u8 got_end;
	u8 n;			/* tokens on their way to the other end */
	u8 way[QUEUE];
};

struct world {
	struct half half[2];
};

/* Returns false, and nothing has happened, if there is nothing to be done now. */
typedef bool span_event(struct half *h);

enum { SPAN_EVENTS = 8 };
extern span_event *const span_events[SPAN_EVENTS];

/* How often one came back, and how often records went one way. */
extern unsigned int span_n_back, span_n_one_way;

/* @h hears what is first on its way from @other: something must be. */
void span_hears(struct half *h, struct half *other);
/* To be called in every state. */
void span_check_quiet(const struct world *w);
/* To be called when nothing can happen any more.  @bytes: of each program */
void span_check_end(const struct world *w, const u8 bytes[2]);

#endif
