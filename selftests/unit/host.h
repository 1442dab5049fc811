/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replacements for the kernel's headers that the pure files of the module need.
 */
#ifndef RSTREAM_HOST_H
#define RSTREAM_HOST_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define cpu_to_be16(x)	htobe16(x)
#define cpu_to_be32(x)	htobe32(x)
#define cpu_to_be64(x)	htobe64(x)
#define be16_to_cpu(x)	be16toh(x)
#define be32_to_cpu(x)	be32toh(x)
#define be64_to_cpu(x)	be64toh(x)
#define le64_to_cpu(x)	le64toh(x)

extern void (*host_published)(const void *p);
/*
 * There is one thread.  host_published() is called, if it is set, before a store that publishes
 * others: what another CPU must not miss has to be there by then.
 */
#define smp_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) ({	\
	typeof(p) p_ = (p);		\
	if (host_published)		\
		host_published(p_);	\
	*p_ = (v);			\
})

#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, v)	((x) = (v))

#define BIT(n)		(1UL << (n))

/* warnings that the kernel would print */
extern unsigned int host_warnings;
#define WARN_ON_ONCE(x) ({		\
	bool x_ = (x);			\
	host_warnings += x_;		\
	x_;				\
})

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define max(a, b) ({		\
	typeof(a) a_ = (a);	\
	typeof(b) b_ = (b);	\
	a_ > b_ ? a_ : b_;	\
})

#define min(a, b) ({		\
	typeof(a) a_ = (a);	\
	typeof(b) b_ = (b);	\
	a_ < b_ ? a_ : b_;	\
})

#define min_t(type, a, b) ({	\
	type a_ = (a);		\
	type b_ = (b);		\
	a_ < b_ ? a_ : b_;	\
})

#define max_t(type, a, b) ({	\
	type a_ = (a);		\
	type b_ = (b);		\
	a_ > b_ ? a_ : b_;	\
})

#endif
