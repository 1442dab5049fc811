// SPDX-License-Identifier: GPL-2.0-only
/*
 * Probes: is the peer still there?
 *
 * TCP notices that a peer is gone by what it sends: data or window probes are acknowledged,
 * answered with a reset, or time out.  But while a stream waits for the window of an ACK record, or
 * for a ring to be read, TCP has nothing to send.  So we repeat our own ACK as a probe, which TCP
 * has to deliver.
 *
 * Socket held; never sleeps.
 */
#include <net/tcp.h>

#include "stream.h"

/* From one probe to the next: doubled each time, as with TCP; ms. */
#define PROBE_MIN_MS	1000U
#define PROBE_MAX_MS	120000U

/*
 * Is something in a ring that the peer has not credited?  Its host places bytes even if its
 * socket is gone.  One probe after the last byte is enough, unless we wait to close.
 */
static bool is_uncredited(const struct rstream *rs)
{
	return (rs->tx.state == RSTREAM_ON_RING || rs->tx.state == RSTREAM_LEAVING) &&
	       rs->txring && rs->txring->acked != rs->txring->written &&
	       (rs->probe.sent != rs->tx.sent || rstream_closed(rs));
}

/* A number that grows with each sign of the peer.  @acked: credit of the ring, or an error */
static u64 sign(const struct rstream *rs, s64 acked)
{
	return tcp_sk(rs->sk)->bytes_received + READ_ONCE(rs->granted.landed) + max(acked, 0LL);
}

static void next_in(struct rstream_probe *probe, u32 ms)
{
	probe->ms = ms;
	probe->at = jiffies + msecs_to_jiffies(ms);
}

/* The wait began long ago: send a probe if there was no sign meanwhile. */
void rstream_probe_due(struct rstream *rs)
{
	struct rstream_probe *probe = &rs->probe;
	s64 acked = 0;

	if (!probe->ms || time_before(jiffies, probe->at))
		return;
	if (rs->txring)
		acked = rstream_txring_acked(rs->txring);
	if (sign(rs, acked) != probe->sign) {
		probe->ms = 0;
		return;
	}
	set_bit(RSTREAM_WANT_ACK, &rs->want);
	probe->sent = rs->tx.sent;
	next_in(probe, min(2 * probe->ms, PROBE_MAX_MS));
}

/* TCP_USER_TIMEOUT limits how long a peer may have no room, even if it answers all probes. */
static void look_held(struct rstream *rs)
{
	unsigned long end, ms = READ_ONCE(inet_csk(rs->sk)->icsk_user_timeout);
	struct rstream_probe *probe = &rs->probe;

	if (probe->held != rs->tx.sent + 1) {
		probe->held = rs->tx.sent + 1;
		probe->held_at = jiffies;
	}
	if (!ms)
		return;
	end = probe->held_at + msecs_to_jiffies(ms);
	if (time_before(jiffies, end))
		rstream_retry_by(rs, end);
	else
		rstream_fail(rs, RSTREAM_R_NONE, ETIMEDOUT);
}

/* The wait begins, unless all has been credited since the last post. */
static void begin(struct rstream *rs, bool held)
{
	struct rstream_probe *probe = &rs->probe;
	s64 acked = 0;

	if (rs->txring)
		acked = rstream_txring_acked(rs->txring);
	if (!held && acked == (s64)rs->txring->written)
		return;
	next_in(probe, PROBE_MIN_MS);
	probe->sign = sign(rs, acked);
}

/*
 * Does what was sent, or waits to be sent, still wait for the peer?
 * @held: the peer has no room for what the program has written
 */
void rstream_probe_later(struct rstream *rs, bool held)
{
	struct rstream_probe *probe = &rs->probe;

	if (held)
		look_held(rs);
	else
		probe->held = 0;
	if (!held && !is_uncredited(rs))
		probe->ms = 0;
	else if (!probe->ms)
		begin(rs, held);
	if (probe->ms)
		rstream_retry_by(rs, probe->at);
}
