/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels that rs_hca is built for.  No other file checks the kernel
 * version.
 */
#ifndef RS_HCA_COMPAT_H
#define RS_HCA_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>

/*
 * 6.11: what create_cq() gets from user space is of another type (dd6d7f8574d7, "RDMA: Pass entire
 * uverbs attr bundle to create cq function")
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
typedef struct uverbs_attr_bundle hca_cq_udata;
#else
typedef struct ib_udata hca_cq_udata;
#endif

/* 6.17: user memory may have a DMA handle ("IB: Extend UVERBS_METHOD_REG_MR to get DMAH") */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define HCA_DMAH_PARAM	struct ib_dmah *dmah,
#else
#define HCA_DMAH_PARAM
#endif

/* 6.15: one parameter for all (69c7be1b903f, "rtnetlink: Pack newlink() params into struct") */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define HCA_NEWLINK_PARAMS	struct net_device *dev, struct rtnl_newlink_params *params
#define HCA_NEWLINK_TB		(params->tb)
#define HCA_NEWLINK_DATA	(params->data)
#define HCA_NEWLINK_NET		rtnl_newlink_link_net(params)
#else
#define HCA_NEWLINK_PARAMS	struct net *net, struct net_device *dev, struct nlattr *tb[], \
				struct nlattr *data[]
#define HCA_NEWLINK_TB		tb
#define HCA_NEWLINK_DATA	data
#define HCA_NEWLINK_NET		net
#endif

/*
 * 6.12: the configuration symbol has another name (de6c85bf918e, "dma-mapping: clearly mark DMA ops
 * as an architecture feature")
 */
#if defined(CONFIG_ARCH_HAS_DMA_OPS) || defined(CONFIG_DMA_OPS)
#define HCA_HAS_DMA_OPS 1
#else
#define HCA_HAS_DMA_OPS 0
#endif

/* 6.19: mapped by physical address ("dma-mapping: remove unused map_page callback") */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define HCA_MAP_OP		map_phys
#define HCA_UNMAP_OP		unmap_phys
#define HCA_MAP_PARAMS		phys_addr_t phys
#define HCA_MAP_AT		phys_to_virt(phys)
#else
#define HCA_MAP_OP		map_page
#define HCA_UNMAP_OP		unmap_page
#define HCA_MAP_PARAMS		struct page *page, unsigned long off
#define HCA_MAP_AT		(page_address(page) + off)
#endif

/*
 * Pages of the slab allocator have no useful reference count; nor do, in 7.3 but not in 6.12, those
 * of large allocations.  6.15: these have a type of their own ("slab: Mark large folios for
 * debugging purposes")
 */
static inline bool hca_page_of_slab(struct page *page)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	if (PageLargeKmalloc(page))
		return true;
#endif
	return PageSlab(page);
}

/*
 * 6.13: the function is given with the clock (908a1d775422, "hrtimers: Introduce hrtimer_setup() to
 * replace hrtimer_init()")
 */
static inline void hca_timer_init(struct hrtimer *timer,
				  enum hrtimer_restart (*fn)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	timer->function = fn;
#endif
}

#endif
