/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which carrier moves a stream's bytes, and where it changes: the rules, as a
 * pure state machine for each direction.
 *
 * Offsets are 64-bit counts of stream bytes.  Every function that takes values
 * from the peer checks them against what was sent or granted before.  If they are
 * wrong, it changes nothing and returns the reason.  The files in socket/ act on
 * the results; unit tests run this code in user space.
 *
 *  receiver:  TCP --grant--> GRANTED --switch(X == arrived)--> RING --link lost--> LOST
 *              ^                |                               | (after REVOKE)    |
 *              +--switch to tcp-+                               +---switch to tcp---+
 *              +--(all is read or queued)--- LEAVING <----------+
 *
 *  sender:    TCP --grant--> GRANTED ----------switch---------> RING
 *              ^                | refuse                       |   |
 *              +--switch to tcp-+                       REVOKE |   | link lost
 *              +--switch to tcp----(all credited)----- LEAVING-+-> |
 *              +--switch to tcp----(RESUME arrived)-------------- LOST
 *
 * Each grant ends with exactly one SWITCH to tcp, whether it is refused, left, or lost.
 * A receiver that wants its ring back sends REVOKE; the sender answers STOPPED, and what
 * is in the ring is credited even if the program has not read it.  When a link is lost,
 * the receiver reports how much has arrived (RESUME), and the sender continues from there
 * with the data that it has retained.
 */
#ifndef RSTREAM_CARRIER_H
#define RSTREAM_CARRIER_H

#include "base/stats.h"
#ifndef __KERNEL__
#include "host.h"
#endif

/*
 * Does a direction have records?  With a prelude, both directions begin without; otherwise, they
 * have records from the start.  While no ring is possible, they can leave records again, for
 * spans, whose length is announced.
 *
 *	PRELUDE --HELLO--> RECORDS <--HELLO--.
 *	   |                ^   |            |
 *	   +-----> PLAIN ---+   `--PLAIN--> SPAN <-.	a span may follow another one
 *	   |         |                       |  `--'
 *	   `---------+-> ENDED <-------------'	TCP's FIN, while the other direction has records
 *
 * Only what we send goes from PLAIN to RECORDS, if the other end's HELLO arrives after all.  See
 * plain.c.
 */
enum rstream_phase {
	RSTREAM_RECORDS,	/* tx: HELLO was sent, or is next; rx: it has arrived */
	RSTREAM_PRELUDE,	/* no records yet, but HELLO may follow */
	RSTREAM_PLAIN,		/* no records for good, as far as this end knows */
	RSTREAM_ENDED,		/* ended without, but the other direction has records */
	RSTREAM_SPAN,		/* none up to a stated offset; PLAIN or HELLO follows there */
};

/**
 * struct rstream_phases - both directions of one end
 * @tx_end:	offset where the prelude or span that we send ends
 * @rx_end:	offset where the prelude or span that we receive ends
 * @tx:		enum rstream_phase, of what we send
 * @rx:		enum rstream_phase, of what we receive
 * @tx_spans:	how often we have left records, modulo 256
 * @rx_spans:	how often the peer has; when one end leaves or returns, so does the other
 */
struct rstream_phases {
	u64 tx_end;
	u64 rx_end;
	u8 tx;
	u8 rx;
	u8 tx_spans;
	u8 rx_spans;
};

/* Both directions begin with a prelude of @len bytes. */
void rstream_phase_begin(struct rstream_phases *p, u64 len);
/*
 * Our prelude is full and there is more to send.  @fin: the peer's stream has ended;
 * @sure: the peer understands HELLO; @late: we have waited for a sign of that, and none came.
 * Return: true to send HELLO
 */
bool rstream_phase_full(struct rstream_phases *p, bool fin, bool sure, bool late);
/* The peer's HELLO has arrived.  @fin: our stream has ended.  Return: true to send ours */
bool rstream_phase_hello(struct rstream_phases *p, bool fin);
/* The peer's full prelude is not followed by a HELLO, and we have not sent ours. */
void rstream_phase_plain(struct rstream_phases *p);
/*
 * TCP's FIN has arrived without a HELLO.  Return: true if we have sent ours, so that only our
 * direction has records
 */
bool rstream_phase_rx_fin(struct rstream_phases *p);
/* Our TCP's FIN follows a span.  Return: true if only the peer's direction has records */
bool rstream_phase_tx_fin(struct rstream_phases *p);
/*
 * Can the peer's HELLO arrive before its prelude or span ends?  It can only do so as an answer, so
 * if it can, it will: bytes that look like its beginning may be held back.  @granted: the peer has
 * not answered our GRANT.
 */
bool rstream_phase_expects_hello(const struct rstream_phases *p, bool granted);

/* May we begin a span?  Not before the peer has returned from the last one. */
bool rstream_span_may_begin(const struct rstream_phases *p);
/*
 * We send PLAIN: @len bytes from @sent on are a span, the first or a further one.
 * Return: true to send HELLO at once, because the peer has already returned from its span
 */
bool rstream_span_tx(struct rstream_phases *p, u64 sent, u64 len);
/* We return to records, perhaps before the end of the span; the caller sends HELLO. */
void rstream_span_leave(struct rstream_phases *p);
/* PLAIN has arrived: @len bytes from @arrived on are a span.  @answer: answer with PLAIN */
enum rstream_reason rstream_span_rx(struct rstream_phases *p, u64 arrived, u64 len,
				    bool *answer);

/* Ordered: from ON_RING on, a sender sends no DATA, and a receiver may have bytes in the ring. */
enum rstream_carrier {
	RSTREAM_ON_TCP,
	RSTREAM_GRANTED,	/* still tcp; SWITCH may follow at any time */
	RSTREAM_ON_RING,
	RSTREAM_LEAVING,	/* sender: REVOKE has arrived, waits for credits; receiver: the
				 * sender is on tcp, unread bytes are still in the ring
				 */
	RSTREAM_LOST,		/* the ring's link is lost; sender: waits for RESUME; receiver: for
				 * SWITCH to tcp
				 */
};

/* Does the receiver take back the ring that it granted? */
enum rstream_recall {
	RSTREAM_KEPT,
	RSTREAM_REVOKED,	/* yes; SWITCH to tcp has not arrived yet */
	RSTREAM_STOPPED,	/* likewise, and the sender writes no more */
};

/* Has the receiver reported how much of this epoch's ring has arrived? */
enum rstream_resume {
	RSTREAM_NOT_RESUMED,
	RSTREAM_RESUMED,	/* we have to go back to that offset */
	RSTREAM_RESUME_OVER,	/* we have, or it does not matter */
};

/**
 * struct rstream_rx - the direction towards us
 * @arrived:	bytes that have arrived on tcp, or were counted on a ring
 * @consumed:	bytes given to the program
 * @limit:	offset up to which the peer may send on tcp
 * @base:	offset of the ring's first byte
 * @fin_at:	offset of the end, if @fin
 * @count:	bytes of the lost ring that had arrived
 * @most:	bytes that the sender may have written to the ring, if STOPPED
 * @epoch:	of the last grant; 0 before the first
 * @state:	enum rstream_carrier
 * @recall:	enum rstream_recall, of the granted ring
 * @fin:	FIN has arrived: @fin_at is valid
 */
struct rstream_rx {
	u64 arrived;
	u64 consumed;
	u64 limit;
	u64 base;
	u64 fin_at;
	u64 count;
	u64 most;
	u32 epoch;
	u8 state;
	u8 recall;
	bool fin;
};

/**
 * struct rstream_tx - the direction towards the peer
 * @written:	bytes taken from the program
 * @sent:	bytes handed to a carrier
 * @acked:	bytes that the peer's program has consumed, according to ACK or credit
 * @limit:	offset up to which we may send on tcp
 * @base:	offset of the ring's first byte
 * @resume_at:	offset where to continue when a ring is lost
 * @epoch:	of the last grant
 * @state:	enum rstream_carrier; RSTREAM_GRANTED: not taken up yet
 * @fin:	FIN was sent: only data of a lost ring may follow
 * @taken:	the grant of this epoch was taken up
 * @resume:	enum rstream_resume
 */
struct rstream_tx {
	u64 written;
	u64 sent;
	u64 acked;
	u64 limit;
	u64 base;
	u64 resume_at;
	u32 epoch;
	u8 state;
	bool fin;
	bool taken;
	u8 resume;
};

/* Has FIN arrived?  If so, @fin_at is valid, also without the lock. */
static inline bool rstream_rx_fin_here(const struct rstream_rx *rx)
{
	return smp_load_acquire(&rx->fin);	/* pairs with rstream_rx_fin() */
}

/* Is a ring, perhaps a lost one, what the peer's next bytes come from, until its SWITCH to tcp? */
static inline bool rstream_rx_on_ring(const struct rstream_rx *rx)
{
	u8 state = READ_ONCE(rx->state);

	return state == RSTREAM_ON_RING || state == RSTREAM_LOST;
}

/* The first of @len bytes of a DATA record has arrived. */
enum rstream_reason rstream_rx_data(struct rstream_rx *rx, u32 len);
/* We grant a ring.  Return: its epoch, or 0 if there is one already, or FIN has arrived */
u32 rstream_rx_grant(struct rstream_rx *rx);
/* The grant is not sent after all. */
void rstream_rx_ungrant(struct rstream_rx *rx);
/* SWITCH to the ring of @epoch has arrived; 0: to tcp, then LEAVING ends with rstream_rx_left() */
enum rstream_reason rstream_rx_switch(struct rstream_rx *rx, u64 offset,
				      u32 epoch);
/* All of the ring that the sender has left is read, or was moved to the queue. */
void rstream_rx_left(struct rstream_rx *rx);
/* The ring is read, and nothing more can come: neither bytes in it, nor SWITCH. */
void rstream_rx_over(struct rstream_rx *rx);
/* We want the ring back.  Return: true to send REVOKE */
bool rstream_rx_revoke(struct rstream_rx *rx);
/*
 * The sender has answered REVOKE: it writes no more to the ring of @epoch.
 * @most: bytes that it may have written until then
 */
enum rstream_reason rstream_rx_stopped(struct rstream_rx *rx, u32 epoch,
				       u64 most);
/*
 * The ring's link is lost, and @landed bytes have arrived in the ring.
 * Return: true to send RESUME with @count; false also if SWITCH has not arrived
 */
bool rstream_rx_lost(struct rstream_rx *rx, u64 landed);
/* @landed bytes have arrived in the ring since its grant. */
enum rstream_reason rstream_rx_landed(struct rstream_rx *rx, u64 landed);
enum rstream_reason rstream_rx_fin(struct rstream_rx *rx, u64 offset);
bool rstream_rx_eof(const struct rstream_rx *rx);

enum rstream_reason rstream_tx_ack(struct rstream_tx *tx, u64 consumed,
				   u64 limit);
enum rstream_reason rstream_tx_grant(struct rstream_tx *tx, u32 epoch);
/* According to its cell, @acked bytes of the ring have been consumed. */
void rstream_tx_credited(struct rstream_tx *tx, u64 acked);
/* Take up the grant, from offset @sent on. */
void rstream_tx_switch(struct rstream_tx *tx);
/* Refuse the grant; the caller sends SWITCH to tcp. */
void rstream_tx_refuse(struct rstream_tx *tx);
/*
 * REVOKE has arrived.  The caller refuses the grant if the state is GRANTED.  LEAVING ends with
 * rstream_tx_left().
 */
enum rstream_reason rstream_tx_revoke(struct rstream_tx *tx, u32 epoch);
/* Return: true to send SWITCH, because all of the ring that we leave is credited (@acked bytes) */
bool rstream_tx_left(struct rstream_tx *tx, u64 acked);
/* The ring's link is lost.  Return: true to send BROKEN */
bool rstream_tx_lost(struct rstream_tx *tx);
/* RESUME has arrived: the peer has received @count bytes of the ring of @epoch. */
enum rstream_reason rstream_tx_resume(struct rstream_tx *tx, u32 epoch,
				      u64 count);
/* LOST, but no RESUME is needed: the peer has everything, or nobody asks. */
void rstream_tx_unanswered(struct rstream_tx *tx);
/* Go back to @resume_at, on tcp; the caller sends SWITCH.  Return: bytes to send again */
u64 rstream_tx_rewind(struct rstream_tx *tx);
/* Return: bytes that may be sent on tcp now; 0 if tcp is not the carrier */
u64 rstream_tx_window(const struct rstream_tx *tx);

#endif
