// SPDX-License-Identifier: GPL-2.0-only
/*
 * Histograms of a socket's times, while the setting "histograms" is on: from send
 * until the peer's program has consumed it (on rings), and from arrival until our
 * program reads it.
 *
 * Samples, not every message: of each kind one stretch of bytes is timed at a time,
 * and of what is sent not more than one in ten milliseconds, because the peer is
 * asked to answer with an interrupt.  Called where bytes are sent, arrive and are
 * consumed.  Without the setting it is a look at a word.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "stream.h"

#define SAMPLE_EVERY	(10 * NSEC_PER_MSEC)
#define BEING_NOTED	U64_MAX		/* of timed.end: no consumer gets there */

static bool hist_on(const struct rstream *rs)
{
	return READ_ONCE(rs->rn->set.histograms);
}

/* Bucket 0: below a microsecond, n: below 2^n, the last one: all that is longer. */
static void hist_add(u32 *buckets, u64 ns)
{
	u64 us = div_u64(ns, NSEC_PER_USEC);
	unsigned int n = us ? ilog2(us) + 1 : 0;

	buckets[min(n, RSTREAM_HIST_BUCKETS - 1U)]++;
}

static struct rstream_hist *hist_of(struct rstream *rs)
{
	struct rstream_hist *hist = rs->hist;

	if (hist)
		return hist;
	hist = kzalloc(sizeof(*hist), GFP_ATOMIC | __GFP_NOWARN);
	if (!hist)
		return NULL;
	/* pairs with rstream_hist_arrived() and hist_info(): it is zeroed */
	smp_store_release(&rs->hist, hist);
	return hist;
}

static void hist_consumed(struct rstream *rs, struct rstream_hist *hist)
{
	if (!hist->sent.end)
		return;
	rstream_tx_reap(rs);	/* reads the credit */
	if (rs->tx.acked < hist->sent.end)
		return;
	hist_add(hist->tx, ktime_get_ns() - hist->sent.at);
	hist->sent.end = 0;
}

void rstream_hist_sent(struct rstream *rs)
{
	struct rstream_hist *hist;
	u64 now;

	if (!rs->hist && !hist_on(rs))
		return;
	hist = hist_of(rs);
	if (!hist)
		return;
	hist_consumed(rs, hist);
	if (hist->sent.end || !hist_on(rs) ||
	    rs->tx.state != RSTREAM_ON_RING || !rs->txring ||
	    rs->tx.sent != rs->tx.written || rs->tx.acked >= rs->tx.sent)
		return;
	now = ktime_get_ns();
	if (now - hist->sent.at < SAMPLE_EVERY)
		return;
	hist->sent.at = now;
	hist->sent.end = rs->tx.sent;
	rstream_tx_waits(rs);
}

void rstream_hist_arrived(struct rstream *rs, u64 end)
{
	/* pairs with hist_of() */
	struct rstream_hist *hist = smp_load_acquire(&rs->hist);

	if (!hist || !hist_on(rs) || READ_ONCE(hist->came.end))
		return;
	if (cmpxchg(&hist->came.end, 0, BEING_NOTED))
		return;
	hist->came.at = ktime_get_ns();
	/* pairs with rstream_hist_read(): the time is there */
	smp_store_release(&hist->came.end, end);
}

void rstream_hist_read(struct rstream *rs)
{
	struct rstream_hist *hist = rs->hist;
	u64 end;

	if (!hist) {
		if (hist_on(rs))
			hist_of(rs);
		return;
	}
	hist_consumed(rs, hist);
	/* pairs with rstream_hist_arrived() */
	end = smp_load_acquire(&hist->came.end);
	if (!end || rs->rx.consumed < end)
		return;
	hist_add(hist->rx, ktime_get_ns() - hist->came.at);
	/* pairs with cmpxchg(): the time has been read */
	smp_store_release(&hist->came.end, 0);
}
