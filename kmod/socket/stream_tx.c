// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the program to the transmit queue: send calls on a connection with
 * records.  What is queued here the carriers take (rstream_push()).
 *
 * The queue is made of page fragments.  A byte is copied once, into the
 * fragment, or not at all (stream_page.c); TCP and the RDMA device get the pages
 * by reference; few bytes in a record TCP copies.
 */
#include <linux/bvec.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "stream.h"

/* Bytes copied between two pushes, so that carrier and copy overlap. */
#define PUSH_EVERY	(128 * 1024)

/*
 * Bytes that may be queued or unacknowledged.  TCP's own autotuning of the
 * send buffer learns nothing while a ring carries the bytes.
 */
u64 rstream_tx_limit(const struct rstream *rs)
{
	u64 limit = READ_ONCE(rs->sk->sk_sndbuf), ring;

	if (rs->tx.state < RSTREAM_ON_RING)
		return limit;
	ring = min_t(u64, rs->taken.size, RSTREAM_RING_MAX);
	/* what the peer's kernel has is no matter of a send buffer: see SO_RCVLOWAT there */
	if (rs->sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		return limit + ring;
	return max_t(u64, limit, 2 * ring);
}

/*
 * What no carrier has sent yet: TCP_NOTSENT_LOWAT bounds it.  On the tcp carrier
 * some of it is in TCP's queue.
 */
u64 rstream_tx_unsent(const struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);
	u64 queued = READ_ONCE(rs->tx.written) - READ_ONCE(rs->tx.sent);

	if (READ_ONCE(rs->tx.state) >= RSTREAM_ON_RING)
		return queued;
	return queued + (READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt));
}

/* What is queued, with what keeps it: a byte that stands alone takes a fragment. */
u64 rstream_tx_used(const struct rstream *rs)
{
	return READ_ONCE(rs->txq.mem) + READ_ONCE(rs->txq.cost) +
	       READ_ONCE(rs->sk->sk_wmem_queued);
}

/* As sk_stream_is_writeable(): a third must be free. */
bool rstream_tx_room(const struct rstream *rs)
{
	u64 used = rstream_tx_used(rs);
	u64 limit = rstream_tx_limit(rs);

	return used < limit && limit - used >= used / 2 &&
	       rstream_tx_unsent(rs) * 2 < tcp_notsent_lowat(tcp_sk(rs->sk));
}

static u64 room(struct rstream *rs)
{
	u64 used = rstream_tx_used(rs);
	u64 limit = rstream_tx_limit(rs);

	if (rstream_tx_unsent(rs) >= tcp_notsent_lowat(tcp_sk(rs->sk)))
		return 0;
	return used < limit ? limit - used : 0;
}

/*
 * Wake writers as sk_stream_write_space() does: those who have found no room.  Who
 * waits for an edge would take any other wake-up for one.
 */
void rstream_wake_writers(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	struct socket_wq *wq;

	if (!rstream_tx_room(rs) || !sk->sk_socket)
		return;
	/* while TCP has no room for us either, it has to call us */
	if (sk->sk_socket != rstream_nobody && !rs->out.blocked && !rs->out.gathers)
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* pairs with rstream_poll(): it sees room, or is seen to ask for it */
	smp_mb();
	if (!READ_ONCE(rs->txq.room_asked))
		return;
	WRITE_ONCE(rs->txq.room_asked, false);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	if (wq && wq->fasync_list && !(rs->shutdown & SEND_SHUTDOWN))
		sock_wake_async(wq, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/* ---- cork ---- */

/* As long as TCP holds back what is corked. */
#define HOLD_MS	200

/*
 * MSG_MORE or TCP_CORK: a segment that is not full waits for more, for a while.
 * @more: more will follow
 */
void rstream_hold(struct rstream *rs, bool more)
{
	if (!more || rs->tx.written - rs->tx.sent >= tcp_sk(rs->sk)->mss_cache) {
		rs->txq.held = false;
		return;
	}
	if (!rs->txq.held)
		rs->txq.held_at = jiffies;
	rs->txq.held = true;
	rstream_held_look(rs);
}

/* Has it been held for long enough?  Otherwise, look again then. */
void rstream_held_look(struct rstream *rs)
{
	unsigned long end = rs->txq.held_at + msecs_to_jiffies(HOLD_MS);

	if (!rs->txq.held)
		return;
	if (time_after_eq(jiffies, end))
		rs->txq.held = false;
	else
		rstream_retry_by(rs, end);
}

/* ---- gathering ---- */

/* So many bytes wait for no others.  They must not fill a small SO_SNDBUF. */
static u64 gather_max(const struct rstream *rs)
{
	return min_t(u64, SZ_16K, rstream_tx_limit(rs) / 4);
}

/*
 * May bytes that are @queued wait for what is on its way, to go together?  What is
 * urgent, and the last, does not wait.
 */
bool rstream_may_gather(const struct rstream *rs, u64 queued)
{
	return queued < gather_max(rs) && rs->urg.sent <= rs->tx.sent &&
	       !(rs->shutdown & SEND_SHUTDOWN);
}

/* Do they wait?  Then they are sent when it is there, without being pushed. */
static bool gathers(const struct rstream *rs)
{
	bool waits = rs->tx.state == RSTREAM_ON_RING ? rstream_ring_gathers(rs) :
						       rs->out.gathers;

	return waits && !rs->want && !rs->out.blocked &&
	       rstream_may_gather(rs, rs->tx.written - rs->tx.sent);
}

/* ---- state ---- */

/* Is everything that the program wrote, and FIN, out of our hands? */
bool rstream_tx_done(struct rstream *rs)
{
	if (!list_empty(&rs->txq.frags) || rs->out.ctl_len || rs->out.rec_left ||
	    rs->want || !rs->tx.fin)
		return false;
	if (!rs->txring)
		return true;
	/* no RESUME can come any more: what has landed is all that can be done */
	if (rs->sk->sk_shutdown & RCV_SHUTDOWN)
		return rs->tx.state != RSTREAM_LOST &&
		       rstream_txring_sent(rs->txring);
	/* until the peer's kernel has it, it may have to be sent again */
	return rs->tx.acked == rs->tx.sent ||
	       rstream_txring_acked(rs->txring) == (s64)rs->txring->written;
}

/*
 * As SIOCOUTQ counts: what the peer's kernel is not known to have.  On a ring
 * that is what has not completed; asking makes the last ones complete.
 */
u64 rstream_tx_unacked(struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);
	u64 queued = rs->tx.written - rs->tx.sent;

	/* records that TCP has not acknowledged count, too */
	if (rs->tx.state == RSTREAM_LOST)
		return rs->tx.written - rs->tx.acked;
	if (rs->tx.state < RSTREAM_ON_RING)
		return queued + tp->write_seq - tp->snd_una;
	rstream_tx_reap(rs);
	if (!rs->txring || rstream_txring_sent(rs->txring))
		return queued;
	return rs->txq.mem;
}

/* @n bytes, and frags that cost @cost, are with TCP or acknowledged. */
void rstream_tx_gone(struct rstream *rs, size_t n, size_t cost)
{
	rs->txq.mem -= n;
	rs->txq.cost -= cost;
	sk_mem_uncharge(rs->sk, n + cost);
}

void rstream_tx_free(struct rstream *rs)
{
	struct rstream_frag *frag, *next;

	list_for_each_entry_safe(frag, next, &rs->txq.frags, list) {
		list_del(&frag->list);
		rstream_frag_free(frag);
	}
	rstream_tx_gone(rs, rs->txq.mem, rs->txq.cost);
}

/* @n bytes more are in @frag, the last of the queue; all that it takes was scheduled. */
void rstream_tx_queued(struct rstream *rs, struct rstream_frag *frag, size_t n,
		       enum rstream_mib_item how)
{
	size_t cost = frag->charged ? 0 : RSTREAM_FRAG_COST;

	if (cost)
		frag->charged = cost;
	rs->txq.mem += n;
	rs->txq.cost += cost;
	sk_mem_charge(rs->sk, n + cost);
	rs->tx.written += n;
	rstream_mib_add(rs->rn, how, n);
}

/* The last fragment, if bytes at @pfrag's offset would continue it. */
static struct rstream_frag *tail_frag(struct rstream *rs,
				      const struct page_frag *pfrag)
{
	struct rstream_frag *frag;

	if (list_empty(&rs->txq.frags))
		return NULL;
	frag = list_last_entry(&rs->txq.frags, struct rstream_frag, list);
	return frag->page == pfrag->page && !frag->uarg &&
	       frag->off + frag->len == pfrag->offset ? frag : NULL;
}

#define REFILL_LEAST	32	/* as sk_page_frag_refill() has it */

static bool used_up(const struct page_frag *pfrag)
{
	/* a page that nobody else refers to begins anew */
	return !pfrag->page || (pfrag->offset + REFILL_LEAST > pfrag->size &&
				page_ref_count(pfrag->page) > 1);
}

/* As sk_page_frag_refill(), but first of what the ring's link has sent. */
static bool refill(struct rstream *rs, struct page_frag *pfrag)
{
	struct page *page = NULL;

	if (rs->txring && used_up(pfrag))
		page = rstream_txring_spare(rs->txring);
	if (!page)
		return sk_page_frag_refill(rs->sk, pfrag);
	if (pfrag->page)
		put_page(pfrag->page);
	*pfrag = (struct page_frag){ .page = page, .size = RSTREAM_SPARE_SIZE };
	return true;
}

/*
 * How many of @n bytes, in @frags fragments at most, is there memory for?  While little is
 * queued some go in any case, as with TCP: somebody who waits for them may be what keeps
 * the memory.  They are charged beyond what was scheduled, which comes back with them.
 */
size_t rstream_tx_schedule(struct rstream *rs, size_t n, unsigned int frags)
{
	struct sock *sk = rs->sk;
	s64 left;

	if (sk_wmem_schedule(sk, n + frags * RSTREAM_FRAG_COST))
		return n;
	left = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[0]);
	left -= rstream_tx_used(rs);
	return clamp_t(s64, left, 0, n);
}

/*
 * Copy up to @max bytes into one fragment.
 * Return: bytes, -EFAULT, or -EAGAIN if memory has to be waited for.
 */
static ssize_t copy_some(struct rstream *rs, struct msghdr *msg, u64 max)
{
	struct sock *sk = rs->sk;
	struct page_frag *pfrag = sk_page_frag(sk);
	struct rstream_frag *frag;
	bool fresh = false;
	size_t n, got;

	if (!refill(rs, pfrag))
		return -EAGAIN;
	n = min3((u64)msg_data_left(msg), max,
		 (u64)(pfrag->size - pfrag->offset));
	n = rstream_tx_schedule(rs, n, 1);
	if (!n)
		return -EAGAIN;
	frag = tail_frag(rs, pfrag);
	if (!frag) {
		frag = rstream_frag_alloc(sk->sk_allocation);
		if (!frag)
			return -EAGAIN;
		frag->page = pfrag->page;
		frag->off = pfrag->offset;
		frag->copied = true;
		get_page(frag->page);
		fresh = true;
	}
	got = copy_page_from_iter(pfrag->page, pfrag->offset, n,
				  &msg->msg_iter);
	if (got < n) {		/* all or nothing, as TCP */
		iov_iter_revert(&msg->msg_iter, got);
		if (fresh)
			rstream_frag_free(frag);
		return -EFAULT;
	}
	frag->len += n;
	if (fresh)
		list_add_tail(&frag->list, &rs->txq.frags);
	pfrag->offset += n;
	rstream_tx_queued(rs, frag, n, RSTREAM_MIB_SENT_COPY_BYTES);
	return n;
}

/*
 * Queue some of the message, up to @max bytes.
 * @pages:	the caller refers to pages
 * @uarg:	the program's memory is to be sent as it is; or NULL
 */
static ssize_t queue_some(struct rstream *rs, struct msghdr *msg, u64 max,
			  bool pages, struct ubuf_info *uarg)
{
	ssize_t n = 0;

	if (uarg)
		return rstream_tx_pin(rs, msg, max, uarg);
	if (pages) {
		n = rstream_tx_refer(rs, msg, max);
		/* not those behind it, which are perhaps worth it */
		max = min_t(u64, max, iov_iter_single_seg_count(&msg->msg_iter));
	}
	return n ?: copy_some(rs, msg, max);
}

static int tx_error(struct rstream *rs)
{
	if (rs->sk->sk_err)
		return sock_error(rs->sk);
	if (rs->error)
		return -rs->error;
	if (rs->shutdown & SEND_SHUTDOWN || rs->sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	return 0;
}

/* Something that ends a wait for room; leaves sk_err to be fetched. */
static bool tx_over(const struct rstream *rs)
{
	return READ_ONCE(rs->sk->sk_err) || READ_ONCE(rs->error) ||
	       READ_ONCE(rs->shutdown) & SEND_SHUTDOWN ||
	       READ_ONCE(rs->sk->sk_shutdown) & SEND_SHUTDOWN;
}

/* Tell everybody who could make room that a writer waits for it. */
void rstream_ask_room(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	WRITE_ONCE(rs->txq.room_asked, true);
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	rstream_tx_waits(rs);
}

/*
 * There is room but no memory, for the host or for the control group: nobody
 * tells when that changes, so look again in a while, as TCP does.
 */
static int wait_memory(struct rstream *rs, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	long nap, left;
	int err;

	if (!*timeo) {
		rstream_ask_room(rs);
		rstream_retry(rs, RSTREAM_RETRY_MS);	/* wakes those who wait for an edge */
		return -EAGAIN;
	}
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	nap = min_t(long, *timeo, HZ / 50 + 2);
	left = nap;
	add_wait_queue(sk_sleep(sk), &wait);
	err = sk_wait_event(sk, &left, tx_over(rs), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
	if (*timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo -= nap - left;
	return min(err, 0);
}

/* Sleep until there is room, an error, a signal or the time is over. */
static int wait_room(struct rstream *rs, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (!tx_over(rs) && !room(rs)) {
		rstream_ask_room(rs);
		rstream_tx_reap(rs);
		rstream_push(rs);
		if (room(rs))
			break;
		if (!*timeo)
			err = -EAGAIN;
		else if (signal_pending(current))
			err = sock_intr_errno(*timeo);
		if (err)
			break;
		err = min(sk_wait_event(sk, timeo, tx_over(rs) || room(rs), &wait), 0);
		if (err)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* What can be said in control messages is checked, as TCP does it. */
static int check_control(struct sock *sk, struct msghdr *msg)
{
	struct sockcm_cookie sockc = { .tsflags = READ_ONCE(sk->sk_tsflags) };

	if (!msg->msg_controllen)
		return 0;
	return sock_cmsg_send(sk, msg, &sockc) ? -EINVAL : 0;
}

static int send_framed(struct rstream *rs, struct msghdr *msg, bool pages)
{
	struct sock *sk = rs->sk;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	bool urgent = msg->msg_flags & MSG_OOB;
	size_t unpushed = 0, done = 0;
	struct ubuf_info *uarg;
	ssize_t n;
	int err;

	if (urgent && rs->hello.in && !rs->hello.urg)
		return -EOPNOTSUPP;
	err = check_control(sk, msg);
	if (err)
		return sk_stream_error(sk, msg->msg_flags, err);
	uarg = rstream_zerocopy_begin(rs, msg);
	if (IS_ERR(uarg))
		return PTR_ERR(uarg);
	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	if (rs->txq.mem >= gather_max(rs) || rs->zc.awaited)
		rstream_tx_reap(rs);
	/* an error is fetched only if it is returned: a count comes first */
	while (!err && !tx_over(rs) && msg_data_left(msg)) {
		n = 0;
		if (rs->plain.tx && (urgent || (!pages && !uarg)))
			n = rstream_prelude_send(rs, msg);
		if (n > 0) {
			done += n;
			continue;
		}
		if (!n)
			n = room(rs) ? queue_some(rs, msg, room(rs), pages, uarg) :
				       -EAGAIN;
		if (n > 0) {
			done += n;
			unpushed += n;
			if (unpushed >= PUSH_EVERY && msg_data_left(msg)) {
				rstream_hold(rs, false);
				rstream_push(rs);
				unpushed = 0;
			}
			continue;
		}
		err = n;
		if (n != -EAGAIN)
			break;
		rstream_hold(rs, false);
		rstream_push(rs);
		unpushed = 0;
		err = room(rs) ? wait_memory(rs, &timeo) :
				 wait_room(rs, &timeo);
	}
	/* EPIPE: disconnected meanwhile, perhaps it is another connection already */
	if (done && err != -EPIPE &&
	    !(rs->plain.tx && rs->tx.sent == rs->tx.written)) {
		if (urgent && !rs->plain.tx)
			rstream_urg_send(rs);
		rstream_hold(rs, !urgent && (msg->msg_flags & MSG_MORE ||
					     tcp_sk(sk)->nonagle & TCP_NAGLE_CORK));
		if (!gathers(rs))
			rstream_push(rs);
	}
	rstream_zerocopy_end(uarg, done);
	if (done)
		return done;
	if (err != -EPIPE)
		err = tx_error(rs) ?: err;
	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/*
 * A server that sends before its client's HELLO is there.  If the client has
 * confirmed our option its HELLO is under way; otherwise it may still be, for a
 * while: wait, then it is plain TCP.  Return: 0 when decided.
 */
static int wait_decision(struct rstream *rs, struct msghdr *msg)
{
	struct sock *sk = rs->sk;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	rstream_framed_early(rs);
	if (rs->mode != RSTREAM_ASKED)
		return 0;
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	add_wait_queue(sk_sleep(sk), &wait);
	while (rs->mode == RSTREAM_ASKED && !(err = tx_error(rs))) {
		if (rs->hello.may_speak) {
			WRITE_ONCE(rs->hello.guard, true);
			rstream_go_raw(rs, RSTREAM_R_SPOKE_FIRST);
			break;
		}
		if (!timeo)
			err = -EAGAIN;
		else if (signal_pending(current))
			err = sock_intr_errno(timeo);
		if (err)
			break;
		err = min(sk_wait_event(sk, &timeo, READ_ONCE(rs->mode) != RSTREAM_ASKED ||
					READ_ONCE(rs->hello.may_speak) || sk->sk_err ||
					rs->error, &wait), 0);
		if (err)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/* A connect() under way: the mode is not known yet. */
static int wait_connect(struct rstream *rs, struct msghdr *msg)
{
	struct sock *sk = rs->sk;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	int err = sk_stream_wait_connect(sk, &timeo);

	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/*
 * Return: true if the call was ours and @ret is its result, false if it is
 * TCP's.
 */
static bool send_ours(struct socket *sock, struct msghdr *msg, bool pages,
		      int *result)
{
	struct sock *sk = sock->sk;
	struct rstream *rs = rstream_of(sk);
	int mode = rstream_mode(rs), ret = 0;

	/* IDLE, too: another thread may connect before TCP would have the lock */
	if (mode != RSTREAM_RAW) {
		lock_sock(sk);
		if (rs->mode == RSTREAM_IDLE && msg->msg_flags & MSG_FASTOPEN)
			rstream_go_raw(rs, RSTREAM_R_FASTOPEN);
		if (rs->mode == RSTREAM_IDLE)
			ret = sk_stream_error(sk, msg->msg_flags, -EPIPE);
		else if (rs->mode == RSTREAM_CONNECTING)
			ret = wait_connect(rs, msg);
		if (!ret && rs->mode == RSTREAM_ASKED)
			ret = wait_decision(rs, msg);
		if (rs->mode == RSTREAM_FRAMED || ret) {
			if (!ret)
				ret = send_framed(rs, msg, pages);
			release_sock(sk);
			*result = ret;
			return true;
		}
		release_sock(sk);
	}
	rstream_swap_ops(rs, sock);
	return false;
}

int rstream_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	int ret;

	if (send_ours(sock, msg, msg->msg_flags & MSG_SPLICE_PAGES, &ret))
		return ret;
	return rstream_of(sock->sk)->tcp_ops->sendmsg(sock, msg, len);
}

/* What sendmsg with MSG_SPLICE_PAGES was before. */
ssize_t rstream_sendpage(struct socket *sock, struct page *page, int off,
			 size_t len, int flags)
{
	struct bio_vec bvec = {
		.bv_page = page,
		.bv_offset = off,
		.bv_len = len,
	};
	struct msghdr msg = { .msg_flags = flags & ~MSG_SENDPAGE_NOTLAST };
	int ret;

	if (flags & MSG_SENDPAGE_NOTLAST)
		msg.msg_flags |= MSG_MORE;
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bvec, 1, len);
	if (send_ours(sock, &msg, true, &ret))
		return ret;
	return rstream_ops_sendpage(rstream_of(sock->sk)->tcp_ops, sock, page,
				    off, len, flags);
}
