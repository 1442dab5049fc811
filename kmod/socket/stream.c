// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a stream: made and hung on its TCP socket, registered with its
 * namespace, its mode changed, its deferred work done, freed.
 *
 * Who may hold a struct rstream, and why it is safe:
 *  1. its sock (icsk_ulp_data), until rstream_ulp_release(), which TCP calls
 *     with the socket held while it destroys it;
 *  2. queued work: holds the sock and a reference of its own;
 *  3. the timer: holds the sock, as sk_reset_timer() does;
 *  4. the namespace's list and token table, read under RCU or streams_lock:
 *     left in rstream_ulp_release(), memory is freed by RCU;
 *  5. rings and the peer's waiters: left in rstream_ulp_release(), their lock
 *     sees to it that no callback runs afterwards (link.h).
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/stats.h"
#include "base/trace.h"
#include "af_rdmastream.h"
#include "ipsec.h"
#include "option_hook.h"
#include "stream.h"

struct rstream_tcp rstream_tcp4, rstream_tcp6;
struct socket *rstream_nobody;

static struct kmem_cache *stream_cache;
static struct workqueue_struct *stream_wq;

static void stream_free_rcu(struct rcu_head *head)
{
	struct rstream *rs = container_of(head, struct rstream, rcu);

	kfree(rs->hist);
	kfree(rs->rules);
	kmem_cache_free(stream_cache, rs);
}

static void stream_put(struct rstream *rs)
{
	if (refcount_dec_and_test(&rs->ref))
		call_rcu(&rs->rcu, stream_free_rcu);
}

/* ---- callbacks that TCP makes, socket held ---- */

static void on_data_ready(struct sock *sk)
{
	struct rstream *rs = rstream_of(sk);

	if (!rs) {
		rstream_tcp4.data_ready(sk);
		return;
	}
	if (rs->mode != RSTREAM_FRAMED) {
		rstream_peek(rs);
		return;
	}
	rstream_parse(rs);
	rstream_close_look(rs);
}

static void on_write_space(struct sock *sk)
{
	struct rstream *rs = rstream_of(sk);

	if (!rs || rs->mode != RSTREAM_FRAMED) {
		/* TCP's would clear a flag that others of "nobody" need */
		if (sk->sk_socket != rstream_nobody)
			rstream_tcp4.write_space(sk);
		return;
	}
	if (!rstream_hello_waits(rs))
		rstream_push(rs);
	rstream_wake_writers(rs);
	rstream_close_look(rs);
}

/* TCP's FIN has come: was the stream whole? */
static void check_truncated(struct rstream *rs)
{
	const struct rstream_rx *rx = &rs->rx;
	struct sock *sk = rs->sk;

	rstream_prelude_cut(rs);
	/* closed by an error that was told, or no memory to read it all yet? */
	if (!(sk->sk_shutdown & RCV_SHUTDOWN) || sk->sk_state == TCP_CLOSE ||
	    sk->sk_err || rs->error || rstream_closed(rs) ||
	    rstream_tcp_unread(sk))
		return;
	/* the last bytes of a ring may be counted a little later */
	if (rs->plain.part_back)
		return;
	if (!rx->fin || rs->in.data_left || rs->in.part_len ||
	    (rx->arrived != rx->fin_at &&
	     (rx->state != RSTREAM_ON_RING || rx->lost)))
		rstream_fail(rs, RSTREAM_R_TRUNCATED, ECONNRESET);
}

/* TCP's FIN, RST or error on a connection with records.  Return: as rstream_close_end() */
static bool framed_state_change(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	if (!(sk->sk_shutdown & RCV_SHUTDOWN) && sk->sk_state != TCP_CLOSE)
		return false;
	rstream_parse(rs);
	rstream_ring_landed(rs);
	/* as TCP behind a FIN; ours was a record, TCP's may be still to come */
	if (sk->sk_err == ECONNRESET && rstream_ring_ended(rs) && !rs->error &&
	    !rs->plain.rx)
		WRITE_ONCE(sk->sk_err, EPIPE);
	check_truncated(rs);
	if (rs->tx.state == RSTREAM_LOST)
		rstream_queue(rs, RSTREAM_DO_PUSH);	/* no RESUME will come */
	if (rstream_close_end(rs))
		return true;
	rstream_close_look(rs);
	return false;
}

static void on_state_change(struct sock *sk)
{
	struct rstream *rs = rstream_of(sk);

	if (rs && rs->mode == RSTREAM_CONNECTING &&
	    sk->sk_state == TCP_ESTABLISHED)
		rstream_established(rs, rs->offer.confirmed);
	else if (rs && rs->mode == RSTREAM_FRAMED && framed_state_change(rs))
		return;
	else if (rs && rs->mode == RSTREAM_ASKED)
		rstream_peek(rs);
	rstream_tcp4.state_change(sk);
}

/* TCP makes them with the socket held, as it is here: there is no need of sk_callback_lock. */
void rstream_hook_callbacks(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	WRITE_ONCE(sk->sk_data_ready, on_data_ready);
	WRITE_ONCE(sk->sk_write_space, on_write_space);
	WRITE_ONCE(sk->sk_state_change, on_state_change);
}

void rstream_unhook_callbacks(struct sock *sk)
{
	WRITE_ONCE(sk->sk_data_ready, rstream_tcp4.data_ready);
	WRITE_ONCE(sk->sk_write_space, rstream_tcp4.write_space);
	WRITE_ONCE(sk->sk_state_change, rstream_tcp4.state_change);
}

void rstream_wake(struct rstream *rs)
{
	rstream_tcp4.data_ready(rs->sk);
}

/* ---- deferred work ---- */

void rstream_queue(struct rstream *rs, enum rstream_todo what)
{
	set_bit(what, &rs->todo);
	sock_hold(rs->sk);
	refcount_inc(&rs->ref);
	if (!queue_delayed_work(stream_wq, &rs->work, 0)) {
		/* neither is the last: the queued work has its own */
		refcount_dec(&rs->ref);
		__sock_put(rs->sk);
	}
}

/* Push and parse again at that time, in jiffies, if not before. */
void rstream_retry_by(struct rstream *rs, unsigned long at)
{
	if (!timer_pending(&rs->retry_timer) ||
	    time_before(at, rs->retry_timer.expires))
		sk_reset_timer(rs->sk, &rs->retry_timer, at);
}

void rstream_retry(struct rstream *rs, unsigned int ms)
{
	rstream_retry_by(rs, jiffies + msecs_to_jiffies(ms));
}

void rstream_fail(struct rstream *rs, enum rstream_reason reason, int error)
{
	if (cmpxchg(&rs->error, 0, error))
		return;
	WRITE_ONCE(rs->reason, reason);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_RESETS);
	rstream_mib_reason(rs->rn, reason);
	trace_rstream_reset(rs->sk, 0, reason);
	rstream_queue(rs, RSTREAM_DO_RESET);
}

/* A timer holds the sock, so rs is there or waits for RCU. */
static void timer_queue(struct rstream *rs, enum rstream_todo what)
{
	struct sock *sk = rs->sk;

	if (refcount_inc_not_zero(&rs->ref)) {
		rstream_queue(rs, what);
		stream_put(rs);
	}
	sock_put(sk);
}

static void on_timer(struct timer_list *t)
{
	timer_queue(container_of(t, struct rstream, timer), RSTREAM_DO_TIMEOUT);
}

static void on_retry_timer(struct timer_list *t)
{
	timer_queue(container_of(t, struct rstream, retry_timer),
		    RSTREAM_DO_PUSH);
}

void rstream_timer(struct rstream *rs, unsigned int ms)
{
	if (ms)
		sk_reset_timer(rs->sk, &rs->timer,
			       jiffies + msecs_to_jiffies(ms));
	else
		sk_stop_timer(rs->sk, &rs->timer);
}

/*
 * A child that no program has accepted may not be owned by a process: closing
 * the listener destroys it under its spinlock and complains if it is owned.
 * sparse does not count the one lock, nor (__release, __acquire) the other.
 */
static bool work_lock(struct rstream *rs, bool owned)
{
	if (owned) {
		lock_sock(rs->sk);
		return true;
	}
	local_bh_disable();
	bh_lock_sock(rs->sk);
	if (!sock_owned_by_user(rs->sk)) {
		__release(&rs->sk->sk_lock.slock);
		return true;
	}
	bh_unlock_sock(rs->sk);
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
 * Reset.  Return: true if tcp_abort() has to do it, without the lock; a child
 * that nobody has accepted must not be owned, nor destroyed twice.
 */
static bool work_reset(struct rstream *rs, bool owned)
{
	struct sock *sk = rs->sk;

	if (sk->sk_state == TCP_CLOSE) {
		if (!sk->sk_err) {
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
	rstream_ring_check(rs);
	check_truncated(rs);
	if (todo & BIT(RSTREAM_DO_GRANT))
		rstream_grant_try(rs);
	if (todo & BIT(RSTREAM_DO_LINK))
		rstream_link_try(rs);
	if (todo & BIT(RSTREAM_DO_LATER) && !rs->rxring)
		rstream_ring_later(rs);
	if (todo & BIT(RSTREAM_DO_CREDIT) || READ_ONCE(rs->loan.wait.page))
		rstream_ring_answer(rs);
	if (todo & BIT(RSTREAM_DO_IDLE))
		rstream_ring_idle(rs);
	if (todo & BIT(RSTREAM_DO_LOOK))
		rstream_ipsec_look(rs);
	rstream_tx_reap(rs);
	rstream_held_look(rs);
	rstream_push(rs);
	rstream_wake_writers(rs);
	if (rs->txq.room_asked)
		rstream_ask_room(rs);	/* it was not enough to wake them */
	else if (!rstream_tx_room(rs) || rstream_tx_awaited(rs))
		rstream_tx_waits(rs);
}

static void work_timeout(struct rstream *rs)
{
	/* set anew since it was over?  A ring's tick may come too often */
	if (timer_pending(&rs->timer) && (rstream_closed(rs) || !rs->hello.in))
		return;
	if (rstream_closed(rs))
		rstream_close_late(rs);
	else
		rstream_hello_late(rs);
}

/* Return: true if the socket is to be given back to TCP now. */
static bool work_do(struct rstream *rs, unsigned long todo)
{
	if (rs->mode == RSTREAM_FRAMED)
		work_framed(rs, todo);
	if (todo & BIT(RSTREAM_DO_TIMEOUT))
		work_timeout(rs);
	if (!rstream_closed(rs))
		return false;
	rstream_close_step(rs);
	return rstream_close_over(rs);
}

/*
 * A child is owned, by accept() that may sleep: look again in a while.  Should the stream
 * end meanwhile, nothing but this keeps the module.  Return: queued, with its references.
 */
static bool work_later(struct rstream *rs, unsigned long todo)
{
	unsigned int bit;

	for_each_set_bit(bit, &todo, BITS_PER_LONG)
		set_bit(bit, &rs->todo);
	if (!rs->late)
		__module_get(THIS_MODULE);
	rs->late = true;
	return queue_delayed_work(stream_wq, &rs->work, 1);
}

static void on_work(struct work_struct *work)
{
	struct rstream *rs = container_of(to_delayed_work(work), struct rstream, work);
	unsigned long todo = xchg(&rs->todo, 0);
	struct sock *sk = rs->sk;
	bool owned = READ_ONCE(rs->accepted);
	bool abort = false, finish = false, late = false;
	int error = 0;

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

	if (abort)
		tcp_abort(sk, error);
	if (finish) {
		struct socket sock = { .sk = sk };

		rs->tcp_ops->release(&sock);
	}
out:
	/* who finds rs with references left takes it that sk is rs's */
	stream_put(rs);
	sock_put(sk);
	if (late)
		module_put(THIS_MODULE);	/* whose exit waits for us to return */
}

/* Links can, or can't, be made now: each stream shall look for a ring again. */
void rstream_links_changed(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);
	struct rstream *rs;

	rcu_read_lock();
	list_for_each_entry_rcu(rs, &rn->streams, node) {
		if (rstream_mode(rs) != RSTREAM_FRAMED)
			continue;
		/* as rstream_info_dump() does */
		if (!refcount_inc_not_zero(&rs->sk->sk_refcnt))
			continue;
		WRITE_ONCE(rs->granted.link_asked, false);
		timer_queue(rs, RSTREAM_DO_GRANT);
	}
	rcu_read_unlock();
}

/*
 * A link shall be made for the connection with this inode.  Return: 0, -ENOENT:
 * there is none, -ENOTCONN: it has no peer, -EPERM: it is another user's.
 */
int rstream_link_make(struct net *net, u64 inode, bool any_user)
{
	struct rstream_net *rn = rstream_net(net);
	int err = -ENOENT;
	struct rstream *rs;
	struct sock *sk;

	rcu_read_lock();
	list_for_each_entry_rcu(rs, &rn->streams, node) {
		sk = rs->sk;
		/* as rstream_info_dump() does */
		if (!refcount_inc_not_zero(&sk->sk_refcnt))
			continue;
		if (rstream_of(sk) != rs || sock_i_ino(sk) != inode) {
			sock_gen_put(sk);
			continue;
		}
		err = 0;
		if (!any_user && !uid_eq(rstream_sk_uid(sk), current_fsuid()))
			err = -EPERM;
		else if (rstream_mode(rs) != RSTREAM_FRAMED)
			err = -ENOTCONN;
		if (err)
			sock_gen_put(sk);
		else
			timer_queue(rs, RSTREAM_DO_LINK);
		break;
	}
	rcu_read_unlock();
	return err;
}

/* ---- mode, attaching, detaching ---- */

void rstream_set_mode(struct rstream *rs, enum rstream_mode mode,
		      enum rstream_reason reason)
{
	static const u8 from[] = {	/* allowed predecessors */
		[RSTREAM_IDLE] = 0xff,
		[RSTREAM_LISTEN] = BIT(RSTREAM_IDLE),
		[RSTREAM_CONNECTING] = BIT(RSTREAM_IDLE),
		[RSTREAM_ASKED] = BIT(RSTREAM_IDLE),
		[RSTREAM_FRAMED] = BIT(RSTREAM_CONNECTING) | BIT(RSTREAM_ASKED),
		[RSTREAM_RAW] = BIT(RSTREAM_IDLE) | BIT(RSTREAM_CONNECTING) |
				BIT(RSTREAM_ASKED),
	};

	if (WARN_ON_ONCE(!(from[mode] & BIT(rs->mode))))
		return;
	rs->reason = reason;
	WRITE_ONCE(rs->mode, mode);
	if (mode == RSTREAM_RAW)
		trace_rstream_fallback(rs->sk, 0, reason);
}

void rstream_register(struct rstream *rs)
{
	struct rstream_net *rn = rs->rn;

	do {
		get_random_bytes(&rs->ticket.ours, sizeof(rs->ticket.ours));
	} while (!rs->ticket.ours.token);
	spin_lock_bh(&rn->streams_lock);
	hlist_add_head_rcu(&rs->token_node,
			   &rn->tokens[rs->ticket.ours.token & 0xff]);
	spin_unlock_bh(&rn->streams_lock);
	rs->registered = true;
	rstream_link_use(rn->net);
}

static void unregister(struct rstream *rs)
{
	struct rstream_net *rn = rs->rn;

	if (!rs->registered)
		return;
	rs->registered = false;
	spin_lock_bh(&rn->streams_lock);
	hlist_del_rcu(&rs->token_node);
	spin_unlock_bh(&rn->streams_lock);
	rstream_link_unuse(rn->net);
}

bool rstream_ticket_find(struct net *net, struct rstream_ticket *ticket,
			 struct rstream_peer_name *name)
{
	struct rstream_net *rn = rstream_net(net);
	struct rstream *rs;
	bool found = false;

	rcu_read_lock();
	hlist_for_each_entry_rcu(rs, &rn->tokens[ticket->ours.token & 0xff],
				 token_node) {
		/* the rest is written: pairs with rstream_hello_got() */
		u64 theirs = smp_load_acquire(&rs->ticket.theirs.token);

		if (rs->ticket.ours.token != ticket->ours.token || !theirs ||
		    theirs != ticket->theirs.token)
			continue;
		*ticket = rs->ticket;
		*name = rs->hello.name;
		found = true;
		break;
	}
	rcu_read_unlock();
	return found;
}

/* All that a connection holds. */
static void drop_connection(struct rstream *rs)
{
	rstream_close_release(rs);
	unregister(rs);
	if (rs->stats.stalls.why)
		rstream_stalled(rs, RSTREAM_R_NONE);
	rstream_rings_close(rs);
	if (rs->hello.peer) {
		rstream_peer_forget(rs->hello.peer, rs);
		rstream_peer_put(rs->hello.peer);
		rs->hello.peer = NULL;
	}
	rstream_tx_free(rs);
	rstream_rx_free(rs);
	rstream_timer(rs, 0);
	sk_stop_timer(rs->sk, &rs->retry_timer);
}

/* Of a new connection, what is not zero. */
static void connection_init(struct rstream *rs)
{
	INIT_LIST_HEAD(&rs->txq.frags);
	__skb_queue_head_init(&rs->rxq.skbs);
	rstream_lent_init(rs);
}

/* What is left is as after socket(), but for what the program has set. */
void rstream_reset_state(struct rstream *rs)
{
	rstream_assert_held(rs);
	drop_connection(rs);
	rstream_option_off(rs);
	rstream_unhook_callbacks(rs->sk);
	memset(&rs->connection, 0, sizeof(rs->connection));
	connection_init(rs);
	if (rs->hist)
		memset(rs->hist, 0, sizeof(*rs->hist));
	WRITE_ONCE(rs->todo, 0);	/* work that is queued finds nothing */
	rstream_set_mode(rs, RSTREAM_IDLE, RSTREAM_R_NONE);
}

struct rstream *rstream_new(gfp_t gfp)
{
	struct rstream *rs = kmem_cache_alloc(stream_cache, gfp);

	if (rs)
		memset(rs, 0, offsetof(struct rstream, ctl));
	return rs;
}

/* One that has never been attached. */
void rstream_discard(struct rstream *rs)
{
	kmem_cache_free(stream_cache, rs);
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
	timer_setup(&rs->timer, on_timer, 0);
	timer_setup(&rs->retry_timer, on_retry_timer, 0);
	connection_init(rs);

	__module_get(THIS_MODULE);	/* put by tcp_cleanup_ulp() */
	rcu_assign_pointer(icsk->icsk_ulp_data, rs);
	WRITE_ONCE(icsk->icsk_ulp_ops, &rstream_ulp_ops);
	if (!sk->sk_socket) {
		/* a child that nobody has accepted; TCP's send wants a socket */
		write_lock_bh(&sk->sk_callback_lock);
		sk_set_socket(sk, rstream_nobody);
		rcu_assign_pointer(sk->sk_wq, &rstream_nobody->wq);
		write_unlock_bh(&sk->sk_callback_lock);
	}
	spin_lock_bh(&rn->streams_lock);
	list_add_tail_rcu(&rs->node, &rn->streams);
	rn->n_streams++;
	spin_unlock_bh(&rn->streams_lock);
}

static void rstream_ulp_release(struct sock *sk)
{
	struct rstream_net *rn = rstream_net(sock_net(sk));
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct rstream *rs = rstream_of(sk);

	drop_connection(rs);
	rstream_option_off(rs);
	rstream_unhook_callbacks(sk);
	spin_lock_bh(&rn->streams_lock);
	list_del_rcu(&rs->node);
	rn->n_streams--;
	spin_unlock_bh(&rn->streams_lock);
	RCU_INIT_POINTER(icsk->icsk_ulp_data, NULL);
	stream_put(rs);
}

/* The child of a listener of ours starts as plain TCP. */
static void rstream_ulp_clone(const struct request_sock *req,
			      struct sock *child, const gfp_t priority)
{
	struct inet_connection_sock *icsk = inet_csk(child);

	icsk->icsk_ulp_ops = NULL;
	RCU_INIT_POINTER(icsk->icsk_ulp_data, NULL);
	rstream_unhook_callbacks(child);
	icsk->icsk_af_ops = child->sk_family == AF_INET ?
			    rstream_tcp4.af_ops : rstream_tcp6.af_ops;
}

static int rstream_ulp_init(struct sock *sk)
{
	return -EOPNOTSUPP;	/* not by setsockopt(TCP_ULP) */
}

/*
 * Never registered by name, so that no program can ask for it; `ss -i` shows
 * the name.
 */
struct tcp_ulp_ops rstream_ulp_ops = {
	.name = "rdmastream",
	.owner = THIS_MODULE,
	.init = rstream_ulp_init,
	.release = rstream_ulp_release,
	.clone = rstream_ulp_clone,
};

/* ---- module and namespace ---- */

void rstream_stream_net_init(struct rstream_net *rn)
{
	int i;

	spin_lock_init(&rn->streams_lock);
	INIT_LIST_HEAD(&rn->streams);
	mutex_init(&rn->hook_lock);
	for (i = 0; i < ARRAY_SIZE(rn->tokens); i++)
		INIT_HLIST_HEAD(&rn->tokens[i]);
}

/* Learn what a TCP socket of this family looks like inside. */
static int learn(int family, struct rstream_tcp *tcp)
{
	struct socket *sock;
	int err = sock_create_kern(&init_net, family, SOCK_STREAM, IPPROTO_TCP,
				   &sock);

	if (err)
		return err;
	tcp->prot = sock->sk->sk_prot;
	tcp->ops = sock->ops;
	tcp->af_ops = inet_csk(sock->sk)->icsk_af_ops;
	tcp->data_ready = sock->sk->sk_data_ready;
	tcp->write_space = sock->sk->sk_write_space;
	tcp->state_change = sock->sk->sk_state_change;
	sock_release(sock);
	return 0;
}

int rstream_stream_init(void)
{
	int err = learn(AF_INET, &rstream_tcp4);

	if (err)
		return err;
	err = learn(AF_INET6, &rstream_tcp6);
	if (err == -EAFNOSUPPORT)
		pr_info("no IPv6 in this kernel\n");
	else if (err)
		return err;
	err = sock_create_lite(AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       &rstream_nobody);
	if (err)
		return err;
	/* TCP calls sk_write_space() only where somebody waits for it */
	set_bit(SOCK_NOSPACE, &rstream_nobody->flags);
	err = -ENOMEM;
	stream_cache = KMEM_CACHE(rstream, SLAB_ACCOUNT);
	if (!stream_cache)
		goto no_cache;
	stream_wq = alloc_workqueue("rdmastream",
				    WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!stream_wq)
		goto no_wq;
	return 0;

no_wq:
	kmem_cache_destroy(stream_cache);
no_cache:
	sock_release(rstream_nobody);
	return err;
}

void rstream_stream_exit(void)
{
	destroy_workqueue(stream_wq);
	rcu_barrier();		/* kfree_rcu() and callbacks still running */
	kmem_cache_destroy(stream_cache);
	sock_release(rstream_nobody);
}
