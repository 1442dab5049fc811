// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports of errors, with stack traces.
 *
 * Owns the records of earlier mappings and registrations.  Called by the checks (dma.c, mr.c,
 * cq.c).  A report starts like those of the kernel's own DMA-API checker, so that log checkers
 * find both.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/stacktrace.h>
#include <linux/vmalloc.h>

#include "rs_hca.h"

static char *report_as = "DMA-API";
module_param(report_as, charp, 0644);
MODULE_PARM_DESC(report_as, "what a report begins with; another word for those that a test wants");

#define REPORTS_MAX	20	/* per device; further reports are only counted */

void hca_stack_save(struct hca_stack *stack)
{
#ifdef CONFIG_STACKTRACE
	stack->n = stack_trace_save(stack->pc, HCA_STACK, 1);
#else	/* at least the caller */
	stack->n = 1;
	stack->pc[0] = _RET_IP_;
#endif
}

static void print_stack(const char *title, const struct hca_stack *stack)
{
	unsigned int i;

	if (!stack || !stack->n)
		return;
	pr_err("rs_hca:   %s:\n", title);
	for (i = 0; i < stack->n; i++)
		pr_err("rs_hca:     %pS\n", (void *)stack->pc[i]);
}

static void print(struct hca_dev *dev, const struct hca_wqe *wqe,
		  const struct hca_stack *made, const struct hca_stack *ended,
		  struct va_format *vaf)
{
	if (atomic_inc_return(&dev->report.count) > REPORTS_MAX)
		return;
	pr_err("rs_hca: %s: %s: %pV\n", READ_ONCE(report_as), dev_name(&dev->ib.dev), vaf);
	print_stack("request posted by", wqe ? &wqe->by : NULL);
	print_stack("made by", made);
	print_stack("ended by", ended);
}

/**
 * hca_report() - say what is wrong
 * @dev:	the device
 * @wqe:	the request that did it, or NULL
 * @made:	the stack that made what it was done to, or NULL
 * @fmt:	what has happened
 */
void hca_report(struct hca_dev *dev, const struct hca_wqe *wqe,
		const struct hca_stack *made, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	print(dev, wqe, made, NULL, &vaf);
	va_end(args);
}

/**
 * hca_report_past() - the same of an address that nothing is at
 * @dev:	the device
 * @wqe:	the request that did it, or NULL
 * @kind:	of what there may have been
 * @addr:	where: this is looked up
 * @fmt:	what has happened
 */
void hca_report_past(struct hca_dev *dev, const struct hca_wqe *wqe,
		     enum hca_past_kind kind, u64 addr, const char *fmt, ...)
{
	struct hca_report *r = &dev->report;
	struct va_format vaf = { .fmt = fmt };
	struct hca_past found = {};
	unsigned long flags;
	unsigned int i;
	va_list args;

	spin_lock_irqsave(&r->lock, flags);
	for (i = 1; i <= HCA_PASTS; i++) {	/* the most recent first */
		struct hca_past *p = &r->past[(r->next - i) % HCA_PASTS];

		if (p->kind == kind && addr - p->start < p->len) {
			found = *p;
			break;
		}
	}
	spin_unlock_irqrestore(&r->lock, flags);
	va_start(args, fmt);
	vaf.va = &args;
	print(dev, wqe, &found.made, &found.ended, &vaf);
	va_end(args);
}

/**
 * hca_past_add() - something ends here and now
 * @dev:	the device
 * @kind:	what it was
 * @start:	where it was
 * @len:	how long it was
 * @made:	the stack that made it
 */
void hca_past_add(struct hca_dev *dev, enum hca_past_kind kind, u64 start,
		  u64 len, const struct hca_stack *made)
{
	struct hca_report *r = &dev->report;
	struct hca_past past = {
		.kind = kind,
		.start = start,
		.len = len,
		.made = *made,
	};
	unsigned long flags;

	hca_stack_save(&past.ended);
	spin_lock_irqsave(&r->lock, flags);
	r->past[r->next++ % HCA_PASTS] = past;
	spin_unlock_irqrestore(&r->lock, flags);
}

int hca_report_init(struct hca_dev *dev)
{
	spin_lock_init(&dev->report.lock);
	atomic_set(&dev->report.count, 0);
	dev->report.past = vcalloc(HCA_PASTS, sizeof(*dev->report.past));
	return dev->report.past ? 0 : -ENOMEM;
}

void hca_report_exit(struct hca_dev *dev)
{
	if (atomic_read(&dev->report.count) > REPORTS_MAX)
		pr_err("rs_hca: %s: %d more reports\n", dev_name(&dev->ib.dev),
		       atomic_read(&dev->report.count) - REPORTS_MAX);
	vfree(dev->report.past);
}
