// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drives links and rings without sockets of ours: two hosts, or one with itself.
 *
 * Stands in for the stream side of link.h.  Two kernel threads, each with one
 * stream, agree over a plain TCP connection (port 7471) on what HELLO, GRANT and
 * SWITCH would carry, then push pattern data through rings in both directions
 * and compare each byte.  Results are TAP lines in the kernel log.
 *
 *	insmod linktest.ko role=server
 *	insmod linktest.ko role=client addr=10.77.0.1 rounds=8 mbytes=4
 *	insmod linktest.ko role=self addr=10.77.0.1
 *	insmod linktest.ko role=bounds addr=10.77.0.1
 *
 * A link that breaks ends a round early: what was recalled is compared with what
 * was in flight, and the round is done again (@losses of them are allowed).
 */
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/events.h"
#include "link/link_info.h"
#include "link/link.h"
#include "base/net.h"
#include "linktest.h"

#define LINKTEST_PORT	7471

static char *role = "server";
module_param(role, charp, 0444);
static char *addr = "10.77.0.1";
module_param(addr, charp, 0444);
static int rounds = 8;
module_param(rounds, int, 0444);
static int mbytes = 4;
module_param(mbytes, int, 0444);
static int losses;
module_param(losses, int, 0444);
static int idle_ms = 60000;
module_param(idle_ms, int, 0444);
static int ring_kib = 64;
module_param(ring_kib, int, 0444);
static int rmb_kib = 65536;
module_param(rmb_kib, int, 0444);

unsigned int rstream_net_id;

/* Stands for a stream and the socket that owns it. */
struct rstream {
	struct mutex lock;		/* "socket lock" */
	wait_queue_head_t wait;
	atomic_t up, failed, lost, dead, data, space;
	bool bad;
	struct rstream_waiter *waiter;
	struct rstream_ticket ticket;
	struct rstream_peer_name peer_name;
	struct list_head list;
	struct socket *sock;
	struct task_struct *task;
	struct completion end;
	const char *name;
	bool server;
};

/* One host, without rings: linktest_bounds.c. */
static bool bounds(void)
{
	return !strcmp(role, "bounds");
}

static LIST_HEAD(streams);
static DEFINE_SPINLOCK(streams_lock);
static struct rstream ends[2];
static bool stopping;

/* ---- results ---- */

static atomic_t n_results;

void linktest_ok(bool good, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	pr_info("linktest: %sok %d - %pV\n", good ? "" : "not ",
		atomic_inc_return(&n_results), &vaf);
	va_end(args);
}

void linktest_done(void)
{
	pr_info("linktest: 1..%d\n", atomic_read(&n_results));
}

/* ---- what the link side calls ---- */

static void ring_data(struct rstream *rs, struct rstream_rxring *ring, bool bad)
{
	if (bad)
		WRITE_ONCE(rs->bad, true);
	atomic_inc(&rs->data);
	wake_up(&rs->wait);
}

static void ring_space(struct rstream *rs, struct rstream_txring *ring,
		       bool credit)
{
	atomic_inc(&rs->space);
	wake_up(&rs->wait);
}

static void ring_sent(struct rstream *rs)
{
	wake_up(&rs->wait);
}

static void link_event(struct rstream *rs, enum rstream_link_event ev)
{
	switch (ev) {
	case RSTREAM_LINK_EV_UP:
		atomic_inc(&rs->up);
		break;
	case RSTREAM_LINK_EV_FAILED:
	case RSTREAM_LINK_EV_DECLINED:
		atomic_inc(&rs->failed);
		break;
	case RSTREAM_LINK_EV_LOST:
		atomic_inc(&rs->lost);
		break;
	case RSTREAM_LINK_EV_DEAD:
		atomic_inc(&rs->dead);
		break;
	case RSTREAM_LINK_EV_IDLE:
	case RSTREAM_LINK_EV_ROUTES:
	case RSTREAM_LINK_EV_BUSY:
	case RSTREAM_LINK_EV_MOVE:
		break;
	}
	wake_up(&rs->wait);
}

void rstream_event_link_refused(const struct sockaddr_storage *from,
				enum rstream_reason reason)
{
}

void rstream_event_link(struct net *net, const struct rstream_link_change *link)
{
}

static struct rstream_waiter **link_waiter(struct rstream *rs)
{
	return &rs->waiter;
}

static bool ticket_find(struct net *net, struct rstream_ticket *ticket,
			struct rstream_peer_name *name)
{
	struct rstream *rs;
	bool found = false;

	spin_lock_bh(&streams_lock);
	list_for_each_entry(rs, &streams, list) {
		if (rs->ticket.ours.token != ticket->ours.token ||
		    rs->ticket.theirs.token != ticket->theirs.token)
			continue;
		*ticket = rs->ticket;
		*name = rs->peer_name;
		found = true;
		break;
	}
	spin_unlock_bh(&streams_lock);
	return found;
}

static const struct rstream_link_ops ops = {
	.data = ring_data,
	.space = ring_space,
	.sent = ring_sent,
	.event = link_event,
	.waiter = link_waiter,
	.find = ticket_find,
};

/* ---- the TCP connection ---- */

struct msg {
	u8 instance[RSTREAM_INSTANCE_LEN];
	u8 secret[RSTREAM_SECRET_LEN];
	u64 token;
	u32 ring, link, rkey, size, id, cell_rkey;
	u64 raddr, cell_addr, bytes, proof;
	u32 lost;
};

/* Of all that is before it in @m. */
static u64 msg_proof(struct rstream_link *link, bool ours, const struct msg *m)
{
	return rstream_cm_proof(link, ours, m, offsetof(struct msg, proof));
}

static int say(struct rstream *rs, struct msg *m)
{
	struct kvec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr h = {};

	return kernel_sendmsg(rs->sock, &h, &iov, 1, sizeof(*m)) ==
	       sizeof(*m) ? 0 : -EPIPE;
}

static int hear(struct rstream *rs, struct msg *m)
{
	struct kvec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr h = { .msg_flags = MSG_WAITALL };

	return kernel_recvmsg(rs->sock, &h, &iov, 1, sizeof(*m),
			      MSG_WAITALL) == sizeof(*m) ? 0 : -EPIPE;
}

static int talk(struct rstream *rs, struct msg *out, struct msg *in)
{
	int err = say(rs, out);

	return err ?: hear(rs, in);
}

static int tcp_listen(struct socket **lsk)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(LINKTEST_PORT),
	};
	int err;

	err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       lsk);
	if (err)
		return err;
	sock_set_reuseaddr((*lsk)->sk);
	err = kernel_bind(*lsk, (struct sockaddr_unsized *)&sin, sizeof(sin));
	return err ?: kernel_listen(*lsk, 4);
}

static int tcp_accept(struct rstream *rs)
{
	struct socket *lsk;
	int err = tcp_listen(&lsk);

	while (!err) {
		err = kernel_accept(lsk, &rs->sock, O_NONBLOCK);
		if (err != -EAGAIN || READ_ONCE(stopping))
			break;
		msleep(50);
		err = 0;
	}
	sock_release(lsk);
	return err;
}

static int tcp_connect_to(struct rstream *rs)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(LINKTEST_PORT),
		.sin_addr.s_addr = in_aton(addr),
	};
	int err, i;

	for (i = 0; i < 100 && !READ_ONCE(stopping); i++) {
		err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
				       IPPROTO_TCP, &rs->sock);
		if (err)
			return err;
		err = kernel_connect(rs->sock, (struct sockaddr_unsized *)&sin,
				     sizeof(sin), 0);
		if (!err)
			return 0;
		sock_release(rs->sock);
		rs->sock = NULL;
		msleep(200);
	}
	return -ETIMEDOUT;
}

/* ---- pattern ---- */

static u8 pattern(u64 pos, u32 seed)
{
	return (u8)(pos * 31 + (pos >> 8) * 7 + (pos >> 16) + seed);
}

static struct rstream_frag *make_frag(u64 pos, u32 len, u32 seed)
{
	struct rstream_frag *frag = rstream_frag_alloc(GFP_KERNEL);
	struct page *page;
	u8 *p;
	u32 i;

	if (!frag)
		return NULL;
	page = alloc_pages(GFP_KERNEL | __GFP_COMP, get_order(len));
	if (!page) {
		rstream_frag_free(frag);
		return NULL;
	}
	frag->page = page;
	frag->off = get_random_u32() % ((PAGE_SIZE << get_order(len)) - len + 1);
	frag->len = len;
	p = page_address(page) + frag->off;
	for (i = 0; i < len; i++)
		p[i] = pattern(pos + i, seed);
	return frag;
}

static void drop_frags(struct list_head *frags)
{
	struct rstream_frag *frag, *next;

	list_for_each_entry_safe(frag, next, frags, list) {
		list_del(&frag->list);
		rstream_frag_free(frag);
	}
}

/* ---- one round ---- */

struct round {
	struct rstream *rs;
	struct rstream_rxring *rx;
	struct rstream_txring *tx;
	struct list_head frags;
	u64 made, posted, queued;	/* bytes */
	u64 read, credited;
	u64 total;
	u32 seed, peer_seed;
	u64 errors;
	size_t reaped;
};

static void refill(struct round *r)
{
	while (r->made < r->total && r->queued < SZ_128K) {
		u32 kind = get_random_u32() % 4;
		u32 len = kind == 0 ? 1 + get_random_u32() % 16 :
			  kind == 1 ? 1 + get_random_u32() % 1500 :
			  1 + get_random_u32() % (kind == 2 ? 4096 : 32768);
		struct rstream_frag *frag;

		len = min_t(u64, len, r->total - r->made);
		frag = make_frag(r->made, len, r->seed);
		if (!frag)
			break;
		list_add_tail(&frag->list, &r->frags);
		r->made += len;
		r->queued += len;
	}
}

/* Returns true if something moved. */
static bool send_some(struct round *r)
{
	ssize_t n;
	size_t cost;
	s64 acked;

	r->reaped += rstream_txring_reap(r->tx, &acked, false, &cost);
	refill(r);
	if (list_empty(&r->frags))
		return false;
	/* now and then the last message asks, else a separate one does */
	n = rstream_txring_post(r->tx, &r->frags, r->queued, get_random_u32() % 2);
	if (n < 0) {
		if (n != -ENOTCONN)
			r->errors++;
		return false;
	}
	r->posted += n;
	r->queued -= n;
	if (!n)
		rstream_txring_ask(r->tx);
	return n;
}

static bool receive_some(struct round *r)
{
	/* pairs with the link's smp_store_release(): bytes before the count */
	u64 landed = smp_load_acquire(&r->rx->landed);
	u64 end = min(landed, r->read + 1 + get_random_u32() % 40000);
	bool want;

	want = READ_ONCE(r->rx->want_credit);
	if (r->read == end && !want)
		return false;
	for (; r->read < end; r->read++) {
		u8 c = r->rx->mem[r->read & (r->rx->size - 1)];

		if (c != pattern(r->read, r->peer_seed) && !r->errors++)
			pr_err("linktest: %s: byte %llu is %02x, not %02x\n",
			       r->rs->name, r->read, c,
			       pattern(r->read, r->peer_seed));
	}
	/* a sender that asks is answered, even without new credit */
	if (want || r->read - r->credited > r->rx->size / 4) {
		WRITE_ONCE(r->rx->want_credit, false);
		rstream_rxring_credit(r->rx, r->read, want);
		r->credited = r->read;
	}
	return true;
}

static bool round_over(struct round *r, u64 peer_total)
{
	struct rstream *rs = r->rs;

	if (atomic_read(&rs->lost) || READ_ONCE(stopping) || rs->bad)
		return true;
	return r->posted == r->total && r->read == peer_total &&
	       rstream_txring_acked(r->tx) == r->total;
}

static void pump(struct round *r, u64 peer_total)
{
	struct rstream *rs = r->rs;
	bool moved, credited = false;

	while (!round_over(r, peer_total)) {
		int data = atomic_read(&rs->data);
		int space = atomic_read(&rs->space);

		mutex_lock(&rs->lock);
		moved = send_some(r);
		moved |= receive_some(r);
		if (r->read == peer_total && !credited) {
			/* the last one, so that the sender knows the end */
			rstream_rxring_credit(r->rx, r->read, true);
			credited = true;
		}
		mutex_unlock(&rs->lock);
		if (moved) {
			cond_resched();
			continue;
		}
		if (!wait_event_timeout(rs->wait,
					data != atomic_read(&rs->data) ||
					space != atomic_read(&rs->space) ||
					atomic_read(&rs->lost) ||
					READ_ONCE(stopping), 10 * HZ)) {
			pr_err("linktest: %s: stuck: posted %llu of %llu, acked %lld, read %llu of %llu, landed %llu\n",
			       rs->name, r->posted, r->total,
			       rstream_txring_acked(r->tx), r->read, peer_total,
			       r->rx->landed);
			r->errors++;
			rstream_link_break(r->rx->link, RSTREAM_END_NET_RINGS);
		}
	}
}

/* Frees everything; after a loss the frags that were in flight come back. */
static void round_end(struct round *r)
{
	struct rstream *rs = r->rs;
	struct list_head back;
	ssize_t n;
	size_t cost;
	s64 acked;

	INIT_LIST_HEAD(&back);
	if (atomic_read(&rs->lost)) {
		wait_event_timeout(rs->wait, rstream_link_is_dead(r->tx->link),
				   30 * HZ);
		n = rstream_txring_recall(r->tx, &back);
		if (n < 0 || (u64)n + r->reaped != r->posted) {
			pr_err("linktest: %s: recalled %zd, reaped %zu, posted %llu\n",
			       rs->name, n, r->reaped, r->posted);
			r->errors++;
		}
	} else {
		while (!rstream_txring_sent(r->tx) && !atomic_read(&rs->lost)) {
			int space = atomic_read(&rs->space);

			if (!wait_event_timeout(rs->wait,
						rstream_txring_sent(r->tx) ||
						space != atomic_read(&rs->space) ||
						atomic_read(&rs->lost), 10 * HZ)) {
				pr_err("linktest: %s: not sent\n", rs->name);
				r->errors++;
				break;
			}
		}
		r->reaped += rstream_txring_reap(r->tx, &acked, false, &cost);
		if (r->reaped != r->posted && !atomic_read(&rs->lost)) {
			pr_err("linktest: %s: reaped %zu of %llu\n", rs->name,
			       r->reaped, r->posted);
			r->errors++;
		}
	}
	drop_frags(&back);
	drop_frags(&r->frags);
	rstream_txring_close(r->tx);
	rstream_rxring_release(r->rx);
}

/* A link, and a ring of it for us; waits as a stream would, but in place. */
static struct rstream_rxring *get_ring(struct rstream *rs,
				       struct rstream_peer *peer,
				       struct rstream_peer_route *route)
{
	struct rstream_rxring *ring = ERR_PTR(-ETIMEDOUT);
	struct rstream_link *link;
	int i, up, failed;

	for (i = 0; i < 300 && !READ_ONCE(stopping); i++) {
		up = atomic_read(&rs->up);
		failed = atomic_read(&rs->failed);
		link = rstream_peer_link(peer, ring_kib * SZ_1K);
		if (link) {
			mutex_lock(&rs->lock);
			ring = rstream_rxring_alloc(link, ring_kib * SZ_1K, rs);
			mutex_unlock(&rs->lock);
			rstream_link_put(link);
			if (!IS_ERR(ring))
				return ring;
			if (PTR_ERR(ring) == -ENOMEM)
				msleep(100);
		} else {
			rstream_peer_want_link(peer, route, rs);
		}
		wait_event_timeout(rs->wait, up != atomic_read(&rs->up) ||
				   failed != atomic_read(&rs->failed) ||
				   READ_ONCE(stopping), HZ / 5);
	}
	return ring;
}

static struct rstream_txring *open_ring(struct rstream *rs,
					struct rstream_peer *peer,
					const struct msg *grant)
{
	struct rstream_link *link;
	struct rstream_txring *tx;

	link = rstream_link_find(&init_net, peer, grant->link);
	if (!link)
		return ERR_PTR(-ENOTCONN);
	/* the two directions must differ */
	if (grant->proof != msg_proof(link, false, grant) ||
	    grant->proof == msg_proof(link, true, grant)) {
		tx = ERR_PTR(-EPROTO);
	} else {
		rstream_link_proven(link);
		tx = rstream_txring_open(link, grant->ring, grant->rkey,
					 grant->raddr, grant->size, rs);
	}
	rstream_link_put(link);
	return tx;
}

/* 0: done, 1: the link broke (or was not there), < 0: no use */
static int one_round(struct rstream *rs, struct rstream_peer *peer,
		     struct rstream_peer_route *route, int n)
{
	struct round r = {
		.rs = rs,
		.frags = LIST_HEAD_INIT(r.frags),
		.total = (u64)mbytes * SZ_1M + get_random_u32() % 10000,
		.seed = get_random_u32(),
	};
	struct msg out = {}, in;
	ktime_t start = ktime_get();
	int err;

	r.rx = get_ring(rs, peer, route);
	if (IS_ERR(r.rx)) {
		pr_err("linktest: %s: no ring: %ld\n", rs->name, PTR_ERR(r.rx));
		return -EIO;
	}
	atomic_set(&rs->lost, 0);
	out.link = rstream_link_peer_id(r.rx->link);
	out.ring = r.rx->id;
	out.rkey = r.rx->rkey;
	out.raddr = r.rx->raddr;
	out.size = r.rx->size;
	out.token = r.seed;
	out.bytes = r.total;
	out.proof = msg_proof(r.rx->link, true, &out);
	err = talk(rs, &out, &in);
	if (err)
		goto err_rx;
	r.peer_seed = in.token;
	r.tx = open_ring(rs, peer, &in);
	memset(&out, 0, sizeof(out));
	out.lost = IS_ERR(r.tx);
	if (!out.lost) {
		out.id = r.tx->id;
		out.cell_addr = r.tx->cell_addr;
		out.cell_rkey = r.tx->cell_rkey;
	}
	out.bytes = in.bytes;
	err = talk(rs, &out, &in);
	if (err || in.lost || out.lost) {
		pr_info("linktest: %s: grant not taken: %ld\n", rs->name,
			IS_ERR(r.tx) ? PTR_ERR(r.tx) : 0);
		if (!IS_ERR(r.tx))
			rstream_txring_close(r.tx);
		rstream_rxring_release(r.rx);
		return err ?: 1;
	}
	rstream_rxring_switched(r.rx, in.cell_addr, in.cell_rkey, in.id);
	pump(&r, out.bytes);
	round_end(&r);

	memset(&out, 0, sizeof(out));
	out.lost = atomic_read(&rs->lost);
	err = talk(rs, &out, &in);
	pr_info("linktest: %s: round %d: sent %llu read %llu errors %llu lost %d bad %d, %lld ms\n",
		rs->name, n, r.posted, r.read, r.errors,
		atomic_read(&rs->lost), rs->bad,
		ktime_ms_delta(ktime_get(), start));
	if (err || r.errors || rs->bad)
		return -EIO;
	return in.lost || out.lost;
err_rx:
	rstream_rxring_release(r.rx);
	return err;
}

static int exchange_hello(struct rstream *rs)
{
	struct msg out = { .token = rs->ticket.ours.token }, in;
	struct sockaddr_in sin;
	int err;

	memcpy(out.secret, rs->ticket.ours.secret, sizeof(out.secret));
	memcpy(out.instance, rstream_net(&init_net)->instance,
	       RSTREAM_INSTANCE_LEN);
	err = talk(rs, &out, &in);
	if (err)
		return err;
	kernel_getsockname(rs->sock, (struct sockaddr *)&sin);
	ipv6_addr_set_v4mapped(sin.sin_addr.s_addr, &rs->peer_name.local);
	kernel_getpeername(rs->sock, (struct sockaddr *)&sin);
	ipv6_addr_set_v4mapped(sin.sin_addr.s_addr, &rs->peer_name.remote);
	memcpy(rs->peer_name.instance, in.instance, RSTREAM_INSTANCE_LEN);
	spin_lock_bh(&streams_lock);
	rs->ticket.theirs.token = in.token;
	memcpy(rs->ticket.theirs.secret, in.secret, sizeof(in.secret));
	list_add(&rs->list, &streams);
	spin_unlock_bh(&streams_lock);
	return talk(rs, &out, &in);
}

/* A dump tells an RMB from its neighbour by the serial. */
static int check_serial(const struct rstream_rmb_info *info, void *arg)
{
	u64 *last = arg;

	if (info->serial == *last)
		return -EIO;
	*last = info->serial;
	return 0;
}

static int run_rounds(struct rstream *rs)
{
	struct rstream_peer_route route = { .ticket = rs->ticket };
	struct sockaddr_in *sin = (struct sockaddr_in *)&route.remote;
	struct rstream_peer *peer;
	int i, err = 0, lost = 0;
	u64 serial = 0;

	kernel_getsockname(rs->sock, (struct sockaddr *)&route.local);
	kernel_getpeername(rs->sock, (struct sockaddr *)&route.remote);
	sin->sin_port = htons(rstream_net(&init_net)->set.cm_port);
	peer = rstream_peer_get(&init_net, &rs->peer_name);
	if (!peer)
		return -ENOMEM;
	rstream_link_net_use(&init_net, NULL);
	for (i = 0; i < rounds && err >= 0 && !READ_ONCE(stopping); ) {
		err = one_round(rs, peer, &route, i);
		if (!err)
			i++;
		else if (err > 0 && ++lost > losses)
			err = -ENOLINK;
	}
	if (err >= 0 && !lost)
		err = rstream_link_info_dump_rmbs(&init_net, 0, check_serial, &serial);
	rstream_waiter_forget(peer, rs);
	rstream_link_net_unuse(&init_net);
	rstream_peer_put(peer);
	pr_info("linktest: %s: %d rounds, %d losses, error %d\n", rs->name, i,
		lost, err);
	return err;
}

static int run(void *arg)
{
	struct rstream *rs = arg;
	int err;

	err = rs->server ? tcp_accept(rs) : tcp_connect_to(rs);
	if (!err) {
		tcp_sock_set_nodelay(rs->sock->sk);
		err = exchange_hello(rs);
	}
	if (!err)
		err = run_rounds(rs);
	linktest_ok(!err, "%s (%d)", rs->name, err);
	spin_lock_bh(&streams_lock);
	list_del_init(&rs->list);
	spin_unlock_bh(&streams_lock);
	complete(&rs->end);
	return 0;
}

/* ---- module ---- */

static int start(struct rstream *rs, bool server, const char *name)
{
	mutex_init(&rs->lock);
	init_waitqueue_head(&rs->wait);
	init_completion(&rs->end);
	INIT_LIST_HEAD(&rs->list);
	get_random_bytes(&rs->ticket.ours, sizeof(rs->ticket.ours));
	rs->ticket.ours.token |= 1;
	rs->server = server;
	rs->name = name;
	rs->task = kthread_run(run, rs, "linktest-%s", name);
	return PTR_ERR_OR_ZERO(rs->task);
}

static int __net_init linktest_net_init(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);
	int err;

	rn->net = net;
	rn->set = (struct rstream_settings){
		.rmb_max = rmb_kib * SZ_1K,
		.cm_port = 7472,
		.cm_timeout_ms = 5000,
		.link_idle_ms = idle_ms,
		.link_probe_ms = 1000,
		.ack_timeout = 14,
		.retry_count = 6,
		.links_per_address = 64,
		.links_max = 64,
		.links_per_path = bounds() ? 3 : 1,
	};
	get_random_bytes(rn->instance, sizeof(rn->instance));
	err = rstream_mib_net_init(net);
	if (err)
		return err;
	err = rstream_link_net_init(net);
	if (err)
		rstream_mib_net_exit(net);
	return err;
}

static void __net_exit linktest_net_exit(struct net *net)
{
	rstream_link_net_exit(net);
	rstream_mib_net_exit(net);
}

static struct pernet_operations linktest_net_ops = {
	.init = linktest_net_init,
	.exit = linktest_net_exit,
	.id = &rstream_net_id,
	.size = sizeof(struct rstream_net),
};

static int print_link(const struct rstream_link_info *l, void *arg)
{
	pr_info("linktest: link %u state %u active %d dev %s/%u qpn %u peer %u mtu %u tx %llu/%llu rx %llu/%llu rings %u/%u rmb %llu/%llu rq %u sq %u\n",
		l->id, l->state, l->active, l->dev, l->port, l->qpn,
		l->peer_qpn, l->path_mtu, l->tx_bytes, l->tx_msgs, l->rx_bytes,
		l->rx_msgs, l->tx_rings, l->rx_rings, l->rmb_used,
		l->rmb_bytes, l->rq_credits, l->sq_free);
	return 0;
}

/* cat /sys/module/linktest/parameters/report prints the counters */
static int report_get(char *buf, const struct kernel_param *kp)
{
	static const char * const names[] = {
#define X(name, text) #name,
		RSTREAM_MIB_LIST(X)
#undef X
	};
	int i, n = 0;

	rstream_link_info_dump(&init_net, 0, print_link, NULL);
	for (i = 0; i < RSTREAM_MIB_MAX; i++)
		if (rstream_mib_sum(&init_net, i))
			n += scnprintf(buf + n, PAGE_SIZE - n, "%s %llu\n",
				       names[i], rstream_mib_sum(&init_net, i));
	return n;
}

static const struct kernel_param_ops report_ops = { .get = report_get };
module_param_cb(report, &report_ops, NULL, 0444);

static int __init linktest_init(void)
{
	int err;

	err = rstream_link_net_register(bounds() ? &linktest_bounds_ops : &ops);
	if (err)
		return err;
	err = register_pernet_subsys(&linktest_net_ops);
	if (err) {
		rstream_link_net_unregister();
		return err;
	}
	if (bounds()) {
		linktest_bounds(addr, rstream_net(&init_net)->set.cm_port);
		return 0;
	}
	if (strcmp(role, "client"))
		err = start(&ends[0], true, "server");
	if (!err && strcmp(role, "server"))
		err = start(&ends[1], false, "client");
	return 0;
}

static void __exit linktest_exit(void)
{
	int i;

	WRITE_ONCE(stopping, true);
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		if (IS_ERR_OR_NULL(ends[i].task))
			continue;
		wake_up(&ends[i].wait);
		if (ends[i].sock)
			kernel_sock_shutdown(ends[i].sock, SHUT_RDWR);
		wait_for_completion(&ends[i].end);
		if (ends[i].sock)
			sock_release(ends[i].sock);
	}
	unregister_pernet_subsys(&linktest_net_ops);
	rstream_link_net_unregister();
}

module_init(linktest_init);
module_exit(linktest_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Test of rdmastream's links without its sockets");
