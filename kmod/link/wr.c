// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work requests of a link: prepared, filled with SGEs, posted together.  Callers decide what is
 * sent and when; qp.c handles completions.
 *
 * Called with link->lock held, except for mapping.
 */
#include "wr.h"

/* Return: number of free send slots.  Data must leave RSTREAM_SQ_CTRL of them. */
unsigned int rstream_wr_room(const struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	return link->qp.depth - (unsigned int)(link->wr.posted - link->wr.done) -
	       link->wr.batch->n;
}

static struct ib_send_wr *begin(struct rstream_link *link)
{
	struct rstream_batch *b = link->wr.batch;
	u64 seq = link->wr.posted + b->n + 1;
	struct ib_send_wr *wr;
	u32 slot;

	lockdep_assert_held(&link->lock);
	memset(&b->wr[b->n], 0, sizeof(b->wr[b->n]));
	wr = &b->wr[b->n].rdma.wr;
	if (b->n)
		b->wr[b->n - 1].rdma.wr.next = wr;
	b->n++;
	div_u64_rem(seq, link->qp.depth, &slot);
	wr->wr_cqe = &link->qp.sq[slot].cqe;
	link->qp.sq[slot].tx_bytes = link->tx.bytes;
	if (!(slot % RSTREAM_SIGNAL_EVERY))
		rstream_wr_signal(link);
	return wr;
}

/* Marks the current request as signalled. */
void rstream_wr_signal(struct rstream_link *link)
{
	struct rstream_batch *b = link->wr.batch;
	struct ib_send_wr *wr = &b->wr[b->n - 1].rdma.wr;

	b->n_signalled += !(wr->send_flags & IB_SEND_SIGNALED);
	wr->send_flags |= IB_SEND_SIGNALED;
	link->wr.signalled = link->wr.posted + b->n;
	link->wr.unsignalled_bytes = 0;
}

void rstream_wr_write(struct rstream_link *link, u64 raddr, u32 rkey)
{
	struct ib_send_wr *wr = begin(link);
	struct ib_rdma_wr *rdma = container_of(wr, struct ib_rdma_wr, wr);

	wr->opcode = IB_WR_RDMA_WRITE;
	rdma->remote_addr = raddr;
	rdma->rkey = rkey;
}

/* Return: buffer of RSTREAM_CTRL_BYTES that belongs to the slot of the current request. */
static void *slot_memory(const struct rstream_link *link, u64 *dma)
{
	u64 seq = link->wr.posted + link->wr.batch->n;
	u32 slot;

	div_u64_rem(seq, link->qp.depth, &slot);
	*dma = link->qp.ctrl_dma + slot * RSTREAM_CTRL_BYTES;
	return link->qp.ctrl + slot * RSTREAM_CTRL_BYTES;
}

static void slot_sync(struct rstream_link *link, u64 dma)
{
	ib_dma_sync_single_for_device(link->qp.pd->device, dma, RSTREAM_CTRL_BYTES,
				      DMA_BIDIRECTIONAL);
}

void rstream_wr_sge(struct rstream_link *link, u64 addr, u32 len)
{
	struct rstream_batch *b = link->wr.batch;
	struct ib_send_wr *wr = &b->wr[b->n - 1].rdma.wr;
	struct ib_sge *sge = &b->sge[b->n_sge++];

	sge->addr = addr;
	sge->length = len;
	sge->lkey = link->qp.pd->local_dma_lkey;
	/* NULL without SGEs: irdma uses the first SGE of a write even if num_sge is 0 */
	if (!wr->num_sge++)
		wr->sg_list = sge;
	link->wr.unsignalled_bytes += len;
	/* if the message has two requests, signal only the second one */
	if (link->wr.unsignalled_bytes >= RSTREAM_SIGNAL_BYTES && !b->imm)
		rstream_wr_signal(link);
}

void rstream_wr_inline(struct rstream_link *link, const void *mem, u32 len)
{
	struct rstream_batch *b = link->wr.batch;

	b->wr[b->n - 1].rdma.wr.send_flags |= IB_SEND_INLINE;
	rstream_wr_sge(link, (uintptr_t)mem, len);
}

/* Adds @len bytes of the slot's buffer @mem, which has the DMA address @dma. */
static void slot_sge(struct rstream_link *link, void *mem, u64 dma, u32 len)
{
	if (len <= link->qp.max_inline) {
		rstream_wr_inline(link, mem, len);
		return;
	}
	slot_sync(link, dma);
	rstream_wr_sge(link, dma, len);
}

/* iWARP: adds the SEND that reports a write of @len bytes. */
static void notice(struct rstream_link *link, __be32 imm, u32 len)
{
	struct ib_send_wr *wr = begin(link);
	struct rstream_notice *n;
	u64 dma;

	wr->opcode = IB_WR_SEND;
	n = slot_memory(link, &dma);
	rstream_notice_write(n, imm, len);
	slot_sge(link, n, dma, sizeof(*n));
}

void rstream_wr_message(struct rstream_link *link, u64 raddr, u32 rkey,
			enum rstream_imm_type type, u32 id)
{
	__be32 imm = rstream_imm(type, link->wr.number++, id);
	struct rstream_batch *b = link->wr.batch;
	struct ib_send_wr *wr;

	rstream_wr_write(link, raddr, rkey);
	if (link->iwarp) {
		b->imm = imm;
	} else {
		wr = &b->wr[b->n - 1].rdma.wr;
		wr->opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr->ex.imm_data = imm;
	}
}

void rstream_wr_message_end(struct rstream_link *link, u32 len)
{
	struct rstream_batch *b = link->wr.batch;
	struct ib_cqe *cqe = b->wr[b->n - 1].rdma.wr.wr_cqe;
	__be32 imm = b->imm;

	if (link->iwarp) {
		b->imm = 0;
		notice(link, imm, len);
	} else {
		container_of(cqe, struct rstream_slot, cqe)->tx_bytes = link->tx.bytes;
	}
}

void rstream_wr_notice(struct rstream_link *link, enum rstream_imm_type type, u32 id)
{
	if (link->iwarp)
		notice(link, rstream_imm(type, link->wr.number++, id), 0);
	else
		rstream_wr_message(link, 0, 0, type, id);
}

static __be32 retyped(__be32 imm, enum rstream_imm_type type)
{
	return rstream_imm(type, rstream_imm_number(imm), rstream_imm_id(imm));
}

void rstream_wr_retype(struct rstream_link *link, enum rstream_imm_type type)
{
	struct ib_send_wr *wr = &link->wr.batch->wr[link->wr.batch->n - 1].rdma.wr;
	struct rstream_notice *n;
	u64 dma;

	if (!link->iwarp) {
		wr->ex.imm_data = retyped(wr->ex.imm_data, type);
		return;
	}
	n = slot_memory(link, &dma);
	n->imm = retyped(n->imm, type);
	slot_sync(link, dma);
}

void rstream_wr_reg(struct rstream_link *link, struct ib_mr *mr)
{
	struct ib_send_wr *wr = begin(link);
	struct ib_reg_wr *reg = container_of(wr, struct ib_reg_wr, wr);

	wr->opcode = IB_WR_REG_MR;
	reg->mr = mr;
	reg->key = mr->rkey;
	reg->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	rstream_wr_signal(link);
}

/* Adds a credit to the current request, from the buffer of its slot. */
void rstream_wr_credit(struct rstream_link *link, u64 value)
{
	__be64 *src;
	u64 dma;

	src = slot_memory(link, &dma);
	src[0] = cpu_to_be64(value);
	src[1] = cpu_to_be64(~value);
	slot_sge(link, src, dma, RSTREAM_CTRL_BYTES);
}

int rstream_wr_post(struct rstream_link *link)
{
	struct rstream_batch *b = link->wr.batch;
	int err;

	lockdep_assert_held(&link->lock);
	if (!b->n)
		return 0;
	err = ib_post_send(link->qp.ib, &b->wr[0].rdma.wr, NULL);
	/* if this failed, the drain of the QP takes care of the whole chain */
	link->wr.posted += b->n;
	rstream_link_count(link, RSTREAM_MIB_POST_SENDS);
	rstream_mib_add(link->ln->rn, RSTREAM_MIB_WRS, b->n);
	rstream_mib_add(link->ln->rn, RSTREAM_MIB_WRS_SIGNALLED, b->n_signalled);
	b->n = 0;
	b->n_sge = 0;
	b->n_signalled = 0;
	if (err)
		rstream_link_break_locked(link, RSTREAM_END_POST_SEND);
	return err;
}

bool rstream_wr_map(struct rstream_link *link, struct rstream_frag *frag)
{
	struct ib_device *ib = link->qp.pd->device;

	if (!ib_uses_virt_dma(ib))
		lockdep_assert_not_held(&link->lock);
	frag->dma = ib_dma_map_page(ib, frag->page, frag->off, frag->len,
				    DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib, frag->dma))
		return false;
	frag->dma_dev = ib;
	return true;
}

void rstream_wr_unmap(struct rstream_frag *frag)
{
	if (!frag->dma_dev)
		return;
	ib_dma_unmap_page(frag->dma_dev, frag->dma, frag->len, DMA_TO_DEVICE);
	frag->dma_dev = NULL;
}
