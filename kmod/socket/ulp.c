// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stream on its TCP socket: attaching and releasing it as an upper-layer protocol, TCP's
 * callbacks, and the worker for deferred work (rstream_queue()).
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "ipsec.h"
#include "option_hook.h"
#include "stream.h"
#include "tcpq.h"

/* ---- TCP's callbacks, socket held ---- */

static void on_data_ready(struct sock *sk)
{
	struct rstream *rs = rstream_of(sk);

	if (!rs) {
		rstream_tcp4.data_ready(sk);
		return;
	}
	if (rs->mode != RSTREAM_FRAMED) {
		rstream_peek(rs);
		rstream_flush_due(rs);
		return;
	}
	if (rstream_parse(rs))
		return;
	/* with SO_RCVLOWAT, that TCP lacks memory is an event, too: see tcp_epollin_ready() */
	if (sk->sk_rcvlowat > 1 && rstream_rx_plain(rs) && !rstream_closing(rs))
		rstream_rxq_wake(rs);
	rstream_flush_due(rs);
	rstream_close_look(rs);
}

static void on_write_space(struct sock *sk)
{
	struct rstream *rs = rstream_of(sk);

	if (!rs || rs->mode != RSTREAM_FRAMED) {
		/* TCP's clears SOCK_NOSPACE, which other children need in the dummy socket */
		if (sk->sk_socket != rstream_dummy_socket)
			rstream_tcp4.write_space(sk);
		return;
	}
	if (!rstream_hello_waits(rs) && !rstream_plain_tx_idle(rs))
		rstream_flush(rs);
	rstream_txq_wake(rs);
	rstream_close_look(rs);
}

/* If TCP's FIN has arrived: was the stream complete? */
static void check_truncated(struct rstream *rs)
{
	const struct rstream_rx *rx = &rs->rx;
	struct sock *sk = rs->sk;

	rstream_plain_recv_check_truncated(rs);
	/* not if TCP has reported an error, or if we had no memory yet to read everything */
	if (!(sk->sk_shutdown & RCV_SHUTDOWN) || sk->sk_state == TCP_CLOSE ||
	    sk->sk_err || rs->error || rstream_closed(rs) ||
	    rstream_tcpq_unread(sk))
		return;
	if (rs->plain_rx.part_is_data)
		return;
	/* the last bytes of a ring may be counted a little later */
	if (!rx->fin || rs->in.data_left || rs->in.part_len ||
	    (rx->arrived != rx->fin_at && rx->state != RSTREAM_ON_RING))
		rstream_fail(rs, RSTREAM_R_TRUNCATED, ECONNRESET);
}

/* TCP's FIN, RST or error on a connection with records.  Return: as rstream_close_end() */
static bool framed_state_change(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	if (!(sk->sk_shutdown & RCV_SHUTDOWN) && sk->sk_state != TCP_CLOSE)
		return false;
	rstream_parse_at_fin(rs);
	rstream_flush_due(rs);
	rstream_ring_landed(rs);
	/* as TCP after a FIN; the peer's was a record, and TCP's may not have arrived */
	if (sk->sk_err == ECONNRESET && rstream_rxq_ring_ended(rs) && !rs->error &&
	    !rstream_rx_plain(rs))
		cmpxchg(&sk->sk_err, ECONNRESET, EPIPE);	/* SO_ERROR takes no lock */
	check_truncated(rs);
	if (rstream_close_end(rs))
		return true;
	/* no RESUME will come, or nothing can be sent any more: see rstream_leave_check() */
	if (rs->tx.state == RSTREAM_LOST ||
	    (sk->sk_state == TCP_CLOSE && (rs->txring || !list_empty(&rs->txq.frags))))
		rstream_queue(rs, RSTREAM_DO_PUSH);
	rstream_close_look(rs);
	return false;
}

static void on_state_change(struct sock *sk)
{
	struct rstream *rs = rstream_of(sk);

	if (rs && rs->mode == RSTREAM_CONNECTING &&
	    sk->sk_state == TCP_ESTABLISHED) {
		rstream_established(rs, rs->offer.confirmed == RSTREAM_CONFIRMED);
	} else if (rs && rs->mode == RSTREAM_FRAMED && framed_state_change(rs)) {
		return;
	} else if (rs && (rs->mode == RSTREAM_ASKED ||
			  (rs->mode == RSTREAM_GUARDED && sk->sk_state == TCP_CLOSE))) {
		rstream_plain_recv_note_reset(rs);
		rstream_peek(rs);
	}
	if (rs)
		rstream_flush_due(rs);
	rstream_tcp4.state_change(sk);
}

/* TCP calls them with the socket held, which it is here, too: no need for sk_callback_lock. */
void rstream_ulp_hook(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	WRITE_ONCE(sk->sk_data_ready, on_data_ready);
	WRITE_ONCE(sk->sk_write_space, on_write_space);
	WRITE_ONCE(sk->sk_state_change, on_state_change);
}

/* ---- deferred work ---- */

/* lock_sock() that fails instead of waiting. */
static bool work_own(struct sock *sk)
{
	bool owns;

	spin_lock_bh(&sk->sk_lock.slock);
	owns = !sock_owned_by_user_nocheck(sk);
	if (owns) {
		sk->sk_lock.owned = 1;
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	}
	spin_unlock_bh(&sk->sk_lock.slock);
	return owns;
}

/*
 * All sockets share the workers, and a program may own its socket for any time, for example
 * while its buffer is read from a slow file.  So a worker waits only for a jiffy; few programs
 * need longer.
 *
 * A child that no program has accepted must not be owned by a process: closing the listener
 * destroys it under its spinlock, and warns if it is owned.  __release and __acquire keep sparse
 * from counting that spinlock, as it does not count socket ownership.
 */
static bool work_lock(struct rstream *rs, bool owned)
{
	struct sock *sk = rs->sk;

	if (owned)
		return wait_event_timeout(sk->sk_lock.wq, work_own(sk), 1);
	local_bh_disable();
	bh_lock_sock(sk);
	/* after migration, TCP's accept() may have given it to a program, perhaps closed by now */
	if (!sock_owned_by_user(sk) && !rs->accepted && sk->sk_socket != rstream_dummy_socket &&
	    (sk->sk_socket || sock_flag(sk, SOCK_DEAD)))
		rstream_recv_accepted(rs);
	/* if it was accepted meanwhile, it must be owned, because the work may sleep */
	if (!sock_owned_by_user(sk) && !rs->accepted) {
		__release(&sk->sk_lock.slock);
		return true;
	}
	bh_unlock_sock(sk);
	local_bh_enable();
	return false;
}

static void work_unlock(struct rstream *rs, bool owned)
{
	if (owned) {
		release_sock(rs->sk);
		return;
	}
	__acquire(&rs->sk->sk_lock.slock);
	bh_unlock_sock(rs->sk);
	local_bh_enable();
}

/*
 * Reset the connection.  Return: true if tcp_abort() has to be called, without the lock.
 * Not for a child that nobody has accepted: it must not be owned, nor destroyed twice.
 */
static bool work_reset(struct rstream *rs, bool owned)
{
	struct sock *sk = rs->sk;

	if (sk->sk_state == TCP_CLOSE) {
		/* not twice: our abort, or TCP, may have reported one that was fetched since */
		if (!sk->sk_err && !rs->plain_rx.reset) {
			WRITE_ONCE(sk->sk_err, rs->error);
			sk_error_report(sk);
		}
		return false;
	}
	if (!owned)
		sk->sk_prot->disconnect(sk, O_NONBLOCK);
	return owned;
}

static void work_framed(struct rstream *rs, unsigned long todo)
{
	rstream_parse(rs);
	rstream_leave_check(rs);
	check_truncated(rs);
	if (todo & BIT(RSTREAM_DO_GRANT))
		rstream_ring_grant_try(rs);
	if (todo & BIT(RSTREAM_DO_LINK))
		rstream_ring_try_link(rs);
	if (todo & BIT(RSTREAM_DO_LATER) && !rs->rxring)
		rstream_ring_grant_later(rs);
	if (todo & BIT(RSTREAM_DO_CREDIT))
		rstream_ring_answer(rs);
	if (todo & BIT(RSTREAM_DO_IDLE))
		rstream_ring_idle(rs);
	if (todo & BIT(RSTREAM_DO_BUSY))
		rstream_ring_want_more_links(rs);
	if (todo & BIT(RSTREAM_DO_MOVE))
		rstream_ring_relocate(rs);
	if (todo & BIT(RSTREAM_DO_LOOK))
		rstream_ipsec_look(rs);
	rstream_ring_reap(rs);
	rstream_txq_cork_look(rs);
	rstream_flush(rs);
	rstream_txq_wake(rs);
	if (rs->txq.asked)	/* writers were not woken: there was not enough room */
		rstream_txq_ask_tcp(rs);
	if (rs->txq.asked || !rstream_txq_room(rs) || rstream_page_awaited(rs))
		rstream_ring_waits(rs);
}

static void work_timeout(struct rstream *rs)
{
	/* set again since it expired?  rstream_leave_tick() may run once too often, no harm */
	if (timer_pending(&rs->timer) && (rstream_closed(rs) || !rs->hello.in))
		return;
	if (rstream_closed(rs))
		rstream_close_late(rs);
	else if (rs->mode == RSTREAM_FRAMED && rs->hello.in)
		rstream_leave_tick(rs);
	else
		rstream_hello_late(rs);
}

/* Return: true if the socket is to be given back to TCP now. */
static bool work_do(struct rstream *rs, unsigned long todo)
{
	/* SOCK_DEAD: also a socket that was given to TCP before it had records */
	if (rstream_released(rs) || sock_flag(rs->sk, SOCK_DEAD))
		return false;
	/* nothing comes or goes any more; rstream_close_end() may have closed the rings */
	if (rstream_closed(rs) && rs->sk->sk_state == TCP_CLOSE)
		return rstream_close_over(rs);
	if (rs->mode == RSTREAM_FRAMED)
		work_framed(rs, todo);
	if (todo & BIT(RSTREAM_DO_TIMEOUT)) {
		work_timeout(rs);
		rstream_flush_due(rs);
	}
	if (!rstream_closed(rs))
		return false;
	rstream_close_step(rs);
	return rstream_close_over(rs);
}

/* The pause doubles this often, up to some 20 ms. */
#define LATE_MAX	ilog2(HZ / 32)

/*
 * The socket is owned by a program, or by accept(), which may sleep: try again in a while.
 * Meanwhile the work holds the module: normally the stream does, but it may end before.  If the
 * module is already being removed, the stream has ended, and nothing is left to do.
 * Return: true if the work is queued again, with its references.
 */
static bool work_later(struct rstream *rs, unsigned long todo)
{
	if (!rs->late && !try_module_get(THIS_MODULE))
		return false;
	WRITE_ONCE(rs->late, min(rs->late + 1, LATE_MAX + 1));
	return rstream_queue_again(rs, todo, 1UL << (rs->late - 1));
}

static bool work_owned(struct sock *sk)
{
	bool owned;

	spin_lock_bh(&sk->sk_lock.slock);
	owned = sock_owned_by_user_nocheck(sk);
	spin_unlock_bh(&sk->sk_lock.slock);
	return owned;
}

/*
 * tcp_abort() waits for the owner of the socket.  So while a program may own it, only this worker
 * calls it, and only if the socket is not owned at the moment; otherwise on_work() tries again.  A
 * program may still take the socket in between, and block one worker: see abort_wqs.
 */
static void on_abort(struct work_struct *work)
{
	struct rstream *rs = container_of(work, struct rstream, abort_work);
	int error = READ_ONCE(rs->error);
	struct sock *sk = rs->sk;

	if (error && work_owned(sk)) {	/* no error: the program has disconnected it meanwhile */
		WRITE_ONCE(rs->abort_late, true);
		rstream_queue(rs, RSTREAM_DO_RESET);
	} else if (error) {
		tcp_abort(sk, error);
	}
	rstream_stream_put(rs);
	sock_put(sk);
}

static void on_work(struct work_struct *work)
{
	struct rstream *rs = container_of(to_delayed_work(work), struct rstream, work);
	unsigned long todo = xchg(&rs->todo, 0);
	struct sock *sk = rs->sk;
	bool owned = READ_ONCE(rs->accepted);
	bool abort = false, finish = false;
	int error = 0;
	u8 late = 0;

	if (!work_lock(rs, owned)) {
		if (work_later(rs, todo))
			return;
		goto out;
	}
	swap(late, rs->late);
	if (rstream_of(sk) == rs) {
		error = rs->error;
		if (todo & BIT(RSTREAM_DO_RESET) && error)
			abort = work_reset(rs, owned);
		finish = work_do(rs, todo);
	}
	work_unlock(rs, owned);

	if (abort && finish)		/* no program can own it any more */
		tcp_abort(sk, error);
	else if (abort)
		rstream_queue_abort(rs);
	if (finish)
		rstream_close_tcp(sk, rs->tcp_ops);
out:
	/* before sock_put(): code that gets a reference to rs assumes that its sk is valid */
	rstream_stream_put(rs);
	sock_put(sk);
	if (late)
		module_put(THIS_MODULE);	/* rstream_exit() waits for us to return */
}

/* ---- attaching, detaching ---- */

/* Release all that a connection holds. */
static void drop_connection(struct rstream *rs)
{
	rstream_close_release(rs);
	/* before unregistering: a link without users ends, and counts as lost if it has rings */
	rstream_ring_close(rs);
	rstream_unregister(rs);
	if (rs->stats.stalls.why)
		rstream_stalled(rs, RSTREAM_R_NONE);
	rstream_ipsec_forget(rs);
	if (rs->hello.peer) {
		rstream_waiter_forget(rs->hello.peer, rs);
		rstream_peer_put(rs->hello.peer);
		rs->hello.peer = NULL;
	}
	rstream_txq_free(rs);
	rstream_rxq_free(rs);
	rstream_timer(rs, 0);
	if (timer_pending(&rs->retry_timer))
		sk_stop_timer(rs->sk, &rs->retry_timer);
}

/* Initialize what is not zero in a new connection. */
static void connection_init(struct rstream *rs)
{
	INIT_LIST_HEAD(&rs->txq.frags);
	__skb_queue_head_init(&rs->rxq.skbs);
}

/* Drop packets with payload from the error queue: they may contain HELLO. */
static void drop_packets(struct sk_buff_head *queue)
{
	struct sk_buff *skb, *next;
	struct sk_buff_head gone;
	unsigned long flags;

	__skb_queue_head_init(&gone);
	spin_lock_irqsave(&queue->lock, flags);
	skb_queue_walk_safe(queue, skb, next) {
		if (!skb->len)
			continue;
		__skb_unlink(skb, queue);
		__skb_queue_tail(&gone, skb);
	}
	spin_unlock_irqrestore(&queue->lock, flags);
	__skb_queue_purge(&gone);
}

/* Back to the state after socket(), except for what the program has set. */
void rstream_reset_state(struct rstream *rs)
{
	rstream_assert_held(rs);
	if (rstream_fell_back(rs) && rs->sk->sk_socket) {
		/* calls may be in progress in TCP's proto_ops */
		rstream_guard_end(rs);
		rstream_swap_ops(rs, rs->sk->sk_socket);
	}
	if (rs->mode == RSTREAM_FRAMED)
		drop_packets(&rs->sk->sk_error_queue);
	drop_connection(rs);
	rstream_option_client_off(rs);
	rstream_unhook(rs->sk);
	memset(&rs->connection, 0, sizeof(rs->connection));
	connection_init(rs);
	if (rs->hist)
		memset(rs->hist, 0, sizeof(*rs->hist));
	WRITE_ONCE(rs->todo, 0);	/* queued work will find nothing to do */
	rstream_set_mode(rs, RSTREAM_IDLE, RSTREAM_R_NONE);
}

void rstream_attach(struct rstream *rs, struct sock *sk,
		    const struct proto_ops *tcp_ops)
{
	struct rstream_net *rn = rstream_net(sock_net(sk));
	struct inet_connection_sock *icsk = inet_csk(sk);

	rs->sk = sk;
	rs->rn = rn;
	rs->tcp_ops = tcp_ops;
	refcount_set(&rs->ref, 1);
	INIT_DELAYED_WORK(&rs->work, on_work);
	INIT_WORK(&rs->abort_work, on_abort);
	rstream_timers_init(rs);
	connection_init(rs);

	__module_get(THIS_MODULE);	/* put by tcp_cleanup_ulp() */
	rcu_assign_pointer(icsk->icsk_ulp_data, rs);
	WRITE_ONCE(icsk->icsk_ulp_ops, &rstream_ulp_ops);
	if (!sk->sk_socket)
		rstream_set_dummy(sk);	/* a child that nobody has accepted */
	spin_lock_bh(&rn->streams_lock);
	rn->n_streams++;
	rs->number = ++rn->last_number;
	hlist_add_head_rcu(&rs->number_node,
			   &rn->numbered[rs->number % ARRAY_SIZE(rn->numbered)]);
	spin_unlock_bh(&rn->streams_lock);
}

static void rstream_ulp_release(struct sock *sk)
{
	struct rstream_net *rn = rstream_net(sock_net(sk));
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct rstream *rs = rstream_of(sk);

	drop_connection(rs);
	rstream_option_client_off(rs);
	rstream_unhook(sk);
	spin_lock_bh(&rn->streams_lock);
	hlist_del_rcu(&rs->number_node);
	rn->n_streams--;
	spin_unlock_bh(&rn->streams_lock);
	RCU_INIT_POINTER(icsk->icsk_ulp_data, NULL);
	rstream_stream_put(rs);
}

/* A child of our listener starts as plain TCP. */
static void rstream_ulp_clone(const struct request_sock *req,
			      struct sock *child, const gfp_t priority)
{
	struct inet_connection_sock *icsk = inet_csk(child);

	icsk->icsk_ulp_ops = NULL;
	RCU_INIT_POINTER(icsk->icsk_ulp_data, NULL);
	rstream_unhook(child);
	icsk->icsk_af_ops = rstream_tcp_of(child)->af_ops;
}

static int rstream_ulp_init(struct sock *sk)
{
	return -EOPNOTSUPP;	/* not by setsockopt(TCP_ULP) */
}

/*
 * Not registered, so that no program can select it by TCP_ULP.  `ss -i` shows the name.
 */
struct tcp_ulp_ops rstream_ulp_ops = {
	.name = "rdmastream",
	.owner = THIS_MODULE,
	.init = rstream_ulp_init,
	.release = rstream_ulp_release,
	.clone = rstream_ulp_clone,
};
