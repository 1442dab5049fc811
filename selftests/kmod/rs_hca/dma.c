// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA addresses of the device, and their checks.
 *
 * Owns the dma_map_ops of the devices, and the mappings.  Called by the DMA API on behalf of
 * users of the device, and by mr.c before each access of the device.
 *
 * No address is a CPU address, and none is used twice: an access finds the current mapping, or
 * nothing.  As with a real IOMMU, the entries of a list are mapped contiguously and reported as
 * one, aligned to its size.
 *
 * With HCA_DMA_BOUNCE, the device sees copies, as with swiotlb: data is copied only when the
 * memory is mapped, synced or unmapped.  These addresses are aligned to pages only, and each
 * entry of a list has its own.
 *
 * End of a mapping: hca_unmap() removes it from the tree under dma->lock, and then drops its
 * reference.  An access in progress has a reference, too: it was allowed to start, but the end of
 * a mapping during an access is reported.
 */
#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "rs_hca.h"

#define FIRST_ADDR	0xca1000000000ULL	/* no CPU address */

/*
 * struct hca_map: a mapping
 * @node:	dma->maps
 * @addr:	the device's address
 * @len:	bytes
 * @dir:	what the device may do
 * @mem:	the CPU's address
 * @copy:	what the device sees instead; NULL: @mem
 * @ref:	one of the tree's, one of each access
 * @made:	the stack that mapped it
 */
struct hca_map {
	struct rb_node node;
	refcount_t ref;
	u64 addr;
	size_t len;
	enum dma_data_direction dir;
	void *mem, *copy;
	struct hca_stack made;
};

static bool dev_reads(enum dma_data_direction dir)
{
	return dir == DMA_TO_DEVICE || dir == DMA_BIDIRECTIONAL;
}

static bool dev_writes(enum dma_data_direction dir)
{
	return dir == DMA_FROM_DEVICE || dir == DMA_BIDIRECTIONAL;
}

static void map_put(struct hca_map *map)
{
	if (!refcount_dec_and_test(&map->ref))
		return;
	kfree(map->copy);
	kfree(map);
}

/* The mapping that contains @addr. */
static struct hca_map *map_find(struct hca_dma *dma, u64 addr)
{
	struct rb_node *node = dma->maps.rb_node;

	lockdep_assert_held(&dma->lock);
	while (node) {
		struct hca_map *map = rb_entry(node, struct hca_map, node);

		if (addr < map->addr)
			node = node->rb_left;
		else if (addr - map->addr >= map->len)
			node = node->rb_right;
		else
			return map;
	}
	return NULL;
}

/* Is any page of these bytes free?  The pages of a mapping may be freed one by one. */
static bool page_freed(const void *mem, size_t len)
{
	unsigned long at = (unsigned long)mem & PAGE_MASK, end = (unsigned long)mem + len;

	for (; at < end; at += PAGE_SIZE) {
		struct page *page = virt_to_head_page((void *)at);

		if (!hca_page_of_slab(page) && !page_count(page))
			return true;
	}
	return false;
}

/**
 * hca_dma_get() - the device is about to access memory
 * @dev:	the device
 * @addr:	one of its addresses
 * @len:	as much of it as it would like to at once; piece->len is what it gets
 * @write:	it will be changed
 * @wqe:	on behalf of this request, or NULL
 * @piece:	what it gets; to be given back by hca_dma_put()
 *
 * Return: 0, or -EFAULT: it may not, and that was reported.
 */
int hca_dma_get(struct hca_dev *dev, u64 addr, u32 len, bool write,
		const struct hca_wqe *wqe, struct hca_piece *piece)
{
	const char *what = write ? "writes to" : "reads from";
	struct hca_dma *dma = dev->dma;
	struct hca_map *map;
	unsigned long flags;
	u64 off;

	if (!dma) {
		*piece = (struct hca_piece){ .va = (void *)(uintptr_t)addr, .len = len };
		return 0;
	}
	spin_lock_irqsave(&dma->lock, flags);
	map = map_find(dma, addr);
	if (map)
		refcount_inc(&map->ref);
	spin_unlock_irqrestore(&dma->lock, flags);
	if (!map) {
		hca_report_past(dev, wqe, HCA_PAST_DMA, addr,
				"device %s %#llx, where nothing is mapped", what, addr);
		return -EFAULT;
	}
	if (write ? !dev_writes(map->dir) : !dev_reads(map->dir)) {
		hca_report(dev, wqe, &map->made,
			   "device %s %#llx, which is mapped for the other direction", what, addr);
		map_put(map);
		return -EFAULT;
	}
	off = addr - map->addr;
	piece->len = min_t(u64, len, map->len - off);
	if (page_freed(map->mem + off, piece->len)) {
		hca_report(dev, wqe, &map->made,
			   "device %s %#llx, a page that was freed", what, addr);
		map_put(map);
		return -EFAULT;
	}
	piece->map = map;
	piece->va = (map->copy ?: map->mem) + off;
	return 0;
}

void hca_dma_put(struct hca_piece *piece)
{
	if (piece->map)
		map_put(piece->map);
}

#if HCA_HAS_DMA_OPS

static struct hca_dma *dma_of(struct device *dev)
{
	return dev_get_drvdata(dev);
}

/* Pages for @len bytes that start at @off of a page. */
static u64 reserve(struct hca_dma *dma, size_t off, size_t len)
{
	size_t room = PAGE_ALIGN(off + len);
	unsigned long flags;
	u64 addr;

	spin_lock_irqsave(&dma->lock, flags);
	if (!dma->bounce)
		dma->next = ALIGN(dma->next, roundup_pow_of_two(room));
	addr = dma->next;
	/* a guard page, to detect accesses beyond the end */
	dma->next += room + PAGE_SIZE;
	spin_unlock_irqrestore(&dma->lock, flags);
	return addr + off;
}

static struct hca_map *map_new(struct hca_dma *dma, void *mem, size_t len,
			       enum dma_data_direction dir)
{
	struct hca_map *map;

	if (hca_fault(dma->dev, HCA_FAULT_MAP))
		return NULL;
	map = kzalloc(sizeof(*map), GFP_ATOMIC);
	if (!map)
		return NULL;
	if (dma->bounce) {
		map->copy = kmemdup(mem, len, GFP_ATOMIC);
		if (!map->copy) {
			kfree(map);
			return NULL;
		}
	}
	refcount_set(&map->ref, 1);
	map->mem = mem;
	map->len = len;
	map->dir = dir;
	hca_stack_save(&map->made);
	return map;
}

/* By address, because reservations may be inserted out of order. */
static void map_insert(struct hca_dma *dma, struct hca_map *map)
{
	struct rb_node **link = &dma->maps.rb_node, *parent = NULL;

	lockdep_assert_held(&dma->lock);
	while (*link) {
		parent = *link;
		link = map->addr < rb_entry(parent, struct hca_map, node)->addr ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&map->node, parent, link);
	rb_insert_color(&map->node, &dma->maps);
}

static void map_publish(struct hca_dma *dma, struct hca_map *map, u64 addr)
{
	unsigned long flags;

	map->addr = addr;
	hca_count(dma->dev, HCA_MAPS, 1);
	hca_count(dma->dev, HCA_MAPS_BH, !!in_softirq());
	spin_lock_irqsave(&dma->lock, flags);
	map_insert(dma, map);
	spin_unlock_irqrestore(&dma->lock, flags);
}

static dma_addr_t hca_map_one(struct device *dev, HCA_MAP_PARAMS, size_t len,
			      enum dma_data_direction dir, unsigned long attrs)
{
	struct hca_dma *dma = dma_of(dev);
	void *at = HCA_MAP_AT;
	struct hca_map *map;

	map = map_new(dma, at, len, dir);
	if (!map)
		return DMA_MAPPING_ERROR;
	map_publish(dma, map, reserve(dma, offset_in_page(at), len));
	return map->addr;
}

static void hca_unmap(struct hca_dma *dma, u64 addr, size_t len,
		      enum dma_data_direction dir, unsigned long attrs)
{
	struct hca_map *map;
	unsigned long flags;
	bool used, freed;

	hca_count(dma->dev, HCA_UNMAPS, 1);
	hca_count(dma->dev, HCA_UNMAPS_BH, !!in_softirq());
	spin_lock_irqsave(&dma->lock, flags);
	map = map_find(dma, addr);
	if (map)
		rb_erase(&map->node, &dma->maps);
	spin_unlock_irqrestore(&dma->lock, flags);
	if (!map) {
		hca_report_past(dma->dev, NULL, HCA_PAST_DMA, addr,
				"unmaps %#llx, where nothing is mapped", addr);
		return;
	}
	if (map->addr != addr || map->len != len || map->dir != dir)
		hca_report(dma->dev, NULL, &map->made,
			   "unmaps %#llx + %zu, direction %d, but mapped was %#llx + %zu, direction %d",
			   addr, len, dir, map->addr, map->len, map->dir);
	used = refcount_read(&map->ref) > 1;
	if (used)
		hca_report(dma->dev, NULL, &map->made,
			   "unmaps %#llx while the device accesses it", addr);
	freed = page_freed(map->mem, map->len);
	if (freed)
		hca_report(dma->dev, NULL, &map->made,
			   "unmaps %#llx, where a page was freed", addr);
	if (map->copy && !used && !freed && dev_writes(map->dir) &&
	    !(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		memcpy(map->mem, map->copy, map->len);
	hca_past_add(dma->dev, HCA_PAST_DMA, map->addr, map->len, &map->made);
	map_put(map);
}

static void hca_unmap_one(struct device *dev, dma_addr_t addr, size_t len,
			  enum dma_data_direction dir, unsigned long attrs)
{
	hca_unmap(dma_of(dev), addr, len, dir, attrs);
}

/* Each entry of a list has a mapping, even if their addresses are reported as one. */
static void unmap_entries(struct hca_dma *dma, struct scatterlist *list, int n,
			  u64 addr, enum dma_data_direction dir,
			  unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(list, sg, n, i) {
		if (dma->bounce)
			addr = sg_dma_address(sg);
		hca_unmap(dma, addr, sg->length, dir, attrs);
		addr += sg->length;
	}
}

/*
 * Adjacent whole pages can be merged, if a list entry has a separate DMA length, which is not
 * the case on architectures without an IOMMU.
 */
static bool mergeable(struct scatterlist *list, int n)
{
	struct scatterlist *sg;
	int i;

	if (!IS_ENABLED(CONFIG_NEED_SG_DMA_LENGTH))
		return false;
	for_each_sg(list, sg, n, i)
		if (sg->offset || !PAGE_ALIGNED(sg->length))
			return false;
	return true;
}

static int map_merged(struct hca_dma *dma, struct scatterlist *list, int n,
		      enum dma_data_direction dir)
{
	struct scatterlist *sg;
	struct hca_map *map;
	size_t total = 0;
	u64 start, addr;
	int i;

	for_each_sg(list, sg, n, i)
		total += sg->length;
	start = reserve(dma, 0, total);
	addr = start;
	for_each_sg(list, sg, n, i) {
		map = map_new(dma, sg_virt(sg), sg->length, dir);
		if (!map) {
			unmap_entries(dma, list, i, start, dir, 0);
			return -ENOMEM;
		}
		map_publish(dma, map, addr);
		addr += sg->length;
	}
	sg_dma_address(list) = start;
	sg_dma_len(list) = total;
	return 1;
}

static int map_apart(struct hca_dma *dma, struct scatterlist *list, int n,
		     enum dma_data_direction dir)
{
	struct scatterlist *sg;
	struct hca_map *map;
	int i, done;

	for_each_sg(list, sg, n, i) {
		map = map_new(dma, sg_virt(sg), sg->length, dir);
		if (!map)
			goto undo;
		map_publish(dma, map, reserve(dma, sg->offset & ~PAGE_MASK, sg->length));
		sg_dma_address(sg) = map->addr;
		sg_dma_len(sg) = sg->length;
	}
	return n;
undo:
	done = i;
	for_each_sg(list, sg, done, i)
		hca_unmap(dma, sg_dma_address(sg), sg->length, dir, 0);
	return -ENOMEM;
}

static int hca_map_sg(struct device *dev, struct scatterlist *list, int n,
		      enum dma_data_direction dir, unsigned long attrs)
{
	struct hca_dma *dma = dma_of(dev);

	if (!dma->bounce && n > 1 && mergeable(list, n))
		return map_merged(dma, list, n, dir);
	return map_apart(dma, list, n, dir);
}

static void hca_unmap_sg(struct device *dev, struct scatterlist *list, int n,
			 enum dma_data_direction dir, unsigned long attrs)
{
	struct hca_dma *dma = dma_of(dev);
	struct scatterlist *sg;
	int i;

	if (!dma->bounce && n > 1 && mergeable(list, n)) {
		unmap_entries(dma, list, n, sg_dma_address(list), dir, attrs);
		return;
	}
	for_each_sg(list, sg, n, i)
		hca_unmap(dma, sg_dma_address(sg), sg->length, dir, attrs);
}

/* Copies @len bytes at @addr from or to the bounce buffer; they may span several mappings. */
static void sync(struct hca_dma *dma, u64 addr, size_t len,
		 enum dma_data_direction dir, bool for_cpu)
{
	struct hca_map *map;
	unsigned long flags;
	size_t off, n;

	hca_count(dma->dev, HCA_SYNCS, 1);
	while (len) {
		spin_lock_irqsave(&dma->lock, flags);
		map = map_find(dma, addr);
		if (!map) {
			spin_unlock_irqrestore(&dma->lock, flags);
			hca_report_past(dma->dev, NULL, HCA_PAST_DMA, addr,
					"syncs %#llx, where nothing is mapped", addr);
			return;
		}
		off = addr - map->addr;
		n = min(len, map->len - off);
		if (page_freed(map->mem + off, n))
			hca_report(dma->dev, NULL, &map->made,
				   "syncs %#llx, where a page was freed", addr);
		else if (map->copy && for_cpu && dev_writes(map->dir))
			memcpy(map->mem + off, map->copy + off, n);
		else if (map->copy && !for_cpu && dev_reads(map->dir))
			memcpy(map->copy + off, map->mem + off, n);
		if (map->dir != DMA_BIDIRECTIONAL && map->dir != dir)
			hca_report(dma->dev, NULL, &map->made,
				   "syncs %#llx for direction %d, but it is mapped for %d",
				   addr, dir, map->dir);
		spin_unlock_irqrestore(&dma->lock, flags);
		addr += n;
		len -= n;
	}
}

static void hca_sync_for_cpu(struct device *dev, dma_addr_t addr, size_t len,
			     enum dma_data_direction dir)
{
	sync(dma_of(dev), addr, len, dir, true);
}

static void hca_sync_for_device(struct device *dev, dma_addr_t addr,
				size_t len, enum dma_data_direction dir)
{
	sync(dma_of(dev), addr, len, dir, false);
}

static void hca_sync_sg_for_cpu(struct device *dev, struct scatterlist *list,
				int n, enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(list, sg, n, i)
		sync(dma_of(dev), sg_dma_address(sg), sg_dma_len(sg), dir, true);
}

static void hca_sync_sg_for_device(struct device *dev,
				   struct scatterlist *list, int n,
				   enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(list, sg, n, i)
		sync(dma_of(dev), sg_dma_address(sg), sg_dma_len(sg), dir, false);
}

static int hca_dma_supported(struct device *dev, u64 mask)
{
	return 1;
}

/* No coherent memory, because in-kernel users of verbs do not need it. */
static const struct dma_map_ops hca_dma_ops = {
	.HCA_MAP_OP = hca_map_one,
	.HCA_UNMAP_OP = hca_unmap_one,
	.map_sg = hca_map_sg,
	.unmap_sg = hca_unmap_sg,
	.sync_single_for_cpu = hca_sync_for_cpu,
	.sync_single_for_device = hca_sync_for_device,
	.sync_sg_for_cpu = hca_sync_sg_for_cpu,
	.sync_sg_for_device = hca_sync_sg_for_device,
	.dma_supported = hca_dma_supported,
};

/**
 * hca_dma_init() - the addresses of a new device
 * @dev:	the device
 * @mode:	what they are
 *
 * Return: 0, or -EOPNOTSUPP: this kernel has no dma_map_ops.
 */
int hca_dma_init(struct hca_dev *dev, enum hca_dma_mode mode)
{
	struct platform_device *pdev;
	struct hca_dma *dma;
	int err;

	if (mode == HCA_DMA_VIRT)
		return 0;
	dma = kzalloc(sizeof(*dma), GFP_KERNEL);
	if (!dma)
		return -ENOMEM;
	pdev = platform_device_register_simple("rs_hca", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(pdev)) {
		kfree(dma);
		return PTR_ERR(pdev);
	}
	spin_lock_init(&dma->lock);
	dma->maps = RB_ROOT;
	dma->next = FIRST_ADDR;
	dma->bounce = mode == HCA_DMA_BOUNCE;
	dma->pdev = pdev;
	dma->dev = dev;
	platform_set_drvdata(pdev, dma);
	set_dma_ops(&pdev->dev, &hca_dma_ops);
	/* after the operations: it determines whether they are called to sync */
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dev->dma = dma;
	if (err)
		hca_dma_exit(dev);
	return err;
}

#else

int hca_dma_init(struct hca_dev *dev, enum hca_dma_mode mode)
{
	return mode == HCA_DMA_VIRT ? 0 : -EOPNOTSUPP;
}

#endif

/* The device is gone: remaining mappings were leaked. */
void hca_dma_exit(struct hca_dev *dev)
{
	struct hca_dma *dma = dev->dma;
	struct rb_node *node;

	if (!dma)
		return;
	while ((node = rb_first(&dma->maps))) {
		struct hca_map *map = rb_entry(node, struct hca_map, node);

		hca_report(dev, NULL, &map->made, "%zu bytes at %#llx were never unmapped",
			   map->len, map->addr);
		rb_erase(node, &dma->maps);
		map_put(map);
	}
	platform_device_unregister(dma->pdev);
	kfree(dma);
	dev->dma = NULL;
}

struct device *hca_dma_device(struct hca_dev *dev)
{
	return dev->dma ? &dev->dma->pdev->dev : NULL;
}
