// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered memory of a link.
 *
 * Owns the RMBs (pages that are mapped contiguously for the CPU, and registered as one region) and
 * the bitmaps that divide them.  Called by link_life.c (add, in a worker), rxring.c and txring.c
 * (get, put).  It never takes memory back by itself: its callers know when the peer has stopped
 * writing.
 *
 * Memory is zeroed when allocated.  It belongs to one link, and so to one peer, until it is
 * freed: data that one peer has written can never leak to another.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "rmb.h"
#include "wr.h"

#define RMB_FIRST	SZ_64K	/* room for the first rings of two streams */
#define CELLS_BEYOND	SZ_8M	/* cells may exceed the limit by this */
#define CHUNK_SIZE	SZ_64K	/* smaller chunks are used if there are none of this size */

/*
 * For each kind of RMB: unit of allocation, minimum size, maximum size of a link's first RMB, and
 * direction of DMA.
 */
static const struct {
	u32 unit;
	u32 least;
	u32 first;
	enum dma_data_direction dir;
} rmb_kinds[RSTREAM_RMB_KINDS] = {
	[RSTREAM_RMB_RINGS] = {
		.unit = RSTREAM_RING_MIN,
		.least = RSTREAM_RING_MIN,
		.first = RMB_FIRST,
		.dir = DMA_FROM_DEVICE,
	},
	[RSTREAM_RMB_CELLS] = {
		.unit = RSTREAM_CELL_SIZE,
		.least = PAGE_SIZE,
		.first = PAGE_SIZE,
		.dir = DMA_BIDIRECTIONAL,
	},
};

/* DMA address of a page of an RMB. */
struct dma_page {
	u64 addr;
	u32 run;		/* contiguous bytes from here on */
};

/*
 * One registered region.
 * @list:	link->rmb.lists[], link->lock
 * @pages:	@n_pages of them
 * @dma:	their DMA addresses
 * @mapped:	@sgt is mapped for the device
 * @usable:	registration has completed, link->lock
 * @over:	unused, and to be freed, link->lock
 * @map:	a bit for each unit in use, link->lock
 * @used:	number of units in @map, link->lock
 */
struct rstream_rmb {
	struct list_head list;
	u64 serial;
	struct rstream_link *link;
	enum rstream_rmb_kind kind;
	size_t size;
	unsigned int n_pages;
	struct page **pages;
	struct dma_page *dma;
	struct sg_table sgt;
	struct ib_device *ib;
	struct ib_mr *mr;
	void *mem;
	bool mapped;
	bool usable, over;
	unsigned long *map;
	unsigned int units, used;
	unsigned int unused;	/* consecutive sweeps that found it unused */
};

/* Sweeps after which an unused RMB is freed. */
#define TRIM_SWEEPS	8
/* How long a shortage of memory counts. */
#define PRESSURE_TIME	(2 * HZ)

static atomic_long_t all_bytes;		/* RMBs of all namespaces */
static atomic64_t last_serial;
static unsigned long short_at;		/* jiffies, the host was short of memory */

static void rmb_unregister(struct rstream_rmb *rmb)
{
	bool mapped;

	if (rmb->mr)
		ib_dereg_mr(rmb->mr);
	rmb->mr = NULL;
	/* rmb_sync() must not use the mapping any more */
	spin_lock_bh(&rmb->link->lock);
	mapped = rmb->mapped;
	rmb->mapped = false;
	spin_unlock_bh(&rmb->link->lock);
	if (mapped)
		ib_dma_unmap_sg(rmb->ib, rmb->sgt.sgl, rmb->sgt.orig_nents,
				rmb_kinds[rmb->kind].dir);
}

static void rmb_uncharge(struct rstream_link *link, enum rstream_rmb_kind kind,
			 size_t size)
{
	atomic_long_sub(size, &link->rmb.bytes[kind]);
	atomic_long_sub(size, &link->peer->host->rmb_bytes);
	atomic_long_sub(size, &link->ln->rmb_bytes);
	atomic_long_sub(size, &all_bytes);
}

static void rmb_free(struct rstream_rmb *rmb)
{
	unsigned int i;

	rmb_unregister(rmb);
	if (rmb->mem)
		vunmap(rmb->mem);
	for (i = 0; rmb->pages && i < rmb->n_pages && rmb->pages[i]; i++)
		put_page(rmb->pages[i]);
	rmb_uncharge(rmb->link, rmb->kind, rmb->size);
	sg_free_table(&rmb->sgt);
	kvfree(rmb->dma);
	kvfree(rmb->pages);
	bitmap_free(rmb->map);
	kfree(rmb);
}

/* Is it the first RMB of the link, and not larger than necessary? */
static bool is_first(const struct rstream_link *link, enum rstream_rmb_kind kind, size_t size)
{
	return !atomic_long_read(&link->rmb.bytes[kind]) && size <= rmb_kinds[kind].first;
}

/*
 * Return: limit on the RMBs of the namespace, including a new one of @size for @link, bytes.  Three
 * eighths of rmb_max are reserved for links that have no RMB, so that these get their first rings
 * whatever the other links have taken.  Cells may exceed the limit a little, because without them
 * a link cannot even send.
 */
static unsigned long rmb_ceiling(const struct rstream_link *link,
				 enum rstream_rmb_kind kind, size_t size)
{
	unsigned long max = rstream_account_rmb_max(link->ln);

	if (kind == RSTREAM_RMB_CELLS)
		return max + CELLS_BEYOND;
	return is_first(link, kind, size) ? max : max - max / 8 * 3;
}

/*
 * Return: limit on the RMBs of one address, bytes: three quarters of what other addresses leave,
 * which have @others bytes.  So something is always left for the next address.
 */
static unsigned long host_ceiling(const struct rstream_link *link, enum rstream_rmb_kind kind,
				  size_t size, unsigned long others)
{
	unsigned long max = rstream_account_rmb_max(link->ln);
	unsigned long all = rmb_ceiling(link, kind, size);

	if (is_first(link, kind, size))
		return ULONG_MAX;
	return max(max / 16, others < all ? (all - others) / 4 * 3 : 0);
}

/* Notes that memory is short: in the namespace (@ours), or only for links to this address. */
static void rmb_short(const struct rstream_link *link, bool ours)
{
	unsigned long *at = ours ? &link->ln->rmb_short_at : &link->peer->host->rmb_short_at;

	WRITE_ONCE(*at, jiffies | 1);
}

static bool rmb_charge(struct rstream_link *link, enum rstream_rmb_kind kind,
		       size_t size)
{
	struct rstream_link_net *ln = link->ln;
	unsigned long ceiling = rmb_ceiling(link, kind, size), all, own, own_ceiling;

	atomic_long_add(size, &all_bytes);
	own = atomic_long_add_return(size, &link->peer->host->rmb_bytes);
	all = atomic_long_add_return(size, &ln->rmb_bytes);
	own_ceiling = host_ceiling(link, kind, size, all - min(own, all));
	atomic_long_add(size, &link->rmb.bytes[kind]);
	if (all <= ceiling && own <= own_ceiling)
		return true;
	rmb_uncharge(link, kind, size);
	rmb_short(link, all > ceiling);
	return false;
}

/* Return: bytes left for an RMB of @size below the limit of the namespace. */
static unsigned long net_left(const struct rstream_link *link, enum rstream_rmb_kind kind,
			      size_t size)
{
	unsigned long ceiling = rmb_ceiling(link, kind, size);
	unsigned long bytes = atomic_long_read(&link->ln->rmb_bytes);

	return ceiling - min(bytes, ceiling);
}

/* Return: likewise, but also below the limit of the address. */
static unsigned long rmb_left(const struct rstream_link *link, enum rstream_rmb_kind kind,
			      size_t size)
{
	unsigned long bytes = atomic_long_read(&link->ln->rmb_bytes);
	unsigned long own = atomic_long_read(&link->peer->host->rmb_bytes);
	unsigned long ceiling = host_ceiling(link, kind, size, bytes - min(own, bytes));

	return min(net_left(link, kind, size), ceiling - min(own, ceiling));
}

bool rstream_rmb_fits(const struct rstream_link *link, u32 size)
{
	return size <= rmb_left(link, RSTREAM_RMB_RINGS, size);
}

/* If the limits do not allow it, notes that memory is short, so that idle rings are taken back. */
bool rstream_rmb_may_add(const struct rstream_link *link, u32 size)
{
	if (rstream_rmb_fits(link, size))
		return true;
	rmb_short(link, size > net_left(link, RSTREAM_RMB_RINGS, size));
	return false;
}

static bool is_recent(unsigned long at)
{
	return at && time_before(jiffies, at + PRESSURE_TIME);
}

bool rstream_rmb_pressure(const struct rstream_link *link)
{
	return rstream_rmb_short(link->ln) ||
	       is_recent(READ_ONCE(link->peer->host->rmb_short_at));
}

bool rstream_rmb_short(const struct rstream_link_net *ln)
{
	return is_recent(READ_ONCE(ln->rmb_short_at)) ||
	       is_recent(READ_ONCE(short_at));
}

/* Allocates large chunks if possible, because few segments are better for the device. */
static int rmb_alloc_pages(struct rstream_rmb *rmb, gfp_t gfp)
{
	unsigned int order = get_order(CHUNK_SIZE), i, n = 0;
	struct page *page;

	while (n < rmb->n_pages) {
		while (1U << order > rmb->n_pages - n)
			order--;
		page = alloc_pages(gfp | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY, order);
		if (!page && !order)
			return -ENOMEM;
		if (!page) {
			order--;
			continue;
		}
		split_page(page, order);
		for (i = 0; i < 1U << order; i++)
			rmb->pages[n++] = page + i;
	}
	rmb->mem = vmap(rmb->pages, rmb->n_pages, VM_MAP, PAGE_KERNEL);
	if (!rmb->mem)
		return -ENOMEM;
	/* no segment may be larger than a swiotlb buffer */
	return sg_alloc_table_from_pages_segment(&rmb->sgt, rmb->pages,
						 rmb->n_pages, 0, rmb->size,
						 max_t(u32, CHUNK_SIZE, PAGE_SIZE), gfp);
}

/* Stores the DMA address of each page.  Mapping may merge segments, but never splits one. */
static void rmb_note_dma(struct rstream_rmb *rmb)
{
	struct scatterlist *sg, *to = rmb->sgt.sgl;
	unsigned int i, n = 0;
	u32 off, done = 0;

	for_each_sgtable_sg(&rmb->sgt, sg, i) {
		if (done == sg_dma_len(to)) {
			to = sg_next(to);
			done = 0;
		}
		for (off = 0; off < sg->length; off += PAGE_SIZE) {
			rmb->dma[n].addr = sg_dma_address(to) + done + off;
			rmb->dma[n++].run = sg->length - off;
		}
		done += sg->length;
	}
}

/*
 * Return: the largest page size with which the device can register this region, or 0: all DMA
 * segments must start and end at multiples of it.
 */
static u32 mr_page_size(const struct rstream_rmb *rmb)
{
	u64 bits = rmb->size, cap = rmb->ib->attrs.page_size_cap;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&rmb->sgt, sg, i)
		bits |= sg_dma_address(sg) | sg_dma_len(sg);
	bits &= -bits;
	cap &= bits | (bits - 1);
	return cap ? 1U << (fls64(cap) - 1) : 0;
}

static int rmb_map(struct rstream_rmb *rmb)
{
	u32 page_size, n;

	rmb->sgt.nents = ib_dma_map_sg(rmb->ib, rmb->sgt.sgl, rmb->sgt.orig_nents,
				       rmb_kinds[rmb->kind].dir);
	if (!rmb->sgt.nents)
		return -EIO;
	rmb->mapped = true;
	rmb_note_dma(rmb);
	page_size = mr_page_size(rmb);
	if (!page_size)
		return -EINVAL;
	n = rmb->size / page_size;
	if (n > rmb->ib->attrs.max_fast_reg_page_list_len)
		return -E2BIG;
	rmb->mr = ib_alloc_mr(rmb->link->qp.pd, IB_MR_TYPE_MEM_REG, n);
	if (IS_ERR(rmb->mr)) {
		int err = PTR_ERR(rmb->mr);

		rmb->mr = NULL;
		return err;
	}
	if (ib_map_mr_sg(rmb->mr, rmb->sgt.sgl, rmb->sgt.nents, NULL,
			 page_size) != rmb->sgt.nents)
		return -EIO;
	return 0;
}

/* Allocates the memory of @rmb.  After -ENOMEM, rmb_free() frees what was allocated. */
static int rmb_fill(struct rstream_rmb *rmb)
{
	struct rstream_account account;
	int err = -ENOMEM;

	if (!rstream_account_on(&account, rmb->link->ln, GFP_KERNEL))
		return err;
	if (!rstream_account_leaves(&account, rmb->size))
		goto out;
	rmb->map = bitmap_zalloc(rmb->units, account.gfp);
	rmb->pages = kvcalloc(rmb->n_pages, sizeof(*rmb->pages), account.gfp);
	rmb->dma = kvcalloc(rmb->n_pages, sizeof(*rmb->dma), account.gfp);
	if (rmb->map && rmb->pages && rmb->dma)
		err = rmb_alloc_pages(rmb, account.gfp);
	/* others may have allocated meanwhile */
	if (!err && !rstream_account_leaves(&account, 0))
		err = -ENOMEM;
out:
	rstream_account_off(&account);
	return err;
}

static struct rstream_rmb *rmb_new(struct rstream_link *link,
				   enum rstream_rmb_kind kind, size_t size)
{
	struct ib_device *ib = link->dev->ib;
	struct rstream_rmb *rmb;

	rmb = rstream_account_zalloc(link->ln, sizeof(*rmb), GFP_KERNEL);
	if (!rmb)
		return ERR_PTR(-ENOMEM);
	if (!rmb_charge(link, kind, size)) {
		kfree(rmb);
		return ERR_PTR(-ENOBUFS);
	}
	rmb->serial = atomic64_inc_return(&last_serial);
	rmb->link = link;
	rmb->kind = kind;
	rmb->ib = ib;
	rmb->size = size;
	rmb->n_pages = size >> PAGE_SHIFT;
	rmb->units = size / rmb_kinds[kind].unit;
	if (!rmb_fill(rmb) && !rmb_map(rmb))
		return rmb;
	rmb_free(rmb);
	return ERR_PTR(-ENOMEM);
}

/* Waits until there is a slot for a registration, or the link has ended, and takes link->lock. */
static void lock_with_slot(struct rstream_link *link)
	__acquires(&link->lock)
{
	for (;;) {
		wait_event(link->rmb.wait, !rstream_link_alive(link) ||
			   READ_ONCE(link->wr.posted) - READ_ONCE(link->wr.done) <
			   link->qp.depth - RSTREAM_SQ_CTRL);
		spin_lock_bh(&link->lock);
		if (!rstream_link_alive(link) || rstream_wr_room(link))
			return;
		spin_unlock_bh(&link->lock);
	}
}

/*
 * Posts the registration, and waits until it has completed or the link has ended.  From then on,
 * the RMB is on the link's list, so rstream_qp_destroy() unregisters it in any case.
 */
static int rmb_register(struct rstream_link *link, struct rstream_rmb *rmb)
{
	int err;
	u64 seq;

	lock_with_slot(link);
	if (!rstream_link_alive(link)) {
		spin_unlock_bh(&link->lock);
		rmb_free(rmb);
		return -ENOTCONN;
	}
	list_add_tail(&rmb->list, &link->rmb.lists[rmb->kind]);
	rstream_wr_reg(link, rmb->mr);
	err = rstream_wr_post(link);
	seq = link->wr.posted;
	spin_unlock_bh(&link->lock);
	if (err)
		return err;
	wait_event(link->rmb.wait, READ_ONCE(link->wr.done) >= seq ||
		   !rstream_link_alive(link));
	spin_lock_bh(&link->lock);
	if (link->wr.done >= seq && rstream_link_alive(link))
		rmb->usable = true;
	else
		err = -ENOTCONN;
	spin_unlock_bh(&link->lock);
	return err;
}

/*
 * Return: the desired size of a new RMB.  A link starts with little memory and then doubles it, or
 * gets room for several rings of the wanted size, because more are likely to follow.  The less
 * memory is left, the smaller the RMB.
 */
static size_t rmb_wish(const struct rstream_link *link, enum rstream_rmb_kind kind,
		       size_t least)
{
	size_t has = atomic_long_read(&link->rmb.bytes[kind]);
	size_t left = rmb_left(link, kind, has ? least : RMB_FIRST);

	if (kind == RSTREAM_RMB_CELLS)
		return max_t(size_t, has, PAGE_SIZE);
	if (!has)
		return min_t(size_t, RMB_FIRST, left / 512);
	return min(max(has, least * 16), left / 4);
}

/*
 * Tries the desired size, then halves it, down to @least, a power of two.
 * Return: -ENOBUFS if not even the minimum fits below the limit.
 */
int rstream_rmb_add(struct rstream_link *link, enum rstream_rmb_kind kind,
		    size_t least)
{
	struct rstream_rmb *rmb = ERR_PTR(-ENOMEM);
	size_t want, size;

	least = max_t(size_t, least, rmb_kinds[kind].least);
	want = rmb_wish(link, kind, least);
	want = clamp_t(size_t, want, least, RSTREAM_RING_MAX);
	want = rounddown_pow_of_two(want);
	for (size = want; size >= least; size /= 2) {
		rmb = rmb_new(link, kind, size);
		if (!IS_ERR(rmb))
			return rmb_register(link, rmb);
	}
	return PTR_ERR(rmb);
}

/* Looks for @n free units, first fit, aligned to @n.  Return: NULL if there is no free space. */
static struct rstream_rmb *rmb_find(const struct rstream_link *link,
				    enum rstream_rmb_kind kind, unsigned int n,
				    unsigned long *at)
{
	struct rstream_rmb *rmb;

	lockdep_assert_held(&link->lock);
	list_for_each_entry(rmb, &link->rmb.lists[kind], list) {
		if (!rmb->usable || rmb->units - rmb->used < n)
			continue;
		*at = bitmap_find_next_zero_area(rmb->map, rmb->units, 0, n,
						 n - 1);
		if (*at < rmb->units)
			return rmb;
	}
	return NULL;
}

bool rstream_rmb_has(const struct rstream_link *link,
		     enum rstream_rmb_kind kind, u32 size)
{
	unsigned long at;

	return rmb_find(link, kind, size / rmb_kinds[kind].unit, &at);
}

/* Return: 0, or -EAGAIN if there is no free space. */
int rstream_rmb_get(struct rstream_link *link, enum rstream_rmb_kind kind,
		    u32 size, struct rstream_rmb_block *block)
{
	unsigned int n = size / rmb_kinds[kind].unit;
	struct rstream_rmb *rmb;
	unsigned long at;

	rmb = rmb_find(link, kind, n, &at);
	if (!rmb)
		return -EAGAIN;
	bitmap_set(rmb->map, at, n);
	rmb->used += n;
	block->rmb = rmb;
	block->off = at * rmb_kinds[kind].unit;
	block->size = size;
	return 0;
}

void rstream_rmb_put(const struct rstream_rmb_block *block)
{
	struct rstream_rmb *rmb = block->rmb;
	u32 unit = rmb_kinds[rmb->kind].unit;
	unsigned int i = block->off / unit, n = block->size / unit;

	lockdep_assert_held(&rmb->link->lock);
	bitmap_clear(rmb->map, i, n);
	rmb->used -= n;
}

u64 rstream_rmb_addr(const struct rstream_rmb_block *block)
{
	return block->rmb->mr->iova + block->off;
}

u32 rstream_rmb_rkey(const struct rstream_rmb_block *block)
{
	return block->rmb->mr->rkey;
}

void *rstream_rmb_mem(const struct rstream_rmb_block *block)
{
	return block->rmb->mem + block->off;
}

struct page *rstream_rmb_page(const struct rstream_rmb_block *block, u32 off)
{
	return block->rmb->pages[(block->off + off) >> PAGE_SHIFT];
}

static void rmb_sync(const struct rstream_rmb_block *block, u32 off, u32 len,
		     void (*sync)(struct ib_device *ib, u64 addr, size_t size,
				  enum dma_data_direction dir))
{
	struct rstream_rmb *rmb = block->rmb;
	const struct dma_page *dma;
	u32 in_page, n;

	lockdep_assert_held(&rmb->link->lock);
	if (!rmb->mapped || ib_uses_virt_dma(rmb->ib))
		return;
	for (off += block->off; len; off += n, len -= n) {
		dma = &rmb->dma[off >> PAGE_SHIFT];
		in_page = off & ~PAGE_MASK;
		n = min(len, dma->run - in_page);
		sync(rmb->ib, dma->addr + in_page, n, rmb_kinds[rmb->kind].dir);
	}
}

/* Makes the device's writes visible to the CPU. */
void rstream_rmb_sync_for_cpu(const struct rstream_rmb_block *block, u32 off, u32 len)
{
	rmb_sync(block, off, len, ib_dma_sync_single_for_cpu);
}

/*
 * Makes the CPU's writes visible to the device.  Without this, a later sync for the CPU would bring
 * back the old data from a bounce buffer.
 */
void rstream_rmb_sync_for_device(const struct rstream_rmb_block *block, u32 off, u32 len)
{
	rmb_sync(block, off, len, ib_dma_sync_single_for_device);
}

void rstream_rmb_usage(const struct rstream_link *link, u64 *bytes, u64 *used)
{
	struct rstream_rmb *rmb;

	lockdep_assert_held(&link->lock);
	*bytes = 0;
	*used = 0;
	list_for_each_entry(rmb, &link->rmb.lists[RSTREAM_RMB_RINGS], list) {
		*bytes += rmb->size;
		*used += (u64)rmb->used * RSTREAM_RING_MIN;
	}
}

static bool rmbs_sweep(struct rstream_link *link, enum rstream_rmb_kind kind, bool hurry)
{
	struct rstream_rmb *rmb;
	bool over = false;

	list_for_each_entry(rmb, &link->rmb.lists[kind], list) {
		if ((!rmb->usable && !link->rmb.down) || rmb->used) {
			rmb->unused = 0;
		} else if (++rmb->unused > TRIM_SWEEPS || hurry) {
			/* keep one page of cells: grants may arrive at any time */
			if (kind == RSTREAM_RMB_CELLS && !link->rmb.down &&
			    list_is_first(&rmb->list, &link->rmb.lists[kind]))
				continue;
			rmb->usable = false;
			rmb->over = true;
		}
		over |= rmb->over;
	}
	return over;
}

bool rstream_rmb_sweep(struct rstream_link *link)
{
	bool hurry = link->rmb.down || rstream_rmb_pressure(link);
	bool over;

	lockdep_assert_held(&link->lock);
	over = rmbs_sweep(link, RSTREAM_RMB_RINGS, hurry);
	return rmbs_sweep(link, RSTREAM_RMB_CELLS, hurry) || over;
}

void rstream_rmb_trim(struct rstream_link *link)
{
	struct rstream_rmb *rmb, *next;
	LIST_HEAD(over);
	int kind;

	spin_lock_bh(&link->lock);
	if (link->rmb.down)
		rstream_rmb_sweep(link);
	for (kind = 0; kind < RSTREAM_RMB_KINDS; kind++)
		list_for_each_entry_safe(rmb, next, &link->rmb.lists[kind], list)
			if (rmb->over)
				list_move(&rmb->list, &over);
	spin_unlock_bh(&link->lock);
	list_for_each_entry_safe(rmb, next, &over, list) {
		list_del(&rmb->list);
		rmb_free(rmb);
	}
}

/* ---- memory pressure ---- */

static struct shrinker *shrinker;

static unsigned long shrink_count(struct shrinker *s, struct shrink_control *sc)
{
	return atomic_long_read(&all_bytes) >> PAGE_SHIFT ?: SHRINK_EMPTY;
}

/* Frees nothing now: idle rings are taken back with the consent of their senders. */
static unsigned long shrink_scan(struct shrinker *s, struct shrink_control *sc)
{
	WRITE_ONCE(short_at, jiffies | 1);
	return SHRINK_STOP;
}

int rstream_rmb_init(void)
{
	shrinker = shrinker_alloc(0, "rdmastream");
	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = shrink_count;
	shrinker->scan_objects = shrink_scan;
	shrinker_register(shrinker);
	return 0;
}

void rstream_rmb_exit(void)
{
	shrinker_free(shrinker);
}

/* ---- the end of a link ---- */

/* The QP is gone and the lists do not change any more, so no lock is needed. */
void rstream_rmb_unregister(struct rstream_link *link)
{
	struct rstream_rmb *rmb;
	int kind;

	for (kind = 0; kind < RSTREAM_RMB_KINDS; kind++)
		list_for_each_entry(rmb, &link->rmb.lists[kind], list)
			rmb_unregister(rmb);
}

void rstream_rmb_free_all(struct rstream_link *link)
{
	struct rstream_rmb *rmb, *next;
	int kind;

	for (kind = 0; kind < RSTREAM_RMB_KINDS; kind++) {
		list_for_each_entry_safe(rmb, next, &link->rmb.lists[kind], list) {
			list_del(&rmb->list);
			rmb_free(rmb);
		}
	}
}

/* ---- snapshots ---- */

static void rmb_info(const struct rstream_rmb *rmb,
		     struct rstream_rmb_info *info)
{
	*info = (struct rstream_rmb_info){
		.serial = rmb->serial,
		.link = rmb->link->id,
		.kind = rmb->kind == RSTREAM_RMB_RINGS ?
			RSTREAM_INFO_RMB_RINGS : RSTREAM_INFO_RMB_CELLS,
		.bytes = rmb->size,
		.used = (u64)rmb->used * rmb_kinds[rmb->kind].unit,
	};
	strscpy(info->dev, rmb->link->dev_name, sizeof(info->dev));
}

bool rstream_rmb_info(struct rstream_link *link, unsigned int n,
		      struct rstream_rmb_info *info)
{
	struct rstream_rmb *rmb;
	bool found = false;
	int kind;

	spin_lock_bh(&link->lock);
	for (kind = 0; kind < RSTREAM_RMB_KINDS && !found; kind++) {
		list_for_each_entry(rmb, &link->rmb.lists[kind], list) {
			found = !n--;
			if (!found)
				continue;
			rmb_info(rmb, info);
			break;
		}
	}
	spin_unlock_bh(&link->lock);
	return found;
}
