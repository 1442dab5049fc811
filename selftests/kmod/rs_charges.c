// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of memory that TCP has charged to sockets, of all namespaces:
 *
 *	cat /sys/module/rs_charges/parameters/tcp_pages
 *
 * /proc/net/sockstat is not exact, because each CPU keeps up to 1 MiB to itself.  This is, while no
 * socket is in use.
 */
#include <linux/module.h>
#include <net/tcp.h>

static int tcp_pages_get(char *buf, const struct kernel_param *kp)
{
	long n = atomic_long_read(tcp_prot.memory_allocated);
	int cpu;

	for_each_possible_cpu(cpu)
		n += *per_cpu_ptr(tcp_prot.per_cpu_fw_alloc, cpu);
	return sysfs_emit(buf, "%ld\n", n);
}

static const struct kernel_param_ops tcp_pages_ops = { .get = tcp_pages_get };
module_param_cb(tcp_pages, &tcp_pages_ops, NULL, 0444);
MODULE_PARM_DESC(tcp_pages, "pages charged to TCP's sockets");

MODULE_DESCRIPTION("TCP's charges, exactly");
MODULE_LICENSE("GPL");
