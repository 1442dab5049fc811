// SPDX-License-Identifier: GPL-2.0-only
/*
 * What goes wrong, by a seed.
 *
 * Owns the decision only; who asks knows how to fail.  For each kind there are two
 * module parameters, which can be changed at any time: fault_KIND=N lets it happen
 * once in N times on the average, fault_KIND_at=N at exactly the Nth time that it
 * could have happened on a device.  0 is never.  The same seed and the same order of
 * requests give the same faults.
 */
#include <linux/moduleparam.h>

#include "rs_hca.h"

static ulong seed = 1;
module_param(seed, ulong, 0644);
MODULE_PARM_DESC(seed, "of the faults of devices that are added from now on");

static char *fault_dev = "";
module_param(fault_dev, charp, 0644);
MODULE_PARM_DESC(fault_dev, "only this device has faults");

static uint fault_delay_us = 1000;
module_param(fault_delay_us, uint, 0644);
MODULE_PARM_DESC(fault_delay_us, "how long a delayed request waits at most");

static uint often[HCA_FAULTS], at[HCA_FAULTS];

#define FAULT(name, what)						\
	module_param_named(fault_##name, often[what], uint, 0644);	\
	module_param_named(fault_##name##_at, at[what], uint, 0644)

FAULT(delay, HCA_FAULT_DELAY);
FAULT(loss, HCA_FAULT_LOSS);
FAULT(repeat, HCA_FAULT_REPEAT);
FAULT(mad, HCA_FAULT_MAD);
FAULT(post_send, HCA_FAULT_POST_SEND);
FAULT(post_recv, HCA_FAULT_POST_RECV);
FAULT(map, HCA_FAULT_MAP);
FAULT(alloc_mr, HCA_FAULT_ALLOC_MR);
FAULT(reg_mr, HCA_FAULT_REG_MR);
FAULT(remove, HCA_FAULT_REMOVE);
FAULT(reset, HCA_FAULT_RESET);

void hca_fault_init(struct hca_dev *dev)
{
	spin_lock_init(&dev->faults.lock);
	prandom_seed_state(&dev->faults.state, READ_ONCE(seed));
}

static bool is_of(const struct hca_dev *dev)
{
	const char *only = READ_ONCE(fault_dev);

	return !*only || sysfs_streq(only, dev_name(&dev->ib.dev));
}

/**
 * hca_fault() - shall it fail?
 * @dev:	the device
 * @what:	could happen now
 */
bool hca_fault(struct hca_dev *dev, enum hca_fault what)
{
	unsigned int n = READ_ONCE(often[what]), nth = READ_ONCE(at[what]);
	struct hca_faults *f = &dev->faults;
	unsigned long flags;
	bool yes;

	if (!n && !nth)
		return false;
	if (!is_of(dev))
		return false;
	spin_lock_irqsave(&f->lock, flags);
	f->asked[what]++;
	yes = nth && f->asked[what] == nth;
	if (n && !(prandom_u32_state(&f->state) % n))
		yes = true;
	f->done[what] += yes;
	spin_unlock_irqrestore(&f->lock, flags);
	return yes;
}

u64 hca_fault_delay_ns(struct hca_dev *dev)
{
	unsigned int most = max(READ_ONCE(fault_delay_us), 1U);
	struct hca_faults *f = &dev->faults;
	unsigned long flags;
	u64 ns;

	spin_lock_irqsave(&f->lock, flags);
	ns = (1 + prandom_u32_state(&f->state) % most) * (u64)NSEC_PER_USEC;
	spin_unlock_irqrestore(&f->lock, flags);
	return ns;
}
