// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes requests at the other end.
 *
 * Owns no data.  Called by the tasklet of the requester, without locks.  It holds qp->landing of
 * the receiving queue pair while it writes, so that all bytes are written before its state
 * changes, or none.
 */
#include "rs_hca.h"

/* Does the request come from the connected peer? */
static bool is_peer(const struct hca_qp *qp, const struct hca_qp *from)
{
	if (qp->ib.qp_type != IB_QPT_RC || qp->attr.dest_qp_num != from->ib.qp_num ||
	    qp->dev->profile->ib != from->dev->profile->ib)
		return false;
	if (qp->dev->profile->ib)
		return hca_subnet_carries(from, qp);
	return !memcmp(&qp->av.sgid, &from->av.dgid, sizeof(qp->av.sgid));
}

static bool takes_receive(enum ib_wr_opcode opcode)
{
	return opcode != IB_WR_RDMA_WRITE;
}

static bool is_write(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_RDMA_WRITE || opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

static enum hca_answer place(const struct hca_mem *to, const struct hca_request *req)
{
	switch (hca_mem_copy(to, &req->src, req->off, req->len)) {
	case 0:
		return HCA_ACK;
	case -EIO:
		return HCA_LOCAL_ERROR;
	default:
		return HCA_NAK_ACCESS;
	}
}

static enum hca_answer place_write(struct hca_qp *qp, const struct hca_request *req)
{
	const struct ib_sge target = {
		.addr = req->wqe->raddr,
		.length = req->wqe->len,
		.lkey = req->wqe->rkey,
	};
	const struct hca_mem to = {
		.dev = qp->dev,
		.pd = qp->ib.pd,
		.sge = &target,
		.n = 1,
		.access = IB_ACCESS_REMOTE_WRITE,
		.wqe = req->wqe,
	};
	enum hca_answer answer;

	/* IB specification, volume 1, 9.7.4.1.7: a zero-length request needs no valid key */
	if (!req->wqe->len)
		return HCA_ACK;
	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    !hca_mem_good(&to, req->wqe->len))
		return HCA_NAK_ACCESS;
	answer = place(&to, req);
	if (answer == HCA_ACK && req->lie == HCA_LIE_BYTES) {
		u32 bytes = hca_fault_random(req->from->dev, U32_MAX);

		hca_mem_io(&to, 0, &bytes, min_t(u32, req->wqe->len, sizeof(bytes)));
	}
	return answer;
}

static void received(struct hca_qp *qp, const struct hca_rqe *rqe,
		     const struct hca_wqe *wqe, enum ib_wc_status status)
{
	struct ib_wc wc = {
		.status = status,
		.opcode = is_write(wqe->opcode) ? qp->dev->profile->imm_opcode :
						  IB_WC_RECV,
		.byte_len = wqe->len,
		.src_qp = qp->attr.dest_qp_num,
		.port_num = 1,
	};

	if (wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM ||
	    wqe->opcode == IB_WR_SEND_WITH_IMM) {
		wc.ex.imm_data = wqe->imm;
		wc.wc_flags = IB_WC_WITH_IMM;
	}
	hca_qp_received(qp, rqe, &wc, wqe->flags & IB_SEND_SOLICITED ||
			status != IB_WC_SUCCESS);
}

static enum hca_answer place_send(struct hca_qp *qp, const struct hca_rqe *rqe,
				  const struct hca_request *req)
{
	const struct hca_mem to = {
		.dev = qp->dev,
		.pd = qp->ib.pd,
		.sge = rqe->sge,
		.n = rqe->num_sge,
		.access = IB_ACCESS_LOCAL_WRITE,
		.wqe = req->wqe,
	};

	if (!hca_mem_good(&to, req->wqe->len)) {
		received(qp, rqe, req->wqe, IB_WC_LOC_LEN_ERR);
		return HCA_NAK_LENGTH;
	}
	return place(&to, req);
}

static enum hca_answer take(struct hca_qp *qp, const struct hca_request *req)
{
	enum ib_wr_opcode opcode = req->wqe->opcode;
	const struct hca_rqe *rqe = NULL;
	enum hca_answer answer;

	/* a write is executed before a missing receive is noticed, and then again */
	if (is_write(opcode)) {
		answer = place_write(qp, req);
		if (answer != HCA_ACK || !req->last)
			return answer;
	}
	if (!takes_receive(opcode))
		return HCA_ACK;
	rqe = hca_qp_rqe(qp);
	if (!rqe)
		return HCA_NAK_RNR;
	if (!is_write(opcode)) {
		answer = place_send(qp, rqe, req);
		if (answer != HCA_ACK || !req->last)
			return answer;
	}
	received(qp, rqe, req->wqe, IB_WC_SUCCESS);
	return HCA_ACK;
}

/**
 * hca_respond() - a request arrives
 * @qp:		where it is to be executed
 * @req:	the request
 */
enum hca_answer hca_respond(struct hca_qp *qp, const struct hca_request *req)
{
	enum hca_answer answer = HCA_SILENCE;
	bool est = false;

	spin_lock_bh(&qp->landing);
	if ((qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS) &&
	    is_peer(qp, req->from)) {
		est = qp->state == IB_QPS_RTR && !qp->told_est;
		qp->told_est |= est;
		WRITE_ONCE(qp->mpa_waits, false);
		answer = take(qp, req);
	}
	spin_unlock_bh(&qp->landing);
	if (est)
		hca_qp_event(qp, IB_EVENT_COMM_EST);
	if (answer == HCA_NAK_ACCESS || answer == HCA_NAK_LENGTH) {
		hca_qp_error(qp);
		hca_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
	}
	return answer;
}
