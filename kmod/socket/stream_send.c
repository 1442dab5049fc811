// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the program to the transmit queue: send calls on a connection with records.  The
 * carriers take from the queue (rstream_flush()).
 *
 * The queue consists of page fragments.  A byte is copied once, into a fragment, or not at
 * all (stream_page.c).  TCP and the RDMA device get the pages by reference, but TCP copies
 * the payload of small records.
 */
#include <linux/bvec.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <net/rps.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "stream.h"

/* Bytes copied between two flushes, so that carrier and copy overlap. */
#define FLUSH_EVERY	(128 * 1024)

static u64 room(struct rstream *rs)
{
	u64 used = rstream_txq_used(rs);
	u64 limit = rstream_txq_limit(rs);
	bool low = rstream_txq_unsent(rs) < tcp_notsent_lowat(tcp_sk(rs->sk));

	return low && used < limit ? limit - used : 0;
}

/* ---- autocorking ---- */

/*
 * Do the queued bytes wait until those in flight have arrived?  Then that event sends them, and
 * no flush is needed now.
 */
static bool autocorks(const struct rstream *rs)
{
	bool waits = rs->tx.state == RSTREAM_ON_RING ? rstream_ring_autocorks(rs) :
						       rs->out.waits == RSTREAM_OUT_CORKED;

	return waits && !rs->want && rs->out.waits != RSTREAM_OUT_BLOCKED &&
	       rstream_txq_may_autocork(rs, rs->tx.written - rs->tx.sent);
}

/* The last fragment, if bytes at @pfrag's offset are contiguous with it. */
static struct rstream_frag *tail_frag(struct rstream *rs,
				      const struct page_frag *pfrag)
{
	struct rstream_frag *frag = rstream_txq_tail(rs);

	return frag && frag->page == pfrag->page && !frag->uarg &&
	       frag->off + frag->len == pfrag->offset ? frag : NULL;
}

#define REFILL_MIN	32	/* as in sk_page_frag_refill() */

/* Like sk_page_frag_refill(), but prefers pages that the ring's link has sent and kept. */
static bool refill(struct rstream *rs, struct page_frag *pfrag)
{
	struct page *page = NULL;

	/* sk_page_frag_refill() reuses a page that nobody else refers to */
	if (rs->txring && (!pfrag->page || (pfrag->offset + REFILL_MIN > pfrag->size &&
					    page_ref_count(pfrag->page) > 1)))
		page = rstream_txring_cached_page(rs->txring);
	if (!page)
		return sk_page_frag_refill(rs->sk, pfrag);
	if (pfrag->page)
		put_page(pfrag->page);
	*pfrag = (struct page_frag){ .page = page, .size = RSTREAM_CACHED_PAGE_SIZE };
	return true;
}

/*
 * Copy up to @max bytes into one fragment.
 * Return: bytes, -EFAULT, or -EAGAIN if the caller has to wait for memory.
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
	n = rstream_txq_schedule(rs, n, 1);
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
	/* without highmem, across pages at once; copy_page_from_iter() copies page by page */
	got = PageHighMem(pfrag->page) ?
	      copy_page_from_iter(pfrag->page, pfrag->offset, n, &msg->msg_iter) :
	      copy_from_iter(page_address(pfrag->page) + pfrag->offset, n, &msg->msg_iter);
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
	rstream_txq_queued(rs, frag, n, RSTREAM_MIB_SENT_COPY_BYTES);
	return n;
}

/*
 * Queue some of the message, up to @max bytes.
 * @pages:	the caller passes pages to refer to (MSG_SPLICE_PAGES, sendpage)
 * @uarg:	send the program's memory in place (MSG_ZEROCOPY); or NULL
 */
static ssize_t queue_some(struct rstream *rs, struct msghdr *msg, u64 max,
			  bool pages, struct ubuf_info *uarg)
{
	ssize_t n = 0;

	if (uarg)
		return rstream_page_pin(rs, msg, max, uarg);
	if (pages) {
		n = rstream_page_refer(rs, msg, max);
		/* copy at most this segment: the next ones may be worth referring to */
		max = min_t(u64, max, iov_iter_single_seg_count(&msg->msg_iter));
	}
	return n ?: copy_some(rs, msg, max);
}

static int tx_error(struct rstream *rs)
{
	if (rs->sk->sk_err)
		return sock_error(rs->sk);
	/* once TCP is closed, it has reported our error, as any, once */
	if (rs->error)
		return rs->sk->sk_state == TCP_CLOSE ? -EPIPE : -rs->error;
	if (rs->shutdown & SEND_SHUTDOWN || rs->sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	return 0;
}

/* Does something end a wait for room?  Does not fetch sk_err. */
static bool tx_over(const struct rstream *rs)
{
	return READ_ONCE(rs->sk->sk_err) || READ_ONCE(rs->error) ||
	       READ_ONCE(rs->shutdown) & SEND_SHUTDOWN ||
	       READ_ONCE(rs->sk->sk_shutdown) & SEND_SHUTDOWN;
}

/* Note that a writer waits for room, wherever that may come from. */
void rstream_send_room(struct rstream *rs)
{
	rstream_txq_ask_room(rs);
	rstream_ring_waits(rs);
}

/*
 * There is room in the queue, but no memory, on the host or in the control group.  Nothing reports
 * when that changes, so try again in a while, as TCP does.
 */
static int wait_memory(struct rstream *rs, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	long nap, left;
	int err;

	/* what the peer has read gives memory, too */
	rstream_send_room(rs);
	if (!*timeo) {
		WRITE_ONCE(rs->txq.scarce_until,
			   (jiffies + msecs_to_jiffies(RSTREAM_RETRY_MS)) | 1);
		rstream_retry_by(rs, rs->txq.scarce_until);	/* wakes poll() and epoll */
		return -EAGAIN;
	}
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	nap = min_t(long, *timeo, HZ / 50 + 2);
	left = nap;
	add_wait_queue(sk_sleep(sk), &wait);
	err = sk_wait_event(sk, &left, tx_over(rs), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
	rstream_ring_reap(rs);
	if (*timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo -= nap - left;
	return min(err, 0);
}

/* Sleep until there is room, an error, a signal or a timeout. */
static int wait_room(struct rstream *rs, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (!tx_over(rs) && !room(rs)) {
		rstream_send_room(rs);
		rstream_ring_reap(rs);
		rstream_flush(rs);
		if (room(rs)) {
			rstream_txq_unask_sigio(rs);
			break;
		}
		err = rstream_may_sleep(*timeo);
		if (err)
			break;
		err = min(sk_wait_event(sk, timeo, tx_over(rs) || room(rs), &wait), 0);
		if (err)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* Check control messages, as TCP does.  Return: 0 or an errno. */
static int control_check(struct sock *sk, struct msghdr *msg)
{
	struct sockcm_cookie sockc = { .tsflags = READ_ONCE(sk->sk_tsflags) };
	int err = msg->msg_controllen ? sock_cmsg_send(sk, msg, &sockc) : 0;

	return err ? sk_stream_error(sk, msg->msg_flags, rstream_tcp_cmsg_error(err)) : 0;
}

/* At the end of a prelude or span, PLAIN or HELLO may have to go out: is what follows plain? */
static bool still_plain(struct rstream *rs)
{
	if (rstream_plain_tx_over(rs))
		rstream_plain_tx_next(rs, rstream_plain_recv_paused(rs));
	if (rs->want)
		rstream_flush(rs);
	return rstream_tx_plain(rs);
}

/* At the end of a send call: what it has queued goes now, unless it is corked. */
static void flush_queued(struct rstream *rs, const struct msghdr *msg)
{
	bool urgent = msg->msg_flags & MSG_OOB;
	bool more = msg->msg_flags & MSG_MORE || tcp_sk(rs->sk)->nonagle & TCP_NAGLE_CORK;

	if (rstream_tx_plain(rs) && rs->tx.sent == rs->tx.written)
		return;
	if (urgent && !rstream_tx_plain(rs))
		rstream_urg_send(rs);
	rstream_txq_cork(rs, more && !urgent);
	if (!autocorks(rs))
		rstream_flush(rs);
}

/* @done: bytes of the message that were sent before */
static int send_rest(struct rstream *rs, struct msghdr *msg, bool pages, size_t done)
{
	struct sock *sk = rs->sk;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	bool urgent = msg->msg_flags & MSG_OOB, again = urgent;
	size_t unflushed = 0;
	struct ubuf_info *uarg;
	ssize_t n;
	u64 most;
	int err;

	if (urgent && rs->hello.in && !rs->hello.urg)
		return -EOPNOTSUPP;
	err = control_check(sk, msg);
	if (err)
		return err;
	uarg = msg->msg_flags & MSG_ZEROCOPY ? rstream_zerocopy_begin(rs, msg) : NULL;
	if (IS_ERR(uarg))
		return PTR_ERR(uarg);
	rstream_txq_unask_sigio(rs);
	if (rs->txring && (rs->txq.mem >= rs->txq.reap_at || rs->zc.awaited))
		rstream_ring_reap(rs);
	/* don't fetch an error yet: if bytes were sent, their count is returned instead */
	while (!err && !tx_over(rs) && msg_data_left(msg)) {
		n = 0;
		if (rstream_tx_plain(rs) && (urgent || (!pages && !uarg)) && still_plain(rs))
			n = rstream_plain_send(rs, msg);
		if (n > 0) {
			done += n;
			continue;
		}
		if (!n) {
			most = room(rs);
			n = most ? queue_some(rs, msg, most, pages, uarg) : -EAGAIN;
		}
		if (n > 0) {
			done += n;
			unflushed += n;
			if (unflushed >= FLUSH_EVERY && msg_data_left(msg)) {
				rstream_txq_cork(rs, false);
				rstream_flush(rs);
				unflushed = 0;
			}
			continue;
		}
		err = n;
		if (n != -EAGAIN)
			break;
		rstream_txq_cork(rs, false);
		rstream_flush(rs);
		unflushed = 0;
		err = 0;
		/* a plain urgent byte may have waited only for what was queued before it */
		if (again && rstream_plain_tx_idle(rs))
			again = false;
		else
			err = room(rs) ? wait_memory(rs, &timeo) : wait_room(rs, &timeo);
	}
	/* EPIPE: disconnected meanwhile; this may be another connection already */
	if (done && err != -EPIPE)
		flush_queued(rs, msg);
	if (uarg)
		rstream_zerocopy_end(uarg, done);
	if (done)
		return done;
	if (err != -EPIPE)
		err = tx_error(rs) ?: err;
	/* SO_ERROR may have fetched the error that has ended the loop */
	if (!err && msg_data_left(msg))
		err = -EPIPE;
	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/* MSG_FASTOPEN: as TCP, which would connect, or notice that an earlier connect() has succeeded. */
static int already_connected(const struct sock *sk, const struct msghdr *msg)
{
	const struct sockaddr *addr = msg->msg_name;
	bool whole = msg->msg_namelen >= (int)sizeof(addr->sa_family);
	struct socket *sock = sk->sk_socket;

	if (!(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_fastopen) & TFO_CLIENT_ENABLE) ||
	    (addr && whole && addr->sa_family == AF_UNSPEC))
		return -EOPNOTSUPP;
	if (addr && !whole)
		return -EINVAL;
	if (sock->state != SS_CONNECTING)
		return -EISCONN;
	if (sk->sk_state != TCP_CLOSE)
		sock->state = SS_CONNECTED;
	return 0;
}

static int send_framed(struct rstream *rs, struct msghdr *msg, bool pages)
{
	size_t done = 0;
	int err = 0;

	if (unlikely(msg->msg_flags & MSG_FASTOPEN))
		err = already_connected(rs->sk, msg);
	if (err)
		return err;
	if (!pages && rstream_tx_plain(rs) && !tx_over(rs)) {
		rstream_txq_unask_sigio(rs);
		done = rstream_plain_send_fast(rs, msg);
		if (done && !msg_data_left(msg))
			return done;
	}
	return send_rest(rs, msg, pages, done);
}

/*
 * The server's program sends before the client's HELLO has arrived.  If the client has confirmed
 * our option, HELLO is on its way; otherwise it may be: wait a while before we fall back to plain
 * TCP.  Return: 0 if the mode is decided.
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
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);	/* TCP's, if we fall back */
	rstream_txq_ask_room(rs);
	add_wait_queue(sk_sleep(sk), &wait);
	while (rs->mode == RSTREAM_ASKED && !(err = tx_error(rs))) {
		if (rs->offer.confirmed == RSTREAM_UNHEARD) {
			rstream_fall_back_guarded(rs, RSTREAM_R_SPOKE_FIRST);
			break;
		}
		err = rstream_may_sleep(timeo);
		if (err)
			break;
		err = min(sk_wait_event(sk, &timeo, READ_ONCE(rs->mode) != RSTREAM_ASKED ||
					READ_ONCE(rs->offer.confirmed) == RSTREAM_UNHEARD ||
					sk->sk_err || rs->error, &wait), 0);
		if (err)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/* connect() is in progress: the mode is not known yet. */
static int wait_connect(struct rstream *rs, struct msghdr *msg)
{
	struct sock *sk = rs->sk;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	int err = sk_stream_wait_connect(sk, &timeo);

	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/* Return: true if the call was ours, with its result in @result; false if it is TCP's. */
static bool send_ours(struct socket *sock, struct msghdr *msg, bool pages,
		      int *result)
{
	struct sock *sk = sock->sk;
	struct rstream *rs = rstream_of(sk);
	int ret = 0;

	/* it may connect */
	if (unlikely(msg->msg_flags & MSG_FASTOPEN))
		rstream_abort_wait(rs);
	/* IDLE is ours, too: another thread may connect before TCP takes the lock */
	if (!rstream_lock_ours(rs, sock))
		return false;
	if (rs->mode == RSTREAM_FRAMED)
		goto framed;
	if (rs->mode == RSTREAM_IDLE && msg->msg_flags & MSG_FASTOPEN)
		rstream_fall_back(rs, RSTREAM_R_FASTOPEN);
	if (rs->mode == RSTREAM_IDLE)
		ret = sk_stream_error(sk, msg->msg_flags, -EPIPE);
	else if (rs->mode == RSTREAM_CONNECTING)
		ret = wait_connect(rs, msg);
	if (!ret && rs->mode == RSTREAM_ASKED)
		ret = wait_decision(rs, msg);
	if (rs->mode == RSTREAM_FRAMED || ret) {
framed:
		sock_rps_record_flow(sk);
		if (!ret)
			ret = send_framed(rs, msg, pages);
		rstream_unlock(rs);
		*result = ret;
		return true;
	}
	rstream_swap_ops(rs, sock);
	release_sock(sk);
	return false;
}

int rstream_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	int ret;

	if (send_ours(sock, msg, msg->msg_flags & MSG_SPLICE_PAGES, &ret))
		return ret;
	return rstream_of(sock->sk)->tcp_ops->sendmsg(sock, msg, len);
}

/* For kernels that have ->sendpage() instead of MSG_SPLICE_PAGES. */
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
