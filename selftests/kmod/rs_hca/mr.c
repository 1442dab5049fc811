// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered memory, and copying between memory regions.
 *
 * Owns the keys of a device.  Called by the requester (local memory, registrations), and by the
 * responder (remote keys).  It does not know queue pairs.
 *
 * End of a registration: hca_mr_dereg() removes it from dev->mrs, drops that reference, and waits
 * for those of accesses in progress.
 */
#include <linux/slab.h>

#include "rs_hca.h"

#define KEY_INDEX(key)	((key) >> 8)

/* ---- keys ---- */

static struct hca_mr *mr_new(struct ib_pd *pd, u32 max)
{
	struct hca_dev *dev = to_hca(pd->device);
	struct hca_mr *mr;
	int err;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->dev = dev;
	mr->max_pages = max;
	refcount_set(&mr->ref, 1);
	init_completion(&mr->gone);
	mr->pages = kvcalloc(max ?: 1, sizeof(*mr->pages), GFP_KERNEL);
	err = mr->pages ? 0 : -ENOMEM;
	if (!err)
		err = xa_alloc(&dev->mrs, &mr->index, mr,
			       XA_LIMIT(1, KEY_INDEX(HCA_LKEY) - 1), GFP_KERNEL);
	if (err) {
		kvfree(mr->pages);
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ib.device = pd->device;
	mr->ib.pd = pd;
	mr->ib.lkey = mr->index << 8;
	mr->ib.rkey = mr->ib.lkey;
	return mr;
}

/* Access to all addresses of the device. */
struct ib_mr *hca_mr_get_dma(struct ib_pd *pd, int access)
{
	struct hca_mr *mr = mr_new(pd, 0);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->all = true;
	mr->access = access;
	mr->state = HCA_MR_VALID;
	return &mr->ib;
}

struct ib_mr *hca_mr_alloc(struct ib_pd *pd, enum ib_mr_type type, u32 max)
{
	struct hca_dev *dev = to_hca(pd->device);
	struct hca_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG || max > dev->profile->max_reg_pages)
		return ERR_PTR(-EINVAL);
	if (hca_fault(dev, HCA_FAULT_ALLOC_MR))
		return ERR_PTR(-ENOMEM);
	hca_fault_slow(dev, HCA_SLOW_MR);
	mr = mr_new(pd, max);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ib;
}

static struct hca_mr *mr_get(struct hca_dev *dev, u32 key)
{
	struct hca_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, KEY_INDEX(key));
	if (mr && (mr->ib.rkey != key || !refcount_inc_not_zero(&mr->ref)))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

static void mr_put(struct hca_mr *mr)
{
	if (refcount_dec_and_test(&mr->ref))
		complete(&mr->gone);
}

int hca_mr_dereg(struct ib_mr *ib, struct ib_udata *udata)
{
	struct hca_mr *mr = to_mr(ib);

	xa_erase(&mr->dev->mrs, mr->index);
	mr_put(mr);
	wait_for_completion(&mr->gone);
	hca_past_add(mr->dev, HCA_PAST_MR, mr->ib.rkey & ~0xffU, 256, &mr->made);
	kvfree(mr->pages);
	kfree_rcu(mr, rcu);
	return 0;
}

/* ---- fast registration ---- */

static int set_page(struct ib_mr *ib, u64 addr)
{
	struct hca_mr *mr = to_mr(ib);

	if (mr->n_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->n_pages++] = addr;
	return 0;
}

int hca_mr_map_sg(struct ib_mr *ib, struct scatterlist *sg, int n,
		  unsigned int *off)
{
	to_mr(ib)->n_pages = 0;
	return ib_sg_to_pages(ib, sg, n, off, set_page);
}

/*
 * The page size that the device uses: the one that the driver writes into the request, if the
 * device supports it, otherwise the next smaller one.
 */
static unsigned int taken_shift(struct hca_mr *mr, const struct hca_wqe *wqe)
{
	u64 cap = mr->dev->profile->page_size_cap, size = mr->ib.page_size;

	if (cap & size)
		return ilog2(size);
	hca_report(mr->dev, wqe, NULL,
		   "registration with pages of %llu bytes: the device has %#llx",
		   size, cap);
	cap &= size - 1;
	return cap ? ilog2(cap) : PAGE_SHIFT;
}

/**
 * hca_mr_register() - IB_WR_REG_MR takes place
 * @wqe:	the request
 */
enum ib_wc_status hca_mr_register(const struct hca_wqe *wqe)
{
	struct hca_mr *mr = to_mr(wqe->mr);

	if (hca_fault(mr->dev, HCA_FAULT_REG_MR) || mr->state == HCA_MR_VALID)
		return IB_WC_MW_BIND_ERR;
	mr->shift = taken_shift(mr, wqe);
	mr->iova = mr->ib.iova;
	mr->length = mr->ib.length;
	mr->access = wqe->access;
	mr->ib.rkey = wqe->rkey;
	mr->ib.lkey = wqe->rkey;
	mr->made = wqe->by;
	/* pairs with mr_good(): all fields or none */
	smp_store_release(&mr->state, HCA_MR_VALID);
	return IB_WC_SUCCESS;
}

/**
 * hca_mr_invalidate() - IB_WR_LOCAL_INV takes place
 * @dev:	the device
 * @key:	what ends to be valid
 */
enum ib_wc_status hca_mr_invalidate(struct hca_dev *dev, u32 key)
{
	struct hca_mr *mr = mr_get(dev, key);

	if (!mr)
		return IB_WC_LOC_PROT_ERR;
	WRITE_ONCE(mr->state, HCA_MR_FREE);
	mr_put(mr);
	return IB_WC_SUCCESS;
}

/* Does this key allow access to @len bytes at @addr? */
static bool mr_good(const struct hca_mr *mr, const struct hca_mem *mem,
		    u64 addr, u64 len)
{
	/* pairs with hca_mr_register() */
	if (smp_load_acquire(&mr->state) != HCA_MR_VALID)
		return false;
	if (mr->ib.pd != mem->pd)
		return false;
	if (mem->access & ~mr->access)
		return false;
	return mr->all || (addr >= mr->iova && len <= mr->length &&
			   addr - mr->iova <= mr->length - len);
}

/* The location of the byte at @addr, and the number of contiguous bytes; 0: none. */
static u64 mr_addr(const struct hca_mr *mr, u64 addr, u64 *dma)
{
	u64 size = 1ULL << mr->shift, off;

	if (mr->all) {
		*dma = addr;
		return U32_MAX;
	}
	off = addr - mr->iova + (mr->iova & (size - 1));
	if (off >> mr->shift >= mr->n_pages)
		return 0;
	*dma = mr->pages[off >> mr->shift] + (off & (size - 1));
	return size - (off & (size - 1));
}

/* ---- memory of requests ---- */

/*
 * Report a wrong remote key here: in a test, nothing else would show which request used it.
 */
static void bad_key(const struct hca_mem *mem, const struct ib_sge *sge)
{
	const char *what = mem->access & IB_ACCESS_REMOTE_WRITE ? "peer writes" :
			   mem->access ? "device writes" : "device reads";
	struct hca_mr *mr = mr_get(mem->dev, sge->lkey);

	if (mr) {
		hca_report(mem->dev, mem->wqe, &mr->made,
			   "%s %u bytes at %#llx by key %#x, which is of %llu bytes at %#llx, access %#x, state %d",
			   what, sge->length, sge->addr, sge->lkey, mr->length,
			   mr->iova, mr->access, mr->state);
		mr_put(mr);
		return;
	}
	hca_report_past(mem->dev, mem->wqe, HCA_PAST_MR, sge->lkey,
			"%s %u bytes at %#llx by key %#x, which does not exist",
			what, sge->length, sge->addr, sge->lkey);
}

/* Does the request have its bytes itself? */
static bool mem_own(const struct hca_mem *mem)
{
	return !mem->access && mem->wqe && mem->sge == mem->wqe->sge &&
	       mem->wqe->flags & IB_SEND_INLINE;
}

/**
 * hca_mem_good() - do the keys allow it?
 * @mem:	memory that a request names
 * @len:	all of these bytes
 */
bool hca_mem_good(const struct hca_mem *mem, u64 len)
{
	unsigned int i;

	if (mem_own(mem))
		return len <= mem->wqe->len;

	for (i = 0; i < mem->n && len; i++) {
		const struct ib_sge *sge = &mem->sge[i];
		struct hca_mr *mr;
		bool good;

		len -= min_t(u64, len, sge->length);
		if (!sge->length || sge->lkey == HCA_LKEY)
			continue;
		mr = mr_get(mem->dev, sge->lkey);
		good = mr && mr_good(mr, mem, sge->addr, sge->length);
		if (mr)
			mr_put(mr);
		if (!good) {
			bad_key(mem, sge);
			return false;
		}
	}
	return !len;
}

/* The location of @off in @mem, and how many of @len bytes are contiguous. */
static int piece_get(const struct hca_mem *mem, u32 off, u32 len,
		     struct hca_piece *piece)
{
	const struct ib_sge *sge = mem->sge;
	struct hca_mr *mr = NULL;
	u64 dma, room;
	int err;

	if (mem_own(mem)) {
		*piece = (struct hca_piece) { .va = (void *)mem->wqe->own + off, .len = len };
		return 0;
	}
	while (off >= sge->length)
		off -= (sge++)->length;
	len = min(len, sge->length - off);
	dma = sge->addr + off;
	if (sge->lkey != HCA_LKEY) {
		mr = mr_get(mem->dev, sge->lkey);
		if (!mr || !mr_good(mr, mem, sge->addr, sge->length)) {
			err = -EFAULT;
			goto out;
		}
		room = mr_addr(mr, dma, &dma);
		len = min_t(u64, len, room);
	}
	err = len ? hca_dma_get(mem->dev, dma, len, mem->access, mem->wqe, piece) : -EFAULT;
out:
	if (mr)
		mr_put(mr);
	return err;
}

/**
 * hca_mem_copy() - bytes from one memory to another
 * @to:		hca_mem_good()
 * @from:	hca_mem_good()
 * @off:	of both, where it begins
 * @len:	how many
 *
 * Return: 0; -EFAULT: it may not write there; -EIO: it may not read there.
 */
int hca_mem_copy(const struct hca_mem *to, const struct hca_mem *from,
		 u32 off, u32 len)
{
	struct hca_piece src = {}, dst = {};
	u32 n;

	for (; len; len -= n, off += n) {
		if (piece_get(from, off, len, &src))
			return -EIO;
		if (piece_get(to, off, src.len, &dst)) {
			hca_dma_put(&src);
			return -EFAULT;
		}
		n = min(src.len, dst.len);
		memcpy(dst.va, src.va, n);
		hca_dma_put(&src);
		hca_dma_put(&dst);
	}
	return 0;
}

/**
 * hca_mem_io() - bytes from or to memory of the device itself
 * @mem:	hca_mem_good()
 * @off:	where it begins
 * @own:	memory of the device
 * @len:	how many
 */
int hca_mem_io(const struct hca_mem *mem, u32 off, void *own, u32 len)
{
	struct hca_piece piece = {};
	u32 n;

	for (; len; len -= n, off += n, own += n) {
		if (piece_get(mem, off, len, &piece))
			return -EFAULT;
		n = piece.len;
		if (mem->access)
			memcpy(piece.va, own, n);
		else
			memcpy(own, piece.va, n);
		hca_dma_put(&piece);
	}
	return 0;
}
