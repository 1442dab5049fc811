// SPDX-License-Identifier: GPL-2.0-only
/* The events of model.h, of the two ends, the network and the link. */
#include "model.h"
#include "tap.h"

struct shape shape;
bool model_resent, model_lied;
enum rstream_reason model_reason;

/* What an end says to what it has got. Return: that it is well */
static bool heard(enum rstream_reason reason)
{
	if (!model_reason)
		model_reason = reason;
	if (!model_lied)
		EXPECT_EQ(reason, RSTREAM_R_NONE);
	return !reason;
}

static void expect_honest(bool good, const char *text)
{
	if (!model_lied)
		tap_expect(good, text, __FILE__, __LINE__);
}

#define EXPECT_HONEST(cond)	expect_honest(cond, #cond)

/* A byte that arrived over tcp, or that was moved out of the ring. */
static void keep(struct world *w, u64 at, u8 byte)
{
	EXPECT_HONEST(at < BYTES_MAX);
	if (at < BYTES_MAX)
		w->tcp[at] = byte;
}

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

/* ---- events of the sender; @n: number of bytes, if relevant ---- */

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

/* A lost link loses the messages in flight. */
static bool drop_writes(struct world *w, u8 n)
{
	if (n > 1 || w->tx_link || !w->writes.n)
		return false;
	memset(&w->writes, 0, sizeof(w->writes));
	return true;
}

/* The frags are back from the link, and the peer has reported how much has arrived. */
static bool rewind_tx(struct world *w, u8 n)
{
	if (n > 1 || w->tx.state != RSTREAM_LOST || w->tx.resume != RSTREAM_RESUMED)
		return false;
	if (rstream_tx_rewind(&w->tx))
		model_resent = true;
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
	heard(reason);
	return true;
}

/* ---- events of the receiver ---- */

static void take_data(struct world *w, const struct msg *msg)
{
	unsigned int i;

	if (!heard(rstream_rx_data(&w->rx, msg->len)))
		return;
	for (i = 0; i < msg->len; i++)
		keep(w, w->tcp_n++, msg->at + i);
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

/* Data in the ring is moved to the queue. */
static void move_ring(struct world *w)
{
	while (w->rx.base + w->moved < w->rx.arrived) {
		keep(w, w->rx.base + w->moved - shape.start,
		     w->ring[w->moved % shape.ring]);
		w->moved++;
	}
}

/* The receiver's end of the link breaks: later data is not counted. */
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

static void forget_ring(struct world *w)
{
	memset(w->ring, 0, sizeof(w->ring));
	w->rx.base = 0;
	w->rx.count = 0;
	w->landed = 0;
	w->moved = 0;
}

/* The ring is not needed any more. */
static void take_back(struct world *w, const struct msg *msg)
{
	bool granted = w->rx.state == RSTREAM_GRANTED;

	if (!heard(rstream_rx_switch(&w->rx, shape.start + msg->at, 0)))
		return;
	EXPECT_HONEST(!granted || !w->landed);
	if (granted)
		forget_ring(w);
	w->tcp_n = w->rx.arrived - shape.start;
	memset(&w->writes, 0, sizeof(w->writes));
	w->cell = 0;
	w->rx_link = false;
	send_ack_now(w);
}

/* There is memory for the unread data of the ring that the sender has left. */
static bool empty_ring(struct world *w, u8 n)
{
	if (n > 1 || w->rx.state != RSTREAM_LEAVING)
		return false;
	move_ring(w);
	rstream_rx_left(&w->rx);
	forget_ring(w);
	return true;
}

static bool hear_record(struct world *w, u8 n)
{
	struct msg msg;

	if (n > 1 || w->rx.state == RSTREAM_LEAVING || !pop(&w->to_rx, &msg))
		return false;
	if (msg.type == DATA) {
		take_data(w, &msg);
	} else if (msg.type == SWITCH) {
		heard(rstream_rx_switch(&w->rx, shape.start + msg.at,
					w->rx.epoch + msg.len));
		heard(rstream_rx_landed(&w->rx, w->landed));
		if (!w->rx_link)
			lose_rx(w);
	} else if (msg.type == BACK) {
		take_back(w, &msg);
	} else if (msg.type == STOPPED) {
		heard(rstream_rx_stopped(&w->rx, nth_epoch(msg.at),
					 w->cell + shape.ring));
	} else if (msg.type == BROKEN) {
		EXPECT_HONEST(w->rx.state != RSTREAM_GRANTED);
		if (w->rx_link)
			lose_rx(w);
	} else {
		heard(rstream_rx_fin(&w->rx, shape.start + msg.at));
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
	heard(rstream_rx_landed(&w->rx, w->landed));
	return true;
}

/* The expected byte at this offset. */
static u8 byte_at(const struct world *w, u64 offset)
{
	if (w->rx.state >= RSTREAM_ON_RING && offset >= w->rx.base + w->moved)
		return w->ring[(offset - w->rx.base) % shape.ring];
	return offset - shape.start < BYTES_MAX ? w->tcp[offset - shape.start] : 0;
}

static bool read_bytes(struct world *w, u8 n)
{
	if (w->rx.consumed + n > w->rx.arrived)
		return false;
	while (n--) {
		EXPECT_HONEST(byte_at(w, w->rx.consumed) == consumed(w));
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
	if (w->rx.recall == RSTREAM_STOPPED) {
		move_ring(w);
		cell = w->rx.arrived;
	}
	if (cell <= w->rx.base + w->cell)
		return false;
	w->cell = cell - w->rx.base;
	/* the link checks this when it reads the cell */
	if (w->cell > w->posted)
		heard(RSTREAM_R_BAD_CREDIT);
	else if (w->tx.resume != RSTREAM_RESUMED && w->tx.state >= RSTREAM_ON_RING)
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

#define EVENT(name, flags)	{ name, flags, #name }

const struct event model_events[EVENTS] = {
	EVENT(send_data, MUST),
	EVENT(send_write, MUST),
	EVENT(send_switch, MAY),
	EVENT(refuse, MAY),
	EVENT(send_fin, MUST),
	EVENT(tx_loss, MAY),
	EVENT(rx_loss, MAY),
	EVENT(drop_writes, MUST | TAKES),
	EVENT(rewind_tx, MUST),
	EVENT(leave_ring, MUST),
	EVENT(revoke, MAY),
	EVENT(hear_receiver, MUST | TAKES),
	EVENT(hear_record, MUST | TAKES),
	EVENT(empty_ring, MUST | TAKES),
	EVENT(land, MUST | TAKES),
	EVENT(read_bytes, MUST),
	EVENT(send_ack, MUST),
	EVENT(send_credit, MUST),
	EVENT(send_grant, MAY),
};

/* ---- invariants of every state ---- */

void model_check(const struct world *w)
{
	const struct rstream_rx *rx = &w->rx;
	const struct rstream_tx *tx = &w->tx;

	EXPECT(rx->consumed <= rx->arrived);
	EXPECT(rx->arrived <= tx->sent);
	EXPECT(tx->resume == RSTREAM_RESUMED || tx->acked <= tx->sent);
	EXPECT(tx->acked <= (w->revokes ? rx->arrived : rx->consumed));
	EXPECT(tx->limit <= rx->limit);
	EXPECT(!rx->fin || rx->fin_at == shape.start + shape.bytes);
	EXPECT(!rstream_rx_eof(rx) || consumed(w) == shape.bytes);
	EXPECT(rx->state != RSTREAM_ON_RING || tx->state == RSTREAM_ON_TCP ||
	       rx->base == tx->base);
	EXPECT(rx->recall == RSTREAM_KEPT ||
	       (rx->state != RSTREAM_ON_TCP && rx->state != RSTREAM_LEAVING));
	EXPECT(rx->recall != RSTREAM_STOPPED || rx->state >= RSTREAM_ON_RING);
}

void model_check_end(const struct world *w)
{
	EXPECT(rstream_rx_eof(&w->rx));
	EXPECT_EQ(w->tx.acked, shape.start + shape.bytes);
	EXPECT(!w->to_rx.n && !w->to_tx.n && !w->writes.n);
}

void model_start(struct world *w, const struct shape *s)
{
	shape = *s;
	model_resent = false;
	model_lied = false;
	model_reason = RSTREAM_R_NONE;
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

