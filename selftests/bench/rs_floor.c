// SPDX-License-Identifier: GPL-2.0-only
/*
 * rs_floor.ko: what two kernels can do with RDMA writes alone, no stream on top.  It
 * is the floor of "make bench": nothing that carries streams by RDMA writes can be
 * faster on the same device.
 *
 *   insmod rs_floor.ko				server, until it is unloaded
 *   insmod rs_floor.ko addr=10.77.0.2 op=rtt size=64 ms=250 mode=softirq
 *						client; insmod returns when it is done
 *
 * An end is in the network namespace of its insmod.  The client's result is in
 * /sys/module/rs_floor/parameters/result, lines "NAME VALUE".
 *
 * Everything is RDMA_WRITE_WITH_IMM.  "rtt": a message there and back.  "write":
 * messages in one direction, as many on their way as there are places for them in
 * the peer's memory and receives posted; the peer says by the immediate data of
 * empty writes how many have arrived.
 *
 * The client decides all by the private data of its connection request.  Then each
 * tells the other by a SEND where its memory is; the server answers only, because
 * the client's queue pair is not yet ready when the server's is.
 *
 * There is one CQ for both queues, so whatever runs in its handlers is alone and needs
 * no lock: in softirq, in a worker, or in a kernel thread that polls all the time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/tick.h>
#include <linux/vmalloc.h>
#include <rdma/rdma_cm.h>

#include "rs_floor.h"

#define FLOOR_MAGIC 0x72736631

static const char *const op_names[] = {
	[FLOOR_RTT] = "rtt", [FLOOR_WRITE] = "write",
};

static const char *const mode_names[] = {
	[FLOOR_SOFTIRQ] = "softirq", [FLOOR_WORKQUEUE] = "workqueue",
	[FLOOR_DIRECT] = "direct",
};

static char *addr;
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 address of the server; none: be the server");
static ushort port = 7399;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "of the server");
static char *op = "rtt";
module_param(op, charp, 0444);
MODULE_PARM_DESC(op, "rtt or write");
static char *mode = "softirq";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "context of completions, at both ends: softirq, workqueue or direct");
static uint size = 64;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "of a message");
static uint ms = 250;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "time to measure");
static uint count;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "round trips or writes to measure, instead of a time");
static bool self;
module_param(self, bool, 0444);
MODULE_PARM_DESC(self, "client and server, if addr is one of this host");
static char result[128];
module_param_string(result, result, sizeof(result), 0444);
MODULE_PARM_DESC(result, "what the client has measured");

/* In the connection request. */
struct floor_order {
	__be32 magic;
	__be32 op;
	__be32 mode;
	__be32 size;
};

static struct rdma_cm_id *listener;
static struct workqueue_struct *close_wq;
static LIST_HEAD(conns);
static DEFINE_MUTEX(conns_lock);

/* ---- the end of a connection ---- */

static void queue_close(struct floor_conn *conn)
{
	if (!test_and_set_bit(0, &conn->close_queued))
		queue_work(close_wq, &conn->close_work);
}

/* From any context. */
void floor_fail(struct floor_conn *conn, int err)
{
	cmpxchg(&conn->err, 0, err);
	if (conn->server) {
		queue_close(conn);
	} else {
		complete(&conn->event);
		complete(&conn->finished);
	}
}

static void close_work(struct work_struct *work)
{
	struct floor_conn *conn = container_of(work, struct floor_conn, close_work);

	/* It may have failed while accept() is still at it. */
	rdma_lock_handler(conn->id);
	rdma_unlock_handler(conn->id);
	mutex_lock(&conns_lock);
	list_del(&conn->node);
	mutex_unlock(&conns_lock);
	rdma_disconnect(conn->id);
	floor_release(conn);
	rdma_destroy_id(conn->id);
	kfree(conn);
}

/* ---- work requests ---- */

static bool closing(const struct floor_conn *conn)
{
	return READ_ONCE(conn->closing) || READ_ONCE(conn->err);
}

/* A full queue always ends in a completion, which goes on. */
static bool sq_has_room(const struct floor_conn *conn)
{
	return conn->sent - conn->retired < FLOOR_SENDS;
}

static void post_recv(struct floor_conn *conn)
{
	struct ib_recv_wr wr = { .wr_cqe = &conn->recv_cqe };
	int err = ib_post_recv(conn->qp, &wr, NULL);

	if (err)
		floor_fail(conn, err);
}

static void post_write(struct floor_conn *conn, u32 offset, u32 len, u32 imm)
{
	struct ib_sge sge = {
		.addr = conn->mr->iova + offset,
		.length = len,
		.lkey = conn->mr->lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.wr_cqe = &conn->send_cqe,
		.wr.sg_list = &sge,
		.wr.num_sge = len ? 1 : 0,
		.wr.ex.imm_data = cpu_to_be32(imm),
		.remote_addr = conn->peer_addr + offset,
		.rkey = conn->peer_rkey,
	};
	int err;

	if (++conn->sent % FLOOR_SIGNAL_EVERY == 0)
		wr.wr.send_flags = IB_SEND_SIGNALED;
	err = ib_post_send(conn->qp, &wr.wr, NULL);
	if (err)
		floor_fail(conn, err);
}

/* Registers our memory, and tells the peer. */
static int post_hello(struct floor_conn *conn)
{
	struct ib_sge sge = {
		.addr = conn->hello_dma,
		.length = sizeof(*conn->hello),
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_send_wr send = {
		.opcode = IB_WR_SEND,
		.wr_cqe = &conn->setup_cqe,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ib_reg_wr reg = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.wr_cqe = &conn->setup_cqe,
		.wr.next = &send,
		.mr = conn->mr,
		.key = conn->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	conn->hello[0].addr = cpu_to_be64(conn->mr->iova);
	conn->hello[0].rkey = cpu_to_be32(conn->mr->rkey);
	ib_dma_sync_single_for_device(conn->id->device, conn->hello_dma,
				      sizeof(*conn->hello), DMA_BIDIRECTIONAL);
	return ib_post_send(conn->qp, &reg.wr, NULL);
}

/* ---- server: answers ---- */

static void serve(struct floor_conn *conn)
{
	/* One message of a window of few, a quarter of one of many. */
	u32 batch = max(conn->window / 4, 1U);

	if (conn->op == FLOOR_RTT) {
		while (conn->due && sq_has_room(conn)) {
			conn->due--;
			post_write(conn, 0, conn->size, 0);
		}
	} else if ((conn->due >= batch || conn->flush) && sq_has_room(conn)) {
		post_write(conn, 0, 0, conn->due);
		conn->due = 0;
		conn->flush = false;
	}
}

/* ---- client: the load ---- */

/* What the CPUs did not idle. */
static u64 busy_ns(void)
{
	u64 busy = 0, wall;
	int cpu;

	for_each_online_cpu(cpu)
		busy += ktime_get_ns() - get_cpu_idle_time_us(cpu, &wall) * NSEC_PER_USEC;
	return busy;
}

static void send_load(struct floor_conn *conn)
{
	if (conn->op == FLOOR_RTT) {
		if (!conn->turn || !sq_has_room(conn))
			return;
		conn->turn = false;
		conn->began = ktime_get_ns();
		post_write(conn, 0, conn->size, 0);
		return;
	}
	while (!conn->last && conn->messages - conn->credited < conn->window &&
	       sq_has_room(conn) && !closing(conn)) {
		u32 slot = conn->messages++ % conn->window;

		/* It is credited at once. */
		conn->last = count ? conn->messages == count : ktime_get_ns() >= conn->end;
		post_write(conn, slot * conn->size, conn->size, conn->last);
	}
}

static void start_load(struct floor_conn *conn)
{
	conn->start = ktime_get_ns();
	conn->end = conn->start + (u64)ms * NSEC_PER_MSEC;
	conn->busy = busy_ns();
	conn->turn = true;
	send_load(conn);
}

static void trip_done(struct floor_conn *conn)
{
	u64 now = ktime_get_ns();
	u32 n = conn->trips++;

	if (n == FLOOR_WARM - 1) {
		conn->end = now + (u64)ms * NSEC_PER_MSEC;
		conn->busy = busy_ns();
	} else if (n >= FLOOR_WARM) {
		n -= FLOOR_WARM;
		conn->samples[n++] = min_t(u64, now - conn->began, U32_MAX);
		if (n == FLOOR_SAMPLES ||
		    (count ? n == count : n >= FLOOR_TRIPS && now >= conn->end)) {
			conn->busy = busy_ns() - conn->busy;
			complete(&conn->finished);
			return;
		}
	}
	conn->turn = true;
}

static void credit_came(struct floor_conn *conn, u32 n)
{
	conn->credited += n;
	if (conn->last && conn->credited == conn->messages) {
		conn->end = ktime_get_ns();
		conn->busy = busy_ns() - conn->busy;
		complete(&conn->finished);
	}
}

/* ---- completions ---- */

static bool went_well(struct floor_conn *conn, const struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS)
		return !closing(conn);
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	floor_fail(conn, -EIO);
	return false;
}

static void go_on(struct floor_conn *conn)
{
	if (conn->server)
		serve(conn);
	else
		send_load(conn);
}

static void setup_done(struct ib_cq *cq, struct ib_wc *wc)
{
	went_well(cq->cq_context, wc);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct floor_conn *conn = cq->cq_context;

	if (!went_well(conn, wc))
		return;
	conn->retired += FLOOR_SIGNAL_EVERY;
	go_on(conn);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct floor_conn *conn = cq->cq_context;
	u32 imm;

	if (!went_well(conn, wc))
		return;
	imm = be32_to_cpu(wc->ex.imm_data);
	if (conn->server) {
		conn->due++;
		conn->flush |= imm;
	} else if (conn->op == FLOOR_RTT) {
		trip_done(conn);
	} else {
		credit_came(conn, imm);
	}
	/* More receives are posted than the window needs: first the answer. */
	go_on(conn);
	post_recv(conn);
}

static void hello_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct floor_conn *conn = cq->cq_context;
	int err;

	if (!went_well(conn, wc))
		return;
	if (wc->byte_len != sizeof(*conn->hello)) {
		floor_fail(conn, -EPROTO);
		return;
	}
	ib_dma_sync_single_for_cpu(conn->id->device, conn->hello_dma,
				   2 * sizeof(*conn->hello), DMA_BIDIRECTIONAL);
	conn->peer_addr = be64_to_cpu(conn->hello[1].addr);
	conn->peer_rkey = be32_to_cpu(conn->hello[1].rkey);
	if (!conn->server) {
		start_load(conn);
		return;
	}
	err = post_hello(conn);
	if (err)
		floor_fail(conn, err);
}

/* ---- connections ---- */

static struct floor_conn *new_conn(enum floor_op what, enum floor_mode how, u32 bytes)
{
	struct floor_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->op = what;
	conn->mode = how;
	conn->size = bytes;
	conn->window = min_t(u32, FLOOR_BUFFER / bytes, FLOOR_WINDOW);
	init_completion(&conn->event);
	init_completion(&conn->finished);
	INIT_WORK(&conn->close_work, close_work);
	conn->setup_cqe.done = setup_done;
	conn->hello_cqe.done = hello_done;
	conn->send_cqe.done = send_done;
	conn->recv_cqe.done = recv_done;
	return conn;
}

/* ---- server ---- */

static int accept(struct rdma_cm_id *id, const struct rdma_conn_param *asked)
{
	const struct floor_order *order = asked->private_data;
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct floor_conn *conn;
	u32 what, how, bytes;
	int err;

	if (!order || asked->private_data_len < sizeof(*order) ||
	    be32_to_cpu(order->magic) != FLOOR_MAGIC)
		return -EPROTO;
	what = be32_to_cpu(order->op);
	how = be32_to_cpu(order->mode);
	bytes = be32_to_cpu(order->size);
	if (what >= ARRAY_SIZE(op_names) || how >= ARRAY_SIZE(mode_names) ||
	    !bytes || bytes > FLOOR_BUFFER)
		return -EPROTO;

	conn = new_conn(what, how, bytes);
	if (!conn)
		return -ENOMEM;
	conn->server = true;
	conn->id = id;
	id->context = conn;
	mutex_lock(&conns_lock);
	list_add(&conn->node, &conns);
	mutex_unlock(&conns_lock);
	err = floor_prepare(conn);
	if (!err)
		err = rdma_accept(id, &param);
	if (err)
		floor_fail(conn, err);
	return 0;
}

/* ---- rdma_cm ---- */

static int cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct floor_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept(id, &event->param.conn);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		complete(&conn->event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		/* of a rejection it is a reason, above 0 */
		floor_fail(conn, event->status < 0 ? event->status : -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (conn)	/* not the listener's */
			floor_fail(conn, -ECONNRESET);
		break;
	default:
		break;
	}
	return 0;
}

static int start_server(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int err;

	close_wq = alloc_workqueue("rs_floor", WQ_UNBOUND, 0);
	if (!close_wq)
		return -ENOMEM;
	listener = rdma_create_id(current->nsproxy->net_ns, cm_handler, NULL, RDMA_PS_TCP,
				  IB_QPT_RC);
	if (IS_ERR(listener)) {
		err = PTR_ERR(listener);
		goto no_listener;
	}
	err = rdma_bind_addr(listener, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(listener, 16);
	if (!err)
		return 0;
	rdma_destroy_id(listener);
no_listener:
	destroy_workqueue(close_wq);
	listener = NULL;
	return err;
}

static void stop_server(void)
{
	struct floor_conn *conn;

	if (!listener)
		return;
	rdma_destroy_id(listener);	/* nothing is accepted any more */
	mutex_lock(&conns_lock);
	list_for_each_entry(conn, &conns, node)
		queue_close(conn);
	mutex_unlock(&conns_lock);
	destroy_workqueue(close_wq);
}

/* ---- client ---- */

static int wait_for(struct floor_conn *conn, struct completion *what, u32 limit_ms)
{
	long left = wait_for_completion_interruptible_timeout(what, msecs_to_jiffies(limit_ms));

	if (left < 0)
		return -EINTR;
	return left ? READ_ONCE(conn->err) : -ETIMEDOUT;
}

static int connect(struct floor_conn *conn, struct sockaddr_in *to)
{
	struct floor_order order = {
		.magic = cpu_to_be32(FLOOR_MAGIC),
		.op = cpu_to_be32(conn->op),
		.mode = cpu_to_be32(conn->mode),
		.size = cpu_to_be32(conn->size),
	};
	struct rdma_conn_param param = {
		.private_data = &order,
		.private_data_len = sizeof(order),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err;

	err = rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)to, FLOOR_CM_MS);
	if (!err)
		err = wait_for(conn, &conn->event, 2 * FLOOR_CM_MS);
	if (!err)
		err = rdma_resolve_route(conn->id, FLOOR_CM_MS);
	if (!err)
		err = wait_for(conn, &conn->event, 2 * FLOOR_CM_MS);
	if (!err)
		err = floor_prepare(conn);
	if (!err)
		err = rdma_connect(conn->id, &param);
	if (!err)
		err = wait_for(conn, &conn->event, 2 * FLOOR_CM_MS);
	return err;
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static void tell(struct floor_conn *conn)
{
	u32 n = conn->trips - FLOOR_WARM;

	if (conn->op == FLOOR_WRITE) {
		u64 bytes = conn->messages * conn->size;

		scnprintf(result, sizeof(result), "bytes %llu\nns %llu\nbusy-ns-per-mib %llu",
			  bytes, conn->end - conn->start, div64_u64(conn->busy << 20, bytes));
		return;
	}
	sort(conn->samples, n, sizeof(*conn->samples), compare, NULL);
	scnprintf(result, sizeof(result), "trips %u\nns %u\nbusy-ns %llu", n,
		  conn->samples[n / 2], div_u64(conn->busy, n));
}

static int run_client(struct floor_conn *conn, struct sockaddr_in *to)
{
	bool connected;
	int err;

	conn->id = rdma_create_id(current->nsproxy->net_ns, cm_handler, conn, RDMA_PS_TCP,
				  IB_QPT_RC);
	if (IS_ERR(conn->id))
		return PTR_ERR(conn->id);
	err = connect(conn, to);
	connected = !err;
	if (!err)
		err = post_hello(conn);
	/* a number of round trips: as long as it takes */
	if (!err)
		err = wait_for(conn, &conn->finished, count ? INT_MAX : ms + FLOOR_GRACE_MS);
	if (connected)
		rdma_disconnect(conn->id);
	floor_release(conn);
	rdma_destroy_id(conn->id);
	return err;
}

static int client(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int what = match_string(op_names, ARRAY_SIZE(op_names), op);
	int how = match_string(mode_names, ARRAY_SIZE(mode_names), mode);
	struct floor_conn *conn;
	int err;

	if (what < 0 || how < 0 || !size || size > FLOOR_BUFFER || count > FLOOR_SAMPLES ||
	    ms > 3600 * MSEC_PER_SEC || !in4_pton(addr, -1, (u8 *)&to.sin_addr.s_addr, -1, NULL))
		return -EINVAL;
	conn = new_conn(what, how, size);
	if (!conn)
		return -ENOMEM;
	conn->samples = vzalloc(array_size(FLOOR_SAMPLES, sizeof(*conn->samples)));
	err = conn->samples ? run_client(conn, &to) : -ENOMEM;
	if (err)
		pr_err("%s of %u bytes to %s: error %d\n", op, size, addr, err);
	else
		tell(conn);
	vfree(conn->samples);
	kfree(conn);
	return err;
}

static int __init floor_init(void)
{
	int err = 0;

	if (!addr || self)
		err = start_server();
	if (!err && addr) {
		err = client();
		if (err)
			stop_server();
	}
	return err;
}

static void __exit floor_exit(void)
{
	stop_server();
}

module_init(floor_init);
module_exit(floor_exit);
MODULE_DESCRIPTION("RDMA writes between two kernels: the floor of rdmastream's benchmark");
MODULE_LICENSE("GPL");
