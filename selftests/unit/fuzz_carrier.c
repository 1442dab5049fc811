// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules of carriers: a receiver and a sender, each with a peer that sends anything; and both
 * ends of the model with events in any order, with honest channels or with channels that change
 * messages.
 */
#include "carrier.h"
#include "fuzz.h"
#include "model.h"
#include "tap.h"

/* A number that is often right, or nearly. */
static u64 near(struct fuzz_input *in, u64 n)
{
	u8 byte = fuzz_byte(in);

	return byte >= 0xf0 ? fuzz_number(in, 8) : n + (byte & 15) - 7;
}

/* Up to @most, which is less than 2^16 in the end. */
static u64 up_to(struct fuzz_input *in, u64 most)
{
	u8 byte = fuzz_byte(in);

	return most ? byte % ((most < 40 ? most : 40) + 1) : 0;
}

/* May a receiver go from one to the other? */
static bool next_state(u8 from, u8 to)
{
	switch (from) {
	case RSTREAM_ON_TCP:
		return to == RSTREAM_GRANTED;
	case RSTREAM_GRANTED:
		return to == RSTREAM_ON_TCP || to == RSTREAM_ON_RING;
	case RSTREAM_ON_RING:
		return to == RSTREAM_LEAVING || to == RSTREAM_LOST;
	case RSTREAM_LOST:
		return to == RSTREAM_LEAVING;
	default:
		return to == RSTREAM_ON_TCP;
	}
}

/* Invariants, whatever the peer sends. */
static void check_rx(const struct rstream_rx *rx, const struct rstream_rx *was,
		     enum rstream_reason reason)
{
	EXPECT(!host_warnings);
	if (reason)
		EXPECT(!memcmp(rx, was, sizeof(*rx)));
	EXPECT(rx->arrived >= was->arrived);
	EXPECT(rx->consumed <= rx->arrived);
	EXPECT(rx->state >= RSTREAM_ON_RING || rx->arrived <= rx->limit ||
	       rx->arrived == was->arrived);
	EXPECT(rx->state != RSTREAM_ON_RING || rx->base <= rx->arrived);
	EXPECT(rx->state == was->state || next_state(was->state, rx->state));
	EXPECT(rx->state == RSTREAM_ON_TCP || rx->epoch);
	EXPECT(rx->recall == RSTREAM_KEPT ||
	       (rx->state != RSTREAM_ON_TCP && rx->state != RSTREAM_LEAVING));
	EXPECT(rx->recall != RSTREAM_STOPPED ||
	       (was->recall != RSTREAM_KEPT && rx->state >= RSTREAM_ON_RING));
	/* a ring is left only after REVOKE, or when it is lost */
	EXPECT(was->state != RSTREAM_ON_RING || rx->state != RSTREAM_LEAVING ||
	       was->recall != RSTREAM_KEPT);
	EXPECT(!was->fin || (rx->fin && rx->fin_at == was->fin_at));
	EXPECT(!rx->fin || rx->arrived <= rx->fin_at);
	EXPECT(!rstream_rx_eof(rx) || rx->arrived == rx->consumed);
}

static void check_tx(const struct rstream_tx *tx, const struct rstream_tx *was,
		     enum rstream_reason reason)
{
	EXPECT(!host_warnings);
	if (reason)
		EXPECT(!memcmp(tx, was, sizeof(*tx)));
	EXPECT(tx->acked <= tx->sent);
	EXPECT(tx->acked >= was->acked);
	EXPECT(tx->limit >= was->limit);
	EXPECT(tx->state >= RSTREAM_ON_RING || tx->sent <= tx->limit ||
	       tx->sent <= was->sent);
	/* data to be sent again is not acknowledged yet */
	EXPECT(tx->resume != RSTREAM_RESUMED || (tx->resume_at <= tx->sent &&
						 tx->acked <= tx->resume_at));
	EXPECT(tx->state < RSTREAM_ON_RING || tx->base <= tx->sent);
	EXPECT(tx->state == RSTREAM_ON_TCP || tx->epoch);
	EXPECT(tx->state < RSTREAM_ON_RING || tx->taken);
	EXPECT(tx->state != RSTREAM_GRANTED || !tx->taken);
	EXPECT(tx->resume != RSTREAM_RESUMED || tx->state >= RSTREAM_ON_RING);
	EXPECT(tx->epoch != was->epoch || tx->resume >= was->resume);
}

/* ---- a receiver, and any records of a peer ---- */

static enum rstream_reason rx_event(struct rstream_rx *rx, struct fuzz_input *in)
{
	switch (fuzz_byte(in) % 11) {
	case 0:
		return rstream_rx_data(rx, near(in, rx->limit - rx->arrived));
	case 1:
		return rstream_rx_data(rx, up_to(in, rx->limit - rx->arrived));
	case 2:
		rstream_rx_grant(rx);
		return RSTREAM_R_NONE;
	case 3:
		/* one that has not been sent */
		if (rx->state == RSTREAM_GRANTED && rx->recall == RSTREAM_KEPT)
			rstream_rx_ungrant(rx);
		else if (rx->state == RSTREAM_LEAVING)
			rstream_rx_left(rx);
		return RSTREAM_R_NONE;
	case 4:
		return rstream_rx_switch(rx, near(in, rx->arrived),
					 near(in, rx->epoch));
	case 5:
		return rstream_rx_switch(rx, near(in, rx->arrived), 0);
	case 6:
		return rstream_rx_landed(rx, near(in, rx->arrived - rx->base) &
					 ~0ULL >> 8);
	case 7:
		return rstream_rx_fin(rx, near(in, rx->arrived));
	case 8:
		rstream_rx_lost(rx, near(in, rx->arrived - rx->base));
		return RSTREAM_R_NONE;
	case 9:
		if (fuzz_byte(in) & 1)
			return rstream_rx_stopped(rx, near(in, rx->epoch),
						  rx->arrived - rx->base + 20);
		rstream_rx_revoke(rx);
		return RSTREAM_R_NONE;
	default:
		rx->consumed += up_to(in, rx->arrived - rx->consumed);
		if (rx->limit < rx->consumed + 40)
			rx->limit = rx->consumed + 40;
		return RSTREAM_R_NONE;
	}
}

void fuzz_rx(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct rstream_rx rx, was;

	memset(&rx, 0, sizeof(rx));
	rx.arrived = (u64)fuzz_byte(&in) << 28;
	rx.consumed = rx.arrived;
	rx.limit = rx.arrived + 30;
	rx.epoch = fuzz_byte(&in) % 3 - 2;
	while (in.len && !tap_failed()) {
		was = rx;
		check_rx(&rx, &was, rx_event(&rx, &in));
	}
}

/* ---- a sender, likewise ---- */

static enum rstream_reason tx_event(struct rstream_tx *tx, struct fuzz_input *in)
{
	u64 acked;

	switch (fuzz_byte(in) % 10) {
	case 0:
		return rstream_tx_ack(tx, near(in, tx->acked), near(in, tx->limit));
	case 1:
		return rstream_tx_ack(tx, near(in, tx->sent), near(in, tx->limit));
	case 2:
		return rstream_tx_grant(tx, near(in, tx->epoch + 1));
	case 3:
		if (tx->state != RSTREAM_GRANTED)
			return RSTREAM_R_NONE;
		if (fuzz_byte(in) & 1)
			rstream_tx_switch(tx);
		else
			rstream_tx_refuse(tx);
		return RSTREAM_R_NONE;
	case 4:
		/* a cell beyond what was written is refused where it is read */
		acked = up_to(in, tx->sent - tx->base);
		if (tx->state >= RSTREAM_ON_RING && tx->resume != RSTREAM_RESUMED)
			rstream_tx_credited(tx, acked);
		return RSTREAM_R_NONE;
	case 5:
		rstream_tx_lost(tx);
		return RSTREAM_R_NONE;
	case 6:
		return rstream_tx_resume(tx, near(in, tx->epoch),
					 near(in, tx->sent - tx->base));
	case 7:
		if (tx->state == RSTREAM_LOST && tx->resume == RSTREAM_RESUMED)
			rstream_tx_rewind(tx);
		else
			rstream_tx_left(tx, near(in, tx->sent - tx->base));
		return RSTREAM_R_NONE;
	case 8:
		return rstream_tx_revoke(tx, near(in, tx->epoch));
	default:
		tx->sent += up_to(in, tx->state == RSTREAM_ON_RING ?
				      20 : rstream_tx_window(tx));
		return RSTREAM_R_NONE;
	}
}

void fuzz_tx(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct rstream_tx tx, was;

	memset(&tx, 0, sizeof(tx));
	tx.sent = (u64)fuzz_byte(&in) << 28;
	tx.acked = tx.sent;
	tx.limit = tx.sent + 30;
	tx.epoch = fuzz_byte(&in) % 3 - 2;
	while (in.len && !tap_failed()) {
		was = tx;
		check_tx(&tx, &was, tx_event(&tx, &in));
	}
}

/* ---- both ends ---- */

#define LIE	EVENTS		/* in place of an event */

/* Change, lose, repeat or reorder messages in flight. */
static void lie(struct world *w, struct fuzz_input *in)
{
	struct queue *queues[] = { &w->to_rx, &w->to_tx, &w->writes };
	struct queue *q = queues[fuzz_byte(in) % ARRAY_SIZE(queues)];
	struct msg *msg, old;

	if (!q->n)
		return;
	model_lied = true;
	msg = &q->msg[fuzz_byte(in) % q->n];
	switch (fuzz_byte(in) % 6) {
	case 0:
		if (q == &w->to_rx)
			msg->type = DATA + fuzz_byte(in) % (ACK - DATA);
		else if (q == &w->to_tx)
			msg->type = ACK + fuzz_byte(in) % (WRITE - ACK);
		return;
	case 1:
		msg->at = fuzz_byte(in);
		return;
	case 2:
		msg->len = fuzz_byte(in);
		return;
	case 3:
		*msg = q->msg[--q->n];
		memset(&q->msg[q->n], 0, sizeof(*msg));
		return;
	case 4:		/* their answers need room */
		if (q->n < QUEUE_MAX / 2)
			q->msg[q->n++] = *msg;
		return;
	default:
		old = *msg;
		*msg = q->msg[0];
		q->msg[0] = old;
	}
}

/* The model's channels are short: messages must be received before more are sent. */
static bool has_room(const struct world *w)
{
	return w->to_rx.n + w->to_tx.n <= QUEUE_MAX / 2 && w->writes.n < QUEUE_MAX;
}

static bool happens(struct world *w, unsigned int event, u8 n)
{
	const struct rstream_tx tx = w->tx;
	struct rstream_rx rx = w->rx;
	bool done;

	if (!(model_events[event].flags & TAKES) && !has_room(w))
		return false;
	done = model_events[event].run(w, n);
	/* SWITCH to a ring whose link is lost already */
	if (rx.state == RSTREAM_GRANTED && w->rx.state == RSTREAM_LOST)
		rx.state = RSTREAM_ON_RING;
	check_tx(&w->tx, &tx, RSTREAM_R_NONE);
	check_rx(&w->rx, &rx, RSTREAM_R_NONE);
	if (!model_lied)
		model_check(w);
	return done;
}

/* Runs all events that must happen. */
static void come_to_an_end(struct world *w)
{
	unsigned int i, n;
	bool more;

	do {
		more = false;
		for (i = 0; i < EVENTS; i++) {
			if (!(model_events[i].flags & MUST))
				continue;
			for (n = 0; n < 64 && happens(w, i, 1) && !tap_failed(); n++)
				more = true;
		}
	} while (more && !tap_failed());
	model_check_end(w);
}

void fuzz_pair(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct shape s = {
		.start = (u64)fuzz_byte(&in) << 28,
		.epoch = fuzz_byte(&in) % 3 - 2,
		.bytes = fuzz_byte(&in) % (BYTES_MAX + 1),
		.window = 1 + fuzz_byte(&in) % (BYTES_MAX + 1),
		.ring = 1 + fuzz_byte(&in) % RING_MAX,
		.grants = 200, .losses = 200, .revokes = 200,
	};
	unsigned int event;
	struct world w;

	model_start(&w, &s);
	while (in.len && !tap_failed()) {
		event = fuzz_byte(&in) % (LIE + 1);
		if (event < EVENTS)
			happens(&w, event, 1 + fuzz_byte(&in) % 4);
		else
			lie(&w, &in);
		/* the connection is reset; or the forged values exceed the model's range */
		if (model_reason || w.rx.arrived - s.start > 100)
			return;
	}
	if (!model_lied && !tap_failed())
		come_to_an_end(&w);
}
