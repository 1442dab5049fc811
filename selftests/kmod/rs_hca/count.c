// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of devices: /sys/module/rs_hca/parameters/counts, lines of device, name and number.
 *
 * Owns no data: each device has its counters, which hca_count() increments.
 */
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include "rs_hca.h"

static const char * const names[HCA_COUNTS] = {
	[HCA_REQUESTS] = "requests",
	[HCA_BYTES] = "bytes",
	[HCA_RNRS] = "rnrs",
	[HCA_UNANSWERED] = "unanswered",
	[HCA_MAPS] = "maps",
	[HCA_UNMAPS] = "unmaps",
	[HCA_MAPS_BH] = "maps-bh",
	[HCA_UNMAPS_BH] = "unmaps-bh",
	[HCA_SYNCS] = "syncs",
	[HCA_INLINES] = "inlines",
};

static int counts_get(char *buf, const struct kernel_param *kp)
{
	struct hca_dev *dev;
	int i, n = 0;

	spin_lock_bh(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list) {
		for (i = 0; i < HCA_COUNTS; i++)
			n += sysfs_emit_at(buf, n, "%s %s %lld\n",
					   dev_name(&dev->ib.dev), names[i],
					   atomic64_read(&dev->counts[i]));
		for (i = 0; i < HCA_FAULTS; i++)
			n += sysfs_emit_at(buf, n, "%s fault-%s %lld\n",
					   dev_name(&dev->ib.dev), hca_fault_names[i],
					   atomic64_read(&dev->faults.done[i]));
		n += sysfs_emit_at(buf, n, "%s reports %d\n", dev_name(&dev->ib.dev),
				   atomic_read(&dev->report.count));
	}
	spin_unlock_bh(&hca_devs_lock);
	return n;
}

static const struct kernel_param_ops counts_ops = { .get = counts_get };
module_param_cb(counts, &counts_ops, NULL, 0444);
MODULE_PARM_DESC(counts, "what each device has done");
