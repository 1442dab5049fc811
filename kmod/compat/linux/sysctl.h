/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: handlers of sysctl entries. */
#ifndef RSTREAM_COMPAT_LINUX_SYSCTL_H
#define RSTREAM_COMPAT_LINUX_SYSCTL_H

#include_next <linux/sysctl.h>
#include <linux/version.h>

/* 6.11: handlers get a const table (78eb4ea25cd5) */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
typedef struct ctl_table rstream_ctl_table;
#else
typedef const struct ctl_table rstream_ctl_table;
#endif

#endif
