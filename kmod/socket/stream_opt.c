// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket options and ioctls.  They are TCP's, except for what TCP can't know while a
 * connection has records: what is unread, unsent or acknowledged, and the state of the
 * stream.  Called from the proto_ops; owns nothing.
 */
#include <linux/rdmastream.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <asm/ioctls.h>
#include <net/tcp.h>

#include "af_rdmastream.h"
#include "rules.h"
#include "stream.h"

/* ---- ioctl ---- */

/*
 * Bytes that TCP has not delivered.  Records count if they precede the last payload or FIN, but
 * not after it.
 */
static u64 tcp_unacked(const struct rstream *rs)
{
	u64 acked = tcp_sk(rs->sk)->bytes_acked;
	s64 records = rs->out.payload_end - acked;
	s64 plain = rstream_tcp_acked_at(rs) - max(acked, rs->plain.tx_from);

	/* plain bytes not followed by HELLO yet, and the PLAIN records between them */
	if (!rstream_tx_plain(rs) && !test_bit(RSTREAM_WANT_HELLO, &rs->want))
		plain = 0;
	return max(records, 0LL) + max(plain, 0LL);
}

/*
 * For SIOCOUTQ and TCP_INFO: bytes that the peer's kernel is not known to have.  On a ring, those
 * are the writes that have not completed (rstream_txring_sent() makes the last ones complete), and
 * what TCP has not delivered from before, or FIN.
 */
static u64 all_unacked(struct rstream *rs)
{
	u64 queued = rs->tx.written - rs->tx.sent;

	/* all that the peer has not acknowledged, or FIN */
	if (rs->tx.state == RSTREAM_LOST)
		return max(rs->tx.written - rs->tx.acked, tcp_unacked(rs));
	if (rs->tx.state < RSTREAM_ON_RING)
		return queued + rs->out.rec_left + rs->leave.lost + tcp_unacked(rs);
	rstream_ring_reap(rs);
	if (!rs->txring || rstream_txring_sent(rs->txring))
		return queued + tcp_unacked(rs);
	return rs->txq.mem + tcp_unacked(rs);
}

/* For SIOCINQ: readable bytes up to the mark. */
static u64 readable(const struct rstream *rs)
{
	u64 ready = rstream_rxq_here(rs);

	if (!rs->urg.state || sock_flag(rs->sk, SOCK_URGINLINE))
		return ready;
	return min(ready, rs->urg.at - rs->rx.consumed);
}

int rstream_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct rstream *rs = rstream_of(sock->sk);
	s64 n;

	if (rstream_mode(rs) != RSTREAM_FRAMED)
		return rstream_ops_of(sock)->ioctl(sock, cmd, arg);
	lock_sock(sock->sk);
	switch (cmd) {
	case SIOCINQ:
		n = readable(rs);
		rstream_ring_looked(rs, false);
		break;
	case SIOCATMARK:
		n = rstream_rxq_at_mark(rs, rs->rx.consumed);
		break;
	case SIOCOUTQ:
		n = all_unacked(rs);
		break;
	case SIOCOUTQNSD:
		n = rstream_txq_unsent(rs);
		break;
	default:
		release_sock(sock->sk);
		return rstream_ops_of(sock)->ioctl(sock, cmd, arg);
	}
	rstream_unlock(rs);
	return put_user((int)min_t(s64, n, INT_MAX), (int __user *)arg);
}

#ifdef CONFIG_COMPAT
/* Of 32-bit programs, for what differs there: routes.  Others then arrive in rstream_ioctl(). */
int rstream_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	return rstream_ops_of(sock)->compat_ioctl(sock, cmd, arg);
}
#endif

/* ---- SO_RCVLOWAT ---- */

int rstream_set_rcvlowat(struct sock *sk, int val)
{
	struct rstream *rs = rstream_of(sk);
	int err = rs->tcp_ops->set_rcvlowat(sk, val);

	if (rstream_may_have_records(rs))
		rstream_hear_all(rs);
	if (rs->mode == RSTREAM_FRAMED)
		rstream_rxq_wake(rs);
	return err;
}

/* ---- setsockopt ---- */

static int set_save_syn(struct rstream *rs, struct socket *sock,
			sockptr_t optval, unsigned int optlen)
{
	struct tcp_sock *tp = tcp_sk(sock->sk);
	int err = rs->tcp_ops->setsockopt(sock, SOL_TCP, TCP_SAVE_SYN, optval,
					  optlen);

	lock_sock(sock->sk);
	/* perhaps since another thread's listen() */
	if (rs->mode == RSTREAM_LISTEN) {
		if (!err)
			rs->user_save_syn = tp->save_syn;
		if (!tp->save_syn)
			tp->save_syn = 1;	/* we need it */
	}
	release_sock(sock->sk);
	return err;
}

/* As if TCP couldn't: a restored socket has no stream. */
static int set_repair(struct rstream *rs, struct socket *sock, sockptr_t optval,
		      unsigned int optlen)
{
	struct sock *sk = sock->sk;
	int err;

	if (rstream_mode(rs) != RSTREAM_IDLE && !rstream_fell_back(rs))
		return -EPERM;
	err = rs->tcp_ops->setsockopt(sock, SOL_TCP, TCP_REPAIR, optval, optlen);
	lock_sock(sk);
	/* another thread may have connected it before TCP took the lock */
	if (tcp_sk(sk)->repair && rs->mode != RSTREAM_IDLE && !rstream_fell_back(rs)) {
		tcp_sk(sk)->repair = 0;
		sk->sk_reuse = SK_NO_REUSE;
		err = -EPERM;
	}
	release_sock(sk);
	return err;
}

/* Uncork if TCP_CORK is off or, with @now, in any case.  Takes the socket lock. */
void rstream_uncork(struct rstream *rs, bool now)
{
	if (rstream_tx_plain(rs) && !READ_ONCE(rs->txq.corked_at))
		return;			/* TCP has done that */
	lock_sock(rs->sk);
	if (rs->mode == RSTREAM_FRAMED &&
	    (now || !(tcp_sk(rs->sk)->nonagle & TCP_NAGLE_CORK))) {
		rstream_txq_cork(rs, false);
		if (rs->tx.written != rs->tx.sent || !rstream_hello_waits(rs))
			rstream_flush(rs);
	}
	release_sock(rs->sk);
}

static int set_ours(struct rstream *rs, int optname, sockptr_t optval,
		    unsigned int optlen)
{
	int val;

	if (optname == RDMASTREAM_RULES)
		return rstream_rules_set(rs, optval, optlen);
	if (optname != RDMASTREAM_EAGER)
		return -ENOPROTOOPT;
	if (optlen != sizeof(val))
		return -EINVAL;
	if (copy_from_sockptr(&val, optval, sizeof(val)))
		return -EFAULT;
	if (val != 0 && val != 1)
		return -EINVAL;
	lock_sock(rs->sk);
	rs->eager = val;
	release_sock(rs->sk);
	return 0;
}

/* An option that TCP has accepted. */
static bool turns_on(sockptr_t optval)
{
	int val;

	return !copy_from_sockptr(&val, optval, sizeof(val)) && val;
}

int rstream_setsockopt(struct socket *sock, int level, int optname,
		       sockptr_t optval, unsigned int optlen)
{
	const struct proto_ops *ops = rstream_ops_of(sock);
	struct rstream *rs = rstream_of(sock->sk);
	int mode = rstream_mode(rs), err;

	if (level == SOL_RDMASTREAM)
		return set_ours(rs, optname, optval, optlen);
	if (level == SOL_TCP && optname == TCP_ULP)
		return -ENOPROTOOPT;	/* we occupy it */
	if (level == SOL_IPV6 && optname == IPV6_ADDRFORM)
		return -ENOPROTOOPT;	/* it would replace our proto_ops */
	if (level == SOL_TCP && optname == TCP_REPAIR)
		return set_repair(rs, sock, optval, optlen);
	if (level == SOL_TCP && optname == TCP_SAVE_SYN &&
	    (mode == RSTREAM_LISTEN || mode == RSTREAM_IDLE))
		return set_save_syn(rs, sock, optval, optlen);
	err = ops->setsockopt(sock, level, optname, optval, optlen);
	if (!err && ((level == SOL_IP && optname == IP_XFRM_POLICY) ||
		     (level == SOL_IPV6 && optname == IPV6_XFRM_POLICY)))
		rstream_queue(rs, RSTREAM_DO_LOOK);
	if (!err && level == SOL_TCP && optname == TCP_CORK)
		rstream_uncork(rs, false);
	else if (!err && level == SOL_TCP && optname == TCP_NODELAY && turns_on(optval))
		rstream_uncork(rs, true);
	return err;
}

/* ---- TCP_INFO ---- */

/* TCP's FINs follow both FIN records: the state in which TCP would be without records. */
static u8 info_state(struct rstream *rs)
{
	bool ended = rstream_rxq_ring_ended(rs);

	if (rs->sk->sk_state != TCP_ESTABLISHED)
		return rs->sk->sk_state;
	if (!(rs->shutdown & SEND_SHUTDOWN))
		return ended ? TCP_CLOSE_WAIT : TCP_ESTABLISHED;
	if (ended)
		return TCP_LAST_ACK;
	return rs->tx.fin && !all_unacked(rs) ? TCP_FIN_WAIT2 : TCP_FIN_WAIT1;
}

/* Count the program's bytes, where TCP has counted its own. */
static void info_fill(struct rstream *rs, struct tcp_info *info)
{
	u64 unacked;

	rstream_ring_landed(rs);
	unacked = min(all_unacked(rs), rs->tx.written);
	/* unacked may include records in flight, but bytes_acked must never decrease */
	rs->reported = max(rs->reported, rs->tx.written - unacked);
	info->tcpi_state = info_state(rs);
	info->tcpi_bytes_acked = rs->reported;
	info->tcpi_bytes_sent = rs->stats.tx.tcp_bytes + rs->stats.tx.ring_bytes;
	info->tcpi_bytes_received = rs->rx.arrived;
	info->tcpi_notsent_bytes = min_t(u64, rstream_txq_unsent(rs), U32_MAX);
	info->tcpi_last_data_sent = jiffies_to_msecs(jiffies - READ_ONCE(rs->txq.at));
	info->tcpi_last_data_recv = jiffies_to_msecs(tcp_jiffies32 - READ_ONCE(rs->rxq.at));
}

/* Overwrite one field that TCP has written, as far as it fits into the program's buffer. */
static int info_put(char __user *to, int len, const struct tcp_info *info,
		    size_t off, size_t size)
{
	if (len <= (int)off)
		return 0;
	return copy_to_user(to + off, (const char *)info + off,
			    min_t(size_t, size, len - off)) ? -EFAULT : 0;
}

#define INFO_PUT(field) \
	info_put(to, len, &info, offsetof(struct tcp_info, field), \
		 sizeof(info.field))

static int info_patch(struct rstream *rs, char __user *to, int len)
{
	struct tcp_info info = {};
	bool framed;

	lock_sock(rs->sk);
	framed = rs->mode == RSTREAM_FRAMED;
	if (framed)
		info_fill(rs, &info);
	release_sock(rs->sk);
	if (!framed)
		return 0;
	return INFO_PUT(tcpi_state) ?: INFO_PUT(tcpi_bytes_acked) ?:
	       INFO_PUT(tcpi_bytes_sent) ?: INFO_PUT(tcpi_bytes_received) ?:
	       INFO_PUT(tcpi_notsent_bytes) ?: INFO_PUT(tcpi_last_data_sent) ?:
	       INFO_PUT(tcpi_last_data_recv);
}

/* Answer as TCP does if there is no ULP, because the program has not asked for ours. */
static int get_no_ulp(int __user *optlen)
{
	int len;

	if (get_user(len, optlen))
		return -EFAULT;
	return len < 0 ? -EINVAL : put_user(0, optlen);
}

/* What the program has set, not what we have. */
static int get_save_syn(const struct rstream *rs, char __user *optval, int __user *optlen)
{
	int val = rs->user_save_syn, len;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	len = min_t(int, len, sizeof(val));
	return put_user(len, optlen) || copy_to_user(optval, &val, len) ? -EFAULT : 0;
}

/* Is the socket TCP's for good? */
static bool is_given_back(struct rstream *rs, struct socket *sock)
{
	bool ours;

	if (!rstream_lock_ours(rs, sock))
		return true;
	rstream_swap_ops(rs, sock);
	ours = sock->ops == &rstream_proto_ops;
	release_sock(rs->sk);
	return !ours;
}

int rstream_getsockopt(struct socket *sock, int level, int optname,
		       char __user *optval, int __user *optlen)
{
	struct rstream *rs = rstream_of(sock->sk);
	int mode = rstream_mode(rs), err, len;
	bool held = mode == RSTREAM_FRAMED && level == SOL_TCP &&
		    (optname == TCP_NODELAY || optname == TCP_CORK);

	if (level == SOL_TCP && optname == TCP_ULP)
		return get_no_ulp(optlen);
	if (level == SOL_TCP && optname == TCP_SAVE_SYN && mode == RSTREAM_LISTEN)
		return get_save_syn(rs, optval, optlen);
	/* TCP would pass records to the program as data, even those that arrive later */
	if (level == SOL_TCP && optname == TCP_ZEROCOPY_RECEIVE && !is_given_back(rs, sock))
		return -ENOPROTOOPT;
	if (held)	/* rstream_tcp_push() changes them for a while */
		lock_sock(sock->sk);
	err = rstream_ops_of(sock)->getsockopt(sock, level, optname, optval,
					       optlen);
	if (held)
		release_sock(sock->sk);
	if (err || level != SOL_TCP || optname != TCP_INFO ||
	    mode != RSTREAM_FRAMED)
		return err;
	return get_user(len, optlen) ? -EFAULT : info_patch(rs, optval, len);
}
