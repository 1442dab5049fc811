/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: memory of objects. */
#ifndef RSTREAM_COMPAT_LINUX_SLAB_H
#define RSTREAM_COMPAT_LINUX_SLAB_H

#include_next <linux/slab.h>
#include <linux/version.h>

/* 6.12: kmem_cache_charge(); older kernels do not charge accepted sockets, either (9028cdeb38e1) */
static inline void rstream_slab_charge(void *object, gfp_t gfp)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	kmem_cache_charge(object, gfp);
#endif
}

#endif
