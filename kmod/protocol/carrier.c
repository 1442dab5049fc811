// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules of carriers and switches.  Pure: called with the socket lock held
 * by the files in socket/, and by unit tests in user space.
 */
#include "carrier.h"

#ifdef __KERNEL__
#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/minmax.h>
#endif

/*
 * @from: the allowed predecessors of each state.
 * Return: false if the transition is not allowed; nothing has changed then.
 */
static bool state_next(u8 *state, const u8 *from, u8 to)
{
	if (WARN_ON_ONCE(!(from[to] & BIT(*state))))
		return false;
	smp_store_release(state, to);	/* pairs with rstream_rxq_all_here() */
	return true;
}

static bool phase_next(u8 *state, enum rstream_phase to)
{
	static const u8 from[] = {
		[RSTREAM_RECORDS] = BIT(RSTREAM_PRELUDE) | BIT(RSTREAM_PLAIN) | BIT(RSTREAM_SPAN),
		[RSTREAM_PRELUDE] = BIT(RSTREAM_RECORDS),
		[RSTREAM_PLAIN] = BIT(RSTREAM_PRELUDE) | BIT(RSTREAM_PLAIN),
		[RSTREAM_ENDED] = BIT(RSTREAM_PRELUDE) | BIT(RSTREAM_PLAIN) | BIT(RSTREAM_SPAN),
		[RSTREAM_SPAN] = BIT(RSTREAM_RECORDS) | BIT(RSTREAM_SPAN),
	};

	return state_next(state, from, to);
}

void rstream_phase_begin(struct rstream_phases *p, u64 len)
{
	p->tx_end = len;
	p->rx_end = len;
	phase_next(&p->tx, RSTREAM_PRELUDE);
	phase_next(&p->rx, RSTREAM_PRELUDE);
}

bool rstream_phase_full(struct rstream_phases *p, bool fin, bool sure, bool late)
{
	if (p->tx != RSTREAM_PRELUDE)
		return false;
	if (fin || (!sure && late))
		phase_next(&p->tx, RSTREAM_PLAIN);
	else if (sure)
		return phase_next(&p->tx, RSTREAM_RECORDS);
	return false;
}

bool rstream_phase_hello(struct rstream_phases *p, bool fin)
{
	phase_next(&p->rx, RSTREAM_RECORDS);
	if (p->tx == RSTREAM_RECORDS || p->tx == RSTREAM_ENDED)
		return false;
	phase_next(&p->tx, fin ? RSTREAM_ENDED : RSTREAM_RECORDS);
	return !fin;
}

void rstream_phase_plain(struct rstream_phases *p)
{
	phase_next(&p->rx, RSTREAM_PLAIN);
	phase_next(&p->tx, RSTREAM_PLAIN);
}

bool rstream_phase_rx_fin(struct rstream_phases *p)
{
	return p->tx == RSTREAM_RECORDS && phase_next(&p->rx, RSTREAM_ENDED);
}

bool rstream_phase_tx_fin(struct rstream_phases *p)
{
	return p->tx == RSTREAM_SPAN && p->rx == RSTREAM_RECORDS &&
	       phase_next(&p->tx, RSTREAM_ENDED);
}

/* Have both left records equally often? */
static bool in_step(const struct rstream_phases *p)
{
	return p->tx_spans == p->rx_spans;
}

bool rstream_phase_expects_hello(const struct rstream_phases *p, bool granted)
{
	if (p->rx != RSTREAM_SPAN)
		return p->tx == RSTREAM_RECORDS;
	/* if not in step, our PLAIN is still to be sent, or to be answered */
	return granted || (p->tx == RSTREAM_RECORDS && in_step(p));
}

bool rstream_span_may_begin(const struct rstream_phases *p)
{
	return p->tx == RSTREAM_RECORDS && p->rx == RSTREAM_RECORDS && in_step(p);
}

bool rstream_span_tx(struct rstream_phases *p, u64 sent, u64 len)
{
	bool first = p->tx == RSTREAM_RECORDS;

	if (!phase_next(&p->tx, RSTREAM_SPAN))
		return false;
	p->tx_end = sent + len;
	p->tx_spans += first;
	return p->rx == RSTREAM_RECORDS && first && in_step(p);
}

void rstream_span_leave(struct rstream_phases *p)
{
	phase_next(&p->tx, RSTREAM_RECORDS);
}

enum rstream_reason rstream_span_rx(struct rstream_phases *p, u64 arrived, u64 len,
				    bool *answer)
{
	*answer = false;
	if (p->rx == RSTREAM_RECORDS) {
		/* it answers our PLAIN, or we have to answer it, but not within our span */
		if (!in_step(p) && (u8)(p->rx_spans + 1) != p->tx_spans)
			return RSTREAM_R_BAD_RECORD;
		if (in_step(p) && p->tx != RSTREAM_RECORDS)
			return RSTREAM_R_BAD_RECORD;
		*answer = in_step(p);
		p->rx_spans++;
	} else if (p->rx != RSTREAM_SPAN || arrived != p->rx_end) {
		return RSTREAM_R_BAD_RECORD;
	}
	phase_next(&p->rx, RSTREAM_SPAN);
	p->rx_end = arrived + len;
	return RSTREAM_R_NONE;
}

/* Each ring is left for tcp before there is another one. */
static void rx_next(struct rstream_rx *rx, enum rstream_carrier to)
{
	static const u8 from[] = {
		[RSTREAM_ON_TCP] = BIT(RSTREAM_GRANTED) | BIT(RSTREAM_LEAVING),
		[RSTREAM_GRANTED] = BIT(RSTREAM_ON_TCP),
		[RSTREAM_ON_RING] = BIT(RSTREAM_GRANTED),
		[RSTREAM_LEAVING] = BIT(RSTREAM_ON_RING) | BIT(RSTREAM_LOST),
		[RSTREAM_LOST] = BIT(RSTREAM_ON_RING),
	};

	state_next(&rx->state, from, to);
}

static void tx_next(struct rstream_tx *tx, enum rstream_carrier to)
{
	static const u8 from[] = {
		[RSTREAM_ON_TCP] = BIT(RSTREAM_GRANTED) | BIT(RSTREAM_LEAVING) | BIT(RSTREAM_LOST),
		[RSTREAM_GRANTED] = BIT(RSTREAM_ON_TCP),
		[RSTREAM_ON_RING] = BIT(RSTREAM_GRANTED),
		[RSTREAM_LEAVING] = BIT(RSTREAM_ON_RING),
		[RSTREAM_LOST] = BIT(RSTREAM_ON_RING) | BIT(RSTREAM_LEAVING),
	};

	state_next(&tx->state, from, to);
}

enum rstream_reason rstream_rx_data(struct rstream_rx *rx, u32 len)
{
	if (rx->state >= RSTREAM_ON_RING)
		return RSTREAM_R_BAD_SWITCH;
	/* only data that a lost ring has not delivered may follow FIN */
	if (rx->fin && len > rx->fin_at - rx->arrived)
		return RSTREAM_R_BAD_OFFSET;
	/* data from a ring is not bounded by the limit, so it may be exceeded already */
	if (rx->arrived > rx->limit || len > rx->limit - rx->arrived)
		return RSTREAM_R_BAD_WINDOW;
	/* pairs with rstream_rxq_all_here() */
	smp_store_release(&rx->arrived, rx->arrived + len);
	return RSTREAM_R_NONE;
}

u32 rstream_rx_grant(struct rstream_rx *rx)
{
	if (rx->state != RSTREAM_ON_TCP || rx->fin)
		return 0;
	rx_next(rx, RSTREAM_GRANTED);
	if (!++rx->epoch)
		rx->epoch = 1;
	return rx->epoch;
}

void rstream_rx_ungrant(struct rstream_rx *rx)
{
	rx_next(rx, RSTREAM_ON_TCP);
	rx->epoch--;
}

static enum rstream_reason rx_switch_back(struct rstream_rx *rx, u64 offset)
{
	if (rx->state == RSTREAM_ON_TCP || rx->state == RSTREAM_LEAVING)
		return RSTREAM_R_BAD_SWITCH;
	/* a sender may leave a ring only after REVOKE, or after RESUME if the link is lost */
	if (rx->state == RSTREAM_ON_RING && rx->recall == RSTREAM_KEPT)
		return RSTREAM_R_BAD_SWITCH;
	if (offset != rx->arrived)
		return RSTREAM_R_BAD_OFFSET;
	rx_next(rx, rx->state == RSTREAM_GRANTED ? RSTREAM_ON_TCP : RSTREAM_LEAVING);
	rx->recall = RSTREAM_KEPT;
	return RSTREAM_R_NONE;
}

void rstream_rx_left(struct rstream_rx *rx)
{
	rx_next(rx, RSTREAM_ON_TCP);
}

void rstream_rx_over(struct rstream_rx *rx)
{
	if (rx->state == RSTREAM_ON_RING || rx->state == RSTREAM_LOST)
		rx_next(rx, RSTREAM_LEAVING);
	rx_next(rx, RSTREAM_ON_TCP);
	rx->recall = RSTREAM_KEPT;
}

enum rstream_reason rstream_rx_switch(struct rstream_rx *rx, u64 offset,
				      u32 epoch)
{
	if (!epoch)
		return rx_switch_back(rx, offset);
	if (rx->state != RSTREAM_GRANTED || epoch != rx->epoch || rx->fin)
		return RSTREAM_R_BAD_SWITCH;
	if (offset != rx->arrived)
		return RSTREAM_R_BAD_OFFSET;
	rx->base = offset;
	rx_next(rx, RSTREAM_ON_RING);
	return RSTREAM_R_NONE;
}

enum rstream_reason rstream_rx_landed(struct rstream_rx *rx, u64 landed)
{
	/* not counted before SWITCH has arrived, nor what comes after RESUME */
	if (rx->state != RSTREAM_ON_RING)
		return RSTREAM_R_NONE;
	if (rx->base + landed < rx->arrived ||
	    (rx->fin && rx->base + landed > rx->fin_at))
		return RSTREAM_R_BAD_OFFSET;
	if (rx->recall == RSTREAM_STOPPED && landed > rx->most)
		return RSTREAM_R_RING_OVERRUN;
	rx->arrived = rx->base + landed;
	return RSTREAM_R_NONE;
}

enum rstream_reason rstream_rx_fin(struct rstream_rx *rx, u64 offset)
{
	if (rx->fin || offset < rx->arrived ||
	    (!rstream_rx_on_ring(rx) && offset != rx->arrived))
		return RSTREAM_R_BAD_OFFSET;
	rx->fin_at = offset;
	smp_store_release(&rx->fin, true);	/* pairs with rstream_rx_fin_here() */
	return RSTREAM_R_NONE;
}

bool rstream_rx_revoke(struct rstream_rx *rx)
{
	if ((rx->state != RSTREAM_GRANTED && rx->state != RSTREAM_ON_RING) ||
	    rx->recall != RSTREAM_KEPT)
		return false;
	rx->recall = RSTREAM_REVOKED;
	return true;
}

enum rstream_reason rstream_rx_stopped(struct rstream_rx *rx, u32 epoch,
				       u64 most)
{
	/* it may have crossed RESUME */
	if (!rstream_rx_on_ring(rx) ||
	    rx->recall != RSTREAM_REVOKED || epoch != rx->epoch)
		return RSTREAM_R_BAD_SWITCH;
	rx->recall = RSTREAM_STOPPED;
	rx->most = most;
	return RSTREAM_R_NONE;
}

bool rstream_rx_lost(struct rstream_rx *rx, u64 landed)
{
	if (rx->state != RSTREAM_ON_RING)
		return false;
	rx_next(rx, RSTREAM_LOST);
	rx->count = landed;
	return true;
}

bool rstream_rx_eof(const struct rstream_rx *rx)
{
	return rstream_rx_fin_here(rx) && rx->consumed == rx->fin_at;
}

enum rstream_reason rstream_tx_ack(struct rstream_tx *tx, u64 consumed,
				   u64 limit)
{
	if (consumed > (tx->resume == RSTREAM_RESUMED ? tx->resume_at : tx->sent))
		return RSTREAM_R_BAD_CREDIT;
	if (limit < tx->limit)
		return RSTREAM_R_BAD_WINDOW;
	/* credits of a ring may have overtaken this ACK */
	tx->acked = max(tx->acked, consumed);
	tx->limit = limit;
	return RSTREAM_R_NONE;
}

enum rstream_reason rstream_tx_grant(struct rstream_tx *tx, u32 epoch)
{
	if (tx->state != RSTREAM_ON_TCP)
		return RSTREAM_R_BAD_GRANT;
	if (epoch != (tx->epoch + 1 ?: 1))
		return RSTREAM_R_BAD_GRANT;
	tx->epoch = epoch;
	tx->taken = false;
	tx->resume = RSTREAM_NOT_RESUMED;
	tx_next(tx, RSTREAM_GRANTED);
	return RSTREAM_R_NONE;
}

void rstream_tx_switch(struct rstream_tx *tx)
{
	tx_next(tx, RSTREAM_ON_RING);
	tx->taken = true;
	tx->base = tx->sent;
}

void rstream_tx_refuse(struct rstream_tx *tx)
{
	tx_next(tx, RSTREAM_ON_TCP);
}

void rstream_tx_credited(struct rstream_tx *tx, u64 acked)
{
	tx->acked = max(tx->acked, tx->base + acked);
}

enum rstream_reason rstream_tx_revoke(struct rstream_tx *tx, u32 epoch)
{
	if (!epoch || epoch != tx->epoch || tx->state == RSTREAM_LEAVING)
		return RSTREAM_R_BAD_SWITCH;
	if (tx->state == RSTREAM_ON_RING)
		tx_next(tx, RSTREAM_LEAVING);
	return RSTREAM_R_NONE;
}

bool rstream_tx_left(struct rstream_tx *tx, u64 acked)
{
	/* after RESUME, its count decides where to continue */
	if (tx->state != RSTREAM_LEAVING || tx->resume == RSTREAM_RESUMED ||
	    tx->base + acked != tx->sent)
		return false;
	tx_next(tx, RSTREAM_ON_TCP);
	return true;
}

bool rstream_tx_lost(struct rstream_tx *tx)
{
	if (tx->state != RSTREAM_ON_RING && tx->state != RSTREAM_LEAVING)
		return false;
	tx_next(tx, RSTREAM_LOST);
	return tx->resume != RSTREAM_RESUMED;
}

enum rstream_reason rstream_tx_resume(struct rstream_tx *tx, u32 epoch,
				      u64 count)
{
	if (!epoch || epoch != tx->epoch || tx->resume != RSTREAM_NOT_RESUMED)
		return RSTREAM_R_BAD_RESUME;
	/* our SWITCH to tcp has crossed it, or will follow: there is nothing to resend */
	if (tx->state == RSTREAM_ON_TCP || tx->state == RSTREAM_GRANTED) {
		if (count && !tx->taken)
			return RSTREAM_R_BAD_RESUME;
		tx->resume = RSTREAM_RESUME_OVER;
		return RSTREAM_R_NONE;
	}
	if (count > tx->sent - tx->base || tx->base + count < tx->acked)
		return RSTREAM_R_BAD_RESUME;
	tx->resume = RSTREAM_RESUMED;
	tx->resume_at = tx->base + count;
	return RSTREAM_R_NONE;
}

void rstream_tx_unanswered(struct rstream_tx *tx)
{
	tx->resume_at = tx->sent;
}

u64 rstream_tx_rewind(struct rstream_tx *tx)
{
	u64 again = tx->sent - tx->resume_at;

	tx->sent = tx->resume_at;
	if (tx->resume == RSTREAM_RESUMED)
		tx->resume = RSTREAM_RESUME_OVER;
	tx_next(tx, RSTREAM_ON_TCP);
	return again;
}

u64 rstream_tx_window(const struct rstream_tx *tx)
{
	if (tx->state >= RSTREAM_ON_RING || tx->limit <= tx->sent)
		return 0;
	return tx->limit - tx->sent;
}
