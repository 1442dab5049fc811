// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket family, socket protocol and proto_ops.
 *
 *   socket(AF_RDMASTREAM, SOCK_STREAM, 0|1)		IPv4 | IPv6 inside
 *   socket(AF_INET|AF_INET6, SOCK_STREAM, IPPROTO_RDMASTREAM)
 *
 * Both create a TCP socket with a struct rstream attached.  Each call here checks the
 * stream's mode, and passes plain TCP to TCP's own proto_ops.
 *
 * Only addresses of the family inside are accepted: security modules see what the program
 * passes before we do, and know these.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/net.h>
#include <linux/rdmastream.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/inet_common.h>
#include <net/inet_connection_sock.h>
#include <net/ipv6.h>
#include <net/protocol.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "option_hook.h"
#include "rules.h"
#include "stream.h"

int rstream_family = AF_RDMASTREAM;
module_param_named(family, rstream_family, int, 0444);
MODULE_PARM_DESC(family, "number of the socket family, default 22");

/*
 * @sock may have no stream: accept4() calls the listener's (our) getname() for an accepted
 * plain TCP socket.
 */
const struct proto_ops *rstream_ops_of(const struct socket *sock)
{
	const struct rstream *rs = rstream_of(sock->sk);

	return rs ? rs->tcp_ops : rstream_tcp_of(sock->sk)->ops;
}

/* ---- bind ---- */

static int rstream_bind(struct socket *sock, struct sockaddr_unsized *addr, int len)
{
	return rstream_ops_of(sock)->bind(sock, addr, len);
}

/* ---- connect ---- */

/* Why we should not send the option; NONE: we should. */
static enum rstream_reason option_policy(const struct rstream_net *rn)
{
	if (!rn->set.negotiate)
		return RSTREAM_R_OFF;
	if (!rstream_link_possible(rn->net))
		return RSTREAM_R_NO_DEVICE;
	return RSTREAM_R_NONE;
}

static enum rstream_reason connect_policy(const struct rstream *rs,
					  const struct sockaddr_unsized *addr, int len)
{
	enum rstream_reason reason = option_policy(rs->rn);

	if (!reason && !rstream_rules_connect(rs, addr, len))
		return RSTREAM_R_EXCLUDED;
	if (!reason && tcp_sk(rs->sk)->fastopen_connect)
		return RSTREAM_R_FASTOPEN;
	/* no SYN is sent: the connection exists already */
	if (!reason && tcp_sk(rs->sk)->repair)
		return RSTREAM_R_OFF;
	return reason;
}

static bool is_mapped(const struct sock *sk, const struct sockaddr_unsized *addr,
		      int len)
{
	return sk->sk_family == AF_INET6 && len >= SIN6_LEN_RFC2133 &&
	       addr->sa_family == AF_INET6 &&
	       ipv6_addr_v4mapped(&((struct sockaddr_in6 *)addr)->sin6_addr);
}

/* No prelude if a ring is wanted before its end. */
static bool offers_prelude(const struct rstream *rs)
{
	const struct rstream_settings *set =
		&rs->rn->set;

	if (!READ_ONCE(set->prelude) || rs->eager)
		return false;
	return READ_ONCE(set->ring_mode) == RSTREAM_RING_OFF ||
	       (READ_ONCE(set->ring_mode) == RSTREAM_RING_THRESHOLD &&
		READ_ONCE(set->ring_threshold) >= RSW_PRELUDE);
}

static void connect_prepare(struct rstream *rs, const struct socket *sock,
			    const struct sockaddr_unsized *addr, int len)
{
	enum rstream_reason reason = connect_policy(rs, addr, len);

	/* the socket was given back to TCP while this call waited for the lock */
	if (sock->ops != &rstream_proto_ops)
		reason = RSTREAM_R_OFF;
	/* shut down before: later, these bits would look like FINs */
	if (rs->sk->sk_shutdown)
		reason = RSTREAM_R_OFF;
	if (reason) {
		rstream_fall_back(rs, reason);
		return;
	}
	rs->offer.prelude = offers_prelude(rs);
	rs->offer.nonce = get_random_u64() & RSW_NONCE_MASK;
	rs->offer.mapped = is_mapped(rs->sk, addr, len);
	rstream_set_mode(rs, RSTREAM_CONNECTING, RSTREAM_R_NONE);
	rstream_ulp_hook(rs);
	if (!rs->offer.mapped)
		rstream_option_client(rs);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_ACTIVE_OPENS);
}

/*
 * connect() has returned: reset our state if there is no connection any more.  The error does
 * not tell: EPIPE may mean that the connection is half closed, or that another thread has
 * disconnected it while this one slept.
 */
static void connect_settle(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	/* a listener stays one until release(), which cleans up after it */
	if (sk->sk_state == TCP_CLOSE && rs->mode != RSTREAM_IDLE &&
	    rs->mode != RSTREAM_LISTEN &&
	    sk->sk_socket->state == SS_UNCONNECTED)
		rstream_reset_state(rs);
}

static int connect_locked(struct rstream *rs, struct socket *sock,
			  struct sockaddr_unsized *addr, int len, int flags)
{
	struct sock *sk = sock->sk;
	bool first = rs->mode == RSTREAM_IDLE && sk->sk_state == TCP_CLOSE &&
		     len >= (int)sizeof(addr->sa_family) &&
		     addr->sa_family != AF_UNSPEC;
	bool twice;
	int err;

	if (first)
		connect_prepare(rs, sock, addr, len);
	twice = rs->mode == RSTREAM_CONNECTING && rs->offer.mapped && first;
	if (twice) {
		/* for these, TCP's connect() replaces icsk_af_ops: install ours right after it */
		err = __inet_stream_connect(sock, addr, len,
					    flags | O_NONBLOCK, 0);
		if (err == -EINPROGRESS && rs->mode == RSTREAM_CONNECTING)
			rstream_option_client(rs);
		if (err != -EINPROGRESS || flags & O_NONBLOCK)
			goto out;
	}
	err = __inet_stream_connect(sock, addr, len, flags, 0);
	if (twice && err == -EALREADY)	/* it has waited: the program has called once */
		err = -EINPROGRESS;
out:
	connect_settle(rs);
	return err;
}

static int rstream_connect(struct socket *sock, struct sockaddr_unsized *addr, int len,
			   int flags)
{
	struct rstream *rs = rstream_of(sock->sk);
	struct sock *sk = sock->sk;
	bool hook;
	int err;

	rstream_abort_wait(rs);
	/* only the SYN to a v4-mapped address needs the hook */
	hook = rstream_mode(rs) == RSTREAM_IDLE && is_mapped(sk, addr, len);
	if (hook && rstream_option_server_get(sock_net(sk)))
		hook = false;
	rstream_abort_lock(rs);
	err = connect_locked(rs, sock, addr, len, flags);
	release_sock(sk);
	if (rstream_mode(rs) == RSTREAM_IDLE)
		rstream_abort_wait(rs);
	if (hook)
		rstream_option_server_put(sock_net(sk));
	return err;
}

/* ---- listen, accept ---- */

static int rstream_listen(struct socket *sock, int backlog)
{
	struct rstream *rs = rstream_of(sock->sk);

	rstream_abort_wait(rs);
	/*
	 * These preparations stay until release(), even if TCP refuses to listen: then it is a
	 * bound TCP socket like any other.
	 */
	if (rstream_mode(rs) == RSTREAM_IDLE &&
	    rs->rn->set.negotiate) {
		int err = rstream_option_server_listen(rs);

		if (err)
			return err;
	}
	return rstream_ops_of(sock)->listen(sock, backlog);
}

/* With the lock: a listener that does not negotiate may get other rules after shutdown(). */
static bool listener_allows(struct rstream *listener, const struct sock *sk)
{
	bool allows;

	lock_sock(listener->sk);
	allows = rstream_rules_accept(listener, &sk->__sk_common);
	release_sock(listener->sk);
	return allows;
}

static enum rstream_reason plain_reason(struct rstream *listener, const struct sock *sk)
{
	enum rstream_reason reason = option_policy(listener->rn);

	if (!reason && !listener_allows(listener, sk))
		return RSTREAM_R_EXCLUDED;
	if (!reason && !rstream_listener_ours(listener->sk))
		return RSTREAM_R_OFF;
	return reason ?: RSTREAM_R_NO_OPTION;
}

/*
 * kernel_accept() gives @newsock our ops after accept().  So it needs a stream, which gives it back
 * to TCP with the first call.
 */
static int accept_plain_kern(struct rstream *listener, struct socket *newsock,
			     enum rstream_reason reason)
{
	struct rstream *rs = rstream_new(GFP_KERNEL);
	struct sock *sk = newsock->sk;

	if (!rs) {
		listener->tcp_ops->release(newsock);
		return -ENOMEM;
	}
	lock_sock(sk);
	rstream_attach(rs, sk, listener->tcp_ops);
	rs->accepted = true;
	rs->server = true;
	rstream_set_mode(rs, RSTREAM_FALLBACK, reason);
	release_sock(sk);
	return 0;
}

/* Has TCP saved the SYN for us only, not for the program? */
static bool saves_syn(const struct rstream *listener)
{
	return rstream_mode(listener) == RSTREAM_LISTEN && !listener->user_save_syn;
}

/* The program must see neither the SYN nor our option that saved it. */
static void drop_syn(struct sock *sk)
{
	tcp_sk(sk)->save_syn = 0;
	tcp_saved_syn_free(tcp_sk(sk));
}

/* The client is plain TCP, so the accepted socket is TCP's alone. */
static int accept_plain(struct rstream *listener, struct socket *newsock, bool kern)
{
	enum rstream_reason reason = plain_reason(listener, newsock->sk);

	rstream_mib_inc(listener->rn, RSTREAM_MIB_PLAIN_ACCEPTS);
	rstream_mib_reason(listener->rn, reason);
	if (saves_syn(listener)) {
		lock_sock(newsock->sk);		/* BPF programs read it in softirq */
		drop_syn(newsock->sk);
		release_sock(newsock->sk);
	}
	if (kern)
		return accept_plain_kern(listener, newsock, reason);
	newsock->ops = listener->tcp_ops;
	__module_get(listener->tcp_ops->owner);
	module_put(THIS_MODULE);	/* accept4() got one for our ops */
	return 0;
}

static int rstream_release(struct socket *sock);

/*
 * The kernel has taken the listener over after this connection was negotiated: reset it.
 * @newsock is then as before accept().
 */
static void accept_reset(struct socket *newsock)
{
	struct sock *sk = newsock->sk;

	sock_set_flag(sk, SOCK_LINGER);
	sk->sk_lingertime = 0;
	release_sock(sk);
	rstream_release(newsock);
	newsock->state = SS_UNCONNECTED;
}

/* Return: false if the connection was reset. */
static bool accept_stream(struct rstream *listener, struct rstream *rs, struct socket *newsock,
			  bool kern)
{
	/* as TCP does with the sock: softirq, where it was allocated, has no group to charge */
	rstream_slab_charge(rs, GFP_KERNEL | __GFP_NOFAIL);
	lock_sock(newsock->sk);
	rstream_link_net_pays(sock_net(newsock->sk), newsock->sk->sk_memcg);
	rstream_recv_accepted(rs);
	if (kern && !rstream_listener_ours(listener->sk) &&
	    rs->mode != RSTREAM_FALLBACK) {
		accept_reset(newsock);
		return false;
	}
	rstream_ring_grant_try(rs);
	if (rs->out.waits)	/* was set in rstream_dummy_socket only */
		set_bit(SOCK_NOSPACE, &newsock->flags);
	if (saves_syn(listener))
		drop_syn(newsock->sk);
	rstream_swap_ops(rs, newsock);
	rstream_unlock(rs);
	return true;
}

static int rstream_accept(struct socket *sock, struct socket *newsock,
			  RSTREAM_ACCEPT_PARAMS)
{
	struct rstream *listener = rstream_of(sock->sk), *rs;
	int err;

	/* the kernel may accept once for several connections that wait */
	do {
		err = listener->tcp_ops->accept(sock, newsock, RSTREAM_ACCEPT_ARGS);
		if (err)
			return err;
		rs = rstream_of(newsock->sk);
		if (!rs)
			return accept_plain(listener, newsock, RSTREAM_ACCEPT_KERN);
	} while (!accept_stream(listener, rs, newsock, RSTREAM_ACCEPT_KERN));
	return 0;
}

static int rstream_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	return rstream_ops_of(sock)->getname(sock, addr, peer);
}

/* ---- poll ---- */

static __poll_t poll_framed(const struct rstream *rs)
{
	const struct sock *sk = rs->sk;
	u8 down = READ_ONCE(rs->shutdown);
	__poll_t mask = 0;

	if (rstream_recv_end_here(rs))
		down |= RCV_SHUTDOWN;
	if (READ_ONCE(sk->sk_state) == TCP_CLOSE && !rstream_rxq_ring_owes(rs) &&
	    READ_ONCE(sk->sk_shutdown) == SHUTDOWN_MASK)
		down = SHUTDOWN_MASK;
	if (down == SHUTDOWN_MASK)
		mask |= EPOLLHUP;
	if (down & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (rstream_rxq_enough(rs))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (rstream_rxq_urg_here(rs))
		mask |= EPOLLPRI;
	if (down & SEND_SHUTDOWN || rstream_txq_room(rs))
		mask |= EPOLLOUT | EPOLLWRNORM;
	/* pairs with rstream_fail() and tcp_reset() */
	smp_rmb();
	if (READ_ONCE(sk->sk_err) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}

/* Guarded bytes must not be read yet, because they may become a HELLO. */
static __poll_t poll_tcp(struct file *file, struct socket *sock,
			 struct poll_table_struct *wait)
{
	__poll_t mask = rstream_ops_of(sock)->poll(file, sock, wait);

	if (rstream_mode(rstream_of(sock->sk)) == RSTREAM_GUARDED &&
	    !rstream_early_shut(sock->sk))
		mask &= ~(EPOLLIN | EPOLLRDNORM);
	return mask;
}

static __poll_t rstream_poll(struct file *file, struct socket *sock,
			     struct poll_table_struct *wait)
{
	struct sock *sk = sock->sk;
	struct rstream *rs = rstream_of(sk);
	__poll_t mask;

	switch (rstream_mode(rs)) {
	case RSTREAM_FRAMED:
		break;
	case RSTREAM_ASKED:
		/* established, but nothing to read and no carrier yet */
		sock_poll_wait(file, sock, wait);
		if (rstream_mode(rs) == RSTREAM_FRAMED)
			break;
		if (rstream_fell_back(rs) || READ_ONCE(sk->sk_state) == TCP_CLOSE)
			return poll_tcp(file, sock, NULL);
		mask = READ_ONCE(rs->offer.confirmed) ? EPOLLOUT | EPOLLWRNORM : 0;
		return rstream_early_shut(sk) ? mask | EPOLLIN | EPOLLRDNORM | EPOLLRDHUP : mask;
	default:
		mask = poll_tcp(file, sock, wait);
		if (rstream_mode(rs) != RSTREAM_FRAMED)
			return mask;
		break;
	}
	sock_poll_wait(file, sock, wait);
	mask = poll_framed(rs);
	if (!(mask & EPOLLOUT)) {
		rstream_txq_ask_room(rs);
		rstream_queue(rs, RSTREAM_DO_PUSH);	/* asks for room */
		smp_mb__after_atomic();
		mask = poll_framed(rs);
	}
	if (rstream_hello_waits(rs) && !(mask & poll_requested_events(wait)))
		rstream_queue(rs, RSTREAM_DO_PUSH);
	return mask;
}

/* ---- shutdown, release ---- */

/*
 * No records: as inet_shutdown(), but without releasing the lock under which we have checked the
 * mode: otherwise, another thread might connect or the SYN-ACK arrive.
 */
static int shutdown_tcp(struct rstream *rs, struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	int err = 0;

	if (sk->sk_state == TCP_SYN_SENT) {
		err = sk->sk_prot->disconnect(sk, O_NONBLOCK);
		sock->state = err ? SS_DISCONNECTING : SS_UNCONNECTED;
		if (!err)
			rstream_reset_state(rs);
		return err;
	}
	if (sock->state == SS_CONNECTING)
		sock->state = (1 << sk->sk_state) & (TCPF_SYN_RECV | TCPF_CLOSE) ?
			      SS_DISCONNECTING : SS_CONNECTED;
	if (sk->sk_state == TCP_CLOSE)
		err = -ENOTCONN;
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
	sk->sk_prot->shutdown(sk, how);
	return err;
}

static int shutdown_framed(struct rstream *rs, struct socket *sock, int how)
{
	if (sock->state == SS_CONNECTING)
		sock->state = rs->sk->sk_state == TCP_CLOSE ? SS_DISCONNECTING : SS_CONNECTED;
	if (rs->sk->sk_state == TCP_CLOSE)
		return -ENOTCONN;
	if (how & SEND_SHUTDOWN && !(rs->shutdown & SEND_SHUTDOWN))
		set_bit(RSTREAM_WANT_FIN, &rs->want);
	rstream_shut(rs, how);
	rstream_txq_cork(rs, false);
	rstream_flush(rs);
	return 0;
}

static int rstream_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct rstream *rs = rstream_of(sk);
	int mode = rstream_mode(rs), err;

	if (mode == RSTREAM_LISTEN || rstream_fell_back(rs))
		return rstream_ops_of(sock)->shutdown(sock, how);
	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	lock_sock(sk);
	if (sk->sk_state == TCP_LISTEN) {	/* a listener that does not negotiate */
		release_sock(sk);
		return rstream_ops_of(sock)->shutdown(sock, how);
	}
	how++;		/* maps to RCV_SHUTDOWN, SEND_SHUTDOWN */
	rstream_framed_early(rs);
	err = rs->mode == RSTREAM_FRAMED ? shutdown_framed(rs, sock, how) :
					   shutdown_tcp(rs, sock, how);
	rstream_tcp4.state_change(sk);
	release_sock(sk);
	return err;
}

static int rstream_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	const struct proto_ops *ops;
	struct rstream *rs;
	bool now = true;

	if (!sk)
		return 0;
	rs = rstream_of(sk);
	ops = rstream_ops_of(sock);
	if (!rs)
		return ops->release(sock);
	if (rstream_mode(rs) == RSTREAM_LISTEN) {
		rstream_option_server_unlisten(rs);
	} else {
		sock_hold(sk);	/* until the last of these calls, as in tcp_close() */
		lock_sock(sk);
		if (rs->mode != RSTREAM_FRAMED) {
			/* it may become FRAMED while the backlog is processed */
			release_sock(sk);
			lock_sock(sk);
		}
		rstream_framed_early(rs);
		if (rs->mode == RSTREAM_FRAMED)
			now = rstream_close(rs, sock);
		release_sock(sk);
		if (!now)
			rstream_close_unlocked(sk);
		sock_put(sk);
	}
	return now ? ops->release(sock) : 0;
}

/* sendfile() has reached end of file early: no more data follows MSG_MORE.  TCP_CORK remains. */
static void __maybe_unused rstream_splice_eof(struct socket *sock)
{
	rstream_uncork(rstream_of(sock->sk), false);
}

/* ---- SO_RCVBUF ---- */

static void __maybe_unused rstream_set_rcvbuf(struct sock *sk, int val)
{
	rstream_ops_set_rcvbuf(rstream_of(sk)->tcp_ops, sk, val);
}

const struct proto_ops rstream_proto_ops = {
	.family = PF_INET,
	.owner = THIS_MODULE,
	.release = rstream_release,
	.bind = rstream_bind,
	.connect = rstream_connect,
	.socketpair = sock_no_socketpair,
	.accept = rstream_accept,
	.getname = rstream_getname,
	.poll = rstream_poll,
	.ioctl = rstream_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = rstream_compat_ioctl,
#endif
	.gettstamp = sock_gettstamp,
	.listen = rstream_listen,
	.shutdown = rstream_shutdown,
	.setsockopt = rstream_setsockopt,
	.getsockopt = rstream_getsockopt,
	.sendmsg = rstream_sendmsg,
	.recvmsg = rstream_recvmsg,
	.mmap = sock_no_mmap,
	.splice_read = rstream_splice_read,
	.set_rcvlowat = rstream_set_rcvlowat,
	RSTREAM_SENDPAGE
	RSTREAM_SPLICE_EOF
	RSTREAM_SET_RCVBUF
	RSTREAM_PEEK_OFF
};

/*
 * For rstream_dummy_socket: of the calls that need no program, only this one looks for ops.  BPF
 * programs set options of a child before accept(), and of closed sockets.
 */
static const struct proto_ops dummy_ops = {
	.family = PF_INET,
	.owner = THIS_MODULE,
	.set_rcvlowat = rstream_set_rcvlowat,
};

/* ---- the family ---- */

static int family_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	int family = protocol == RDMASTREAM_PROTO_IPV6 ? AF_INET6 : AF_INET;
	struct socket *inner;
	struct rstream *rs;
	struct sock *sk;
	int err;

	if (sock->type != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	if (protocol != RDMASTREAM_PROTO_IPV4 &&
	    protocol != RDMASTREAM_PROTO_IPV6)
		return -EPROTONOSUPPORT;
	if (family == AF_INET6 && !rstream_tcp6.prot)
		return -EAFNOSUPPORT;
	err = __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, &inner, kern);
	if (err)
		return err;
	/* move the sock to our struct socket */
	sk = inner->sk;
	rs = rstream_new(GFP_KERNEL);
	if (rs) {
		rstream_attach(rs, sk, inner->ops);
		rs->accepted = true;
		sock->ops = &rstream_proto_ops;
		inner->sk = NULL;
		sock_graft(sk, sock);
		set_bit(SOCK_SUPPORT_ZC, &sock->flags);
	}
	sock_release(inner);
	return rs ? 0 : -ENOMEM;
}

static struct net_proto_family family = {
	.create = family_create,
	.owner = THIS_MODULE,
};

/* ---- the protocol ---- */

static struct proto prot4, prot6;

/* Last step of inet_create() and inet6_create(). */
static int prot_init(struct sock *sk)
{
	const struct rstream_tcp *tcp = rstream_tcp_of(sk);
	struct rstream *rs;
	int err;

	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_prot = tcp->prot;
	err = tcp->prot->init(sk);
	if (err)
		return err;
	rs = rstream_new(GFP_KERNEL);
	if (!rs)
		return -ENOMEM;
	rstream_attach(rs, sk, tcp->ops);
	rs->accepted = true;
	/*
	 * From here on, the stream holds the module instead of the sock: otherwise a TIME_WAIT
	 * sock, which inherits sk_prot_creator, would hold it for another minute.
	 */
	sk->sk_prot_creator = tcp->prot;
	module_put(THIS_MODULE);
	return 0;
}

static struct inet_protosw protosw4 = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_RDMASTREAM,
	.prot = &prot4,
	.ops = &rstream_proto_ops,
	.flags = INET_PROTOSW_ICSK,
};

static struct inet_protosw protosw6 = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_RDMASTREAM,
	.prot = &prot6,
	.ops = &rstream_proto_ops,
	.flags = INET_PROTOSW_ICSK,
};

/*
 * TCP's proto with another init.  It shares TCP's slab, because the socks are TCP's.
 */
static void make_prot(struct proto *ours, const struct rstream_tcp *tcp)
{
	*ours = *tcp->prot;
	ours->init = prot_init;
	ours->owner = THIS_MODULE;
}

int rstream_af_init(void)
{
	int err;

	if (rstream_family <= 0 || rstream_family >= AF_MAX) {
		pr_err("family=%d is not a socket family number (1 to %d)\n",
		       rstream_family, AF_MAX - 1);
		return -EINVAL;
	}
	family.family = rstream_family;
	err = sock_register(&family);
	if (err) {
		pr_err("socket family %d is taken, choose another by family=\n",
		       rstream_family);
		return err;
	}
	rstream_dummy_socket->ops = &dummy_ops;
	make_prot(&prot4, &rstream_tcp4);
	inet_register_protosw(&protosw4);
	if (rstream_tcp6.prot) {
		make_prot(&prot6, &rstream_tcp6);
		inet6_register_protosw(&protosw6);
	}
	return 0;
}

/*
 * The family goes first.  The BPF program of "rsctl cgroup" relies on this: as long as the family
 * exists, so does the protocol, or it will by the time that the kernel looks for it.
 */
void rstream_af_exit(void)
{
	sock_unregister(rstream_family);
	if (rstream_tcp6.prot)
		inet6_unregister_protosw(&protosw6);
	inet_unregister_protosw(&protosw4);
	rstream_dummy_socket->ops = NULL;	/* no sock has it any more */
}
