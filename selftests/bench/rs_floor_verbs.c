// SPDX-License-Identifier: GPL-2.0-only
/* Queues and memory of a connection of rs_floor.ko. */
#include <linux/kthread.h>
#include <linux/vmalloc.h>
#include <rdma/rdma_cm.h>

#include "rs_floor.h"

static const enum ib_poll_context poll_contexts[] = {
	[FLOOR_SOFTIRQ] = IB_POLL_SOFTIRQ, [FLOOR_WORKQUEUE] = IB_POLL_WORKQUEUE,
	[FLOOR_DIRECT] = IB_POLL_DIRECT,
};

static int poll_thread(void *data)
{
	struct floor_conn *conn = data;

	while (!kthread_should_stop()) {
		ib_process_cq_direct(conn->cq, FLOOR_RECVS);
		cond_resched();
	}
	return 0;
}

static void qp_event(struct ib_event *event, void *context)
{
	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		floor_fail(context, -EIO);
		break;
	default:
		break;
	}
}

static int make_memory(struct floor_conn *conn)
{
	struct ib_device *dev = conn->id->device;
	struct scatterlist *sg;
	u64 dma;
	int i, n, err;

	conn->buffer = vzalloc(FLOOR_BUFFER);
	conn->hello = kcalloc(2, sizeof(*conn->hello), GFP_KERNEL);
	if (!conn->buffer || !conn->hello)
		return -ENOMEM;
	dma = ib_dma_map_single(dev, conn->hello, 2 * sizeof(*conn->hello),
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, dma))
		return -EIO;
	conn->hello_dma = dma;

	err = sg_alloc_table(&conn->sgt, FLOOR_PAGES, GFP_KERNEL);
	if (err)
		return err;
	for_each_sgtable_sg(&conn->sgt, sg, i)
		sg_set_page(sg, vmalloc_to_page(conn->buffer + i * PAGE_SIZE), PAGE_SIZE, 0);
	conn->mapped = ib_dma_map_sg(dev, conn->sgt.sgl, conn->sgt.orig_nents,
				     DMA_BIDIRECTIONAL);
	if (!conn->mapped)
		return -EIO;

	conn->mr = ib_alloc_mr(conn->pd, IB_MR_TYPE_MEM_REG, FLOOR_PAGES);
	if (IS_ERR(conn->mr)) {
		err = PTR_ERR(conn->mr);
		conn->mr = NULL;
		return err;
	}
	n = ib_map_mr_sg(conn->mr, conn->sgt.sgl, conn->mapped, NULL, PAGE_SIZE);
	if (n != conn->mapped)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(conn->mr, ib_inc_rkey(conn->mr->rkey));
	return 0;
}

static int make_queues(struct floor_conn *conn)
{
	int recvs = FLOOR_RECVS + 1;	/* hello */
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = conn,
		/* each queue has room for what drains it */
		.cap.max_send_wr = FLOOR_SENDS + FLOOR_SETUP_SENDS + 1,
		.cap.max_recv_wr = recvs + 1,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq;
	int err;

	cq = ib_alloc_cq(conn->id->device, conn,
			 init.cap.max_send_wr + init.cap.max_recv_wr, 0,
			 poll_contexts[conn->mode]);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->cq = cq;
	init.send_cq = cq;
	init.recv_cq = cq;
	err = rdma_create_qp(conn->id, conn->pd, &init);
	if (err)
		return err;
	conn->qp = conn->id->qp;
	return 0;
}

static int post_all_recvs(struct floor_conn *conn)
{
	struct ib_sge sge = {
		.addr = conn->hello_dma + sizeof(*conn->hello),
		.length = sizeof(*conn->hello),
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &conn->hello_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int i, err;

	err = ib_post_recv(conn->qp, &wr, NULL);
	for (i = 0; i < FLOOR_RECVS && !err; i++) {
		wr = (struct ib_recv_wr){ .wr_cqe = &conn->recv_cqe };
		err = ib_post_recv(conn->qp, &wr, NULL);
	}
	return err;
}

/* If it fails, floor_release() has to follow. */
int floor_prepare(struct floor_conn *conn)
{
	struct task_struct *poller;
	struct ib_pd *pd;
	int err;

	pd = ib_alloc_pd(conn->id->device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	conn->pd = pd;
	err = make_memory(conn);
	if (err)
		return err;
	err = make_queues(conn);
	if (err)
		return err;
	err = post_all_recvs(conn);
	if (err || conn->mode != FLOOR_DIRECT)
		return err;
	poller = kthread_run(poll_thread, conn, "rs_floor");
	if (IS_ERR(poller))
		return PTR_ERR(poller);
	conn->poller = poller;
	return 0;
}

/* What floor_prepare() has made, all or some of it. */
void floor_release(struct floor_conn *conn)
{
	WRITE_ONCE(conn->closing, true);
	if (conn->poller)
		kthread_stop(conn->poller);
	if (conn->qp) {
		ib_drain_qp(conn->qp);
		rdma_destroy_qp(conn->id);
	}
	if (conn->cq)
		ib_free_cq(conn->cq);
	if (conn->mr)
		ib_dereg_mr(conn->mr);
	if (conn->mapped)
		ib_dma_unmap_sg(conn->id->device, conn->sgt.sgl,
				conn->sgt.orig_nents, DMA_BIDIRECTIONAL);
	sg_free_table(&conn->sgt);
	if (conn->hello_dma)
		ib_dma_unmap_single(conn->id->device, conn->hello_dma,
				    2 * sizeof(*conn->hello), DMA_BIDIRECTIONAL);
	if (conn->pd)
		ib_dealloc_pd(conn->pd);
	vfree(conn->buffer);
	kfree(conn->hello);
}
