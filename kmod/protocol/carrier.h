/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which carrier moves a stream's bytes, and where it changes: the rules, as a
 * pure state machine for each direction.
 *
 * Offsets are 64-bit counts of stream bytes.  Every function that takes values
 * from the peer checks them against what was sent or granted before, changes
 * nothing if they are wrong, and returns the reason.  carrier_tcp.c and
 * carrier_ring.c act on what is decided here; unit tests run it in user space.
 *
 *  receiver:  TCP --grant--> GRANTED --switch(X == arrived)--> RING
 *              ^                |                               |
 *              +--switch to tcp-+-----------switch to tcp-------+
 *
 *  sender:    TCP --grant--> GRANTED ----------switch---------> RING
 *              ^                | refuse                       |   |
 *              +--switch to tcp-+                       REVOKE |   | link lost
 *              +--switch to tcp----(all is credited)-- LEAVING-+-> |
 *              +--switch to tcp----(RESUME has come)------------- LOST
 *
 * Each grant is ended by one SWITCH to tcp, whatever happens: refused, left, or
 * lost.  When the receiver wants its ring back it says REVOKE; the sender says that it
 * has stopped, and what is in the ring is credited although the program has not read it.
 * When a link is lost the receiver says how much it has got (RESUME) and the sender
 * goes on from there, out of what it has retained.
 */
#ifndef RSTREAM_CARRIER_H
#define RSTREAM_CARRIER_H

#ifdef __KERNEL__
#include "base/stats.h"
#else
#include "base/stats.h"
#include "host.h"
#endif

/*
 * Where a direction has no records.  With a prelude both begin so, else there are records
 * from the start.  Where no ring is to be had they go on without: in spans, whose length is
 * said before.
 *
 *	PRELUDE --HELLO--> RECORDS <--HELLO--.
 *	   |                ^   |            |
 *	   +-----> PLAIN ---+   `--PLAIN--> SPAN <-.	a span may follow another one
 *	   |         |                       |  `--'
 *	   `---------+-> ENDED <-------------'	TCP's FIN, while the other direction has records
 *
 * PLAIN to RECORDS is a sender's: the other end's HELLO has come after all.  See prelude.c.
 */
enum rstream_plain {
	RSTREAM_RECORDS,	/* HELLO has been said, or is next; likewise: has come */
	RSTREAM_PRELUDE,	/* it may still come */
	RSTREAM_PLAIN,		/* for good, as far as this end knows */
	RSTREAM_ENDED,		/* without, but the other direction has records */
	RSTREAM_SPAN,		/* none up to a stated offset, where PLAIN or HELLO follows */
};

/**
 * struct rstream_plains - both directions of one end
 * @tx_end:	offset where the prelude or span of what we send ends
 * @rx_end:	likewise, of what comes
 * @tx:		enum rstream_plain, of what we send
 * @rx:		likewise, of what comes
 * @tx_spans:	how often we have left records, modulo 256
 * @rx_spans:	likewise the peer; both do each time, and come back each time
 */
struct rstream_plains {
	u64 tx_end;
	u64 rx_end;
	u8 tx;
	u8 rx;
	u8 tx_spans;
	u8 rx_spans;
};

/* Both directions begin with a prelude of @len bytes. */
void rstream_plain_begin(struct rstream_plains *p, u64 len);
/*
 * Our prelude is full and there is more to send.  @fin: the peer's stream has ended;
 * @sure: the peer understands HELLO; @late: that has been waited for.
 * Return: say HELLO
 */
bool rstream_plain_full(struct rstream_plains *p, bool fin, bool sure, bool late);
/* The peer's HELLO has come.  @fin: our stream has ended.  Return: say ours */
bool rstream_plain_heard(struct rstream_plains *p, bool fin);
/* Its prelude was full, what follows is no HELLO, and we have not said ours. */
void rstream_plain_for_good(struct rstream_plains *p);
/* TCP's FIN has come without HELLO.  Return: but ours is out, and our records go one way */
bool rstream_plain_over(struct rstream_plains *p);
/* Our TCP's FIN follows a span.  Return: the peer's records go one way */
bool rstream_plain_fin(struct rstream_plains *p);
/*
 * Can HELLO come before the prelude or span ends?  @granted: a GRANT of ours is unanswered.
 * If so, it will, for it is an answer: bytes that look like its beginning may be kept back.
 */
bool rstream_plain_looks(const struct rstream_plains *p, bool granted);

/* May we begin a span?  Not before the peer has come back from the last one. */
bool rstream_span_may_begin(const struct rstream_plains *p);
/*
 * We say PLAIN: @len bytes from @sent on are a span, the first or a further one.
 * Return: the peer has come back from it meanwhile: say HELLO at once
 */
bool rstream_span_say(struct rstream_plains *p, u64 sent, u64 len);
/* We come back, whether the span is at its end or not: HELLO is to be said. */
void rstream_span_leave(struct rstream_plains *p);
/* PLAIN has come: @len bytes from @arrived on are a span.  @answer: say it, too */
enum rstream_reason rstream_span_got(struct rstream_plains *p, u64 arrived, u64 len,
				     bool *answer);

/* In order: from ON_RING on, a sender sends no DATA.  A receiver has the first three. */
enum rstream_carrier {
	RSTREAM_ON_TCP,
	RSTREAM_GRANTED,	/* tcp still; the switch may come any time */
	RSTREAM_ON_RING,
	RSTREAM_LEAVING,	/* sender: REVOKE has come, credits are awaited */
	RSTREAM_LOST,		/* sender: the ring is lost, RESUME awaited */
};

/* Does the receiver leave the ring that it granted to the sender? */
enum rstream_recall {
	RSTREAM_KEPT,
	RSTREAM_REVOKED,	/* it wants it back; the SWITCH to tcp is still to come */
	RSTREAM_STOPPED,	/* and the sender has said that it writes no more */
};

/**
 * struct rstream_rx - the direction towards us
 * @arrived:	bytes that came on the tcp carrier or were landed and counted
 * @consumed:	bytes given to the program
 * @limit:	offset we have allowed the peer to send up to on tcp
 * @base:	offset of the ring's first byte
 * @fin_at:	offset of the end, if @fin
 * @count:	bytes of the lost ring that had arrived, if @lost
 * @most:	bytes that can have been written to the ring, if STOPPED
 * @epoch:	of the last grant; 0 before the first
 * @state:	enum rstream_carrier
 * @fin:	FIN has come: @fin_at counts
 * @lost:	the ring's link is lost; the SWITCH to tcp is still to come
 * @recall:	enum rstream_recall, of the ring granted
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
	u8 state;		/* enum rstream_carrier */
	bool fin;
	bool lost;
	u8 recall;		/* enum rstream_recall */
};

/**
 * struct rstream_tx - the direction towards the peer
 * @written:	bytes taken from the program
 * @sent:	bytes handed to a carrier
 * @acked:	bytes that the peer's program has consumed, as told by ACK or credit
 * @limit:	offset that we may send up to on tcp
 * @base:	offset of the ring's first byte
 * @resume_at:	where to go on, if @resumed
 * @epoch:	of the last grant taken or refused
 * @state:	enum rstream_carrier; RSTREAM_GRANTED: offered, not taken up
 * @fin:	FIN is out: nothing may follow but what was lost
 * @resumed:	RESUME for the lost ring has come
 * @taken:	the grant of this epoch was taken up
 * @told:	RESUME for this epoch has come, lost or refused
 */
struct rstream_tx {
	u64 written;
	u64 sent;
	u64 acked;
	u64 limit;
	u64 base;
	u64 resume_at;
	u32 epoch;
	u8 state;		/* enum rstream_carrier */
	bool fin;
	bool resumed;
	bool taken;
	bool told;
};

/* @len bytes of a DATA record begin to arrive */
enum rstream_reason rstream_rx_data(struct rstream_rx *rx, u32 len);
/* we grant a ring. Return: its epoch, 0 if there is one already */
u32 rstream_rx_grant(struct rstream_rx *rx);
/* the grant is not sent after all */
void rstream_rx_ungrant(struct rstream_rx *rx);
/* SWITCH to the ring of @epoch, or to tcp: 0 */
enum rstream_reason rstream_rx_switch(struct rstream_rx *rx, u64 offset,
				      u32 epoch);
/* We want the ring back. Return: REVOKE is to be sent */
bool rstream_rx_revoke(struct rstream_rx *rx);
/*
 * The sender has heard that and writes no more into the ring of @epoch.
 * @most: bytes of the ring that it was allowed to write by then
 */
enum rstream_reason rstream_rx_stopped(struct rstream_rx *rx, u32 epoch,
				       u64 most);
/*
 * The ring's link is lost and @landed bytes are in the ring for good.
 * Return: RESUME with @count is to be sent; false, too, before SWITCH has come
 */
bool rstream_rx_lost(struct rstream_rx *rx, u64 landed);
/* the ring of the present epoch now holds @landed bytes in all */
enum rstream_reason rstream_rx_landed(struct rstream_rx *rx, u64 landed);
enum rstream_reason rstream_rx_fin(struct rstream_rx *rx, u64 offset);
bool rstream_rx_eof(const struct rstream_rx *rx);

enum rstream_reason rstream_tx_ack(struct rstream_tx *tx, u64 consumed,
				   u64 limit);
enum rstream_reason rstream_tx_grant(struct rstream_tx *tx, u32 epoch);
/* the ring's cell says that @acked of its bytes are consumed */
void rstream_tx_credited(struct rstream_tx *tx, u64 acked);
/* take up the grant from @sent on */
void rstream_tx_switch(struct rstream_tx *tx);
/* leave the grant alone: SWITCH to tcp is to be sent */
void rstream_tx_refuse(struct rstream_tx *tx);
/* REVOKE: state GRANTED is to be refused, LEAVING ends by rstream_tx_left() */
enum rstream_reason rstream_tx_revoke(struct rstream_tx *tx, u32 epoch);
/*
 * @acked bytes of the ring that we leave are credited: is that all?  Then SWITCH
 * is to be sent.
 */
bool rstream_tx_left(struct rstream_tx *tx, u64 acked);
/* the ring's link is lost. Return: BROKEN is to be sent */
bool rstream_tx_lost(struct rstream_tx *tx);
/* RESUME: the peer had got @count bytes of the ring of @epoch */
enum rstream_reason rstream_tx_resume(struct rstream_tx *tx, u32 epoch,
				      u64 count);
/*
 * Go back to where the peer is, on tcp: SWITCH is to be sent.
 * Return: bytes to be sent again
 */
u64 rstream_tx_rewind(struct rstream_tx *tx);
/* how many bytes the tcp carrier may send now, 0 if it is not the carrier */
u64 rstream_tx_window(const struct rstream_tx *tx);

#endif
