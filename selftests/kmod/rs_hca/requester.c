// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes the send queue.
 *
 * Owns no data; it runs as a tasklet of each queue pair, so never twice in parallel for one.
 * Requests are executed in order, one after the other.  A request that has to wait (for the
 * peer, or as a fault) delays those after it: the timer continues with it.  Called only by the
 * tasklet and the timer.
 */
#include "rs_hca.h"

#define BURST	64	/* requests before others are scheduled */

/* Continues with the same request in @ns. */
static void wait_ns(struct hca_qp *qp, u64 ns)
{
	if (READ_ONCE(qp->ended))
		return;
	WRITE_ONCE(qp->waits, true);
	hrtimer_start(&qp->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/* With nothing to do but to send again what was not answered. */
static void wait_lost(struct hca_qp *qp)
{
	if (!READ_ONCE(qp->ended))
		hrtimer_start(&qp->timer, qp->lost_till, HRTIMER_MODE_ABS_SOFT);
}

enum hrtimer_restart hca_requester_timer(struct hrtimer *timer)
{
	struct hca_qp *qp = container_of(timer, struct hca_qp, timer);

	WRITE_ONCE(qp->waits, false);
	tasklet_schedule(&qp->run);
	return HRTIMER_NORESTART;
}

static void fail(struct hca_qp *qp, const struct hca_wqe *wqe,
		 enum ib_wc_status status)
{
	hca_qp_error(qp);
	/* without an answer the oldest is the one that fails */
	if (qp->lost) {
		hca_qp_rewind(qp);
		wqe = hca_qp_wqe(qp);
	}
	hca_qp_sent(qp, wqe, status);
}

/* ---- when the peer does not accept a request ---- */

/* IB specification, volume 1, 9.7.6.1.3: 4.096 us * 2^timeout, and each try again. */
static void unanswered(struct hca_qp *qp, const struct hca_wqe *wqe)
{
	hca_count(qp->dev, HCA_UNANSWERED, 1);
	/* TCP tries for minutes */
	if (qp->dev->profile->iwarp)
		wait_ns(qp, 200 * NSEC_PER_MSEC);
	else if (qp->tries++ < qp->attr.retry_cnt)
		wait_ns(qp, 4096ULL << (qp->attr.timeout ?: 18));
	else
		fail(qp, wqe, IB_WC_RETRY_EXC_ERR);
}

/* IB specification, volume 1, table 46: the timer's value as units of 10 us. */
static u64 rnr_ns(u8 timer)
{
	static const u16 units[] = {
		65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
		384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152,
	};

	return units[timer % ARRAY_SIZE(units)] * 10ULL * NSEC_PER_USEC;
}

static void not_ready(struct hca_qp *qp, const struct hca_wqe *wqe, u8 timer)
{
	hca_count(qp->dev, HCA_RNRS, 1);
	/* iWARP knows no such thing: the connection ends (RFC 5041, 7.1).  7: forever */
	if (qp->dev->profile->iwarp)
		fail(qp, wqe, IB_WC_REM_OP_ERR);
	else if (qp->attr.rnr_retry == 7 || qp->rnr_tries++ < qp->attr.rnr_retry)
		wait_ns(qp, rnr_ns(timer));
	else
		fail(qp, wqe, IB_WC_RNR_RETRY_EXC_ERR);
}

static void answered(struct hca_qp *qp, const struct hca_wqe *wqe,
		     enum hca_answer answer, u8 rnr_timer)
{
	switch (answer) {
	case HCA_ACK:
		hca_count(qp->dev, HCA_REQUESTS, 1);
		hca_count(qp->dev, HCA_BYTES, wqe->len);
		hca_qp_sent(qp, wqe, IB_WC_SUCCESS);
		break;
	case HCA_SILENCE:
		unanswered(qp, wqe);
		break;
	case HCA_NAK_RNR:
		not_ready(qp, wqe, rnr_timer);
		break;
	case HCA_NAK_ACCESS:
		fail(qp, wqe, IB_WC_REM_ACCESS_ERR);
		break;
	case HCA_NAK_LENGTH:
		fail(qp, wqe, IB_WC_REM_INV_REQ_ERR);
		break;
	case HCA_NAK_OP:
		fail(qp, wqe, IB_WC_REM_OP_ERR);
		break;
	case HCA_LOCAL_ERROR:
		fail(qp, wqe, IB_WC_LOC_PROT_ERR);
		break;
	}
}

/* ---- a request ---- */

/* Injects faults at this request.  True: it does not continue. */
static bool faulty(struct hca_qp *qp, const struct hca_wqe *wqe)
{
	struct hca_dev *dev = qp->dev;

	if (qp->stage != HCA_STAGE_NEW)
		return false;
	if (hca_fault(dev, HCA_FAULT_REMOVE))
		hca_dev_remove(dev);
	if (hca_fault(dev, HCA_FAULT_RESET)) {
		hca_dev_reset(dev);
		return true;
	}
	if (hca_fault(dev, HCA_FAULT_LOSS)) {
		fail(qp, wqe, IB_WC_RETRY_EXC_ERR);
		return true;
	}
	if (hca_fault(dev, HCA_FAULT_DELAY)) {
		qp->stage = HCA_STAGE_DELAYED;
		wait_ns(qp, hca_fault_delay_ns(dev));
		return true;
	}
	return false;
}

/*
 * Selects the bytes to write now.  No specification guarantees that a message is written from
 * beginning to end, and only once; only that it is complete when its completion is.
 */
static enum hca_stage plan(struct hca_qp *qp, struct hca_request *req)
{
	u32 len = req->wqe->len, half = round_up(len / 2, 8);

	req->last = true;
	req->len = len;
	if (qp->stage == HCA_STAGE_TAIL) {
		req->len = half;
	} else if (qp->stage != HCA_STAGE_REPEATED && len > 8 &&
		   qp->dev->profile->tail_first) {
		req->off = half;
		req->len = len - half;
		req->last = false;
		return HCA_STAGE_TAIL;
	} else if (qp->stage != HCA_STAGE_REPEATED && len &&
		   hca_fault(qp->dev, HCA_FAULT_REPEAT)) {
		req->last = false;
		return HCA_STAGE_REPEATED;
	}
	return HCA_STAGE_NEW;
}

/* Does its answer get lost, as all do for a while? */
static bool is_lost(struct hca_qp *qp, const struct hca_wqe *wqe)
{
	if (qp->lost)
		return true;
	/* TCP places what it gets again no more, and answers are its own */
	if (!wqe->len || qp->dev->profile->iwarp)
		return false;
	qp->replace = hca_fault(qp->dev, HCA_FAULT_REPLACE);
	if (!qp->replace && !hca_fault(qp->dev, HCA_FAULT_AGAIN))
		return false;
	qp->lost_till = ktime_add_ns(ktime_get(), hca_fault_delay_ns(qp->dev));
	return true;
}

/*
 * Its answer was lost, so the request is sent once more: its bytes are read from memory
 * again.  The peer, which knows the number, answers without placing them (IB specification,
 * volume 1, 9.7.5.1); with the fault "replace" it places them, but does not say so.
 */
static enum hca_answer send_again(struct hca_qp *peer, struct hca_request *req)
{
	u32 off, n, len = req->wqe->len;
	u8 bytes[256];

	for (off = 0; off < len; off += n) {
		n = min_t(u32, len - off, sizeof(bytes));
		if (hca_mem_io(&req->src, off, bytes, n))
			return HCA_LOCAL_ERROR;
	}
	req->len = len;
	return req->from->replace && len ? hca_respond(peer, req) : HCA_ACK;
}

/* The request as it is, or as a lie: then at once, and as a whole. */
static enum hca_answer send_first(struct hca_qp *peer, struct hca_request *req)
{
	enum hca_answer answer = HCA_ACK;

	if (req->lie) {
		req->off = 0;
		req->len = req->wqe->len;
		req->last = true;
	}
	if (req->lie != HCA_LIE_DROP)
		answer = hca_respond(peer, req);
	if (req->lie == HCA_LIE_TWICE && answer == HCA_ACK)
		answer = hca_respond(peer, req);
	return answer;
}

static void send(struct hca_qp *qp, struct hca_wqe *wqe)
{
	struct hca_request req = {
		.from = qp,
		.wqe = wqe,
		.src = {
			.dev = qp->dev,
			.pd = qp->ib.pd,
			.sge = wqe->sge,
			.n = wqe->num_sge,
			.wqe = wqe,
		},
	};
	bool again = qp->sq_next < qp->sq_answered;
	enum hca_answer answer = HCA_SILENCE;
	enum hca_stage then = HCA_STAGE_NEW;
	u32 len = wqe->len;
	struct hca_qp *peer;
	u8 rnr_timer = 0;
	u64 busy;

	if (faulty(qp, wqe))
		return;
	if (READ_ONCE(qp->mpa_waits))
		hca_report(qp->dev, wqe, NULL, "the end that has accepted sends first");
	if (!again && qp->stage == HCA_STAGE_NEW && !qp->tries && !qp->rnr_tries &&
	    hca_fault(qp->dev, HCA_FAULT_LIE))
		req.lie = hca_lie(qp->dev, wqe);
	if (!hca_mem_good(&req.src, wqe->len)) {
		fail(qp, wqe, IB_WC_LOC_PROT_ERR);
		return;
	}
	if (!again)
		then = plan(qp, &req);
	peer = hca_qp_find(qp->attr.dest_qp_num);
	if (peer) {
		rnr_timer = peer->attr.min_rnr_timer;
		if (hca_wire_up(qp->dev, peer->dev))
			answer = again ? send_again(peer, &req) : send_first(peer, &req);
		hca_qp_put(peer);
	}
	if (answer == HCA_ACK && !again && !req.last) {
		qp->stage = then;
		wait_ns(qp, then == HCA_STAGE_TAIL ? 10 * NSEC_PER_USEC :
			hca_fault_delay_ns(qp->dev));
	} else if (answer == HCA_ACK && !again && is_lost(qp, wqe)) {
		hca_qp_unanswered(qp);
	} else if (qp->lost) {
		hca_qp_rewind(qp);
	} else {
		answered(qp, wqe, answer, rnr_timer);
	}
	busy = answer == HCA_ACK ? hca_wire_ns(qp->dev, len) : 0;
	if (busy && !READ_ONCE(qp->waits))
		wait_ns(qp, busy);
	/*
	 * Two ends that answer each other at once would do so for ever in virtual time.  And what
	 * is placed again must be visible before it is complete again.
	 */
	if ((req.lie || (again && qp->replace)) && !READ_ONCE(qp->waits))
		wait_ns(qp, hca_fault_delay_ns(qp->dev));
}

static void local(struct hca_qp *qp, const struct hca_wqe *wqe,
		  enum ib_wc_status status)
{
	if (status == IB_WC_SUCCESS)
		hca_qp_sent(qp, wqe, status);
	else
		fail(qp, wqe, status);
}

/* In error: flush everything, at once or after a while. */
static void flush(struct hca_qp *qp)
{
	unsigned int us = qp->dev->profile->flush_us;

	if (us && !qp->flush_waited) {
		qp->flush_waited = true;
		wait_ns(qp, us * NSEC_PER_USEC);
	} else if (!us || !READ_ONCE(qp->waits)) {
		hca_qp_flush(qp);
	}
}

/* After a reset: what the driver does in place of the device, some time later. */
static void flush_dead(struct hca_qp *qp)
{
	s64 ns = hca_fault_flush_ns(qp->dev);

	if (ns == S64_MAX || READ_ONCE(qp->waits))
		return;
	if (ns > 0)
		wait_ns(qp, ns);
	else
		hca_qp_flush(qp);
}

/* Return: is there more to do immediately? */
static bool step(struct hca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	struct hca_wqe *wqe;

	/* pairs with hca_dev_reset() */
	if (smp_load_acquire(&qp->dev->dead)) {
		flush_dead(qp);
		return false;
	}
	if (state == IB_QPS_ERR) {
		flush(qp);
		return false;
	}
	if (state != IB_QPS_RTS || READ_ONCE(qp->waits))
		return false;
	if (qp->lost && ktime_compare(ktime_get(), qp->lost_till) >= 0)
		hca_qp_rewind(qp);
	wqe = hca_qp_wqe(qp);
	if (!wqe) {
		if (qp->lost)
			wait_lost(qp);
		return false;
	}
	if (qp->ib.qp_type == IB_QPT_GSI)
		hca_gsi_send(qp, wqe);
	else if (wqe->opcode != IB_WR_REG_MR && wqe->opcode != IB_WR_LOCAL_INV)
		send(qp, wqe);
	else if (qp->lost)	/* requests complete in order */
		hca_qp_rewind(qp);
	else if (wqe->opcode == IB_WR_REG_MR)
		local(qp, wqe, hca_mr_register(wqe));
	else
		local(qp, wqe, hca_mr_invalidate(qp->dev, wqe->rkey));
	return true;
}

void hca_requester_run(struct tasklet_struct *t)
{
	struct hca_qp *qp = from_tasklet(qp, t, run);
	unsigned int i;

	for (i = 0; i < BURST; i++)
		if (!step(qp))
			return;
	if (!READ_ONCE(qp->ended))
		tasklet_schedule(&qp->run);
}
