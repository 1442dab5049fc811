// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a stream: allocation, registration with its namespace, mode, failure, deferred
 * work.  Calls no other file of socket/; they all call this one.
 *
 * What may refer to a struct rstream, and why that is safe:
 *  1. its sock (icsk_ulp_data), until rstream_ulp_release(), which TCP calls
 *     with the socket held while it destroys it;
 *  2. queued work: holds the sock and a reference of its own;
 *  3. the timers: hold the sock, by sk_reset_timer();
 *  4. the namespace's tables by number and token, read under RCU or streams_lock: removed in
 *     rstream_ulp_release(), and freed by RCU;
 *  5. rings and the peer's waiters: removed in rstream_ulp_release(), under a lock that
 *     ensures that no callback runs afterwards (link.h).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "base/stats.h"
#include "base/trace.h"
#include "stream.h"

struct rstream_tcp rstream_tcp4, rstream_tcp6;
struct socket *rstream_dummy_socket;

static struct kmem_cache *stream_cache;
static struct workqueue_struct *stream_wq;
/*
 * tcp_abort() waits for the owner of the socket, which may be a program that owns it for as long as
 * it likes.  So the second one is for sockets that were owned before: the others need not wait for
 * them.
 */
static struct workqueue_struct *abort_wqs[2];

static void stream_free_rcu(struct rcu_head *head)
{
	struct rstream *rs = container_of(head, struct rstream, rcu);

	kfree(rs->hist);
	kfree(rs->rules);
	kmem_cache_free(stream_cache, rs);
}

void rstream_stream_put(struct rstream *rs)
{
	if (refcount_dec_and_test(&rs->ref))
		call_rcu(&rs->rcu, stream_free_rcu);
}

/* ---- TCP's callbacks and wake-ups, socket held ---- */

void rstream_unhook(struct sock *sk)
{
	WRITE_ONCE(sk->sk_data_ready, rstream_tcp4.data_ready);
	WRITE_ONCE(sk->sk_write_space, rstream_tcp4.write_space);
	WRITE_ONCE(sk->sk_state_change, rstream_tcp4.state_change);
}

void rstream_wake(struct rstream *rs)
{
	rstream_tcp4.data_ready(rs->sk);
}

/* As sock_def_readable(), without SIGIO. */
void rstream_wake_sleepers(struct rstream *rs)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(rs->sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_sync_poll(&wq->wait, EPOLLIN | EPOLLPRI | EPOLLRDNORM |
						EPOLLRDBAND);
	rcu_read_unlock();
}

/* No program has this sock, but TCP's send needs a struct socket. */
void rstream_set_dummy(struct sock *sk)
{
	kuid_t uid = sk->sk_uid;

	write_lock_bh(&sk->sk_callback_lock);
	sk_set_socket(sk, rstream_dummy_socket);
	WRITE_ONCE(sk->sk_uid, uid);	/* 6.17 and later have set it to the dummy's */
	rcu_assign_pointer(sk->sk_wq, &rstream_dummy_socket->wq);
	write_unlock_bh(&sk->sk_callback_lock);
}

/* ---- deferred work ---- */

void rstream_queue(struct rstream *rs, enum rstream_todo what)
{
	set_bit(what, &rs->todo);
	sock_hold(rs->sk);
	refcount_inc(&rs->ref);
	if (queue_delayed_work(stream_wq, &rs->work, 0))
		return;
	/* there is something new: don't let the work wait longer for a socket that was owned */
	if (!READ_ONCE(rs->late) || mod_delayed_work(stream_wq, &rs->work, 0)) {
		/* never the last ones: the work that was queued before has its own */
		refcount_dec(&rs->ref);
		__sock_put(rs->sk);
	}
}

/*
 * The work could not be done: queue it again, with the references that it has, after @delay
 * jiffies.  Return: false if it is queued already, so that the references are not needed.
 */
bool rstream_queue_again(struct rstream *rs, unsigned long todo, unsigned long delay)
{
	unsigned int bit;

	for_each_set_bit(bit, &todo, BITS_PER_LONG)
		set_bit(bit, &rs->todo);
	return queue_delayed_work(stream_wq, &rs->work, delay);
}

void rstream_queue_abort(struct rstream *rs)
{
	sock_hold(rs->sk);
	refcount_inc(&rs->ref);
	if (!queue_work(abort_wqs[READ_ONCE(rs->abort_late)], &rs->abort_work)) {
		refcount_dec(&rs->ref);		/* as in rstream_queue() */
		__sock_put(rs->sk);
	}
}

/*
 * Wait for a pending abort of the previous connection, so that it does not hit the next one.
 * Without the lock.
 */
void rstream_abort_wait(struct rstream *rs)
{
	flush_work(&rs->abort_work);
}

/*
 * lock_sock() for a call that may begin a connection.  Likewise: another thread may have ended the
 * previous one since an abort was queued.
 */
void rstream_abort_lock(struct rstream *rs)
{
	lock_sock(rs->sk);
	while (rs->mode == RSTREAM_IDLE && work_busy(&rs->abort_work)) {
		release_sock(rs->sk);
		rstream_abort_wait(rs);
		lock_sock(rs->sk);
	}
}

/*
 * Called with the lock, which it releases while it waits.  A call after a failure lets the abort
 * run first: otherwise it might own the socket for long, and delay the abort.
 */
void rstream_abort_first(struct rstream *rs)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	long timeo = HZ;

	add_wait_queue(sk_sleep(sk), &wait);
	release_sock(sk);
	rstream_queue_abort(rs);	/* not before: it must not find the socket owned */
	while (timeo && READ_ONCE(sk->sk_state) != TCP_CLOSE && !signal_pending(current))
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
	lock_sock(sk);
	remove_wait_queue(sk_sleep(sk), &wait);
}

/* Push and parse again at @at, in jiffies, or earlier. */
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

/* ---- the end ---- */

void rstream_shut(struct rstream *rs, u8 how)
{
	u8 now = rs->shutdown | how;

	if (now != rs->shutdown && now == SHUTDOWN_MASK)
		rs->shut_seq = tcp_sk(rs->sk)->rcv_nxt;
	WRITE_ONCE(rs->shutdown, now);
}

/* Send TCP's FIN, after all that TCP was given.  Socket held. */
void rstream_shutdown_tcp(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return;
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | SEND_SHUTDOWN);
	sk->sk_prot->shutdown(sk, SEND_SHUTDOWN);
}

/* Return: false if it has failed before. */
static bool note_failure(struct rstream *rs, enum rstream_reason reason, int error)
{
	if (cmpxchg(&rs->error, 0, error))
		return false;
	WRITE_ONCE(rs->reason, reason);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_RESETS);
	rstream_mib_reason(rs->rn, reason);
	trace_rstream_reset(rs->sk, 0, reason);
	return true;
}

void rstream_fail(struct rstream *rs, enum rstream_reason reason, int error)
{
	if (note_failure(rs, reason, error))
		rstream_queue(rs, RSTREAM_DO_RESET);
}

/*
 * TCP is closed, so there is nothing to reset: only report it, at once, before the program can
 * take it for the end of the stream.  Socket held.
 */
void rstream_fail_closed(struct rstream *rs, enum rstream_reason reason, int error)
{
	if (!note_failure(rs, reason, error))
		return;
	WRITE_ONCE(rs->sk->sk_err, error);
	sk_error_report(rs->sk);
}

/* ---- timers ---- */

/* The timer holds the sock, so rs exists, or is to be freed by RCU. */
static void timer_queue(struct rstream *rs, enum rstream_todo what)
{
	struct sock *sk = rs->sk;

	if (refcount_inc_not_zero(&rs->ref)) {
		rstream_queue(rs, what);
		rstream_stream_put(rs);
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

void rstream_timers_init(struct rstream *rs)
{
	timer_setup(&rs->timer, on_timer, 0);
	timer_setup(&rs->retry_timer, on_retry_timer, 0);
}

void rstream_timer(struct rstream *rs, unsigned int ms)
{
	if (ms)
		sk_reset_timer(rs->sk, &rs->timer,
			       jiffies + msecs_to_jiffies(ms));
	else if (timer_pending(&rs->timer))
		sk_stop_timer(rs->sk, &rs->timer);
}

/*
 * As rstream_timer(), unless the stream is closed, or the timer runs already and expires earlier,
 * or for a HELLO.
 */
void rstream_timer_soon(struct rstream *rs, unsigned int ms)
{
	if (rstream_closed(rs))
		return;
	if (!timer_pending(&rs->timer) ||
	    (rs->hello.in && time_before(jiffies + msecs_to_jiffies(ms), rs->timer.expires)))
		rstream_timer(rs, ms);
}

static void try_again(struct rstream *rs)
{
	/* as rstream_info_dump() does */
	if (rstream_mode(rs) != RSTREAM_FRAMED || !refcount_inc_not_zero(&rs->sk->sk_refcnt))
		return;
	WRITE_ONCE(rs->granted.link_asked, 0);
	timer_queue(rs, RSTREAM_DO_GRANT);
}

/* Whether links are possible has changed: all streams try again to get a ring. */
void rstream_links_changed(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);
	struct rstream *rs;
	int i;

	for (i = 0; i < ARRAY_SIZE(rn->numbered); i++) {
		rcu_read_lock();
		hlist_for_each_entry_rcu(rs, &rn->numbered[i], number_node)
			try_again(rs);
		rcu_read_unlock();
		cond_resched();
	}
}

/*
 * Takes over a reference to the sock.  It does not keep @rs once TCP has closed, so the caller is
 * under RCU.
 */
static int make_link(struct rstream *rs, bool any_user)
{
	int err = 0;

	if (!any_user && !uid_eq(rstream_sk_uid(rs->sk), current_fsuid()))
		err = -EPERM;
	else if (rstream_mode(rs) != RSTREAM_FRAMED)
		err = -ENOTCONN;
	if (err)
		sock_gen_put(rs->sk);
	else
		timer_queue(rs, RSTREAM_DO_LINK);
	return err;
}

static int make_link_in(struct hlist_head *list, u64 inode, bool any_user)
{
	struct rstream *rs;

	hlist_for_each_entry_rcu(rs, list, number_node) {
		/* as rstream_info_dump() does */
		if (!refcount_inc_not_zero(&rs->sk->sk_refcnt))
			continue;
		if (rstream_of(rs->sk) == rs && sock_i_ino(rs->sk) == inode)
			return make_link(rs, any_user);
		sock_gen_put(rs->sk);
	}
	return -ENOENT;
}

/*
 * Request a link for the connection with this inode.  Return: 0, -ENOENT: there is none,
 * -ENOTCONN: it has no records, -EPERM: it is another user's.
 */
int rstream_make_link(struct net *net, u64 inode, bool any_user)
{
	struct rstream_net *rn = rstream_net(net);
	int i, err = -ENOENT;

	for (i = 0; i < ARRAY_SIZE(rn->numbered) && err == -ENOENT; i++) {
		rcu_read_lock();
		err = make_link_in(&rn->numbered[i], inode, any_user);
		rcu_read_unlock();
		cond_resched();
	}
	return err;
}

/* ---- mode, tickets ---- */

void rstream_set_mode(struct rstream *rs, enum rstream_mode mode,
		      enum rstream_reason reason)
{
	static const u8 from[] = {	/* allowed predecessors */
		[RSTREAM_IDLE] = 0xff,
		[RSTREAM_LISTEN] = BIT(RSTREAM_IDLE),
		[RSTREAM_CONNECTING] = BIT(RSTREAM_IDLE),
		[RSTREAM_ASKED] = BIT(RSTREAM_IDLE),
		[RSTREAM_FRAMED] = BIT(RSTREAM_CONNECTING) | BIT(RSTREAM_ASKED),
		[RSTREAM_GUARDED] = BIT(RSTREAM_ASKED),
		[RSTREAM_FALLBACK] = BIT(RSTREAM_IDLE) | BIT(RSTREAM_CONNECTING) |
				BIT(RSTREAM_ASKED) | BIT(RSTREAM_GUARDED),
	};

	if (WARN_ON_ONCE(!(from[mode] & BIT(rs->mode))))
		return;
	rs->reason = reason;
	WRITE_ONCE(rs->mode, mode);
}

/* The connection stays plain TCP. */
void rstream_note_fallback(struct rstream *rs, enum rstream_reason reason)
{
	WRITE_ONCE(rs->reason, reason);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_FALLBACKS);
	rstream_mib_reason(rs->rn, reason);
	trace_rstream_fallback(rs->sk, 0, reason);
}

void rstream_register(struct rstream *rs)
{
	struct rstream_net *rn = rs->rn;

	do {
		get_random_bytes(&rs->ticket.ours, sizeof(rs->ticket.ours));
	} while (!rs->ticket.ours.token);
	spin_lock_bh(&rn->streams_lock);
	hlist_nulls_add_head_rcu(&rs->token_node, &rn->tokens[(u8)rs->ticket.ours.token]);
	spin_unlock_bh(&rn->streams_lock);
	rstream_link_net_use(rn->net, rs->sk->sk_memcg);
}

void rstream_unregister(struct rstream *rs)
{
	struct rstream_net *rn = rs->rn;

	if (!rstream_registered(rs))
		return;
	/* before anything else of the connection is cleared */
	WRITE_ONCE(rs->ticket.theirs.token, 0);
	smp_wmb();	/* pairs with rstream_ticket_find() */
	spin_lock_bh(&rn->streams_lock);
	hlist_nulls_del_init_rcu(&rs->token_node);
	spin_unlock_bh(&rn->streams_lock);
	rstream_link_net_unuse(rn->net);
}

bool rstream_ticket_find(struct net *net, struct rstream_ticket *ticket,
			 struct rstream_peer_name *name)
{
	struct rstream_net *rn = rstream_net(net);
	u8 list = ticket->ours.token;
	struct hlist_nulls_node *pos;
	struct rstream *rs;
	bool found = false;

	rcu_read_lock();
again:
	hlist_nulls_for_each_entry_rcu(rs, pos, &rn->tokens[list], token_node) {
		/* pairs with rstream_hello_got(), which writes the rest before */
		u64 theirs = smp_load_acquire(&rs->ticket.theirs.token);

		if (rs->ticket.ours.token != ticket->ours.token || !theirs ||
		    theirs != ticket->theirs.token)
			continue;
		*ticket = rs->ticket;
		*name = rs->hello.name;
		/* pairs with rstream_unregister(): what we have copied is of one connection */
		smp_rmb();
		found = READ_ONCE(rs->ticket.theirs.token) == theirs;
		break;
	}
	/* a stream may have led us to another list: it was disconnected and connected again */
	if (!found && is_a_nulls(pos) && get_nulls_value(pos) != list)
		goto again;
	rcu_read_unlock();
	return found;
}

struct rstream *rstream_new(gfp_t gfp)
{
	/* zero all of it: most kernels zero allocations in any case */
	return kmem_cache_zalloc(stream_cache, gfp);
}

/* Free a stream that was never attached. */
void rstream_discard(struct rstream *rs)
{
	kmem_cache_free(stream_cache, rs);
}

/* ---- module and namespace ---- */

void rstream_stream_net_init(struct rstream_net *rn)
{
	int i;

	spin_lock_init(&rn->streams_lock);
	for (i = 0; i < ARRAY_SIZE(rn->numbered); i++)
		INIT_HLIST_HEAD(&rn->numbered[i]);
	for (i = 0; i < ARRAY_SIZE(rn->tokens); i++)
		INIT_HLIST_NULLS_HEAD(&rn->tokens[i], i);
}

/* Look up TCP's ops and callbacks for this family in a TCP socket. */
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
			       &rstream_dummy_socket);
	if (err)
		return err;
	/* as TCP says of a sock that no program has */
	SOCK_INODE(rstream_dummy_socket)->i_ino = 0;
	/* TCP calls sk_write_space() only if somebody waits for it */
	set_bit(SOCK_NOSPACE, &rstream_dummy_socket->flags);
	err = -ENOMEM;
	stream_cache = KMEM_CACHE(rstream, SLAB_ACCOUNT);
	if (!stream_cache)
		goto no_cache;
	stream_wq = alloc_workqueue("rdmastream",
				    WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!stream_wq)
		goto no_wq;
	abort_wqs[0] = alloc_workqueue("rdmastream_abort", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!abort_wqs[0])
		goto no_abort_wq;
	abort_wqs[1] = alloc_workqueue("rdmastream_late", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!abort_wqs[1])
		goto no_late_wq;
	return 0;

no_late_wq:
	destroy_workqueue(abort_wqs[0]);
no_abort_wq:
	destroy_workqueue(stream_wq);
no_wq:
	kmem_cache_destroy(stream_cache);
no_cache:
	sock_release(rstream_dummy_socket);
	return err;
}

void rstream_stream_exit(void)
{
	/* this work may queue aborts, and aborts may queue such work */
	flush_workqueue(stream_wq);
	destroy_workqueue(abort_wqs[0]);
	destroy_workqueue(abort_wqs[1]);
	destroy_workqueue(stream_wq);
	rcu_barrier();		/* for call_rcu() and pending callbacks */
	kmem_cache_destroy(stream_cache);
	sock_release(rstream_dummy_socket);
}
