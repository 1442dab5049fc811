// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue pair of a link: its queues, and their completions.
 *
 * Called by cm.c (create) and link_life.c (drain, destroy).  It never decides what is sent:
 * completions and messages go to msg.c and txring.c.
 *
 * Each link is a NAPI instance that polls both completion queues.  So programs can busy-poll a link
 * like a network device: SO_BUSY_POLL, epoll and so on find it by the socket's NAPI id.  NAPI needs
 * a net_device, so there is a dummy one.
 */
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "account.h"
#include "device.h"
#include "qp.h"
#include "rmb.h"

static atomic_t rstream_next_vector;

static struct net_device *napi_dev;
static DEFINE_MUTEX(napi_lock);		/* guards the device's list of instances */

/* ---- completions ---- */

static void post_recv(struct rstream_link *link, unsigned int i)
{
	struct ib_sge sge = {
		.addr = link->qp.ctrl_dma + (link->qp.depth + i) * RSTREAM_CTRL_BYTES,
		.length = RSTREAM_CTRL_BYTES,
		.lkey = link->qp.pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &link->qp.rq[i].cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (ib_post_recv(link->qp.ib, &wr, NULL))
		rstream_link_break_locked(link, RSTREAM_END_POST_RECV);
}

static void wr_failed(struct rstream_link *link, const struct ib_wc *wc)
{
	bool flushed = wc->status == IB_WC_WR_FLUSH_ERR;

	lockdep_assert_held(&link->lock);
	/* rdma_cm flushes the queues before it reports, for example, that the peer has refused */
	if (flushed && link->active && link->state == RSTREAM_LINK_CONNECTING &&
	    link->life.setup == RSTREAM_SETUP_CONNECT)
		return;
	/* iWARP devices flush the queues before rdma_cm says why */
	if (flushed && link->iwarp) {
		rstream_link_disconnected(link);
		return;
	}
	if (!flushed)
		rstream_link_count(link, RSTREAM_MIB_WR_ERRORS);
	rstream_link_ends(link, RSTREAM_END_WR, ib_wc_status_msg(wc->status));
}

/* iWARP: reads the notice in receive buffer @i.  Return: false if it has the wrong size. */
static bool read_notice(struct rstream_link *link, const struct ib_wc *wc, unsigned int i,
			__be32 *imm, u32 *len)
{
	u32 off = (link->qp.depth + i) * RSTREAM_CTRL_BYTES;
	const struct rstream_notice *n = link->qp.ctrl + off;
	struct ib_device *ib = link->qp.pd->device;

	if (wc->byte_len != sizeof(*n))
		return false;
	ib_dma_sync_single_for_cpu(ib, link->qp.ctrl_dma + off, RSTREAM_CTRL_BYTES,
				   DMA_BIDIRECTIONAL);
	rstream_notice_read(n, imm, len);
	ib_dma_sync_single_for_device(ib, link->qp.ctrl_dma + off, RSTREAM_CTRL_BYTES,
				      DMA_BIDIRECTIONAL);
	return true;
}

/* A message is in receive @i. */
static void received(struct rstream_link *link, const struct ib_wc *wc, unsigned int i)
{
	enum rstream_link_end end = RSTREAM_END_NONE;
	__be32 imm = wc->ex.imm_data;
	u32 len = wc->byte_len;

	if (link->iwarp) {
		if (!read_notice(link, wc, i, &imm, &len))
			end = RSTREAM_END_BAD_SIZE;
	} else if (!(wc->wc_flags & IB_WC_WITH_IMM)) {
		/* the flag, not the opcode: hns reports another opcode */
		end = RSTREAM_END_NO_IMM;
	}
	if (end) {
		rstream_link_break_locked(link, end);
		return;
	}
	link->msg.received++;
	/* repost before processing the message: see msg.c on receive credits */
	post_recv(link, i);
	/* if that has broken the link, the counts of the streams are final */
	if (rstream_link_alive(link))
		rstream_msg_got(link, imm, len);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rstream_link *link = cq->cq_context;
	struct rstream_slot *slot = container_of(wc->wr_cqe,
						 struct rstream_slot, cqe);

	rstream_link_count(link, RSTREAM_MIB_COMPLETIONS);
	spin_lock_bh(&link->lock);
	/* once the link has ended, nothing is counted any more: see struct rstream_rxring */
	if (wc->status != IB_WC_SUCCESS)
		wr_failed(link, wc);
	else if (rstream_link_alive(link))
		received(link, wc, slot - link->qp.rq);
	spin_unlock_bh(&link->lock);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rstream_link *link = cq->cq_context;
	struct rstream_slot *slot = container_of(wc->wr_cqe,
						 struct rstream_slot, cqe);
	u32 at, ahead;

	rstream_link_count(link, RSTREAM_MIB_COMPLETIONS);
	spin_lock_bh(&link->lock);
	if (wc->status != IB_WC_SUCCESS) {
		wr_failed(link, wc);
		goto out;
	}
	/* completions are in order: the slot is the @ahead-th one after wr.done */
	div_u64_rem(link->wr.done, link->qp.depth, &at);
	ahead = (slot - link->qp.sq) + link->qp.depth - at;
	if (ahead > link->qp.depth)
		ahead -= link->qp.depth;
	link->wr.done += ahead;
	link->sched.completed_bytes = slot->tx_bytes;
	if (unlikely(link->wr.done > link->wr.posted)) {	/* completed twice */
		link->wr.done = link->wr.posted;
		rstream_link_break_locked(link, RSTREAM_END_WR);
	}
	/* with iWARP, a completion says nothing about the peer, which answers probes */
	if (link->probe.timed && link->wr.done >= link->probe.timed && !link->iwarp)
		rstream_link_probed(link);
	if (rstream_link_alive(link))
		rstream_txring_sq_done(link);
	if (wq_has_sleeper(&link->rmb.wait))
		wake_up_all(&link->rmb.wait);
out:
	rstream_txring_unlock(link);
}

/* Bits of link->qp.events. */
enum { EVENT_COMM_EST, EVENT_FATAL, EVENT_SENT };

/* Called by drivers in any context. */
static void cq_event(struct ib_cq *cq, void *context)
{
	struct rstream_link *link = context;

	if (cq == link->qp.send_cq)
		set_bit(EVENT_SENT, &link->qp.events);
	napi_schedule(&link->qp.napi);
}

static int poll_cq(struct rstream_link *link, struct ib_cq *cq, int budget)
{
	int i, n, done = 0;

	do {
		n = ib_poll_cq(cq, min(budget - done, RSTREAM_POLL_BATCH), link->qp.wcs);
		for (i = 0; i < n; i++)
			if (link->qp.wcs[i].wr_cqe)
				link->qp.wcs[i].wr_cqe->done(cq, &link->qp.wcs[i]);
		done += max(n, 0);
	} while (n == RSTREAM_POLL_BATCH && done < budget);
	return done;
}

static bool cq_has_more(struct ib_cq *cq)
{
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

/*
 * Runs in softirq or for a program that busy-polls, but never both at once.  Few sends are
 * signalled, so the send CQ is polled and armed again only after it has had an event.
 */
static int link_poll(struct napi_struct *napi, int budget)
{
	struct rstream_link *link = container_of(napi, struct rstream_link, qp.napi);
	bool event = test_bit(EVENT_SENT, &link->qp.events) &&
		     test_and_clear_bit(EVENT_SENT, &link->qp.events);
	int received = poll_cq(link, link->qp.recv_cq, budget);
	int sent = event ? poll_cq(link, link->qp.send_cq, budget) : 0;
	int done = max(received, sent);
	bool more = false;

	if (done < budget && napi_complete_done(napi, done)) {
		more = cq_has_more(link->qp.recv_cq);
		event = event && cq_has_more(link->qp.send_cq);
		more |= event;
		/* an event meanwhile may have found the poll still running */
		smp_mb();
		more |= test_bit(EVENT_SENT, &link->qp.events);
	}
	if (event)	/* poll it once more */
		set_bit(EVENT_SENT, &link->qp.events);
	if (more)
		napi_schedule(napi);
	return done;
}

/* Called by drivers in any context, including hard interrupts. */
static void qp_event(struct ib_event *event, void *context)
{
	struct rstream_link *link = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		set_bit(EVENT_COMM_EST, &link->qp.events);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		set_bit(EVENT_FATAL, &link->qp.events);
		break;
	default:
		return;
	}
	queue_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->qp.event_work);
}

static void event_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 qp.event_work);

	if (test_and_clear_bit(EVENT_COMM_EST, &link->qp.events))
		rdma_notify(link->cm.id, IB_EVENT_COMM_EST);
	if (test_and_clear_bit(EVENT_FATAL, &link->qp.events))
		rstream_link_break(link, RSTREAM_END_QP);
}

/* ---- queues ---- */

static size_t ctrl_bytes(const struct rstream_link *link)
{
	return 2 * link->qp.depth * RSTREAM_CTRL_BYTES;
}

static int alloc_slots(struct rstream_link *link)
{
	struct rstream_account account;
	unsigned int i;
	u64 dma;

	if (!rstream_account_on(&account, link->ln, GFP_KERNEL))
		return -ENOMEM;
	link->qp.sq = kvcalloc(link->qp.depth, sizeof(*link->qp.sq), account.gfp);
	link->qp.rq = kvcalloc(link->qp.depth, sizeof(*link->qp.rq), account.gfp);
	link->wr.batch = kzalloc(sizeof(*link->wr.batch), account.gfp);
	link->qp.wcs = kcalloc(RSTREAM_POLL_BATCH, sizeof(*link->qp.wcs), account.gfp);
	/* first half: credits and notices to send, by send slot; second half: receive buffers */
	link->qp.ctrl = kcalloc(2 * link->qp.depth, RSTREAM_CTRL_BYTES, account.gfp);
	rstream_account_off(&account);
	if (!link->qp.sq || !link->qp.rq || !link->wr.batch || !link->qp.wcs || !link->qp.ctrl)
		return -ENOMEM;
	dma = ib_dma_map_single(link->dev->ib, link->qp.ctrl, ctrl_bytes(link),
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(link->dev->ib, dma))
		return -EIO;
	link->qp.ctrl_dma = dma;
	link->qp.ctrl_mapped = true;
	for (i = 0; i < link->qp.depth; i++) {
		link->qp.sq[i].cqe.done = send_done;
		link->qp.rq[i].cqe.done = recv_done;
	}
	return 0;
}

/* ib_create_cq() leaves poll_ctx 0: with SOFTIRQ, ib_drain_qp() waits, and does not poll itself. */
static_assert(IB_POLL_SOFTIRQ == 0);

static struct ib_cq *alloc_cq(struct rstream_link *link, int vector)
{
	const struct ib_cq_init_attr attr = {
		.cqe = link->qp.depth + 1,
		.comp_vector = vector % max(link->dev->ib->num_comp_vectors, 1),
	};

	return ib_create_cq(link->dev->ib, cq_event, NULL, link, &attr);
}

static void start_polling(struct rstream_link *link)
{
	mutex_lock(&napi_lock);
	netif_napi_add(napi_dev, &link->qp.napi, link_poll);
	mutex_unlock(&napi_lock);
	napi_enable(&link->qp.napi);
	link->qp.polling = true;
	ib_req_notify_cq(link->qp.recv_cq, IB_CQ_NEXT_COMP);
	ib_req_notify_cq(link->qp.send_cq, IB_CQ_NEXT_COMP);
}

/*
 * link_poll() arms the queues after napi_complete_done(): napi_disable() does not wait for that,
 * but a grace period does.  cq_event() may still be called; napi_schedule() then does nothing.
 */
static void stop_polling(struct rstream_link *link)
{
	if (!link->qp.polling)
		return;
	napi_disable(&link->qp.napi);
	mutex_lock(&napi_lock);
	__netif_napi_del(&link->qp.napi);
	mutex_unlock(&napi_lock);
	synchronize_net();
	link->qp.polling = false;
}

static int alloc_queues(struct rstream_link *link)
{
	int vector = atomic_inc_return(&rstream_next_vector) & INT_MAX;
	struct ib_pd *pd;
	struct ib_cq *cq;

	pd = ib_alloc_pd(link->dev->ib, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	link->qp.pd = pd;
	cq = alloc_cq(link, vector);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	link->qp.send_cq = cq;
	cq = alloc_cq(link, vector);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	link->qp.recv_cq = cq;
	start_polling(link);
	return 0;
}

/*
 * A device that copies small requests when they are posted saves itself a DMA read, and us a
 * mapping.  With virtual addresses there is neither.  Only drivers whose code was checked are
 * listed: bnxt_re (up to 6.12) sends no byte of such a request of the kernel, and hns may overwrite
 * the last ones.
 */
static bool may_inline(struct ib_device *ib)
{
	static const enum rdma_driver_id good[] = {
		RDMA_DRIVER_MLX5, RDMA_DRIVER_IRDMA, RDMA_DRIVER_CXGB4, RDMA_DRIVER_QEDR,
		RDMA_DRIVER_ERDMA, RDMA_DRIVER_OCRDMA,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		if (ib->ops.driver_id == good[i])
			return !ib_uses_virt_dma(ib);
	return false;
}

/* If the device cannot have @max_inline, it refuses or says 0. */
static int create_qp(struct rstream_link *link, const struct ib_qp_init_attr *attr, u32 max_inline)
{
	struct ib_qp_init_attr init = *attr;
	int err;

	init.cap.max_inline_data = max_inline;
	err = rdma_create_qp(link->cm.id, link->qp.pd, &init);
	if (!err)
		link->qp.max_inline = min(init.cap.max_inline_data, max_inline);
	return err;
}

/*
 * Leaves the QP in INIT with all receives posted, before the peer can send anything.
 * On error, the caller breaks the link, and its workers destroy what was created.
 */
int rstream_qp_create(struct rstream_link *link)
{
	const struct ib_device_attr *attr = &link->dev->ib->attrs;
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = link,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	unsigned int i;
	int err;

	err = rstream_dev_depth(attr);
	if (err < 0)
		return err;
	link->qp.depth = err;
	link->qp.max_sge = min(attr->max_send_sge, RSTREAM_SGES_MAX);
	err = alloc_slots(link);
	if (err)
		return err;
	err = alloc_queues(link);
	if (err)
		return err;

	init.send_cq = link->qp.send_cq;
	init.recv_cq = link->qp.recv_cq;
	init.cap.max_send_wr = link->qp.depth + 1;
	init.cap.max_recv_wr = link->qp.depth + 1;
	init.cap.max_send_sge = link->qp.max_sge;
	INIT_WORK(&link->qp.event_work, event_work);
	err = -EINVAL;
	if (may_inline(link->dev->ib))
		err = create_qp(link, &init, RSTREAM_INLINE_MAX);
	if (err)
		err = create_qp(link, &init, 0);
	if (err)
		return err;
	link->qp.ib = link->cm.id->qp;
	link->qp.num = link->qp.ib->qp_num;
	link->port = link->cm.id->port_num;

	spin_lock_bh(&link->lock);
	for (i = 0; i < link->qp.depth; i++)
		post_recv(link, i);
	spin_unlock_bh(&link->lock);
	return rstream_link_alive(link) ? 0 : -EIO;
}

void rstream_qp_query(struct rstream_link *link)
{
	/* drivers of iWARP devices do not fill in everything */
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	if (ib_query_qp(link->qp.ib, &attr, IB_QP_PATH_MTU | IB_QP_DEST_QPN,
			&init))
		return;
	spin_lock_bh(&link->lock);
	link->qp.path_mtu = max(ib_mtu_enum_to_int(attr.path_mtu), 0);
	link->qp.peer_num = attr.dest_qp_num;
	spin_unlock_bh(&link->lock);
}

/*
 * Is the queue pair as it was created, with nothing but receives?  Their memory is unmapped after
 * the queue pair is destroyed, so it need not be drained; and qedr never flushes one that has not
 * reached RTR.  To be asked before rdma_disconnect().
 */
bool rstream_qp_is_new(struct rstream_link *link)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	return link->qp.ib && link->life.setup == RSTREAM_SETUP_CONNECT &&
	       !ib_query_qp(link->qp.ib, &attr, IB_QP_STATE, &init) &&
	       attr.qp_state == IB_QPS_INIT;
}

/*
 * After return, the HCA no longer accesses this host's memory for the link.  Only a QP in error
 * with both queues flushed guarantees this.
 */
void rstream_qp_drain(struct rstream_link *link)
{
	if (!link->qp.ib)
		return;
	ib_drain_qp(link->qp.ib);
	spin_lock_bh(&link->lock);
	link->wr.done = link->wr.posted;
	spin_unlock_bh(&link->lock);
}

void rstream_qp_destroy(struct rstream_link *link)
{
	if (link->qp.ib) {
		rdma_destroy_qp(link->cm.id);
		cancel_work_sync(&link->qp.event_work);
		link->qp.ib = NULL;
	}
	stop_polling(link);
	if (link->qp.recv_cq)
		ib_destroy_cq(link->qp.recv_cq);
	if (link->qp.send_cq)
		ib_destroy_cq(link->qp.send_cq);
	rstream_rmb_unregister(link);
	if (link->qp.pd)
		ib_dealloc_pd(link->qp.pd);
	if (link->qp.ctrl_mapped)
		ib_dma_unmap_single(link->dev->ib, link->qp.ctrl_dma,
				    ctrl_bytes(link), DMA_BIDIRECTIONAL);
	kfree(link->qp.ctrl);
	kfree(link->qp.wcs);
	kfree(link->wr.batch);
	kvfree(link->qp.rq);
	kvfree(link->qp.sq);
}

int rstream_qp_init(void)
{
	napi_dev = alloc_netdev_dummy(0);
	return napi_dev ? 0 : -ENOMEM;
}

/* No link is left. */
void rstream_qp_exit(void)
{
	rstream_free_netdev_dummy(napi_dev);
}
