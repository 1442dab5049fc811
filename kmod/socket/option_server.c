// SPDX-License-Identifier: GPL-2.0-only
/*
 * The TCP option of a server.  We replace the listener's icsk_af_ops: conn_request sees the SYN;
 * syn_recv_sock sees it, too (by TCP_SAVE_SYN), and the segment that completes the handshake.
 * SYN-ACKs have no full socket, so a LOCAL_OUT hook adds the option, also to the SYNs that
 * option_client.c leaves to it.  The hook is registered only while a namespace needs it,
 * and for some seconds after that.
 */
#include <linux/filter.h>
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
#include <net/sock_reuseport.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "protocol/option.h"
#include "af_rdmastream.h"
#include "ipsec.h"
#include "option_hook.h"
#include "rules.h"
#include "stream.h"

/* How long the hook stays when nobody needs it any more. */
#define UNHOOK_PAUSE	(10 * HZ)

static siphash_key_t answer_key __ro_after_init;	/* see server_nonce() */

/* Listeners' ops, by family. */
static struct inet_connection_sock_af_ops listener4, listener6;

/*
 * The SYN that this CPU is handling: tcp_conn_request() sends the first SYN-ACK before it returns.
 * That one decides, because later ones may be sent while another CPU creates the child.
 */
struct syn_here {
	const struct sock *listener;	/* NULL: none */
	u32 isn;
	bool asked;			/* it has our option, @opt */
	struct rstream_opt opt;
};

static DEFINE_PER_CPU(struct syn_here, syn_here);	/* bottom halves off */

/*
 * A client whose SYN-ACK has no option will not send HELLO, so its child gets no stream.
 * request_sock has no field for our answer, so it is encoded in req->timeout: TCP_TIMEOUT_INIT plus
 * one or two jiffies.  This mark is there before the first SYN-ACK leaves.
 */
enum answer {
	NOT_ANSWERED,
	ANSWERED,
	ANSWERED_PRELUDE,	/* both ends want a prelude */
};

static void mark(struct request_sock *req, const struct rstream_opt *opt)
{
	WRITE_ONCE(req->timeout, TCP_TIMEOUT_INIT + (opt->prelude ? ANSWERED_PRELUDE : ANSWERED));
}

static enum answer marked(const struct request_sock *req)
{
	u32 more = READ_ONCE(req->timeout) - (u32)TCP_TIMEOUT_INIT;

	return more <= ANSWERED_PRELUDE ? more : NOT_ANSWERED;
}

/*
 * Return: false if a BPF program has set another timeout, which must not look like a mark, or if
 * there was no memory to save the SYN.
 */
static bool can_mark(struct request_sock *req)
{
	if (marked(req))
		WRITE_ONCE(req->timeout, TCP_TIMEOUT_INIT);
	return req->timeout == TCP_TIMEOUT_INIT && READ_ONCE(req->saved_syn);
}

/* The SYN of which this is the first SYN-ACK. */
static const struct syn_here *first_synack(const struct request_sock *req)
{
	const struct syn_here *here = this_cpu_ptr(&syn_here);

	return here->listener && here->listener == req->rsk_listener &&
	       here->isn == tcp_rsk(req)->rcv_isn ? here : NULL;
}

/*
 * The server's nonce.  Before there is a child, we can't store it, but a retransmitted SYN-ACK
 * must have the same one.  So it is computed each time, from a secret key and what is fixed in
 * the request.
 */
static u64 server_nonce(const struct request_sock *req)
{
	const struct tcp_request_sock *treq = tcp_rsk(req);

	return siphash_2u64((__force u64)req->__req_common.skc_portpair << 32 | req->rsk_hash,
			    (u64)treq->snt_isn << 32 | treq->rcv_isn,
			    &answer_key) & RSW_NONCE_MASK;
}

/*
 * The client's option in the SYN that TCP has saved.  With TCP_SAVE_SYN 2 the MAC header comes
 * first.
 */
static bool saved_option(const struct saved_syn *syn, struct rstream_opt *opt)
{
	const u8 *th;

	if (!syn || syn->tcp_hdrlen < sizeof(struct tcphdr))
		return false;
	th = syn->data + syn->mac_hdrlen + syn->network_hdrlen;
	return rstream_option_find(th + sizeof(struct tcphdr),
				   syn->tcp_hdrlen - sizeof(struct tcphdr),
				   opt) == RSTREAM_OPT_GOOD &&
	       opt->role == RSW_ROLE_SYN;
}

/* Our option in the SYN-ACKs of a request: always the same one. */
static void synack_option(const struct request_sock *req, bool prelude, struct rstream_opt *opt)
{
	*opt = (struct rstream_opt) {
		.role = RSW_ROLE_SYNACK,
		.version = RSW_VERSION,
		.prelude = prelude,
		.nonce = server_nonce(req),
	};
}

/* The client has sent the option, and we have answered it: attach a stream to the child. */
static void child_init(struct rstream *rs, struct sock *child,
		       const struct sk_buff *skb, const struct rstream_opt *syn,
		       const struct rstream_opt *synack)
{
	const struct tcphdr *th = tcp_hdr(skb);
	struct rstream_opt opt;

	rstream_attach(rs, child, rstream_tcp_of(child)->ops);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_PASSIVE_OPENS);
	rs->server = true;
	rs->offer.nonce = syn->nonce;
	rs->offer.answer = synack->nonce;
	if (rstream_option_client_find(th, &opt) == RSTREAM_OPT_GOOD &&
	    opt.role == RSW_ROLE_CONFIRM &&
	    opt.nonce == rstream_role_nonce(rs, RSW_ROLE_CONFIRM))
		rs->offer.confirmed = RSTREAM_CONFIRMED;
	rs->offer.prelude = syn->prelude && synack->prelude;
	rstream_hear_all(rs);
	rstream_ulp_hook(rs);
	rstream_asked(rs);
}

static int opt_conn_request(struct sock *sk, struct sk_buff *skb)
{
	struct syn_here *here = this_cpu_ptr(&syn_here);
	int ret;

	here->asked = rstream_option_client_find(tcp_hdr(skb), &here->opt) == RSTREAM_OPT_GOOD &&
		      here->opt.role == RSW_ROLE_SYN;
	here->isn = TCP_SKB_CB(skb)->seq;
	here->listener = sk;
	ret = rstream_tcp_of(sk)->af_ops->conn_request(sk, skb);
	here->listener = NULL;
	return ret;
}

static struct sock *opt_syn_recv_sock(const struct sock *sk,
				      struct sk_buff *skb,
				      struct request_sock *req,
				      struct dst_entry *dst,
				      struct request_sock *req_unhash,
				      RSTREAM_SYN_RECV_PARAMS(bool *own_req))
{
	struct rstream_opt syn, synack;
	enum answer answer = marked(req);
	/* a SYN here means a Fast Open child, which we leave to TCP */
	bool asked = !tcp_hdr(skb)->syn && answer != NOT_ANSWERED;
	struct rstream *rs = NULL;
	struct sock *child;

	if (asked) {
		/*
		 * Allocate before there is a child: one without a stream would pass HELLO to
		 * the program.  Without memory, we do as TCP does: wait for the next ACK.
		 */
		rs = rstream_new(GFP_ATOMIC);
		if (!rs) {
			rstream_mib_reason(rstream_net(sock_net(sk)), RSTREAM_R_NO_MEMORY);
			tcp_listendrop(sk);
			return NULL;
		}
		synack_option(req, answer == ANSWERED_PRELUDE, &synack);
	}
	child = rstream_tcp_of(sk)->af_ops->syn_recv_sock(sk, skb, req, dst, req_unhash,
							  RSTREAM_SYN_RECV_ARGS(own_req));
	/* the saved SYN is the child's now */
	if (rs && child && *own_req && saved_option(tcp_sk(child)->saved_syn, &syn))
		child_init(rs, child, skb, &syn, &synack);
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

/*
 * When this listener is closed, may its connections go to others of its SO_REUSEPORT group?  As
 * reuseport_migrate_sock() decides.
 */
static bool migrates(const struct sock *sk)
{
	const struct sock_reuseport *group;
	const struct bpf_prog *prog;
	bool may = false;

	rcu_read_lock();
	group = rcu_dereference(sk->sk_reuseport_cb);
	if (group) {
		prog = rcu_dereference(group->prog);
		may = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_migrate_req) ||
		      (prog && prog->expected_attach_type ==
			       BPF_SK_REUSEPORT_SELECT_OR_MIGRATE);
	}
	rcu_read_unlock();
	return may;
}

/*
 * Return: false if the kernel accepts from it, as nfsd does: it replaces callbacks, those of the
 * accepted sockets, too; if its connections may go to another listener, which may be TCP's; if
 * a connect() after shutdown() has left TCP's ops in place of ours; or if it was shut down before
 * listen(), which its connections inherit: they would look as if FIN had arrived or been sent.
 */
bool rstream_listener_ours(const struct sock *sk)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);

	return READ_ONCE(sk->sk_data_ready) == rstream_tcp4.data_ready && !migrates(sk) &&
	       !READ_ONCE(sk->sk_shutdown) && ops->syn_recv_sock == opt_syn_recv_sock;
}

/* The option for a SYN-ACK of one of our listeners.  Return: false if it gets none. */
static bool hook_synack(struct request_sock *req, const struct sk_buff *skb,
			const struct syn_here *first, struct rstream_opt *opt)
{
	bool can = first && can_mark(req) && first->asked;
	enum answer answer = marked(req);
	const struct rstream *rs;

	if (tcp_rsk(req)->tfo_listener || (first ? !can : answer == NOT_ANSWERED))
		return false;
	rs = rstream_of(req->rsk_listener);
	if (!rs || rstream_mode(rs) != RSTREAM_LISTEN || !rstream_listener_ours(rs->sk) ||
	    !rstream_rules_accept(rs, &req->__req_common) ||
	    !rstream_link_possible(sock_net(skb->sk)) ||
	    rstream_ipsec_route(req->rsk_listener, skb_dst(skb)))
		return false;
	synack_option(req, first ? first->opt.prelude : answer == ANSWERED_PRELUDE, opt);
	return true;
}

/* Likewise, for the SYN of an IPv6 socket to a v4-mapped address. */
static bool hook_mapped_syn(const struct sk_buff *skb, struct rstream_opt *opt)
{
	struct rstream *rs = rstream_of(skb->sk);

	if (!rs || rs->af_ops || rstream_mode(rs) != RSTREAM_CONNECTING || tcp_hdr(skb)->ack ||
	    !rstream_option_client_serves(rs, skb_dst(skb)))
		return false;
	opt->version = RSW_VERSION;
	opt->role = RSW_ROLE_SYN;
	opt->prelude = rs->offer.prelude;
	opt->nonce = rs->offer.nonce;
	return true;
}

/* An ESP packet passes here, too, with the sock of the segment inside. */
static bool is_tcp(const struct sk_buff *skb, const struct nf_hook_state *state)
{
	return state->pf == NFPROTO_IPV6 ? ipv6_hdr(skb)->nexthdr == IPPROTO_TCP :
					   ip_hdr(skb)->protocol == IPPROTO_TCP;
}

/* May a segment of @sk get the option here?  Most SYNs need not be looked at. */
static bool may_add(const struct sock *sk)
{
	const struct rstream *rs;

	if (sk->sk_state == TCP_NEW_SYN_RECV) {
		sk = inet_reqsk(sk)->rsk_listener;
		return sk && rstream_of(sk);
	}
	if (sk->sk_protocol != IPPROTO_TCP)	/* SYN_SENT: a full sock */
		return false;
	rs = rstream_of(sk);
	return rs && rs->offer.mapped;
}

static noinline unsigned int local_out(struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct syn_here *first = NULL;
	struct request_sock *req = NULL;
	struct sock *sk = skb->sk;
	struct rstream_opt opt;
	bool add = false;

	if (!may_add(sk) || !skb_transport_header_was_set(skb) || !is_tcp(skb, state) ||
	    skb_headlen(skb) < skb_transport_offset(skb) + sizeof(struct tcphdr))
		return NF_ACCEPT;
	if (!tcp_hdr(skb)->syn)
		return NF_ACCEPT;
	/* with a VRF device the hook runs twice */
	if (rstream_option_client_find(tcp_hdr(skb), &opt) != RSTREAM_OPT_NONE)
		return NF_ACCEPT;
	if (sk->sk_state == TCP_NEW_SYN_RECV) {
		req = inet_reqsk(sk);
		first = first_synack(req);
		add = hook_synack(req, skb, first, &opt);
	} else {
		add = hook_mapped_syn(skb, &opt);
	}
	if (!add || !rstream_option_client_insert(skb, &opt))
		return NF_ACCEPT;
	if (first)
		mark(req, &opt);
	return hook_done(skb);
}

/* Fast path, because every packet of the namespace passes here. */
static unsigned int opt_local_out(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;

	if (!sk || !((1 << READ_ONCE(sk->sk_state)) & (TCPF_NEW_SYN_RECV | TCPF_SYN_SENT)))
		return NF_ACCEPT;
	return local_out(skb, state);
}

/* Early, so that the administrator's rules see the segment as it is sent. */
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

int rstream_option_server_get(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);
	int err = 0;

	mutex_lock(&rn->hook_lock);
	if (!rn->hooked)
		err = nf_register_net_hooks(net, opt_hooks,
					    ARRAY_SIZE(opt_hooks));
	if (!err) {
		rn->hooked = true;
		rn->hook_users++;
	}
	mutex_unlock(&rn->hook_lock);
	return err;
}

static void unhook_work(struct work_struct *work)
{
	struct rstream_net *rn = container_of(to_delayed_work(work), struct rstream_net,
					      unhook_work);

	mutex_lock(&rn->hook_lock);
	if (rn->hooked && !rn->hook_users) {
		nf_unregister_net_hooks(rn->net, opt_hooks, ARRAY_SIZE(opt_hooks));
		rn->hooked = false;
	}
	mutex_unlock(&rn->hook_lock);
}

/*
 * The first hook of the host, and the end of the last one, patch the kernel's code, which
 * interrupts all CPUs.  So programs must not cause that with each listen() or connect().
 */
void rstream_option_server_put(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);

	mutex_lock(&rn->hook_lock);
	if (!--rn->hook_users)
		mod_delayed_work(system_long_wq, &rn->unhook_work, UNHOOK_PAUSE);
	mutex_unlock(&rn->hook_lock);
}

void rstream_option_server_net_init(struct rstream_net *rn)
{
	mutex_init(&rn->hook_lock);
	INIT_DELAYED_WORK(&rn->unhook_work, unhook_work);
}

/* The namespace has no sockets any more. */
void rstream_option_server_net_exit(struct rstream_net *rn)
{
	flush_delayed_work(&rn->unhook_work);
}

int rstream_option_server_listen(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	int err = rstream_option_server_get(sock_net(sk));

	if (err)
		return err;
	lock_sock(sk);
	if (rs->mode != RSTREAM_IDLE || sk->sk_state != TCP_CLOSE ||
	    sk->sk_socket->ops != &rstream_proto_ops) {
		/* another thread has called listen() or connect() meanwhile */
		release_sock(sk);
		rstream_option_server_put(sock_net(sk));
		return 0;
	}
	rs->user_save_syn = tcp_sk(sk)->save_syn;
	if (!rs->user_save_syn)
		tcp_sk(sk)->save_syn = 1;
	rstream_option_client_on(rs, sk->sk_family == AF_INET ? &listener4 : &listener6);
	rstream_set_mode(rs, RSTREAM_LISTEN, RSTREAM_R_NONE);
	rstream_link_net_use(sock_net(sk), sk->sk_memcg);
	release_sock(sk);
	return 0;
}

void rstream_option_server_unlisten(struct rstream *rs)
{
	struct net *net = sock_net(rs->sk);

	/* our ops remain until TCP has destroyed it: a client may still confirm our answer */
	rstream_link_net_unuse(net);
	rstream_option_server_put(net);
}

static void make_listener(struct inet_connection_sock_af_ops *ours,
			  const struct rstream_tcp *tcp)
{
	if (!tcp->prot)
		return;
	*ours = *tcp->af_ops;
	ours->conn_request = opt_conn_request;
	ours->syn_recv_sock = opt_syn_recv_sock;
}

void rstream_option_server_init(void)
{
	get_random_bytes(&answer_key, sizeof(answer_key));
	make_listener(&listener4, &rstream_tcp4);
	make_listener(&listener6, &rstream_tcp6);
	rstream_option_client_init();
}
