// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every order of events of one small stream.
 *
 * An honest sender and an honest receiver, each with the state machine of
 * carrier.c, are joined by three channels: records to the receiver, records to
 * the sender, ring writes.  Each keeps its own order; between them there is
 * none, as between a TCP connection and a QP.  From every state all that may
 * happen next is tried, until no new state is found.
 *
 * The link under a ring may be lost, at either end first: then what is under
 * way may be lost from any write on, or land where nobody counts it any more.
 *
 * Every event makes something grow (bytes sent, arrived, read, told), uses up a
 * grant or a loss, or empties a channel, so no history is endless, and "never
 * stuck" means: where nothing that must happen is left, all is done.
 */
#include "carrier.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#define BYTES_MAX	8
#define RING_MAX	4
#define QUEUE_MAX	16
#define SEEN_BITS	23

/**
 * struct shape - sizes of one exploration
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

/* Offsets are counted from the shape's start. */
struct msg {
	u8 type;
	u8 at;			/* first byte, offset, bytes consumed; number of a grant */
	u8 len;			/* bytes, or limit; RESUME: number of the grant */
};

struct queue {
	u8 n;
	struct msg msg[QUEUE_MAX];
};

/* All of it is compared: no padding may differ, so it is made by memset. */
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

static struct shape shape;
static unsigned __int128 *seen;
static unsigned int n_seen;
static bool ended_on_tcp, ended_on_ring, sent_again;

static void push(struct queue *q, u8 type, u8 at, u8 len)
{
	assert(q->n < QUEUE_MAX);
	q->msg[q->n++] = (struct msg){ type, at, len };
}

static bool pop(struct queue *q, struct msg *msg)
{
	if (!q->n)
		return false;
	*msg = q->msg[0];
	memmove(q->msg, q->msg + 1, --q->n * sizeof(*msg));
	memset(q->msg + q->n, 0, sizeof(*msg));
	return true;
}

static u8 sent(const struct world *w)
{
	return w->tx.sent - shape.start;
}

static u8 consumed(const struct world *w)
{
	return w->rx.consumed - shape.start;
}

/* Epoch of the nth grant: 0 is left out. */
static u32 nth_epoch(u8 n)
{
	u32 epoch = shape.epoch + n;

	return epoch < shape.epoch ? epoch + 1 : epoch;
}

/* ---- what the sender may do; @n: how many bytes, where that matters ---- */

static bool send_data(struct world *w, u8 n)
{
	if (n > rstream_tx_window(&w->tx) || sent(w) + n > shape.bytes)
		return false;
	push(&w->to_rx, DATA, sent(w), n);
	w->tx.sent += n;
	return true;
}

static bool send_write(struct world *w, u8 n)
{
	if (w->tx.state != RSTREAM_ON_RING || sent(w) + n > shape.bytes ||
	    !w->tx_link || w->posted + n - w->cell > shape.ring)
		return false;
	push(&w->writes, WRITE, sent(w), n);
	w->tx.sent += n;
	w->posted += n;
	return true;
}

static bool send_switch(struct world *w, u8 n)
{
	if (n > 1 || w->tx.state != RSTREAM_GRANTED || w->tx.fin)
		return false;
	rstream_tx_switch(&w->tx);
	push(&w->to_rx, SWITCH, w->tx.base - shape.start, 0);
	return true;
}

static bool refuse(struct world *w, u8 n)
{
	if (n > 1 || w->tx.state != RSTREAM_GRANTED)
		return false;
	rstream_tx_refuse(&w->tx);
	push(&w->to_rx, BACK, sent(w), 0);
	return true;
}

/* The sender's end of the link breaks. */
static void lose_tx(struct world *w)
{
	w->tx_link = false;
	if (w->tx.state == RSTREAM_GRANTED)
		refuse(w, 1);
	else if (rstream_tx_lost(&w->tx))
		push(&w->to_rx, BROKEN, 0, 0);
}

static bool tx_loss(struct world *w, u8 n)
{
	if (n > 1 || !w->tx_link || w->losses == shape.losses ||
	    w->tx.state == RSTREAM_ON_TCP || w->tx.state == RSTREAM_LOST)
		return false;
	w->losses++;
	lose_tx(w);
	return true;
}

/* A lost link takes what is under way with it. */
static bool drop_writes(struct world *w, u8 n)
{
	if (n > 1 || w->tx_link || !w->writes.n)
		return false;
	memset(&w->writes, 0, sizeof(w->writes));
	return true;
}

/* The frags are back from the link, and the peer has said how much it has. */
static bool rewind_tx(struct world *w, u8 n)
{
	if (n > 1 || w->tx.state != RSTREAM_LOST || !w->tx.resumed)
		return false;
	if (rstream_tx_rewind(&w->tx))
		sent_again = true;
	push(&w->to_rx, BACK, sent(w), 0);
	return true;
}

static bool send_fin(struct world *w, u8 n)
{
	if (n > 1 || w->tx.fin || sent(w) < shape.bytes)
		return false;
	w->tx.fin = true;
	push(&w->to_rx, FIN, sent(w), 0);
	return true;
}

static bool leave_ring(struct world *w, u8 n)
{
	if (n > 1 || !rstream_tx_left(&w->tx, w->cell))
		return false;
	push(&w->to_rx, BACK, sent(w), 0);
	return true;
}

static bool hear_receiver(struct world *w, u8 n)
{
	enum rstream_reason reason;
	struct msg msg;

	if (n > 1 || !pop(&w->to_tx, &msg))
		return false;
	if (msg.type == ACK) {
		reason = rstream_tx_ack(&w->tx, shape.start + msg.at,
					shape.start + msg.len);
	} else if (msg.type == GRANT) {
		reason = rstream_tx_grant(&w->tx, nth_epoch(msg.at));
		w->tx_link = true;
		w->posted = 0;
	} else if (msg.type == REVOKE) {
		reason = rstream_tx_revoke(&w->tx, nth_epoch(msg.at));
		if (w->tx.state == RSTREAM_GRANTED)
			refuse(w, 1);
		else if (w->tx.state == RSTREAM_LEAVING)
			push(&w->to_rx, STOPPED, msg.at, 0);
	} else {
		reason = rstream_tx_resume(&w->tx, nth_epoch(msg.len),
					   msg.at);
		if (w->tx_link && w->tx.state != RSTREAM_ON_TCP)
			lose_tx(w);
	}
	EXPECT_EQ(reason, RSTREAM_R_NONE);
	return true;
}

/* ---- what the receiver may do ---- */

static void take_data(struct world *w, const struct msg *msg)
{
	unsigned int i;

	EXPECT_EQ(rstream_rx_data(&w->rx, msg->len), RSTREAM_R_NONE);
	for (i = 0; i < msg->len; i++)
		w->tcp[w->tcp_n++] = msg->at + i;
}

static void send_ack_now(struct world *w)
{
	w->rx.limit = max(w->rx.limit, w->rx.consumed + shape.window);
	push(&w->to_tx, ACK, consumed(w), w->rx.limit - shape.start);
}

static bool revoke(struct world *w, u8 n)
{
	if (n > 1 || w->revokes == shape.revokes || !rstream_rx_revoke(&w->rx))
		return false;
	w->revokes++;
	push(&w->to_tx, REVOKE, w->grants, 0);
	return true;
}

/* What has come in the ring goes to the queue. */
static void move_ring(struct world *w)
{
	while (w->rx.base + w->moved < w->rx.arrived) {
		w->tcp[w->rx.base + w->moved - shape.start] =
			w->ring[w->moved % shape.ring];
		w->moved++;
	}
}

/* The receiver's end of the link breaks: what lands later does not count. */
static void lose_rx(struct world *w)
{
	w->rx_link = false;
	if (!rstream_rx_lost(&w->rx, w->landed))
		return;
	push(&w->to_tx, RESUME, w->rx.count, w->grants);
	send_ack_now(w);
}

static bool rx_loss(struct world *w, u8 n)
{
	if (n > 1 || !w->rx_link || w->losses == shape.losses ||
	    w->rx.state == RSTREAM_ON_TCP)
		return false;
	w->losses++;
	lose_rx(w);
	return true;
}

/* The ring is not needed any more: what is unread is moved to the queue. */
static void take_back(struct world *w, const struct msg *msg)
{
	bool granted = w->rx.state == RSTREAM_GRANTED;

	EXPECT_EQ(rstream_rx_switch(&w->rx, shape.start + msg->at, 0),
		  RSTREAM_R_NONE);
	EXPECT(!granted || !w->landed);
	if (!granted)
		move_ring(w);
	w->tcp_n = w->rx.arrived - shape.start;
	memset(w->ring, 0, sizeof(w->ring));
	memset(&w->writes, 0, sizeof(w->writes));
	w->rx.base = 0;
	w->rx.count = 0;
	w->landed = 0;
	w->moved = 0;
	w->cell = 0;
	w->rx_link = false;
	send_ack_now(w);
}

static bool hear_record(struct world *w, u8 n)
{
	struct msg msg;

	if (n > 1 || !pop(&w->to_rx, &msg))
		return false;
	if (msg.type == DATA) {
		take_data(w, &msg);
	} else if (msg.type == SWITCH) {
		EXPECT_EQ(rstream_rx_switch(&w->rx, shape.start + msg.at,
					    w->rx.epoch), RSTREAM_R_NONE);
		EXPECT_EQ(rstream_rx_landed(&w->rx, w->landed),
			  RSTREAM_R_NONE);
		if (!w->rx_link)
			lose_rx(w);
	} else if (msg.type == BACK) {
		take_back(w, &msg);
	} else if (msg.type == STOPPED) {
		EXPECT_EQ(rstream_rx_stopped(&w->rx, nth_epoch(msg.at)),
			  RSTREAM_R_NONE);
	} else if (msg.type == BROKEN) {
		EXPECT(w->rx.state != RSTREAM_GRANTED);
		if (w->rx_link)
			lose_rx(w);
	} else {
		EXPECT_EQ(rstream_rx_fin(&w->rx, shape.start + msg.at),
			  RSTREAM_R_NONE);
	}
	return true;
}

static bool land(struct world *w, u8 n)
{
	struct msg msg;
	unsigned int i;

	if (n > 1 || !w->rx_link || !pop(&w->writes, &msg))
		return false;
	for (i = 0; i < msg.len; i++)
		w->ring[w->landed++ % shape.ring] = msg.at + i;
	EXPECT_EQ(rstream_rx_landed(&w->rx, w->landed), RSTREAM_R_NONE);
	return true;
}

/* The byte that the program reads at this offset: it must be that one. */
static u8 byte_at(const struct world *w, u64 offset)
{
	if (w->rx.state == RSTREAM_ON_RING && offset >= w->rx.base + w->moved)
		return w->ring[(offset - w->rx.base) % shape.ring];
	return w->tcp[offset - shape.start];
}

static bool read_bytes(struct world *w, u8 n)
{
	if (w->rx.consumed + n > w->rx.arrived)
		return false;
	while (n--) {
		EXPECT_EQ(byte_at(w, w->rx.consumed), consumed(w));
		w->rx.consumed++;
	}
	return true;
}

static bool send_ack(struct world *w, u8 n)
{
	u64 limit = w->rx.consumed + shape.window;

	if (n > 1 || limit <= w->rx.limit)
		return false;
	w->rx.limit = limit;
	push(&w->to_tx, ACK, consumed(w), limit - shape.start);
	return true;
}

static bool send_credit(struct world *w, u8 n)
{
	u64 cell = w->rx.consumed;

	if (n > 1 || w->rx.state != RSTREAM_ON_RING || !w->rx_link ||
	    !w->tx_link)
		return false;
	if (w->rx.revoked) {
		move_ring(w);
		cell = w->rx.arrived;
	}
	if (cell <= w->rx.base + w->cell)
		return false;
	w->cell = cell - w->rx.base;
	rstream_tx_credited(&w->tx, w->cell);
	return true;
}

static bool send_grant(struct world *w, u8 n)
{
	if (n > 1 || w->grants == shape.grants || !rstream_rx_grant(&w->rx))
		return false;
	w->grants++;
	w->rx_link = true;
	push(&w->to_tx, GRANT, w->grants, 0);
	return true;
}

/* @must: happens for certain, if nothing else does */
static const struct event {
	bool (*run)(struct world *w, u8 n);
	bool must;
} events[] = {
	{ send_data, true },
	{ send_write, true },
	{ send_switch, false },
	{ refuse, false },
	{ send_fin, true },
	{ tx_loss, false },
	{ rx_loss, false },
	{ drop_writes, true },
	{ rewind_tx, true },
	{ leave_ring, true },
	{ revoke, false },
	{ hear_receiver, true },
	{ hear_record, true },
	{ land, true },
	{ read_bytes, true },
	{ send_ack, true },
	{ send_credit, true },
	{ send_grant, false },
};

/* ---- what must be so in every state ---- */

static void check(const struct world *w)
{
	const struct rstream_rx *rx = &w->rx;
	const struct rstream_tx *tx = &w->tx;

	EXPECT(rx->consumed <= rx->arrived);
	EXPECT(rx->arrived <= tx->sent);
	EXPECT(tx->resumed || tx->acked <= tx->sent);
	EXPECT(tx->acked <= (w->revokes ? rx->arrived : rx->consumed));
	EXPECT(tx->limit <= rx->limit);
	EXPECT(!rx->fin || rx->fin_at == shape.start + shape.bytes);
	EXPECT(!rstream_rx_eof(rx) || consumed(w) == shape.bytes);
	EXPECT(rx->state != RSTREAM_ON_RING || tx->state == RSTREAM_ON_TCP ||
	       rx->base == tx->base);
}

/* Nothing is left that must happen. */
static void check_end(const struct world *w)
{
	EXPECT(rstream_rx_eof(&w->rx));
	EXPECT_EQ(w->tx.acked, shape.start + shape.bytes);
	EXPECT(!w->to_rx.n && !w->to_tx.n && !w->writes.n);
	if (w->rx.state == RSTREAM_ON_RING)
		ended_on_ring = true;
	else
		ended_on_tcp = true;
}

/* FNV-1a of 128 bits stands for the state; 0 is an empty slot. */
static bool is_new(const struct world *w)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	unsigned __int128 hash = 0x62b821756295c58dULL;
	const u8 *at = (const u8 *)w;
	unsigned int i;

	for (i = 0; i < sizeof(*w); i++)
		hash = (hash ^ at[i]) * prime;
	for (i = hash >> 64; ; i++) {
		i &= (1 << SEEN_BITS) - 1;
		if (seen[i] == hash)
			return false;
		if (!seen[i])
			break;
	}
	seen[i] = hash;
	assert(++n_seen < 3 << (SEEN_BITS - 2));
	return true;
}

static void explore(const struct world *w)
{
	bool must = false;
	struct world next;
	unsigned int i;
	u8 n;

	if (tap_failed() || !is_new(w))
		return;
	check(w);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		for (n = 1; ; n++) {
			memcpy(&next, w, sizeof(next));
			if (!events[i].run(&next, n))
				break;
			must |= events[i].must;
			explore(&next);
		}
	}
	if (!must)
		check_end(w);
}

/* The two ends behind their HELLOs. */
static void set_out(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->tx.sent = shape.start;
	w->tx.acked = shape.start;
	w->tx.limit = shape.start + shape.window;
	w->tx.epoch = shape.epoch;
	w->rx.arrived = shape.start;
	w->rx.consumed = shape.start;
	w->rx.limit = w->tx.limit;
	w->rx.epoch = shape.epoch;
}

static void explore_shape(const struct shape *s)
{
	struct world w;

	shape = *s;
	seen = calloc(1 << SEEN_BITS, sizeof(*seen));
	assert(seen);
	n_seen = 0;
	ended_on_tcp = false;
	ended_on_ring = false;
	sent_again = false;
	set_out(&w);
	explore(&w);
	EXPECT(ended_on_tcp && ended_on_ring);
	EXPECT(sent_again == (shape.losses && shape.bytes));
	printf("# %u bytes, window %u, ring %u; grants %u, losses %u, revokes %u: %u states\n",
	       shape.bytes, shape.window, shape.ring, shape.grants,
	       shape.losses, shape.revokes, n_seen);
	free(seen);
}

TEST(explore__empty_stream)
{
	explore_shape(&(struct shape){
		.bytes = 0, .window = 1, .ring = 1,
		.grants = 1
	});
}

TEST(explore__window_of_one_byte)
{
	explore_shape(&(struct shape){
		.bytes = 6, .window = 1, .ring = 1,
		.grants = 1
	});
}

TEST(explore__ring_wraps)
{
	explore_shape(&(struct shape){
		.bytes = 7, .window = 3, .ring = 2,
		.grants = 1
	});
}

TEST(explore__ring_holds_all)
{
	explore_shape(&(struct shape){
		.bytes = 6, .window = 2, .ring = 4,
		.grants = 1
	});
}

TEST(explore__window_holds_all)
{
	explore_shape(&(struct shape){
		.bytes = 5, .window = 6, .ring = 1,
		.grants = 1
	});
}

TEST(explore__epoch_wraps)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 1,
		.epoch = ~0U
	});
}

TEST(explore__offset_beyond_32_bits)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 1,
		.start = 0xffffffff
	});
}

TEST(explore__refused_and_granted_again)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 2
	});
}

TEST(explore__link_lost)
{
	explore_shape(&(struct shape){
		.bytes = 5, .window = 2, .ring = 3, .grants = 1, .losses = 1
	});
}

TEST(explore__link_lost_at_both_ends)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 1, .losses = 2
	});
}

TEST(explore__link_lost_and_ring_granted_again)
{
	explore_shape(&(struct shape){
		.bytes = 3, .window = 2, .ring = 2, .grants = 2, .losses = 2,
		.epoch = ~0U
	});
}

TEST(explore__ring_revoked)
{
	explore_shape(&(struct shape){
		.bytes = 5, .window = 2, .ring = 3, .grants = 1, .revokes = 1
	});
}

TEST(explore__ring_revoked_and_granted_again)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 2, .revokes = 2
	});
}

TEST(explore__link_lost_while_ring_is_revoked)
{
	explore_shape(&(struct shape){
		.bytes = 3, .window = 2, .ring = 2, .grants = 2, .losses = 1,
		.revokes = 1
	});
}
