// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics of a socket: bytes on TCP, the last switch of each direction, what its sender waits
 * for, and latency histograms.
 *
 * A leaf: called where things happen; decides nothing but when to ask the peer for a sample, and
 * calls only counters and events.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "base/events.h"
#include "base/stats.h"
#include "stream.h"

/* ---- bytes ---- */

void rstream_count_tcp_tx(struct rstream *rs, size_t n)
{
	rs->stats.tx.tcp_bytes += n;
	rs->stats.tx.tcp_msgs++;
	rstream_mib_add(rs->rn, RSTREAM_MIB_TCP_TX_BYTES, n);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_TCP_TX_MSGS);
}

void rstream_count_tcp_rx(struct rstream *rs, size_t n)
{
	rs->stats.rx.tcp_bytes += n;
	rs->stats.rx.tcp_msgs++;
	rstream_mib_add(rs->rn, RSTREAM_MIB_TCP_RX_BYTES, n);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_TCP_RX_MSGS);
}

/* ---- switches ---- */

void rstream_switched(struct rstream *rs, enum rstream_dir dir,
		      enum rstream_carrier_info to, u64 offset,
		      enum rstream_reason reason)
{
	bool tx = dir == RSTREAM_DIR_TX;
	struct rstream_switched *sw = tx ? &rs->stats.tx.switched : &rs->stats.rx.switched;
	const struct rstream_switch_event ev = {
		.sk = rs->sk,
		.peer = rs->hello.name.instance,
		.dir = dir,
		.to = to,
		.epoch = tx ? rs->tx.epoch : rs->rx.epoch,
		.link = tx ? rs->taken.link : rs->granted.link,
		.offset = offset,
		.reason = reason,
	};

	rstream_assert_held(rs);
	sw->to = to;
	sw->reason = reason;
	WRITE_ONCE(sw->at, jiffies);
	WRITE_ONCE(sw->count, sw->count + 1);
	rstream_mib_inc(rs->rn, tx ? RSTREAM_MIB_SWITCHES_TX :
				     RSTREAM_MIB_SWITCHES_RX);
	rstream_mib_switched(rs->rn, reason);
	rstream_event_switch(&ev);
}

/* ---- stalls ---- */

static void stall_ends(struct rstream *rs, u64 now)
{
	struct rstream_stalls *stalls = &rs->stats.stalls;
	unsigned int i = stalls->why - RSTREAM_R_STALL_WINDOW;
	u64 ns = now - stalls->since;
	u64 us = div_u64(ns, NSEC_PER_USEC);

	WRITE_ONCE(stalls->ns[i], stalls->ns[i] + ns);
	rstream_mib_add(rs->rn, RSTREAM_MIB_STALL_WINDOW_US + i, us);
	rstream_event_stall(rs->sk, us, stalls->why);
}

void rstream_stalled(struct rstream *rs, enum rstream_reason why)
{
	struct rstream_stalls *stalls = &rs->stats.stalls;
	u64 now = ktime_get_ns();

	if (stalls->why)
		stall_ends(rs, now);
	WRITE_ONCE(stalls->since, now);
	WRITE_ONCE(stalls->why, why);
	if (why)
		stalls->count[why - RSTREAM_R_STALL_WINDOW]++;
}

/* ---- histograms ---- */

/*
 * While the setting "histograms" is on: the time from send until the peer's program has consumed
 * the bytes (on rings), and from arrival until our program reads them.  These are samples: in
 * each direction, one stretch of bytes is timed at a time, and when sending, at most one in ten
 * milliseconds, because it asks the peer for an interrupt.  If the setting is off, this only
 * costs reading it.
 */
#define SAMPLE_EVERY	(10 * NSEC_PER_MSEC)
#define BEING_NOTED	U64_MAX		/* in timed.end: no reader ever reaches this */

/* Bucket 0: less than a microsecond; n: less than 2^n; the last one: anything longer. */
static void hist_add(u32 *buckets, u64 ns)
{
	u64 us = div_u64(ns, NSEC_PER_USEC);
	unsigned int n = us ? ilog2(us) + 1 : 0;

	buckets[min(n, RSTREAM_HIST_BUCKETS - 1U)]++;
}

static struct rstream_hist *hist_of(struct rstream *rs)
{
	struct rstream_hist *hist = rs->hist;
	struct mem_cgroup *old;

	if (hist)
		return hist;
	old = set_active_memcg(rs->sk->sk_memcg);
	hist = kzalloc(sizeof(*hist), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	set_active_memcg(old);
	if (!hist)
		return NULL;
	/* pairs with rstream_hist_arrived() and hist_info(): it is zeroed */
	smp_store_release(&rs->hist, hist);
	return hist;
}

void rstream_hist_acked(struct rstream *rs)
{
	struct rstream_hist *hist = rs->hist;

	if (!hist->sent.end || rs->tx.acked < hist->sent.end)
		return;
	hist_add(hist->tx, ktime_get_ns() - hist->sent.at);
	hist->sent.end = 0;
}

bool rstream_hist_sent(struct rstream *rs)
{
	struct rstream_hist *hist;
	u64 now;

	hist = hist_of(rs);
	if (!hist || hist->sent.end ||
	    rs->tx.state != RSTREAM_ON_RING || !rs->txring ||
	    rs->tx.sent != rs->tx.written || rs->tx.acked >= rs->tx.sent)
		return false;
	now = ktime_get_ns();
	if (now - hist->sent.at < SAMPLE_EVERY)
		return false;
	hist->sent.at = now;
	hist->sent.end = rs->tx.sent;
	return true;
}

void rstream_hist_arrived(struct rstream *rs, u64 end)
{
	/* pairs with hist_of() */
	struct rstream_hist *hist = smp_load_acquire(&rs->hist);

	if (!rstream_hist_on(rs) || READ_ONCE(hist->came.end))
		return;
	if (cmpxchg(&hist->came.end, 0, BEING_NOTED))
		return;
	hist->came.at = ktime_get_ns();
	/* pairs with rstream_hist_read(), which reads the time */
	smp_store_release(&hist->came.end, end);
}

void rstream_hist_read(struct rstream *rs)
{
	struct rstream_hist *hist = rs->hist;
	u64 end;

	if (!hist) {
		hist_of(rs);
		return;
	}
	/* pairs with rstream_hist_arrived() */
	end = smp_load_acquire(&hist->came.end);
	if (!end || rs->rx.consumed < end)
		return;
	hist_add(hist->rx, ktime_get_ns() - hist->came.at);
	/* pairs with cmpxchg(), after which the time is overwritten */
	smp_store_release(&hist->came.end, 0);
}
