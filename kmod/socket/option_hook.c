// SPDX-License-Identifier: GPL-2.0-only
/*
 * Getting the TCP option into segments and seeing it in them.
 *
 * TCP's own option code can't be extended by a module.  So
 *
 *  client:	the connection's icsk_af_ops are ours from connect() until the
 *		peer's HELLO: queue_xmit adds the option to SYN and first
 *		segments before there is an IP header, sk_rx_dst_set sees the
 *		SYN-ACK.  Other connections pay nothing.
 *  server:	the listener's icsk_af_ops are ours: syn_recv_sock sees SYN (by
 *		TCP_SAVE_SYN) and the segment that completes the handshake.
 *		SYN-ACKs belong to no full socket: a LOCAL_OUT hook, registered
 *		while a namespace has a listener of ours, adds the option.
 *
 * A v6 socket that connects to a v4-mapped address has its icsk_af_ops
 * replaced by TCP before the SYN goes out; its SYN is left to the hook.
 *
 * Whatever can't have the option (no room, no headroom) goes without: then the
 * connection is plain TCP.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "protocol/option.h"
#include "ipsec.h"
#include "option_hook.h"
#include "rules.h"

#define TCP_HEADER_MAX	60

static siphash_key_t answer_key __ro_after_init;	/* see server_nonce() */

/* Ours, by what TCP's are: for IPv4, IPv6, and IPv6 with v4-mapped peer. */
static struct inet_connection_sock_af_ops af_ops4, af_ops6, af_ops_mapped;
static const struct inet_connection_sock_af_ops *af_orig_mapped;
static DEFINE_SPINLOCK(mapped_lock);	/* guards the first use of the above */

/* TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925) sign the header as it is. */
static bool is_signed(const struct tcphdr *th)
{
	const u8 *opt = (const u8 *)(th + 1);
	const u8 *end = (const u8 *)th + th->doff * 4;

	while (opt < end && *opt) {
		if (*opt == 19 || *opt == 29)
			return true;
		opt += *opt == 1 || end - opt < 2 ? 1 : max_t(u8, opt[1], 2);
	}
	return false;
}

/* Put @opt behind the TCP header.  The skb may start with an IP header. */
static bool opt_insert(struct sk_buff *skb, const struct rstream_opt *opt)
{
	unsigned int front = skb_transport_offset(skb);
	unsigned int th_len = tcp_hdrlen(skb);
	unsigned int tcp_len = skb->len - front;
	struct tcphdr *th;

	if (skb->ip_summed != CHECKSUM_PARTIAL || is_signed(tcp_hdr(skb)) ||
	    th_len + RSW_OPT_LEN > TCP_HEADER_MAX ||
	    skb_cow_head(skb, RSW_OPT_LEN))
		return false;

	skb_push(skb, RSW_OPT_LEN);
	memmove(skb->data, skb->data + RSW_OPT_LEN, front + th_len);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, front);
	th = tcp_hdr(skb);
	rstream_opt_write((u8 *)th + th_len, opt);
	th->doff += RSW_OPT_LEN / 4;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	/* the pseudo header contains TCP's length */
	inet_proto_csum_replace2(&th->check, skb, htons(tcp_len),
				 htons(tcp_len + RSW_OPT_LEN), true);
	return true;
}

/* ---- nonces ---- */

u64 rstream_role_nonce(const struct rstream *rs, u8 role)
{
	siphash_key_t key = { { rs->offer.nonce, rs->offer.answer } };

	return siphash_1u64(role, &key) & RSW_NONCE_MASK;
}

/*
 * The server's.  There is no place to keep it until there is a child, and a repeated
 * SYN-ACK must have the same: so it is made anew, of what only TCP knows.
 */
static u64 server_nonce(const struct request_sock *req, u64 client)
{
	const struct tcp_request_sock *treq = tcp_rsk(req);

	return siphash_2u64(client, (u64)treq->snt_isn << 32 | treq->rcv_isn,
			    &answer_key) & RSW_NONCE_MASK;
}

static enum rstream_opt_found opt_of_header(const struct tcphdr *th,
					    struct rstream_opt *opt)
{
	return rstream_opt_find((const u8 *)(th + 1),
				th->doff * 4 - sizeof(*th), opt);
}

/* ---- client ---- */

/*
 * Why a connection by this route has no option, so that it is plain TCP; or NONE.  To this
 * very host no carrier beats TCP over the loopback.
 */
static enum rstream_reason route_excludes(const struct rstream *rs, const struct dst_entry *dst)
{
	if (dst && dst->dev->flags & IFF_LOOPBACK && !READ_ONCE(rs->rn->set.upgrade_self))
		return RSTREAM_R_SELF;
	return rstream_ipsec_route(rs->sk, dst) ? RSTREAM_R_IPSEC : RSTREAM_R_NONE;
}

/* May the SYN of a client go with the option by this route? */
static bool route_serves(struct rstream *rs, const struct dst_entry *dst)
{
	rs->reason = route_excludes(rs, dst);
	return !rs->reason;
}

/* Which role does a segment of this connecting socket state, 0: none. */
static u8 client_role(struct rstream *rs, const struct sk_buff *skb)
{
	const struct tcphdr *th = tcp_hdr(skb);

	if (th->rst)
		return 0;
	if (th->syn)
		return rs->mode == RSTREAM_CONNECTING && !th->ack &&
		       route_serves(rs, __sk_dst_get(rs->sk)) ?
		       RSW_ROLE_SYN : 0;
	if (rs->mode != RSTREAM_FRAMED || rs->hello.in || skb_is_gso(skb) ||
	    (rs->plain.tx && tcp_sk(rs->sk)->snd_una != rs->plain.tx_start) ||
	    skb->len + RSW_OPT_LEN > tcp_sk(rs->sk)->mss_cache)
		return 0;
	return RSW_ROLE_CONFIRM;
}

static int opt_queue_xmit(struct sock *sk, struct sk_buff *skb,
			  struct flowi *fl)
{
	const struct inet_connection_sock_af_ops *orig =
		sk->sk_family == AF_INET ? rstream_tcp4.af_ops :
					   rstream_tcp6.af_ops;
	struct rstream *rs = rstream_of(sk);
	struct rstream_opt opt = { .version = RSW_VERSION };
	bool room;

	if (rs && rs->af_ops) {
		orig = rs->af_ops;
		opt.prelude = rs->offer.prelude;
		opt.role = client_role(rs, skb);
		opt.nonce = opt.role == RSW_ROLE_SYN ? rs->offer.nonce :
			    rstream_role_nonce(rs, RSW_ROLE_CONFIRM);
		room = opt.role && opt_insert(skb, &opt);
		if (opt.role == RSW_ROLE_SYN)
			rs->reason = room ? RSTREAM_R_NONE : RSTREAM_R_NO_ROOM;
	}
	return orig->queue_xmit(sk, skb, fl);
}

/* Called by TCP for the SYN-ACK while the connection is being established. */
static void opt_sk_rx_dst_set(struct sock *sk, const struct sk_buff *skb)
{
	const struct inet_connection_sock_af_ops *orig =
		sk->sk_family == AF_INET ? rstream_tcp4.af_ops :
					   rstream_tcp6.af_ops;
	struct rstream *rs = rstream_of(sk);
	const struct tcphdr *th = tcp_hdr(skb);
	struct rstream_opt opt;

	if (rs && rs->af_ops) {
		orig = rs->af_ops;
		if (rs->mode == RSTREAM_CONNECTING && th->syn && th->ack) {
			switch (opt_of_header(th, &opt)) {
			case RSTREAM_OPT_GOOD:
				rs->offer.confirmed = opt.role == RSW_ROLE_SYNACK;
				rs->offer.answer = opt.nonce;
				rs->offer.prelude = rs->offer.prelude && opt.prelude;
				if (rs->offer.confirmed)
					break;
				fallthrough;
			case RSTREAM_OPT_BAD:
				rs->reason = RSTREAM_R_BAD_OPTION;
				break;
			case RSTREAM_OPT_NONE:
				break;
			}
		}
	}
	orig->sk_rx_dst_set(sk, skb);
}

static const struct inet_connection_sock_af_ops *
mapped_ops(const struct inet_connection_sock_af_ops *orig)
{
	spin_lock_bh(&mapped_lock);
	if (!af_orig_mapped) {
		af_ops_mapped = *orig;
		af_ops_mapped.queue_xmit = opt_queue_xmit;
		af_ops_mapped.sk_rx_dst_set = opt_sk_rx_dst_set;
		af_orig_mapped = orig;
	}
	spin_unlock_bh(&mapped_lock);
	return orig == af_orig_mapped ? &af_ops_mapped : NULL;
}

void rstream_option_client(struct rstream *rs)
{
	struct inet_connection_sock *icsk = inet_csk(rs->sk);
	const struct inet_connection_sock_af_ops *now = icsk->icsk_af_ops, *ours;

	rstream_assert_held(rs);
	if (now == rstream_tcp4.af_ops)
		ours = &af_ops4;
	else if (now == rstream_tcp6.af_ops)
		ours = &af_ops6;
	else if (now == &af_ops4 || now == &af_ops6 || now == &af_ops_mapped)
		return;
	else
		ours = mapped_ops(now);
	if (!ours)
		return;
	rs->af_ops = now;
	WRITE_ONCE(icsk->icsk_af_ops, ours);
}

void rstream_option_off(struct rstream *rs)
{
	struct inet_connection_sock *icsk = inet_csk(rs->sk);

	if (!rs->af_ops)
		return;
	if (icsk->icsk_af_ops == &af_ops4 || icsk->icsk_af_ops == &af_ops6 ||
	    icsk->icsk_af_ops == &af_ops_mapped)
		WRITE_ONCE(icsk->icsk_af_ops, rs->af_ops);
	rs->af_ops = NULL;
}

/* ---- server ---- */

bool rstream_syn_option(const struct request_sock *req, struct rstream_opt *opt)
{
	const struct saved_syn *syn = req->saved_syn;
	const u8 *tcp;

	if (!syn || syn->tcp_hdrlen < sizeof(struct tcphdr))
		return false;
	/* with TCP_SAVE_SYN 2 the MAC header comes first */
	tcp = syn->data + syn->mac_hdrlen + syn->network_hdrlen;
	return rstream_opt_find(tcp + sizeof(struct tcphdr),
				syn->tcp_hdrlen - sizeof(struct tcphdr),
				opt) == RSTREAM_OPT_GOOD &&
	       opt->role == RSW_ROLE_SYN;
}

/* The child of a client with the option: make it a stream, undecided yet. */
static void child_init(struct rstream *rs, struct sock *child,
		       const struct sk_buff *skb, const struct rstream_opt *syn,
		       u64 answer)
{
	const struct tcphdr *th = tcp_hdr(skb);
	struct rstream_opt opt;

	rstream_attach(rs, child, child->sk_family == AF_INET ?
		       rstream_tcp4.ops : rstream_tcp6.ops);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_PASSIVE_OPENS);
	rs->server = true;
	rs->offer.nonce = syn->nonce;
	rs->offer.answer = answer;
	rs->offer.confirmed = opt_of_header(th, &opt) == RSTREAM_OPT_GOOD &&
			opt.role == RSW_ROLE_CONFIRM &&
			opt.nonce == rstream_role_nonce(rs, RSW_ROLE_CONFIRM);
	rs->offer.prelude = syn->prelude;
	rstream_hear_all(rs);
	rstream_hook_callbacks(rs);
	rstream_asked(rs);
}

/* What its program has said of this client, also in answer to the SYN. */
static bool listener_wants(const struct sock *sk, const struct request_sock *req)
{
	const struct rstream *rs = rstream_of(sk);

	return !rs || rstream_rules_accept(rs, &req->__req_common);
}

static struct sock *opt_syn_recv_sock(const struct sock *sk,
				      struct sk_buff *skb,
				      struct request_sock *req,
				      struct dst_entry *dst,
				      struct request_sock *req_unhash,
				      RSTREAM_SYN_RECV_PARAMS(bool *own_req))
{
	const struct inet_connection_sock_af_ops *orig =
		sk->sk_family == AF_INET ? rstream_tcp4.af_ops :
					   rstream_tcp6.af_ops;
	struct rstream_opt syn;
	/* the SYN of a Fast Open child is not what completes a handshake */
	bool asked = !tcp_hdr(skb)->syn && listener_wants(sk, req) &&
		     rstream_syn_option(req, &syn);
	struct rstream *rs = NULL;
	struct sock *child;
	u64 answer = 0;

	if (asked) {
		/*
		 * Before there is a child: as plain TCP it would give the HELLO
		 * to the program.  TCP without memory waits for the next ACK.
		 */
		rs = rstream_new(GFP_ATOMIC);
		if (!rs) {
			rstream_mib_reason(rstream_net(sock_net(sk)), RSTREAM_R_NO_MEMORY);
			tcp_listendrop(sk);
			return NULL;
		}
		answer = server_nonce(req, syn.nonce);
	}
	child = orig->syn_recv_sock(sk, skb, req, dst, req_unhash,
				    RSTREAM_SYN_RECV_ARGS(own_req));
	if (child && *own_req && rs)
		child_init(rs, child, skb, &syn, answer);
	else if (rs)
		rstream_discard(rs);
	return child;
}

static unsigned int hook_done(struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IPV6) ||
	    ip_hdr(skb)->version == 6) {
		ipv6_hdr(skb)->payload_len =
			htons(skb->len - sizeof(struct ipv6hdr));
	} else {
		ip_hdr(skb)->tot_len = htons(skb->len);
		ip_send_check(ip_hdr(skb));
	}
	return NF_ACCEPT;
}

/* SYN-ACK of a request to a listener of ours? */
static bool hook_synack(const struct sk_buff *skb, struct rstream_opt *opt)
{
	const struct request_sock *req = inet_reqsk(skb->sk);
	const struct rstream *rs;

	if (!req->rsk_listener)
		return false;
	rs = rstream_of(req->rsk_listener);
	if (!rs || rstream_mode(rs) != RSTREAM_LISTEN ||
	    !rstream_rules_accept(rs, &req->__req_common) ||
	    !rstream_syn_option(req, opt) ||
	    !rstream_link_possible(sock_net(skb->sk)) ||
	    rstream_ipsec_route(req->rsk_listener, skb_dst(skb)))
		return false;
	opt->role = RSW_ROLE_SYNACK;
	opt->version = RSW_VERSION;
	opt->nonce = server_nonce(req, opt->nonce);
	return true;
}

/* SYN of a v6 socket to a v4-mapped address? */
static bool hook_mapped_syn(const struct sk_buff *skb, struct rstream_opt *opt)
{
	struct rstream *rs = rstream_of(skb->sk);

	if (!rs || !rs->offer.mapped || rs->af_ops ||
	    rstream_mode(rs) != RSTREAM_CONNECTING || tcp_hdr(skb)->ack ||
	    !route_serves(rs, skb_dst(skb)))
		return false;
	opt->version = RSW_VERSION;
	opt->role = RSW_ROLE_SYN;
	opt->prelude = rs->offer.prelude;
	opt->nonce = rs->offer.nonce;
	return true;
}

/* ESP has the sock of the segment in it, and comes by here as well. */
static bool is_tcp(const struct sk_buff *skb, const struct nf_hook_state *state)
{
	return state->pf == NFPROTO_IPV6 ? ipv6_hdr(skb)->nexthdr == IPPROTO_TCP :
					   ip_hdr(skb)->protocol == IPPROTO_TCP;
}

static unsigned int opt_local_out(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;
	struct rstream_opt opt;
	bool add = false;

	if (!sk || !(sk->sk_state == TCP_NEW_SYN_RECV ||
		     sk->sk_state == TCP_SYN_SENT) ||
	    !skb_transport_header_was_set(skb) || !is_tcp(skb, state) ||
	    skb_headlen(skb) < skb_transport_offset(skb) + sizeof(struct tcphdr))
		return NF_ACCEPT;
	if (!tcp_hdr(skb)->syn)
		return NF_ACCEPT;
	if (sk->sk_state == TCP_NEW_SYN_RECV)
		add = hook_synack(skb, &opt);
	else if (sk->sk_protocol == IPPROTO_TCP)	/* SYN_SENT: a full sock */
		add = hook_mapped_syn(skb, &opt);
	return add && opt_insert(skb, &opt) ? hook_done(skb) : NF_ACCEPT;
}

/* Early, so that the administrator's own rules see the segment as it goes. */
static const struct nf_hook_ops opt_hooks[] = {
	{
		.hook = opt_local_out,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_FIRST + 1,
	}, {
		.hook = opt_local_out,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP6_PRI_FIRST + 1,
	},
};

int rstream_hook_get(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);
	int err = 0;

	mutex_lock(&rn->hook_lock);
	if (!rn->hook_users)
		err = nf_register_net_hooks(net, opt_hooks,
					    ARRAY_SIZE(opt_hooks));
	if (!err)
		rn->hook_users++;
	mutex_unlock(&rn->hook_lock);
	return err;
}

void rstream_hook_put(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);

	mutex_lock(&rn->hook_lock);
	if (!--rn->hook_users)
		nf_unregister_net_hooks(net, opt_hooks, ARRAY_SIZE(opt_hooks));
	mutex_unlock(&rn->hook_lock);
}

int rstream_option_listen(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	struct inet_connection_sock *icsk = inet_csk(sk);
	int err = rstream_hook_get(sock_net(sk));

	if (err)
		return err;
	lock_sock(sk);
	if (rs->mode != RSTREAM_IDLE || sk->sk_state != TCP_CLOSE) {
		/* somebody was faster, with listen() or connect() */
		release_sock(sk);
		rstream_hook_put(sock_net(sk));
		return 0;
	}
	rs->user_save_syn = tcp_sk(sk)->save_syn;
	if (!rs->user_save_syn)
		tcp_sk(sk)->save_syn = 1;
	rs->af_ops = icsk->icsk_af_ops;
	WRITE_ONCE(icsk->icsk_af_ops,
		   sk->sk_family == AF_INET ? &af_ops4 : &af_ops6);
	rstream_set_mode(rs, RSTREAM_LISTEN, RSTREAM_R_NONE);
	rstream_link_use(sock_net(sk));
	release_sock(sk);
	return 0;
}

void rstream_option_unlisten(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	lock_sock(sk);
	tcp_sk(sk)->save_syn = rs->user_save_syn;
	rstream_option_off(rs);
	release_sock(sk);
	rstream_link_unuse(sock_net(sk));
	rstream_hook_put(sock_net(sk));
}

static void make_ours(struct inet_connection_sock_af_ops *ours,
		      const struct rstream_tcp *tcp)
{
	if (!tcp->prot)
		return;
	*ours = *tcp->af_ops;
	ours->queue_xmit = opt_queue_xmit;
	ours->sk_rx_dst_set = opt_sk_rx_dst_set;
	ours->syn_recv_sock = opt_syn_recv_sock;
}

void rstream_option_init(void)
{
	get_random_bytes(&answer_key, sizeof(answer_key));
	make_ours(&af_ops4, &rstream_tcp4);
	make_ours(&af_ops6, &rstream_tcp6);
}
