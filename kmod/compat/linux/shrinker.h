/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: creation of shrinkers. */
#ifndef RSTREAM_COMPAT_LINUX_SHRINKER_H
#define RSTREAM_COMPAT_LINUX_SHRINKER_H

#include_next <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>

/* 6.7: allocated dynamically, then registered (c42d50aefd17) */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static inline struct shrinker *shrinker_alloc(unsigned int flags,
					      const char *fmt)
{
	return kzalloc(sizeof(struct shrinker), GFP_KERNEL);
}

static inline void shrinker_register(struct shrinker *shrinker)
{
	shrinker->seeks = DEFAULT_SEEKS;
	if (register_shrinker(shrinker, "rdmastream"))
		pr_warn("cannot register the shrinker, so memory pressure goes unnoticed\n");
}

static inline void shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}
#endif

#endif
