// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: states, posting, flushing.
 *
 * Owns the queues and the state of each queue pair, and the table of all of them by number.
 * Called by ib_core for the users, and by requester.c and responder.c for posted requests.
 * Numbers are unique in the kernel, so one lookup finds the other end.
 *
 * A slot of a queue is free again when its completion, or a later one, was polled; posting more
 * is refused, as by hardware.
 *
 * Nothing is written through a queue pair in error or reset: these states are entered with
 * qp->landing held, which the responder holds while it writes.
 *
 * Destruction of a queue pair, in hca_qp_destroy():
 *
 *  1. It is in reset, and removed from the tables, so it cannot be found; after a grace
 *     period, nothing is about to take a reference.  iw_cm gives its reference back when it has
 *     been told of the end of the connection.
 *  2. @timer and @run are stopped; @ended prevents each from starting the other.
 *  3. Waits for the references of peers that are writing.
 *  4. Its completions are removed from the completion queues, because polling would return it.
 */
#include <linux/slab.h>

#include "rs_hca.h"

static DEFINE_XARRAY_FLAGS(qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);
static u32 last_qpn = 0x100;

/* ---- lookup ---- */

static struct hca_qp *qp_get(struct hca_qp *qp)
{
	return qp && refcount_inc_not_zero(&qp->ref) ? qp : NULL;
}

struct hca_qp *hca_qp_find(u32 qpn)
{
	struct hca_qp *qp;

	rcu_read_lock();
	qp = qp_get(xa_load(&qps, qpn));
	rcu_read_unlock();
	return qp;
}

struct hca_qp *hca_qp_gsi(struct hca_dev *dev)
{
	struct hca_qp *qp;

	rcu_read_lock();
	qp = qp_get(rcu_dereference(dev->gsi));
	rcu_read_unlock();
	return qp;
}

void hca_qp_put(struct hca_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->gone);
}

static int qp_enlist(struct hca_qp *qp)
{
	if (qp->ib.qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = 1;
		rcu_assign_pointer(qp->dev->gsi, qp);
		return 0;
	}
	return xa_alloc_cyclic_bh(&qps, &qp->ib.qp_num, qp,
				  XA_LIMIT(0x100, HCA_QPN_MAX), &last_qpn,
				  GFP_KERNEL) < 0 ? -ENOMEM : 0;
}

static void qp_unlist(struct hca_qp *qp)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		xa_erase_bh(&qps, qp->ib.qp_num);
}

/* ---- queues ---- */

static void *at(void *queue, size_t entry, u32 size, u64 n)
{
	u32 i;

	div_u64_rem(n, size, &i);
	return queue + i * entry;
}

static struct hca_wqe *wqe_at(struct hca_qp *qp, u64 n)
{
	return at(qp->sq, qp->sq_entry, qp->sq_size, n);
}

static struct hca_rqe *rqe_at(struct hca_qp *qp, u64 n)
{
	return at(qp->rq, qp->rq_entry, qp->rq_size, n);
}

/* The current request; it stays in its slot until hca_qp_sent(). */
struct hca_wqe *hca_qp_wqe(struct hca_qp *qp)
{
	struct hca_wqe *wqe = NULL;
	unsigned long flags;

	/* posting a request schedules the tasklet afterwards */
	if (READ_ONCE(qp->sq_next) >= READ_ONCE(qp->sq_head))
		return NULL;
	spin_lock_irqsave(&qp->lock, flags);
	if (qp->sq_next < qp->sq_head)
		wqe = wqe_at(qp, qp->sq_next);
	spin_unlock_irqrestore(&qp->lock, flags);
	return wqe;
}

/* The current receive, until hca_qp_received(); NULL: none was posted. */
struct hca_rqe *hca_qp_rqe(struct hca_qp *qp)
{
	lockdep_assert_held(&qp->landing);
	/* pairs with recv_one() */
	return qp->rq_next < smp_load_acquire(&qp->rq_head) ? rqe_at(qp, qp->rq_next) : NULL;
}

static enum ib_wc_opcode wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	default:
		return IB_WC_SEND;
	}
}

/**
 * hca_qp_sent() - the request whose turn it was has completed
 * @qp:		the queue pair
 * @wqe:	the request
 * @status:	how it went
 */
void hca_qp_sent(struct hca_qp *qp, const struct hca_wqe *wqe,
		 enum ib_wc_status status)
{
	struct hca_cqe cqe = {
		.wc.wr_id = wqe->wr_id,
		.wc.status = status,
		.wc.opcode = wc_opcode(wqe->opcode),
		.wc.qp = &qp->ib,
		.qp = qp,
		.send = true,
	};
	bool tell = qp->sig_all || wqe->flags & IB_SEND_SIGNALED ||
		    status != IB_WC_SUCCESS;
	unsigned long flags;

	qp->stage = HCA_STAGE_NEW;
	qp->tries = 0;
	qp->rnr_tries = 0;
	spin_lock_irqsave(&qp->lock, flags);
	cqe.frees = ++qp->sq_next;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (tell)
		hca_cq_add(to_cq(qp->ib.send_cq), &cqe, status != IB_WC_SUCCESS);
}

/**
 * hca_qp_unanswered() - the peer has the request whose turn it was, but its answer is lost
 * @qp:		the queue pair
 */
void hca_qp_unanswered(struct hca_qp *qp)
{
	unsigned long flags;

	qp->stage = HCA_STAGE_NEW;
	qp->tries = 0;
	qp->rnr_tries = 0;
	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->lost)
		qp->sq_lost = qp->sq_next;
	qp->lost = true;
	qp->sq_answered = ++qp->sq_next;
	spin_unlock_irqrestore(&qp->lock, flags);
}

/**
 * hca_qp_rewind() - it is again the turn of the first request that has no answer
 * @qp:		the queue pair
 */
void hca_qp_rewind(struct hca_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (qp->lost) {
		qp->sq_next = qp->sq_lost;
		qp->stage = HCA_STAGE_NEW;
	}
	qp->lost = false;
	spin_unlock_irqrestore(&qp->lock, flags);
}

/**
 * hca_qp_received() - something has landed in the receive whose turn it was
 * @qp:		the queue pair
 * @rqe:	the receive
 * @wc:		what is to be said of it
 * @solicited:	the owner of the completion queue shall be woken
 */
void hca_qp_received(struct hca_qp *qp, const struct hca_rqe *rqe,
		     struct ib_wc *wc, bool solicited)
{
	struct hca_cqe cqe = { .qp = qp };
	unsigned long flags;

	wc->wr_id = rqe->wr_id;
	wc->qp = &qp->ib;
	cqe.wc = *wc;
	spin_lock_irqsave(&qp->lock, flags);
	cqe.frees = ++qp->rq_next;
	spin_unlock_irqrestore(&qp->lock, flags);
	hca_cq_add(to_cq(qp->ib.recv_cq), &cqe, solicited);
}

static void flush_sq(struct hca_qp *qp)
{
	struct hca_wqe *wqe;

	hca_qp_rewind(qp);
	while ((wqe = hca_qp_wqe(qp)))
		hca_qp_sent(qp, wqe, IB_WC_WR_FLUSH_ERR);
}

static void flush_rq(struct hca_qp *qp)
{
	struct hca_rqe *rqe;

	spin_lock_bh(&qp->landing);
	while ((rqe = hca_qp_rqe(qp))) {
		struct ib_wc wc = {
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
		};

		hca_qp_received(qp, rqe, &wc, true);
	}
	spin_unlock_bh(&qp->landing);
}

/**
 * hca_qp_flush() - the queue pair is in error: all that is posted completes as that
 * @qp:		the queue pair
 */
void hca_qp_flush(struct hca_qp *qp)
{
	if (qp->dev->profile->rq_first)
		flush_rq(qp);
	flush_sq(qp);
	if (!qp->dev->profile->rq_first)
		flush_rq(qp);
}

/* ---- states ---- */

void hca_qp_event(struct hca_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = type,
	};

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

static void set_state(struct hca_qp *qp, enum ib_qp_state state)
{
	unsigned long flags;

	spin_lock_bh(&qp->landing);
	spin_lock_irqsave(&qp->lock, flags);
	WRITE_ONCE(qp->state, state);
	if (state == IB_QPS_RESET) {
		qp->sq_head = 0;
		qp->sq_next = 0;
		qp->sq_free = 0;
		qp->sq_answered = 0;
		qp->lost = false;
		qp->rq_head = 0;
		qp->rq_next = 0;
		qp->rq_free = 0;
		qp->stage = HCA_STAGE_NEW;
		qp->told_est = false;
		qp->flush_waited = false;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	spin_unlock_bh(&qp->landing);
	tasklet_schedule(&qp->run);
}

/* By itself; nothing more is written. */
void hca_qp_error(struct hca_qp *qp)
{
	if (READ_ONCE(qp->state) > IB_QPS_RESET)
		set_state(qp, IB_QPS_ERR);
	hca_iw_close(qp);
}

/**
 * hca_qp_establish() - the connection of an iWARP queue pair is there
 * @qp:		the queue pair
 * @dest_qpn:	the peer's
 * @passive:	it was accepted
 */
void hca_qp_establish(struct hca_qp *qp, u32 dest_qpn, bool passive)
{
	unsigned long flags;

	spin_lock_bh(&qp->landing);
	spin_lock_irqsave(&qp->lock, flags);
	if (qp->state == IB_QPS_INIT) {
		qp->attr.dest_qp_num = dest_qpn;
		qp->attr.qp_access_flags = IB_ACCESS_REMOTE_WRITE;
		qp->attr.path_mtu = IB_MTU_1024;
		qp->mpa_waits = passive;
		WRITE_ONCE(qp->state, IB_QPS_RTS);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	spin_unlock_bh(&qp->landing);
	tasklet_schedule(&qp->run);
}

static void set_attr(struct hca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IB_QP_AV) {
		own->ah_attr = attr->ah_attr;
		/* the caller gets this reference */
		own->ah_attr.grh.sgid_attr = NULL;
		hca_av_set(&qp->av, &attr->ah_attr);
	}
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
}

/* Discards posted requests, and their completions. */
static void reset(struct hca_qp *qp)
{
	tasklet_disable(&qp->run);
	set_state(qp, IB_QPS_RESET);
	hca_cq_forget(to_cq(qp->ib.send_cq), qp);
	hca_cq_forget(to_cq(qp->ib.recv_cq), qp);
	tasklet_enable(&qp->run);
}

/* iw_cm connects it, see hca_qp_establish(); users can only end it. */
static int modify_iwarp(struct hca_qp *qp, struct ib_qp_attr *attr, int mask)
{
	if (!(mask & IB_QP_STATE))
		return 0;
	if (attr->qp_state >= IB_QPS_SQD) {
		hca_qp_error(qp);
		return 0;
	}
	if (attr->qp_state == IB_QPS_RESET) {
		reset(qp);
		hca_iw_close(qp);
		return 0;
	}
	if (hca_fault(qp->dev, HCA_FAULT_MODIFY_QP))
		return -EIO;
	if (READ_ONCE(qp->state) == IB_QPS_RESET)
		set_state(qp, IB_QPS_INIT);
	return 0;
}

int hca_qp_modify(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct hca_qp *qp = to_qp(ib);
	enum ib_qp_state from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state :
							 READ_ONCE(qp->state);
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;

	if (qp->dev->profile->iwarp)
		return modify_iwarp(qp, attr, mask);
	if (!ib_modify_qp_is_ok(from, to, ib->qp_type, mask))
		return -EINVAL;
	/* a queue pair that cannot enter the error state could not be drained */
	if (to != IB_QPS_RESET && to != IB_QPS_ERR && hca_fault(qp->dev, HCA_FAULT_MODIFY_QP))
		return -EIO;
	set_attr(qp, attr, mask);
	if (!(mask & IB_QP_STATE))
		return 0;
	if (to == IB_QPS_RESET) {
		reset(qp);
	} else {
		/* in error, what is flushed may be reported before this call returns */
		local_bh_disable();
		set_state(qp, to);
		local_bh_enable();
	}
	return 0;
}

int hca_qp_query(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct hca_qp *qp = to_qp(ib);

	*attr = qp->attr;
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap.max_send_wr = qp->sq_size;
	attr->cap.max_recv_wr = qp->rq_size;
	attr->cap.max_send_sge = qp->max_send_sge;
	attr->cap.max_recv_sge = qp->max_recv_sge;
	attr->cap.max_inline_data = qp->max_inline;
	memset(init, 0, sizeof(*init));
	init->cap = attr->cap;
	init->qp_type = ib->qp_type;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	return 0;
}

/* ---- posting ---- */

static bool opcode_good(const struct hca_qp *qp, enum ib_wr_opcode opcode)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		return opcode == IB_WR_SEND;
	switch (opcode) {
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_SEND_WITH_IMM:
		return !qp->dev->profile->iwarp;
	case IB_WR_RDMA_WRITE:
	case IB_WR_SEND:
	case IB_WR_REG_MR:
	case IB_WR_LOCAL_INV:
		return true;
	default:
		return false;
	}
}

static void wqe_sges(const struct hca_qp *qp, struct hca_wqe *wqe,
		     const struct ib_send_wr *wr)
{
	unsigned int i, n = wr->num_sge;

	if (!n && wr->sg_list && wr->opcode == IB_WR_RDMA_WRITE &&
	    qp->dev->profile->stale_sge)
		n = 1;
	for (i = 0; i < n; i++) {
		wqe->sge[i] = wr->sg_list[i];
		wqe->len += wr->sg_list[i].length;
	}
	wqe->num_sge = n;
}

/* Takes the bytes themselves, so that nothing is read later. */
static int wqe_inline(struct hca_qp *qp, struct hca_wqe *wqe)
{
	u32 at = 0;
	unsigned int i;

	if (wqe->len > qp->max_inline)
		return -EINVAL;
	for (i = 0; i < wqe->num_sge; i++) {
		memcpy(wqe->own + at, (void *)(uintptr_t)wqe->sge[i].addr, wqe->sge[i].length);
		at += wqe->sge[i].length;
		wqe->sge[i].addr = 0;
	}
	hca_count(qp->dev, HCA_INLINES, 1);
	return 0;
}

static int wqe_fill(struct hca_qp *qp, struct hca_wqe *wqe,
		    const struct ib_send_wr *wr)
{
	if (!opcode_good(qp, wr->opcode) || wr->num_sge > (int)qp->max_send_sge)
		return -EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->imm = wr->ex.imm_data;
	if (qp->dev->dma)
		hca_stack_save(&wqe->by);
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		wqe->mr = reg_wr(wr)->mr;
		wqe->rkey = reg_wr(wr)->key;
		wqe->access = reg_wr(wr)->access;
		return 0;
	case IB_WR_LOCAL_INV:
		wqe->rkey = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->raddr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		break;
	default:
		break;
	}
	if (qp->ib.qp_type == IB_QPT_GSI) {
		wqe->av = container_of(ud_wr(wr)->ah, struct hca_ah, ib)->av;
		wqe->remote_qpn = ud_wr(wr)->remote_qpn;
		wqe->remote_qkey = ud_wr(wr)->remote_qkey;
		wqe->pkey_index = ud_wr(wr)->pkey_index;
	}
	wqe_sges(qp, wqe, wr);
	return wqe->flags & IB_SEND_INLINE ? wqe_inline(qp, wqe) : 0;
}

static int send_one(struct hca_qp *qp, const struct ib_send_wr *wr)
{
	int err;

	lockdep_assert_held(&qp->lock);
	if (qp->state < IB_QPS_RTS)
		return -EINVAL;
	if (qp->sq_head - READ_ONCE(qp->sq_free) >= qp->sq_size)
		return -ENOMEM;
	/* requests posted in the error state are for a drain, and never fail */
	if (qp->state == IB_QPS_RTS && hca_fault(qp->dev, HCA_FAULT_POST_SEND))
		return -ENOMEM;
	err = wqe_fill(qp, wqe_at(qp, qp->sq_head), wr);
	if (!err)
		qp->sq_head++;
	return err;
}

int hca_qp_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct hca_qp *qp = to_qp(ib);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = send_one(qp, wr);
	spin_unlock_irqrestore(&qp->lock, flags);
	if (err)
		*bad = wr;
	tasklet_schedule(&qp->run);
	return err;
}

static int recv_one(struct hca_qp *qp, const struct ib_recv_wr *wr)
{
	struct hca_rqe *rqe = rqe_at(qp, qp->rq_head);

	lockdep_assert_held(&qp->lock);
	if (qp->state == IB_QPS_RESET || wr->num_sge > (int)qp->max_recv_sge)
		return -EINVAL;
	if (qp->rq_head - READ_ONCE(qp->rq_free) >= qp->rq_size)
		return -ENOMEM;
	if (qp->state != IB_QPS_ERR && qp->ib.qp_type == IB_QPT_RC &&
	    hca_fault(qp->dev, HCA_FAULT_POST_RECV))
		return -ENOMEM;
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	memcpy(rqe->sge, wr->sg_list, wr->num_sge * sizeof(*rqe->sge));
	/* pairs with hca_qp_rqe(): the entry is complete */
	smp_store_release(&qp->rq_head, qp->rq_head + 1);
	return 0;
}

int hca_qp_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct hca_qp *qp = to_qp(ib);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = recv_one(qp, wr);
	spin_unlock_irqrestore(&qp->lock, flags);
	if (err)
		*bad = wr;
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		tasklet_schedule(&qp->run);
	return err;
}

/* ---- life ---- */

static int alloc_queues(struct hca_qp *qp)
{
	/* one more: a write without SGEs may use one anyway */
	qp->sq_entry = struct_size_t(struct hca_wqe, sge, max(qp->max_send_sge, 1U));
	qp->rq_entry = struct_size_t(struct hca_rqe, sge, qp->max_recv_sge);
	qp->sq = kvcalloc(qp->sq_size, qp->sq_entry, GFP_KERNEL);
	qp->rq = kvcalloc(qp->rq_size, qp->rq_entry, GFP_KERNEL);
	return qp->sq && qp->rq ? 0 : -ENOMEM;
}

static bool cap_good(const struct hca_profile *p, const struct ib_qp_cap *cap)
{
	return cap->max_send_wr <= p->max_qp_wr && cap->max_recv_wr <= p->max_qp_wr &&
	       cap->max_send_sge <= p->max_send_sge &&
	       cap->max_recv_sge <= p->max_recv_sge && cap->max_inline_data <= p->max_inline;
}

int hca_qp_create(struct ib_qp *ib, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	struct hca_qp *qp = to_qp(ib);
	int err;

	if (init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_GSI)
		return -EOPNOTSUPP;
	qp->dev = to_hca(ib->device);
	if (init->srq || !cap_good(qp->dev->profile, &init->cap))
		return -EINVAL;
	if (hca_fault(qp->dev, HCA_FAULT_CREATE_QP))
		return -ENOMEM;
	qp->sq_size = max(init->cap.max_send_wr, 1U);
	qp->rq_size = max(init->cap.max_recv_wr, 1U);
	qp->max_send_sge = init->cap.max_send_sge;
	qp->max_recv_sge = init->cap.max_recv_sge;
	qp->max_inline = init->cap.max_inline_data;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	ib->qp_type = init->qp_type;
	refcount_set(&qp->ref, 1);
	init_completion(&qp->gone);
	spin_lock_init(&qp->landing);
	spin_lock_init(&qp->lock);
	tasklet_setup(&qp->run, hca_requester_run);
	hca_timer_init(&qp->timer, hca_requester_timer);
	err = alloc_queues(qp);
	if (!err)
		err = qp_enlist(qp);
	if (err) {
		kvfree(qp->sq);
		kvfree(qp->rq);
	}
	return err;
}

int hca_qp_destroy(struct ib_qp *ib, struct ib_udata *udata)
{
	struct hca_qp *qp = to_qp(ib);

	set_state(qp, IB_QPS_RESET);
	qp_unlist(qp);
	hca_iw_close(qp);
	synchronize_rcu();
	WRITE_ONCE(qp->ended, true);
	tasklet_kill(&qp->run);
	hrtimer_cancel(&qp->timer);
	tasklet_kill(&qp->run);
	hca_qp_put(qp);
	wait_for_completion(&qp->gone);
	hca_cq_forget(to_cq(ib->send_cq), qp);
	hca_cq_forget(to_cq(ib->recv_cq), qp);
	kvfree(qp->sq);
	kvfree(qp->rq);
	return 0;
}
