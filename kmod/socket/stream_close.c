// SPDX-License-Identifier: GPL-2.0-only
/*
 * close() of a connection with records: what the program wrote is sent, the peer's last
 * records are received, and the socket ends without a program.
 *
 * Socket held, except in rstream_close_unlocked(); only that and rstream_close() sleep.
 */
#include <linux/bpf-cgroup.h>
#include <linux/ipv6.h>
#include <linux/sched/signal.h>
#include <net/proto_memory.h>
#include <net/tcp.h>

#include "stream.h"

/*
 * Orphans: closed sockets of the whole host that still have something to deliver.  TCP does not
 * count a socket in FIN_WAIT2, either.
 */
static atomic_t n_closed;

/* How often a closed socket is checked, s; after how many checks without progress it ends. */
#define LOOK_SECONDS	15
/* TCP gives up when its probes are TCP_RTO_MAX apart and unanswered */
#define LOOKS_MAX	(2 * TCP_RTO_MAX / HZ / LOOK_SECONDS)

/* tcp_orphan_retries() if the sysctl is 0 */
#define ORPHAN_RETRIES	8

/* ---- the program closes ---- */

/* Bytes that TCP has delivered, without window probes. */
static u64 tcp_delivered(const struct rstream *rs)
{
	u64 acked = tcp_sk(rs->sk)->bytes_acked;

	return rstream_tx_plain(rs) ? acked : min(acked, rs->out.payload_end);
}

/* A number that grows while a closed stream is still being delivered. */
static u64 close_progress(struct rstream *rs)
{
	s64 acked = rs->txring ? rstream_txring_acked(rs->txring) : 0;

	return rs->tx.sent + tcp_delivered(rs) + max(acked, 0LL);
}

/*
 * Does the host have too many orphans, or the namespace: more than it allows itself, or, if it is
 * not the initial one, more than half of what the others leave?  @shift: as if there were
 * 1 << @shift times as many.
 */
static bool beyond_share(const struct rstream_net *rn, unsigned int shift)
{
	u64 most = READ_ONCE(rstream_net(&init_net)->set.max_orphans);
	u64 all = atomic_read(&n_closed), own = atomic_read(&rn->n_closed);
	u64 others = all - min(all, own);

	return all << shift > most || own << shift > READ_ONCE(rn->set.max_orphans) ||
	       (!net_eq(rn->net, &init_net) && own << shift > (most - min(most, others)) / 2);
}

/*
 * As tcp_check_oom(): are there too many orphans, or does this one have much to send while TCP
 * is out of memory?
 */
static bool too_many(const struct rstream *rs, unsigned int shift)
{
	struct sock *sk = rs->sk;

	return beyond_share(rs->rn, shift) ||
	       (rstream_txq_used(rs) > SOCK_MIN_SNDBUF &&
		sk_memory_allocated(sk) > sk_prot_mem_limits(sk, 2));
}

/* Does TCP get no answer from the peer?  An ACK with a zero window is an answer. */
static bool is_unanswered(const struct rstream *rs)
{
	const struct inet_connection_sock *icsk = inet_csk(rs->sk);

	return icsk->icsk_retransmits > 1 || icsk->icsk_probes_out > 1;
}

/*
 * Longest silence of the peer, ms: as for TCP's orphans, among which this socket does not count
 * until it is given back; see retransmits_timed_out().
 */
static unsigned int unanswered_max(const struct rstream *rs)
{
	const struct sock *sk = rs->sk;
	unsigned int retries = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_orphan_retries) ?:
			       ORPHAN_RETRIES;
	unsigned int user = READ_ONCE(inet_csk(sk)->icsk_user_timeout);

	return user ?: jiffies_to_msecs(((2UL << min(retries, 12U)) - 1) * TCP_RTO_MIN);
}

/* One more socket, or one less, is in this state. */
static void close_count(struct rstream *rs, enum rstream_close_state state, int n)
{
	if (state == RSTREAM_CLOSED) {
		atomic_add(n, &n_closed);
		atomic_add(n, &rs->rn->n_closed);
	} else if (state == RSTREAM_FIN_WAIT) {
		atomic_add(n, &rs->rn->n_fin_wait);
	}
}

static void close_set(struct rstream *rs, enum rstream_close_state to)
{
	static const u8 from[] = {	/* allowed predecessors */
		[RSTREAM_CLOSING] = BIT(RSTREAM_OPEN),
		[RSTREAM_CLOSED] = BIT(RSTREAM_CLOSING),
		[RSTREAM_FIN_WAIT] = BIT(RSTREAM_CLOSED),
		[RSTREAM_ORPHANED] = BIT(RSTREAM_FIN_WAIT),
		[RSTREAM_RELEASED] = BIT(RSTREAM_OPEN) | BIT(RSTREAM_CLOSING) |
				     BIT(RSTREAM_CLOSED) | BIT(RSTREAM_FIN_WAIT) |
				     BIT(RSTREAM_ORPHANED),
	};

	rstream_assert_held(rs);
	if (WARN_ON_ONCE(!(from[to] & BIT(rs->close.state))))
		return;
	close_count(rs, rs->close.state, -1);
	close_count(rs, to, 1);
	WRITE_ONCE(rs->close.state, to);
}

static bool limited(struct rstream *rs, unsigned int shift)
{
	if (!too_many(rs, shift))
		return false;
	rstream_fail(rs, RSTREAM_R_ORPHAN_LIMIT, ECONNRESET);
	return true;
}

/* If the program has closed it, the socket is TCP's now, and counts among TCP's orphans. */
void rstream_close_release(struct rstream *rs)
{
	if (!rstream_closed(rs) || rstream_released(rs))
		return;
	close_set(rs, RSTREAM_RELEASED);
}

/* Detach the struct socket, which will be freed; the rest is done without a program. */
static void detach_program(struct rstream *rs, struct socket *sock)
{
	struct sock *sk = rs->sk;

	rstream_set_dummy(sk);
	sock->sk = NULL;
	rs->close.progress = close_progress(rs);
	rstream_timer(rs, LOOK_SECONDS * MSEC_PER_SEC);
}

/* Has the peer not acknowledged TCP's FIN?  As sk_stream_closing(). */
static bool fin_unacked(const struct sock *sk)
{
	return (1 << READ_ONCE(sk->sk_state)) & (TCPF_FIN_WAIT1 | TCPF_CLOSING | TCPF_LAST_ACK);
}

/* SO_LINGER: wait until the peer has everything. */
static void linger(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	long timeo = sk->sk_lingertime;
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	if (!sock_flag(sk, SOCK_LINGER) || current->flags & PF_EXITING)
		return;
	add_wait_queue(sk_sleep(sk), &wait);
	while (timeo && !signal_pending(current) && !sk->sk_err &&
	       !rs->error && !rstream_txq_done(rs)) {
		rstream_send_room(rs);
		sk_wait_event(sk, &timeo, READ_ONCE(sk->sk_err) ||
			      READ_ONCE(rs->error), &wait);
	}
	if (!rs->error && rstream_txq_done(rs))
		rstream_shutdown_tcp(rs);
	/* TCP's release waits itself if the peer's FIN is here */
	while (timeo && !signal_pending(current) && fin_unacked(sk) &&
	       !(sk->sk_shutdown & RCV_SHUTDOWN))
		sk_wait_event(sk, &timeo, !fin_unacked(sk) ||
			      READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN, &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
}

/* Return: true if nothing is left for us to do. */
static bool close_now(struct rstream *rs, struct socket *sock)
{
	struct sock *sk = rs->sk;

	rstream_parse(rs);
	rstream_shut(rs, SHUTDOWN_MASK);
	rstream_txq_cork(rs, false);
	rstream_flush_due(rs);
	rstream_ring_landed(rs);
	/* discard errors from ICMP, which nobody will fetch; TCP continues, too */
	if (sk->sk_state != TCP_CLOSE)
		sock_error(sk);
	if (sk->sk_state == TCP_CLOSE || rs->error)
		return true;
	if (rstream_rxq_ready(rs) || rstream_plain_recv_partial(rs) ||
	    (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime)) {
		/* RFC 2525, 2.17: unread data is lost, so reset, after what was corked */
		rstream_flush(rs);
		sock_set_flag(sk, SOCK_LINGER);
		sk->sk_lingertime = 0;
		return true;
	}
	if (rstream_plain_only(rs))
		return true;
	rstream_hello_unheard(rs);	/* an unconfirmed server sends the rest as plain TCP */
	/*
	 * The answer to further data is a reset.  Take the ring back, so that data arrives by TCP,
	 * which answers even when we are gone.  After our FIN we could not ask for that.
	 */
	rstream_leave_revoke(rs, RSTREAM_R_NONE);
	if (!rs->tx.fin)
		set_bit(RSTREAM_WANT_FIN, &rs->want);
	/* if the link is lost from here on, this ACK tells the peer that all was read */
	if (rs->rxring && !rs->rx.fin)
		set_bit(RSTREAM_WANT_ACK, &rs->want);
	close_set(rs, RSTREAM_CLOSING);
	smp_mb();	/* pairs with ring_data(): it sees CLOSING, or we see what has landed */
	rstream_ring_landed(rs);
	if (rstream_rxq_ready(rs))
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
	rstream_flush(rs);
	linger(rs);
	/* TCP's FIN has arrived: the peer will send nothing more */
	if (sk->sk_shutdown & RCV_SHUTDOWN && rstream_txq_done(rs))
		return true;
	/* from here on rstream_close_end(), rstream_close_unlocked() or the worker releases it */
	close_set(rs, RSTREAM_CLOSED);
	detach_program(rs, sock);
	if (!rstream_txq_done(rs))
		limited(rs, 0);
	rstream_close_step(rs);
	if (sk->sk_state == TCP_CLOSE)
		rstream_queue(rs, RSTREAM_DO_CLOSE);
	return false;
}

/* Return: true if the caller has to call TCP's release now, which detaches the struct socket. */
bool rstream_close(struct rstream *rs, struct socket *sock)
{
	if (!close_now(rs, sock))
		return false;
	close_set(rs, RSTREAM_RELEASED);
	rstream_ring_close(rs);	/* links need not wait for TCP */
	return true;
}

/* ---- without a program ---- */

/* Is there a ring that the peer might write to? */
static bool fin_wait_ring(const struct rstream *rs)
{
	return rs->rxring && !rs->rx.fin && !rstream_rxring_left(rs->rxring);
}

/*
 * Do too many sockets wait for the peer's end in FIN_WAIT2?  TCP keeps little of such a socket, and
 * limits their number; beyond that it gets them at once.  Those with a ring, which the peer must
 * leave first, are limited by the memory of rings.
 */
static bool fin_wait_many(const struct rstream *rs)
{
	int most = READ_ONCE(sock_net(rs->sk)->ipv4.tcp_death_row.sysctl_max_tw_buckets);

	return atomic_read(&rs->rn->n_fin_wait) > most && !fin_wait_ring(rs);
}

/* If it is more than a minute, TCP waits for the rest when it has the socket. */
static unsigned int fin_wait_ms(const struct rstream *rs)
{
	if (fin_wait_many(rs))
		return 1;
	return jiffies_to_msecs(min(tcp_fin_time(rs->sk), TCP_TIMEWAIT_LEN));
}

/*
 * The program is gone.  First everything that it wrote is sent, then the FIN record, then TCP's
 * FIN.  After that we stay to read the peer's last records, because TCP would answer them with
 * RST if it had the socket: until the peer's FIN arrives, or as long as TCP waits in FIN_WAIT2.
 * Called after each event, socket held.
 */
void rstream_close_step(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	if (rstream_released(rs) || sk->sk_state == TCP_CLOSE || !rstream_txq_done(rs))
		return;
	rstream_shutdown_tcp(rs);
	if (sk->sk_state == TCP_FIN_WAIT2 && rs->close.state == RSTREAM_CLOSED) {
		close_set(rs, RSTREAM_FIN_WAIT);
		rstream_leave_sent(rs);	/* the peer's program may keep its socket for long */
		rstream_timer(rs, fin_wait_ms(rs));
	} else if (rs->close.state == RSTREAM_FIN_WAIT && fin_wait_many(rs)) {
		rstream_timer(rs, 1);	/* perhaps the peer has left the ring */
	}
}

/* After an event: if the program has closed, it may have waited for that. */
void rstream_close_look(struct rstream *rs)
{
	u8 state = rs->sk->sk_state;

	if (!rstream_closed(rs) || rstream_released(rs))
		return;
	/* our TCP FIN is out: at most there is a timer to set, which needs no worker */
	if (state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSING)
		rstream_close_step(rs);
	else
		rstream_queue(rs, RSTREAM_DO_CLOSE);
}

/*
 * Timer of a closed socket.  As with TCP, the limit of orphans is tighter for one that makes
 * little progress.  One that makes none for long, or whose peer does not answer, ends.
 */
void rstream_close_late(struct rstream *rs)
{
	u64 now = close_progress(rs), moved = now - rs->close.progress;
	u64 left = rs->txq.mem + rs->sk->sk_wmem_queued;

	rstream_leave_save(rs);
	/*
	 * Leave FIN_WAIT2 to TCP now, which handles a peer that takes its time.  But a peer that
	 * has not left our ring might write there for ever, and nobody would answer with a reset.
	 */
	if (rs->close.state == RSTREAM_FIN_WAIT && fin_wait_ring(rs))
		rstream_fail(rs, RSTREAM_R_NONE, ETIMEDOUT);
	else if (rs->close.state == RSTREAM_FIN_WAIT)
		close_set(rs, RSTREAM_ORPHANED);
	if (rs->close.state != RSTREAM_CLOSED)
		return;
	rs->close.looks = moved ? 0 : rs->close.looks + 1;
	rs->close.unanswered = !moved && is_unanswered(rs) ? rs->close.unanswered + 1 : 0;
	rs->close.progress = now;
	if (rs->close.looks > LOOKS_MAX ||
	    rs->close.unanswered * LOOK_SECONDS * MSEC_PER_SEC > unanswered_max(rs))
		rstream_fail(rs, RSTREAM_R_NONE, ETIMEDOUT);
	else if (!limited(rs, (moved < max_t(u64, tcp_sk(rs->sk)->mss_cache, left / 64)) +
			      !!READ_ONCE(rs->sk->sk_err_soft)))
		rstream_timer(rs, LOOK_SECONDS * MSEC_PER_SEC);
}

/* Can the socket be given back to TCP now?  If so, release what is ours. */
bool rstream_close_over(struct rstream *rs)
{
	if (rstream_released(rs) || (rs->sk->sk_state != TCP_CLOSE &&
				     rs->close.state != RSTREAM_ORPHANED))
		return false;
	rstream_close_release(rs);
	rstream_ring_close(rs);
	return true;
}

/* Does the socket have something that only TCP's release frees, which may sleep? */
static bool release_needed(const struct sock *sk)
{
	if (cgroup_bpf_enabled(CGROUP_INET_SOCK_RELEASE) || !sk->sk_net_refcnt ||
	    rcu_access_pointer(inet_sk(sk)->mc_list))
		return true;
	return sk->sk_family == AF_INET6 &&
	       (rcu_access_pointer(inet6_sk(sk)->ipv6_mc_list) ||
		inet6_sk(sk)->ipv6_ac_list);
}

/*
 * The program has closed, and now TCP is closed: destroy the sock here, as TCP does with its
 * orphans, unless that needs the worker.  The rings go without delay in either case, as their
 * memory may be all that the program's control group has.  All users of the sock, above all the
 * caller of TCP's callback, have a reference.  Return: true if rs no longer belongs to the sock.
 */
bool rstream_close_end(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	/* an ORPHANED one is left to the worker */
	if (!rstream_closed(rs) || rs->close.state >= RSTREAM_ORPHANED ||
	    sk->sk_state != TCP_CLOSE || rs->error || sock_owned_by_user(sk))
		return false;
	if (!release_needed(sk) && rstream_tcp_end(sk))
		return true;
	rstream_ring_close(rs);
	sk_mem_reclaim(sk);
	return false;
}

/*
 * TCP's release of a sock that has no struct socket any more, without the lock, after
 * rstream_close_over().  Process context.  @sk: the caller has a reference; @ops: TCP's.
 */
void rstream_close_tcp(struct sock *sk, const struct proto_ops *ops)
{
	struct socket sock = { .sk = sk };

	ops->release(&sock);
}

/*
 * After rstream_close(), without the lock.  If the backlog has closed TCP, everything is over.  We
 * may sleep here, so we need not wait for the worker.  @sk: the caller has a reference.
 */
void rstream_close_unlocked(struct sock *sk)
{
	const struct proto_ops *ops = NULL;
	struct rstream *rs;

	if (READ_ONCE(sk->sk_state) != TCP_CLOSE)
		return;
	lock_sock(sk);
	rs = rstream_of(sk);
	if (rs && !rs->error && rstream_close_over(rs))
		ops = rs->tcp_ops;
	release_sock(sk);
	if (ops)
		rstream_close_tcp(sk, ops);
}
