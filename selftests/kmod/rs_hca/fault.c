// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection, by a seed.
 *
 * Owns only the decision; callers implement the faults.  Each kind has two module parameters,
 * which can be changed at any time: fault_KIND=N triggers it once in N times on average, and
 * fault_KIND_at=N at exactly the Nth opportunity on a device after this was written.  0 means
 * never.  The same seed and the same order of requests give the same faults.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include "rs_hca.h"

static ulong seed = 1;
module_param(seed, ulong, 0644);
MODULE_PARM_DESC(seed, "of the faults of devices that are added from now on");

static char *fault_dev = "";
module_param(fault_dev, charp, 0644);
MODULE_PARM_DESC(fault_dev, "only this device has faults");

static char *liar = "";
module_param(liar, charp, 0644);
MODULE_PARM_DESC(liar, "only this device lies");

static uint fault_delay_us = 1000;
module_param(fault_delay_us, uint, 0644);
MODULE_PARM_DESC(fault_delay_us, "how long a delayed request waits at most");

/**
 * struct fault_at - the Nth time
 * @n:		which
 * @since:	goes up each time that @n is written: then devices count anew
 */
struct fault_at {
	uint n;
	uint since;
};

static uint slow[HCA_SLOWS];
module_param_named(slow_ms, slow[HCA_SLOW_CQ], uint, 0644);
MODULE_PARM_DESC(slow_ms, "how long the creation of a completion queue takes on fault_dev");
module_param_named(slow_end_ms, slow[HCA_SLOW_CQ_END], uint, 0644);
MODULE_PARM_DESC(slow_end_ms, "how long the end of a completion queue takes on fault_dev");
module_param_named(slow_mr_ms, slow[HCA_SLOW_MR], uint, 0644);
MODULE_PARM_DESC(slow_mr_ms, "how long the allocation of a memory region takes on fault_dev");

static uint reset_flush_ms;
module_param(reset_flush_ms, uint, 0644);
MODULE_PARM_DESC(reset_flush_ms, "how long after a reset the driver flushes; 0: never");

static uint rate;
module_param(rate, uint, 0644);
MODULE_PARM_DESC(rate, "how many bytes a second each device sends at most; 0: no limit");

static uint often[HCA_FAULTS];
static struct fault_at at[HCA_FAULTS];
unsigned int hca_faults;

/* After a change of a parameter, which the kernel serialises. */
static void fault_changed(unsigned int what)
{
	unsigned int bit = 1U << what;

	WRITE_ONCE(hca_faults, often[what] || at[what].n ? hca_faults | bit : hca_faults & ~bit);
}

static int often_set(const char *val, const struct kernel_param *kp)
{
	int err = param_set_uint(val, kp);

	if (!err)
		fault_changed((uint *)kp->arg - often);
	return err;
}

static const struct kernel_param_ops often_ops = { .set = often_set, .get = param_get_uint };

static int at_set(const char *val, const struct kernel_param *kp)
{
	struct fault_at *a = kp->arg;
	uint n;
	int err = kstrtouint(val, 0, &n);

	if (err)
		return err;
	WRITE_ONCE(a->n, n);
	WRITE_ONCE(a->since, a->since + 1);
	fault_changed(a - at);
	return 0;
}

static int at_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%u\n", ((struct fault_at *)kp->arg)->n);
}

static const struct kernel_param_ops at_ops = { .set = at_set, .get = at_get };

#define FAULTS(X)				\
	X(delay, HCA_FAULT_DELAY)		\
	X(loss, HCA_FAULT_LOSS)			\
	X(repeat, HCA_FAULT_REPEAT)		\
	X(again, HCA_FAULT_AGAIN)		\
	X(replace, HCA_FAULT_REPLACE)		\
	X(mad, HCA_FAULT_MAD)			\
	X(sa, HCA_FAULT_SA)			\
	X(post_send, HCA_FAULT_POST_SEND)	\
	X(post_recv, HCA_FAULT_POST_RECV)	\
	X(map, HCA_FAULT_MAP)			\
	X(alloc_pd, HCA_FAULT_ALLOC_PD)		\
	X(create_cq, HCA_FAULT_CREATE_CQ)	\
	X(create_qp, HCA_FAULT_CREATE_QP)	\
	X(modify_qp, HCA_FAULT_MODIFY_QP)	\
	X(alloc_mr, HCA_FAULT_ALLOC_MR)		\
	X(reg_mr, HCA_FAULT_REG_MR)		\
	X(remove, HCA_FAULT_REMOVE)		\
	X(reset, HCA_FAULT_RESET)		\
	X(lie, HCA_FAULT_LIE)

#define X(name, what)							\
	module_param_cb(fault_##name, &often_ops, &often[what], 0644);	\
	module_param_cb(fault_##name##_at, &at_ops, &at[what], 0644);
FAULTS(X)
#undef X

const char * const hca_fault_names[HCA_FAULTS] = {
#define X(name, what)	[what] = #name,
	FAULTS(X)
#undef X
};

void hca_fault_init(struct hca_dev *dev)
{
	spin_lock_init(&dev->faults.lock);
	prandom_seed_state(&dev->faults.state, READ_ONCE(seed));
}

/* As a device whose firmware takes its time, or a driver that finds no memory at once. */
void hca_fault_slow(struct hca_dev *dev, enum hca_slow what)
{
	unsigned int ms = READ_ONCE(slow[what]);
	unsigned long until = jiffies + msecs_to_jiffies(ms);

	if (!ms || !sysfs_streq(READ_ONCE(fault_dev), dev_name(&dev->ib.dev)))
		return;
	/* 0 ends it, so that nothing of it is left for the next test */
	while (READ_ONCE(slow[what]) && time_before(jiffies, until))
		msleep(50);
}

static bool is_of(const struct hca_dev *dev, enum hca_fault what)
{
	const char *only = what == HCA_FAULT_LIE ? READ_ONCE(liar) : READ_ONCE(fault_dev);

	return (sysfs_streq(only, "") && what != HCA_FAULT_LIE) || sysfs_streq(only, dev_name(&dev->ib.dev));
}

/* Some device has faults of the kind @what: has this one a fault now? */
bool hca_fault_now(struct hca_dev *dev, enum hca_fault what)
{
	unsigned int n = READ_ONCE(often[what]), nth = READ_ONCE(at[what].n);
	struct hca_faults *f = &dev->faults;
	unsigned long flags;
	bool yes;

	if (!is_of(dev, what))
		return false;
	spin_lock_irqsave(&f->lock, flags);
	if (f->since[what] != READ_ONCE(at[what].since)) {
		f->since[what] = READ_ONCE(at[what].since);
		f->asked[what] = 0;
	}
	f->asked[what]++;
	yes = nth && f->asked[what] == nth;
	if (n && !(prandom_u32_state(&f->state) % n))
		yes = true;
	atomic64_add(yes, &f->done[what]);
	spin_unlock_irqrestore(&f->lock, flags);
	return yes;
}

/* From 0 to @n - 1. */
u32 hca_fault_random(struct hca_dev *dev, u32 n)
{
	struct hca_faults *f = &dev->faults;
	unsigned long flags;
	u32 r;

	spin_lock_irqsave(&f->lock, flags);
	r = prandom_u32_state(&f->state) % n;
	spin_unlock_irqrestore(&f->lock, flags);
	return r;
}

u64 hca_fault_delay_ns(struct hca_dev *dev)
{
	unsigned int most = max(READ_ONCE(fault_delay_us), 1U);

	return (1 + hca_fault_random(dev, most)) * (u64)NSEC_PER_USEC;
}

/* The device has been reset: how long until its driver flushes, ns; S64_MAX: for ever. */
s64 hca_fault_flush_ns(const struct hca_dev *dev)
{
	unsigned int ms = READ_ONCE(reset_flush_ms);

	if (!ms)
		return S64_MAX;
	return ktime_to_ns(ktime_sub(ktime_add_ms(dev->dead_at, ms), ktime_get()));
}

/* How long a device with a slow wire sends @len bytes, after what it has begun to send, ns. */
u64 hca_wire_ns(struct hca_dev *dev, u32 len)
{
	unsigned int most = READ_ONCE(rate);
	struct hca_faults *f = &dev->faults;
	unsigned long flags;
	u64 now, ns;

	if (!most)
		return 0;
	now = ktime_get_ns();
	spin_lock_irqsave(&f->lock, flags);
	f->wire_busy_till = max(f->wire_busy_till, now) + div_u64((u64)len * NSEC_PER_SEC, most);
	ns = f->wire_busy_till - now;
	spin_unlock_irqrestore(&f->lock, flags);
	return ns;
}
