// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring carrier: granting rings and taking up grants, moving bytes into and out of rings,
 * callbacks of the link.
 *
 * Sits between the streams and link.h.  Functions are called with the socket held unless they
 * say otherwise.  The callbacks at the end run in softirq or a worker, under link->lock or
 * peer->lock, and only take notes and queue work.
 */
#include <linux/err.h>
#include <net/proto_memory.h>
#include <net/tcp.h>
#include <net/ipv6.h>

#include "base/stats.h"
#include "base/trace.h"
#include "ipsec.h"
#include "stream.h"

/* ---- requesting a link ---- */

#define ASK_AGAIN	(30 * HZ)

static void put_addr(const struct sock *sk, bool remote, u16 port,
		     struct sockaddr_storage *ss)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (sk->sk_family == AF_INET || ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		sin->sin_addr.s_addr = remote ? inet->inet_daddr :
						inet->inet_saddr;
		return;
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	sin6->sin6_addr = remote ? sk->sk_v6_daddr : inet6_sk(sk)->saddr;
	if (ipv6_addr_type(&sin6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		sin6->sin6_scope_id = rstream_link_local_dev(sk);
}

static void fill_route(struct rstream *rs, struct rstream_peer_route *route)
{
	route->ticket = rs->ticket;
	put_addr(rs->sk, false, 0, &route->local);
	put_addr(rs->sk, true, rs->hello.cm_port, &route->remote);
}

static void want_link(struct rstream *rs)
{
	struct rstream_peer_route route;

	fill_route(rs, &route);
	rstream_peer_want_link(rs->hello.peer, &route, rs);
}

void rstream_ring_want_more_links(struct rstream *rs)
{
	struct rstream_peer_route route;

	if (!rs->hello.peer || rs->error || rstream_closing(rs) || rs->sk->sk_state == TCP_CLOSE)
		return;
	fill_route(rs, &route);
	rstream_peer_want_more(rs->hello.peer, &route);
}

/* Request a link.  Only the active side makes links; the passive side asks it by LINK. */
static void ask_link(struct rstream *rs)
{
	want_link(rs);
	if (!rstream_peer_active(rs->hello.peer) && !rs->granted.link_asked) {
		WRITE_ONCE(rs->granted.link_asked, jiffies | 1);
		set_bit(RSTREAM_WANT_LINK, &rs->want);
	}
}

/*
 * LINK has no answer, and may have arrived while the peer had a link whose end we had seen already.
 * So a stream with bytes to carry asks again after a while.
 */
static bool ask_overdue(const struct rstream *rs)
{
	unsigned long asked = READ_ONCE(rs->granted.link_asked);

	return asked && time_after(jiffies, asked + ASK_AGAIN);
}

void rstream_ring_link_asked(struct rstream *rs)
{
	if (!rs->hello.peer || !rstream_peer_active(rs->hello.peer))
		return;
	want_link(rs);
	rstream_peer_asks(rs->hello.peer);
}

/* ---- proofs ---- */

/*
 * Proof that @rec, a GRANT or SWITCH that we send (@ours) or have received, comes from the right
 * end of @link and was made for this connection, whose tokens nobody else has.
 */
static u64 record_proof(const struct rstream *rs, struct rstream_link *link,
			bool ours, const struct rstream_record *rec)
{
	struct {
		__be64 from, to;
		u8 rec[RSTREAM_RECORD_MAX];
	} what;
	size_t len;

	what.from = cpu_to_be64(ours ? rs->ticket.ours.token :
				  rs->ticket.theirs.token);
	what.to = cpu_to_be64(ours ? rs->ticket.theirs.token :
				rs->ticket.ours.token);
	len = rstream_record_write(what.rec, rec) - sizeof(__be64);
	return rstream_cm_proof(link, ours, &what,
				offsetof(typeof(what), rec) + len);
}

u64 rstream_ring_switch_proof(const struct rstream *rs,
			      const struct rstream_record *rec)
{
	return record_proof(rs, rs->txring->link, true, rec);
}

/* ---- receiving end ---- */

/* A stream whose ring was idle is busy after this many DATA records, or one of this many bytes. */
#define BUSY_MSGS	4
#define BUSY_BYTES	SZ_16K
/* First pause after a refused grant, ms. */
#define REFUSED_MS	100
#define REFUSED_MAX	8	/* doublings */

/* Why this stream may not grant a ring, not considering links and IPsec; NONE: it may. */
static enum rstream_reason grant_policy(const struct rstream *rs)
{
	const struct rstream_net *rn = rs->rn;

	if (!rs->hello.peer)
		return rs->hello.no_peer ?: RSTREAM_R_NO_DEVICE;
	if (rstream_link_drained(rn->net))
		return RSTREAM_R_DRAINED;
	if (rn->set.ring_mode == RSTREAM_RING_OFF)
		return RSTREAM_R_RING_OFF;
	if (!rn->set.loopback &&
	    !memcmp(rs->hello.name.instance, rn->instance, RSTREAM_INSTANCE_LEN))
		return RSTREAM_R_LOOPBACK;
	if (rn->set.ring_mode == RSTREAM_RING_THRESHOLD &&
	    rs->rx.arrived < rn->set.ring_threshold &&
	    rs->tx.sent < rn->set.ring_threshold)
		return RSTREAM_R_WAIT_BYTES;
	return RSTREAM_R_NONE;
}

/* A grant was impossible or refused: try again, after pauses that grow. */
void rstream_ring_grant_later(struct rstream *rs)
{
	rstream_timer_soon(rs, REFUSED_MS << rs->granted.refused);
	if (rs->granted.refused < REFUSED_MAX)
		rs->granted.refused++;
}

/* Maximum size of this stream's rings: ring_size, or what the program's SO_RCVBUF allows. */
static u32 ring_most(const struct rstream *rs)
{
	const struct rstream_net *rn = rs->rn;

	if (rs->sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		return rounddown_pow_of_two(min_t(u64, rstream_rxq_window_most(rs), SZ_4M));
	return READ_ONCE(rn->set.ring_size);
}

/* Size of its next ring. */
static u32 ring_size(const struct rstream *rs)
{
	return max(rstream_growth_size(&rs->granted.growth, ring_most(rs)), RSTREAM_RING_MIN);
}

static enum rstream_reason grant_ring(struct rstream *rs,
				      struct rstream_link *link)
{
	u32 size = ring_size(rs);
	struct rstream_rxring *ring;

	/* the memory is the link's, but the socket that uses it pays */
	if (!rstream_rxq_charge(rs, size)) {
		rs->granted.growth.next = 0;
		rstream_ring_grant_later(rs);
		return RSTREAM_R_NO_MEMORY;
	}
	ring = rstream_rxring_alloc(link, size, rs);
	if (IS_ERR(ring)) {
		sk_mem_reclaim(rs->sk);
		if (PTR_ERR(ring) == -ENOMEM) {
			rs->granted.growth.next = 0;
			rstream_ring_grant_later(rs);
			return RSTREAM_R_RMB_LIMIT;
		}
		/* after -EAGAIN, the link tells us when it has more memory */
		if (PTR_ERR(ring) != -EAGAIN)
			ask_link(rs);
		return RSTREAM_R_WAIT_LINK;
	}
	rs->granted.credited = 0;
	rs->granted.moved = 0;
	rstream_growth_granted(&rs->granted.growth);
	rs->granted.end_credited = false;
	rs->granted.link = rstream_link_id(link);
	rs->granted.size = ring->size;
	rs->granted.rec = (struct rstream_record) {
		.type = RSW_GRANT,
		.grant.epoch = rstream_rx_grant(&rs->rx),
		.grant.link = rstream_link_peer_id(link),
		.grant.ring = ring->id,
		.grant.rkey = ring->rkey,
		.grant.addr = ring->raddr,
		.grant.size = ring->size,
	};
	rs->granted.rec.grant.proof = record_proof(rs, link, true, &rs->granted.rec);
	sk_mem_charge(rs->sk, ring->size);
	/* after rx.state, or a lockless poll() might take it for readable */
	smp_store_release(&rs->rxring, ring);
	set_bit(RSTREAM_WANT_GRANT, &rs->want);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_GRANTS_TX);
	trace_rstream_grant(rs->sk, RSTREAM_DIR_RX, rs->rx.epoch,
			    rs->rx.arrived, RSTREAM_R_NONE);
	return RSTREAM_R_NONE;
}

/*
 * Note why we have not granted a ring; NONE: nothing prevents it.  Counted only when it changes.
 * Any context.
 */
void rstream_ring_impossible(struct rstream *rs, enum rstream_reason why)
{
	if (xchg(&rs->reason, why) == why || !why)
		return;
	rstream_mib_reason(rs->rn, why);
	trace_rstream_no_ring(rs->sk, 0, why);
}

void rstream_ring_grant_try(struct rstream *rs)
{
	enum rstream_reason reason;
	struct rstream_link *link;

	/* before accept(), there is nobody to charge for it */
	if (rs->mode != RSTREAM_FRAMED || !rs->hello.in || !rs->accepted || rstream_closing(rs) ||
	    rs->error || rs->rx.fin || rs->rxring ||
	    rs->rx.state != RSTREAM_ON_TCP ||
	    rs->reason == RSTREAM_R_RING_IDLE ||
	    rs->sk->sk_shutdown)
		return;
	if (in_softirq()) {
		rstream_queue(rs, RSTREAM_DO_GRANT);
		return;
	}
	/* otherwise, unread bytes of earlier rings would pile up without limit */
	rs->granted.full = rs->rxq.bytes > rs->rxq.window;
	if (rs->granted.full)
		return;
	reason = grant_policy(rs) ?: rstream_ipsec(rs);
	if (reason == RSTREAM_R_WAIT_LINK) {
		rstream_ring_grant_later(rs);
	} else if (!reason) {
		link = rstream_peer_link(rs->hello.peer, ring_size(rs));
		if (link && rstream_tx_plain(rs)) {
			/* no GRANT without records: wait for the end of the span */
			rs->plain.ring = true;
			reason = RSTREAM_R_WAIT_LINK;
			rstream_link_put(link);
		} else if (link) {
			reason = grant_ring(rs, link);
			rstream_link_put(link);
		} else {
			ask_link(rs);
			/* the result of the last attempt explains it */
			reason = rs->reason == RSTREAM_R_LINK_FAILED ||
				 rs->reason == RSTREAM_R_PEER_DRAINED ?
				 rs->reason : RSTREAM_R_WAIT_LINK;
		}
	}
	rstream_ring_impossible(rs, reason);
}

/* Request a link, even if the stream does not want a ring yet. */
void rstream_ring_try_link(struct rstream *rs)
{
	enum rstream_reason reason = grant_policy(rs);

	if (rs->hello.in && !rstream_closing(rs) && !rs->error &&
	    (!reason || reason == RSTREAM_R_WAIT_BYTES))
		ask_link(rs);
}

/* Bytes have moved on tcp: is it time for a ring? */
void rstream_ring_grant_look(struct rstream *rs)
{
	const struct rstream_net *rn = rs->rn;

	switch (rs->reason) {
	case RSTREAM_R_WAIT_BYTES:
		if (rs->rx.arrived < rn->set.ring_threshold &&
		    rs->tx.sent < rn->set.ring_threshold)
			return;
		break;
	case RSTREAM_R_RING_IDLE:
		if (rs->leave.idle_msgs < BUSY_MSGS && rs->in.data_left < BUSY_BYTES)
			return;
		break;
	case RSTREAM_R_WAIT_LINK:
		if (!ask_overdue(rs))
			return;
		WRITE_ONCE(rs->granted.link_asked, 0);
		break;
	default:
		return;
	}
	rstream_ring_impossible(rs, RSTREAM_R_NONE);
	rstream_queue(rs, RSTREAM_DO_GRANT);
}

/* How much of the ring the program has consumed. */
static u64 ring_consumed(const struct rstream *rs)
{
	return rs->rx.consumed > rs->rx.base ? rs->rx.consumed - rs->rx.base : 0;
}

/* Replace this ring by one of @next bytes.  Return: false if the socket cannot pay for it. */
static bool ring_replace(struct rstream *rs, u32 next)
{
	if (!rstream_rxq_charge(rs, next))
		return false;
	sk_mem_reclaim(rs->sk);		/* grant_ring() charges it for good */
	rs->granted.growth.next = next;
	rstream_leave_revoke(rs, RSTREAM_R_NONE);
	return true;
}

/* If another link to the peer has fewer rings, move ours there. */
void rstream_ring_relocate(struct rstream *rs)
{
	const struct rstream_rxring *ring = rs->rxring;

	if (!ring || rs->rx.state != RSTREAM_ON_RING || rs->rx.recall != RSTREAM_KEPT ||
	    rs->rx.fin || rstream_closing(rs) ||
	    !rstream_peer_has_better_link(rs->hello.peer, ring))
		return;
	if (ring_replace(rs, ring->size))
		rstream_mib_inc(rs->rn, RSTREAM_MIB_RINGS_MOVED);
}

/* The link has not seen any data in our ring for a long time. */
void rstream_ring_idle(struct rstream *rs)
{
	if (!rs->rxring || rstream_leave_over(rs) || rs->rx.arrived != rs->rx.consumed)
		return;
	rs->granted.growth.next = 0;
	rstream_leave_revoke(rs, RSTREAM_R_RING_IDLE);
}

enum rstream_reason rstream_ring_switch_got(struct rstream *rs,
					    const struct rstream_record *rec)
{
	enum rstream_reason reason;

	if (!rs->rxring ||
	    rec->sw.proof != record_proof(rs, rs->rxring->link, false, rec))
		return RSTREAM_R_BAD_SWITCH;
	reason = rstream_rx_switch(&rs->rx, rec->sw.offset, rec->sw.epoch);
	if (reason)
		return reason;
	rs->granted.refused = 0;
	rstream_plain_span_reset(rs);
	rstream_rxring_switched(rs->rxring, rec->sw.cell_addr,
				rec->sw.cell_rkey, rec->sw.ring);
	rstream_switched(rs, RSTREAM_DIR_RX, RSTREAM_INFO_CARRIER_RING,
			 rec->sw.offset, RSTREAM_R_RING_GRANTED);
	rstream_ring_landed(rs);
	if (rstream_closing(rs) && rs->rx.arrived > rs->rx.consumed)
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
	rstream_leave_check(rs);	/* its link may have been lost meanwhile */
	rstream_rxq_wake(rs);
	return RSTREAM_R_NONE;
}

/* Count what has landed in the ring, unless it is still ahead of its SWITCH. */
void rstream_ring_landed(struct rstream *rs)
{
	enum rstream_reason reason;
	u64 landed;

	if (!rs->rxring || rs->rx.state != RSTREAM_ON_RING)
		return;
	/* pairs with rstream_rxring_data(): the bytes are in memory */
	landed = smp_load_acquire(&rs->rxring->landed);
	reason = rstream_rx_landed(&rs->rx, landed);
	if (reason)
		rstream_fail(rs, reason, ECONNRESET);
	rstream_growth_landed(&rs->granted.growth, landed - ring_consumed(rs), rs->rxring->size);
}

/* The program has read all that was in the ring. */
static void ring_emptied(struct rstream *rs)
{
	struct rstream_growth *growth = &rs->granted.growth;
	u64 now = jiffies64_to_msecs(get_jiffies_64());
	u32 next;

	next = rstream_growth_emptied(growth, rs->rxring->size, ring_most(rs), now);
	if (next)
		next = rstream_rxring_larger(rs->rxring, next);
	if (next && !ring_replace(rs, next))
		rstream_growth_failed(growth, now);
}

/* ---- credit ---- */

/* Send a credit that interrupts, to a sender that waits. */
static void credit_now(struct rstream *rs, u64 until)
{
	WRITE_ONCE(rs->rxring->want_credit, false);
	rstream_rxring_credit(rs->rxring, until, true);
	rs->granted.credited = until;
}

/*
 * Credit a sender that writes no more, or that was told to stop.  After FIN or STOPPED everything
 * is credited, read or not, so that the sender need not keep it any longer.  Between REVOKE and
 * STOPPED, what the program has read is credited at once.
 */
static void credit_all(struct rstream *rs)
{
	struct rstream_rxring *ring = rs->rxring;
	bool ended = rstream_rxq_ring_ended(rs) || rs->rx.recall == RSTREAM_STOPPED;
	u64 until = ended ? rs->rx.arrived - rs->rx.base : ring_consumed(rs);

	if (until > rs->granted.credited || !rs->granted.end_credited ||
	    READ_ONCE(ring->want_credit)) {
		credit_now(rs, until);
		rs->granted.end_credited = true;
	}
}

/*
 * Credit whenever another quarter of the ring has been consumed, silently unless the sender
 * waits.  A sender that waits also gets a credit when the ring is empty.
 */
static void credit(struct rstream *rs)
{
	struct rstream_rxring *ring = rs->rxring;
	u64 consumed = ring_consumed(rs), news;
	bool waits;

	rstream_ring_landed(rs);
	if (rs->rx.recall == RSTREAM_STOPPED && !rstream_leave_move(rs)) {
		rstream_retry(rs, RSTREAM_RETRY_MS);
		return;
	}
	if (rs->rx.recall != RSTREAM_KEPT || rstream_rxq_ring_ended(rs)) {
		credit_all(rs);
		return;
	}
	news = consumed - rs->granted.credited;
	/* rx.consumed is written before want_credit is read; ring_data() does the opposite */
	smp_mb();
	waits = READ_ONCE(ring->want_credit);
	if (waits && (news >= ring->size / 4 ||
		      /* a slow reader, as in rstream_recv_ack() */
		      (news && tcp_jiffies32 - READ_ONCE(rs->rxq.at) >= 10 * HZ) ||
		      /* pairs with rstream_rxring_data() */
		      consumed == smp_load_acquire(&ring->landed))) {
		credit_now(rs, consumed);
	} else if (news >= ring->size / 4) {
		rstream_rxring_credit(ring, consumed, false);
		rs->granted.credited = consumed;
	}
	/* pairs with rstream_rxring_data() */
	if (rs->granted.growth.filled && consumed == smp_load_acquire(&ring->landed))
		ring_emptied(rs);
}

/* The program has read @len bytes of the ring. */
void rstream_ring_read(struct rstream *rs, size_t len)
{
	rs->stats.rx.ring_bytes += len;
	/* a sender that has left the ring, or lost it, needs no credit */
	if (rs->rx.state == RSTREAM_ON_RING)
		credit(rs);
}

#define LOOK_AGAIN_MS	100

/*
 * The program has looked at all that is here, by MSG_PEEK or SIOCINQ, and has not read it.  If it
 * @waits for more, looks again, or does nothing else for a while, it may need more than fits in the
 * ring: then grant a larger one, or let more come by TCP, but not more than TCP would allow.
 */
void rstream_ring_looked(struct rstream *rs, bool waits)
{
	struct rstream_rxring *ring = rs->rxring;
	u64 unread, most;
	u32 next;

	rstream_ring_landed(rs);
	if (!ring || rs->rx.state != RSTREAM_ON_RING || rs->rx.recall != RSTREAM_KEPT)
		return;
	/* a sender waits if there is less space than a quarter of the ring, or even less */
	if (READ_ONCE(ring->landed) - rs->granted.credited <= ring->size - ring->size / 4)
		return;
	unread = rs->rx.arrived - rs->rx.consumed;
	most = rstream_rxq_window(rs);
	if (unread >= most)
		return;
	if (!waits && rs->granted.looked != rs->rx.consumed + 1) {
		rs->granted.looked = rs->rx.consumed + 1;
		rstream_timer_soon(rs, LOOK_AGAIN_MS);
		return;
	}
	next = rstream_growth_larger(ring->size, ring_most(rs));
	next = next > ring->size ? rstream_rxring_larger(ring, next) : 0;
	if ((!next || !ring_replace(rs, next)) && most - unread >= ring->size / 4)
		rstream_leave_revoke(rs, RSTREAM_R_NONE);
}

/* The timer has expired. */
void rstream_ring_look_again(struct rstream *rs)
{
	if (rs->granted.looked == rs->rx.consumed + 1)
		rstream_ring_looked(rs, true);
}

/* Credit a sender that waits, or has sent FIN or STOPPED, although no read does it now. */
void rstream_ring_answer(struct rstream *rs)
{
	smp_mb();	/* pairs with ring_data(): it sees FIN and STOPPED, or we see its bytes */
	if (rs->rxring && rs->rx.state == RSTREAM_ON_RING)
		credit(rs);
}

/* ---- sending end ---- */

/* The link that a GRANT names, if the GRANT comes from its other end. */
static struct rstream_link *grant_link(struct rstream *rs,
				       const struct rstream_record *rec)
{
	struct rstream_link *link;

	if (!rs->hello.peer)
		return NULL;
	link = rstream_link_find(sock_net(rs->sk), rs->hello.peer, rec->grant.link);
	if (!link)
		return NULL;
	if (rec->grant.proof != record_proof(rs, link, false, rec)) {
		rstream_link_put(link);
		return NULL;
	}
	rstream_link_proven(link);
	return link;
}

enum rstream_reason rstream_ring_grant_got(struct rstream *rs,
					   const struct rstream_record *rec)
{
	struct rstream_txring *ring;
	enum rstream_reason reason;
	struct rstream_link *link;

	/* the peer may not grant again before our SWITCH to tcp, which is still to be sent */
	if (test_bit(RSTREAM_WANT_SWITCH, &rs->want))
		return RSTREAM_R_BAD_GRANT;
	reason = rstream_tx_grant(&rs->tx, rec->grant.epoch);
	if (reason)
		return reason;
	rstream_mib_inc(rs->rn, RSTREAM_MIB_GRANTS_RX);
	trace_rstream_grant(rs->sk, RSTREAM_DIR_TX, rec->grant.epoch,
			    rs->tx.sent, RSTREAM_R_NONE);
	if (!rstream_txring_valid(rec->grant.ring, rec->grant.addr, rec->grant.size))
		return RSTREAM_R_BAD_GRANT;
	link = grant_link(rs, rec);
	if (!link) {
		rstream_leave_refuse(rs, RSTREAM_R_LINK_LOST);
		return RSTREAM_R_NONE;
	}
	reason = rstream_ipsec(rs);
	if (reason) {
		rstream_txring_refuse(link, rec->grant.ring);
		rstream_link_put(link);
		rstream_leave_refuse(rs, reason);
		return RSTREAM_R_NONE;
	}
	ring = rstream_txring_open(link, rec->grant.ring, rec->grant.rkey,
				   rec->grant.addr, rec->grant.size, rs);
	if (IS_ERR(ring) && PTR_ERR(ring) != -EINVAL)
		rstream_txring_refuse(link, rec->grant.ring);
	rstream_link_put(link);
	if (PTR_ERR_OR_ZERO(ring) == -EINVAL)
		return RSTREAM_R_BAD_GRANT;
	if (IS_ERR(ring)) {
		rstream_leave_refuse(rs, PTR_ERR(ring) == -ENOTCONN ?
				     RSTREAM_R_LINK_LOST : RSTREAM_R_NO_MEMORY);
		return RSTREAM_R_NONE;
	}
	rs->txring = ring;
	if (rs->tx.fin || rstream_closed(rs) || test_bit(RSTREAM_WANT_FIN, &rs->want)) {
		rstream_leave_refuse(rs, RSTREAM_R_NONE);	/* we need no ring any more */
		return RSTREAM_R_NONE;
	}
	rs->taken.link = rstream_link_id(ring->link);
	rs->taken.size = ring->size;
	set_bit(RSTREAM_WANT_SWITCH, &rs->want);
	return RSTREAM_R_NONE;
}

/* Free frags that nobody needs any more.  Return: bytes freed. */
size_t rstream_ring_reap(struct rstream *rs)
{
	size_t freed, cost;
	s64 acked;

	/* after RESUME, its count decides what is kept */
	if (!rs->txring || rs->tx.resume == RSTREAM_RESUMED)
		return 0;
	freed = rstream_txring_reap(rs->txring, &acked,
				    rstream_zerocopy_waits(rs), &cost);
	if (acked > 0) {	/* the SWITCH's offset is the ring's first */
		rstream_tx_credited(&rs->tx, acked);
		if (rs->hist)
			rstream_hist_acked(rs);
	} else if (acked < 0 && !rstream_released(rs)) {
		rstream_fail(rs, RSTREAM_R_BAD_CREDIT, ECONNRESET);
	}
	if (freed)
		rstream_txq_gone(rs, freed, cost);
	/* writers don't reap for less, because it takes a lock of the link */
	rs->txq.reap_at = rs->txq.mem + rstream_txq_autocork_max(rs);
	return freed;
}

/*
 * Ask the peer for a credit that interrupts, unless we wait for one already.  An honest peer
 * answers with more space.  If the answer brought none, wait before asking again: otherwise, both
 * hosts might do nothing but ask and answer.
 */
static void ask_credit(struct rstream *rs, u64 acked)
{
	if (rs->taken.asked)
		return;
	if (acked == rs->taken.asked_with &&
	    jiffies - rs->taken.asked_at <= msecs_to_jiffies(RSTREAM_RETRY_MS)) {
		rstream_retry(rs, RSTREAM_RETRY_MS);
		return;
	}
	/* before the request is posted, because the answer may come at once */
	WRITE_ONCE(rs->taken.asked, true);
	rs->taken.asked_at = jiffies;
	rs->taken.asked_with = acked;
	if (rstream_txring_ask(rs->txring))
		WRITE_ONCE(rs->taken.asked, false);
}

/* Will ring_sent() tell us when the bytes in flight have arrived?  Then a few bytes can wait. */
bool rstream_ring_autocorks(const struct rstream *rs)
{
	smp_mb();	/* pairs with ring_sent(): it sees the queued bytes, or we see ->notify */
	return rs->txring && READ_ONCE(rs->txring->notify) && !rs->zc.awaited;
}

/* We post nothing now, although the link may have scheduled us. */
void rstream_ring_yield(struct rstream *rs)
{
	if (rs->txring)
		rstream_txring_yield(rs->txring);
}

/* Nothing fits: ask for credit, unless the peer has read all and only our device is late. */
static void stalled(struct rstream *rs)
{
	/* as read by the post: a credit that arrived later has woken nobody */
	u64 acked = rs->txring->acked;

	if (acked == rs->txring->written)
		return;
	/* don't ask too often a receiver that answers with small credits */
	if (jiffies - rs->taken.asked_at > msecs_to_jiffies(RSTREAM_RETRY_MS))
		ask_credit(rs, acked);
	else
		rstream_retry(rs, RSTREAM_RETRY_MS);
}

void rstream_ring_push(struct rstream *rs)
{
	u64 queued = rs->tx.written - rs->tx.sent;
	/* if the peer has sent nothing since our last post, more may be written before it does */
	bool few = rstream_txq_may_autocork(rs, queued), ask = !rs->taken.asked;
	unsigned int how = few && rs->taken.heard == rs->rx.arrived ? RSTREAM_POST_NOTIFY : 0;
	ssize_t n;

	if (!rs->txring)
		return;
	if (queued && rstream_ipsec_moved(rs))
		rstream_ipsec_look(rs);		/* may end the link or the connection */
	if (!queued || rs->error || rs->txq.corked_at ||
	    (rs->urg.sent && !rstream_urg_heard(rs)) || (few && rstream_ring_autocorks(rs))) {
		rstream_txring_yield(rs->txring);
		return;
	}
	/* before the post, because the answer may come at once */
	if (ask) {
		WRITE_ONCE(rs->taken.asked, true);
		how |= rs->zc.awaited || !rstream_txq_room(rs) ? RSTREAM_POST_CREDIT :
								RSTREAM_POST_CREDIT_FULL;
	}
	n = rstream_txring_post(rs->txring, &rs->txq.frags, queued, how);
	if (ask && (n <= 0 || !rs->txring->asks))
		WRITE_ONCE(rs->taken.asked, false);
	if (n == -EPROTO)
		rstream_fail(rs, RSTREAM_R_BAD_CREDIT, ECONNRESET);
	if (n > 0) {
		rs->tx.sent += n;
		rs->taken.heard = rs->rx.arrived;
		rs->txq.at = jiffies;
		rs->stats.tx.ring_bytes += n;
		rs->stats.tx.ring_msgs++;
	} else if (!n && rs->txring->stalled == RSTREAM_R_STALL_RING) {
		stalled(rs);
	}
}

/* A writer is about to sleep: make sure that something will wake it. */
void rstream_ring_waits(struct rstream *rs)
{
	s64 acked;

	if (!rs->txring || (rs->tx.state != RSTREAM_ON_RING &&
			    rs->tx.state != RSTREAM_LEAVING))
		return;
	acked = rstream_txring_acked(rs->txring);
	/* don't ask if all is credited, or if the link will schedule the ring anyway */
	if ((rs->tx.state == RSTREAM_LEAVING ||
	     rs->txring->stalled != RSTREAM_R_STALL_SLOT) &&
	    acked != (s64)rs->txring->written)
		ask_credit(rs, acked);
	/* credited frags can be freed only after their writes have completed */
	rstream_txring_sent(rs->txring);
	if (rs->zc.tcp)
		rstream_retry(rs, RSTREAM_RETRY_MS);	/* TCP does not tell when it is done */
}

/* ---- both ---- */

/* Let go of the ring that we granted. */
void rstream_ring_drop(struct rstream *rs)
{
	struct rstream_rxring *ring = rs->rxring;

	smp_store_release(&rs->rxring, NULL);	/* pairs with rstream_rxq_all_here() */
	sk_mem_uncharge(rs->sk, ring->size);
	if (rstream_grant_sent(&rs->granted))
		rstream_rxring_release(ring);
	else
		rstream_rxring_withdraw(ring);
}

void rstream_ring_close(struct rstream *rs)
{
	struct rstream_txring *tx = rs->txring;

	if (tx) {
		/* the remaining frags in flight now belong to the link */
		rstream_ring_reap(rs);
		rs->txring = NULL;
		rstream_txring_close(tx);
	}
	if (rs->rxring)
		rstream_ring_drop(rs);
}

/* ---- callbacks of the link ---- */

/* Busy polling has to poll what delivers the bytes: the link.  TCP does so for its packets. */
static void mark_napi(struct rstream *rs, const struct rstream_rxring *ring)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (READ_ONCE(rs->sk->sk_napi_id) != ring->napi_id)
		WRITE_ONCE(rs->sk->sk_napi_id, ring->napi_id);
#endif
}

/* Like rstream_rxq_wake(), but cheaper if readers can only wait for data. */
static void wake_readers(struct rstream *rs, const struct rstream_rxring *ring)
{
	u64 here = READ_ONCE(rs->rx.base) + ring->landed;

	/* FIN was here first: those that wait for the end alone have to see it, too */
	if (rstream_rx_fin_here(&rs->rx) && here == READ_ONCE(rs->rx.fin_at))
		rstream_tcp4.state_change(rs->sk);
	if (rs->sk->sk_rcvlowat > 1 || READ_ONCE(rs->urg.state) || READ_ONCE(rs->rx.fin) ||
	    READ_ONCE(rs->error) || READ_ONCE(rs->rx.state) != RSTREAM_ON_RING ||
	    here <= READ_ONCE(rs->rxq.signalled)) {
		rstream_rxq_wake(rs);
		return;
	}
	WRITE_ONCE(rs->rxq.signalled, here);
	rstream_wake(rs);
}

/* Data after close() is reset, as with TCP; so is data after both directions were shut down. */
static bool is_unwanted(const struct rstream *rs, const struct rstream_rxring *ring)
{
	if (rstream_closing(rs))
		return ring->landed > READ_ONCE(rs->rx.consumed) - READ_ONCE(rs->rx.base);
	return READ_ONCE(rs->shutdown) == SHUTDOWN_MASK && ring->landed != rs->granted.landed;
}

static void ring_data(struct rstream *rs, struct rstream_rxring *ring, bool bad)
{
	if (bad) {
		rstream_fail(rs, RSTREAM_R_RING_OVERRUN, ECONNRESET);
		return;
	}
	smp_mb();	/* pairs with credit(), rstream_ring_answer() and close_now() */
	/* bytes ahead of their SWITCH are checked when that arrives; link->lock orders both */
	if (READ_ONCE(rs->rx.state) == RSTREAM_ON_RING && is_unwanted(rs, ring)) {
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
		return;
	}
	if (ring->landed != rs->granted.landed) {	/* not just a request for credit */
		rs->granted.landed = ring->landed;
		mark_napi(rs, ring);
		rs->stats.rx.ring_msgs++;
		WRITE_ONCE(rs->rxq.at, tcp_jiffies32);
		WRITE_ONCE(rs->granted.stamp, rstream_rx_timed(rs) ?
			   ktime_get_real() : 0);
		if (READ_ONCE(rs->hist) && READ_ONCE(rs->rx.state) == RSTREAM_ON_RING)
			rstream_hist_arrived(rs, READ_ONCE(rs->rx.base) +
						 ring->landed);
	}
	/* if all is consumed, or the end has arrived, no read may follow that would credit */
	if ((READ_ONCE(ring->want_credit) &&
	     ring->landed == READ_ONCE(rs->rx.consumed) - READ_ONCE(rs->rx.base)) ||
	    READ_ONCE(rs->rx.recall) != RSTREAM_KEPT ||
	    (rstream_rx_fin_here(&rs->rx) &&
	     ring->landed == READ_ONCE(rs->rx.fin_at) - READ_ONCE(rs->rx.base)))
		rstream_queue(rs, RSTREAM_DO_CREDIT);
	wake_readers(rs, ring);
}

static void ring_space(struct rstream *rs, struct rstream_txring *ring,
		       bool credit)
{
	if (credit)
		WRITE_ONCE(rs->taken.asked, false);
	rstream_queue(rs, rstream_closed(rs) ? RSTREAM_DO_CLOSE : RSTREAM_DO_PUSH);
}

static void ring_sent(struct rstream *rs)
{
	/* pairs with rstream_ring_autocorks() and flushed(): they see that writes completed */
	smp_mb();
	/* the writes may complete before the flush that posted them has updated tx.sent */
	if (cmpxchg(&rs->out.flush, RSTREAM_FLUSH_BUSY, RSTREAM_FLUSH_AGAIN) ==
	    RSTREAM_FLUSH_IDLE && READ_ONCE(rs->tx.written) != READ_ONCE(rs->tx.sent))
		rstream_queue(rs, RSTREAM_DO_PUSH);
}

static enum rstream_reason no_link_reason(const struct rstream *rs,
					  enum rstream_link_event ev)
{
	if (rstream_link_drained(sock_net(rs->sk)))
		return RSTREAM_R_DRAINED;
	return ev == RSTREAM_LINK_EV_DECLINED ? RSTREAM_R_PEER_DRAINED :
						RSTREAM_R_LINK_FAILED;
}

static void link_event(struct rstream *rs, enum rstream_link_event ev)
{
	switch (ev) {
	case RSTREAM_LINK_EV_UP:
		WRITE_ONCE(rs->granted.link_asked, 0);
		rstream_queue(rs, RSTREAM_DO_GRANT);
		break;
	case RSTREAM_LINK_EV_FAILED:
	case RSTREAM_LINK_EV_DECLINED:
		WRITE_ONCE(rs->granted.link_asked, 0);
		/* it does not wait for a ring of its own; the peer wanted the link */
		if (READ_ONCE(rs->reason) == RSTREAM_R_RING_IDLE)
			break;
		rstream_ring_impossible(rs, no_link_reason(rs, ev));
		/* links are retried for waiters, but this one may never get what it waits for */
		rstream_queue(rs, RSTREAM_DO_LATER);
		break;
	case RSTREAM_LINK_EV_IDLE:
		rstream_queue(rs, RSTREAM_DO_IDLE);
		break;
	case RSTREAM_LINK_EV_ROUTES:
		rstream_queue(rs, RSTREAM_DO_LOOK);
		break;
	case RSTREAM_LINK_EV_BUSY:
		rstream_queue(rs, RSTREAM_DO_BUSY);
		break;
	case RSTREAM_LINK_EV_MOVE:
		rstream_queue(rs, RSTREAM_DO_MOVE);
		break;
	case RSTREAM_LINK_EV_LOST:
	case RSTREAM_LINK_EV_DEAD:
		rstream_queue(rs, RSTREAM_DO_PUSH);	/* rstream_leave_check() */
		break;
	}
}

static struct rstream_waiter **link_waiter(struct rstream *rs)
{
	return &rs->hello.waiter;
}

const struct rstream_link_ops rstream_ring_ops = {
	.data = ring_data,
	.space = ring_space,
	.sent = ring_sent,
	.event = link_event,
	.waiter = link_waiter,
	.find = rstream_ticket_find,
};
