// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues.
 *
 * Owns the entries that were not polled yet.  Called by qp.c with completions, and by ib_core
 * for the owner.  Entries can be delayed, as by devices that moderate interrupts or write
 * completions in batches: poll_cq() does not find them either until then.
 *
 * Destruction: pre_destroy(), or destroy() if the owner polls by itself, stops the delays;
 * afterwards, no notification follows.  Queue pairs that use the completion queue are destroyed
 * before.
 */
#include <linux/slab.h>

#include "rs_hca.h"

/* What is there can be found.  Return: shall the owner be told? */
static bool cq_show(struct hca_cq *cq)
{
	bool tell;

	lockdep_assert_held(&cq->lock);
	cq->seen = cq->head;
	tell = cq->armed && !cq->ending && cq->seen > cq->tail &&
	       (cq->armed == IB_CQ_NEXT_COMP || cq->solicited);
	if (tell)
		cq->armed = 0;
	return tell;
}

/* Called without the lock, as the owner may arm anew. */
static void cq_tell(struct hca_cq *cq)
{
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static enum hrtimer_restart cq_timer(struct hrtimer *timer)
{
	struct hca_cq *cq = container_of(timer, struct hca_cq, timer);
	unsigned long flags;
	bool tell;

	spin_lock_irqsave(&cq->lock, flags);
	tell = cq_show(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (tell)
		cq_tell(cq);
	return HRTIMER_NORESTART;
}

/**
 * hca_cq_add() - a completion
 * @cq:		its queue
 * @cqe:	what is to be said
 * @solicited:	of a message whose sender wanted the receiver to be woken, or an error
 */
void hca_cq_add(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited)
{
	const struct hca_profile *p = cq->dev->profile;
	bool full, wait, tell = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	full = cq->head - cq->tail == cq->size;
	if (!full) {
		cq->ring[cq->head++ % cq->size] = *cqe;
		cq->solicited |= solicited;
	}
	/* datagrams are few, and connections wait for them */
	wait = p->moder_us && cqe->qp->ib.qp_type == IB_QPT_RC && !cq->ending &&
	       cq->head - cq->seen < p->moder_count;
	if (!full && !wait)
		tell = cq_show(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (full) {
		hca_report(cq->dev, NULL, NULL, "completion queue of %u entries is full", cq->size);
		hca_qp_event(cqe->qp, IB_EVENT_QP_FATAL);
	} else if (tell) {
		cq_tell(cq);
	} else if (wait && !hrtimer_is_queued(&cq->timer)) {
		hrtimer_start(&cq->timer, ns_to_ktime(p->moder_us * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
	}
}

int hca_cq_create(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
		  hca_cq_udata *udata)
{
	struct hca_cq *cq = to_cq(ib);

	cq->dev = to_hca(ib->device);
	if (attr->cqe < 1 || attr->cqe > cq->dev->profile->max_cqe)
		return -EINVAL;
	hca_fault_slow(cq->dev, HCA_SLOW_CQ);
	if (hca_fault(cq->dev, HCA_FAULT_CREATE_CQ))
		return -ENOMEM;
	cq->size = attr->cqe;
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	hca_timer_init(&cq->timer, cq_timer);
	ib->cqe = cq->size;
	return 0;
}

int hca_cq_pre_destroy(struct ib_cq *ib)
{
	struct hca_cq *cq = to_cq(ib);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->ending = true;
	spin_unlock_irqrestore(&cq->lock, flags);
	hrtimer_cancel(&cq->timer);
	return 0;
}

int hca_cq_destroy(struct ib_cq *ib, struct ib_udata *udata)
{
	hca_fault_slow(to_cq(ib)->dev, HCA_SLOW_CQ_END);
	hca_cq_pre_destroy(ib);		/* ib_destroy_cq() does not */
	kvfree(to_cq(ib)->ring);
	return 0;
}

int hca_cq_poll(struct ib_cq *ib, int n, struct ib_wc *wc)
{
	struct hca_cq *cq = to_cq(ib);
	unsigned long flags;
	int i = 0;

	spin_lock_irqsave(&cq->lock, flags);
	while (i < n && cq->tail < cq->seen) {
		struct hca_cqe *cqe = &cq->ring[cq->tail++ % cq->size];

		if (!cqe->qp)	/* it has been destroyed */
			continue;
		wc[i++] = cqe->wc;
		WRITE_ONCE(*(cqe->send ? &cqe->qp->sq_free : &cqe->qp->rq_free),
			   cqe->frees);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int hca_cq_arm(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	struct hca_cq *cq = to_cq(ib);
	unsigned long irq;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq);
	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP)
		cq->armed = IB_CQ_NEXT_COMP;
	else if (!cq->armed)
		cq->armed = IB_CQ_SOLICITED;
	cq->solicited = false;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = cq->seen > cq->tail;
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed;
}

/* Removes the completions of @qp, which is being destroyed. */
void hca_cq_forget(struct hca_cq *cq, struct hca_qp *qp)
{
	unsigned long flags;
	u64 i;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = cq->tail; i < cq->head; i++)
		if (cq->ring[i % cq->size].qp == qp)
			cq->ring[i % cq->size].qp = NULL;
	spin_unlock_irqrestore(&cq->lock, flags);
}
