// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does one thing wrong with two connected queue pairs: does rs_hca say so?
 *
 *	insmod rs_hca_bad.ko from=hca0 to=hca1 do=CASE
 *
 * One end writes to the other; each has two pages.  What came of it is told in the kernel log:
 * "rs_hca_bad: CASE: status S, bytes there|not there"; the cases are in the table
 * below.  It needs nothing but verbs, so it can be loaded with any two devices.
 *
 * Devices of iWARP are connected by rdma_cm: addr=ADDRESS of the second, ns=FD of its network
 * namespace; the caller is in that of the first.
 */
#include <linux/dma-mapping.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

static char *from = "hca0", *to = "hca1", *do_case = "good", *addr = "10.77.0.2";
static int ns = -1;
module_param(from, charp, 0444);
module_param(to, charp, 0444);
module_param(addr, charp, 0444);
module_param(ns, int, 0444);
module_param_named(do, do_case, charp, 0444);

enum wrong {
	GOOD,
	UNMAPPED,	/* the source was unmapped */
	DIRECTION,	/* the source is mapped for being written */
	FREED,		/* the source was given back to the kernel */
	FREED_SECOND,	/* ... of two pages of it the second, which is read */
	FREED_ACROSS,	/* ... where what is read ends */
	FREED_TARGET,	/* the target was given back to the kernel */
	FREED_SYNC,	/* ... after the write, and is synced */
	FREED_UNMAP,	/* ... and is unmapped */
	TARGET_DIRECTION,	/* the target is mapped for being read */
	BEYOND,		/* more is read than is mapped */
	UNSYNCED,	/* the source was changed after it was mapped */
	BOUNDS,		/* more is written than is registered */
	DOMAIN,		/* the registration is of another protection domain */
	ACCESS,		/* the registration is not for being written by others */
	PAGES,		/* the registration has pages of a size that no device has */
	DEREG,		/* the registration has ended */
	UNREGISTERED,	/* the target was unmapped, but is registered still */
	UNREAD,		/* what has come is looked at without a sync */
	LEAK,		/* a mapping is forgotten */
	TWICE,		/* a mapping is ended twice */
	LENGTH,		/* a mapping is ended with another length */
	OTHER_WAY,	/* a mapping is ended with the other direction */
	SYNC_NONE,	/* what is not mapped is synced */
	SYNC_WAY,	/* a sync is for the other direction */
	OVERFLOW,	/* more completes than the completion queue has entries */
	ACCEPTED,	/* iWARP: the end that has accepted sends first */
};

static const char * const names[] = {
	[GOOD] = "good",
	[UNMAPPED] = "unmapped",
	[DIRECTION] = "direction",
	[FREED] = "freed",
	[FREED_SECOND] = "freed-second",
	[FREED_ACROSS] = "freed-across",
	[FREED_TARGET] = "freed-target",
	[FREED_SYNC] = "freed-sync",
	[FREED_UNMAP] = "freed-unmap",
	[TARGET_DIRECTION] = "target-direction",
	[BEYOND] = "beyond",
	[UNSYNCED] = "unsynced",
	[BOUNDS] = "bounds",
	[DOMAIN] = "domain",
	[ACCESS] = "access",
	[PAGES] = "pages",
	[DEREG] = "dereg",
	[UNREGISTERED] = "unregistered",
	[UNREAD] = "unread",
	[LEAK] = "leak",
	[TWICE] = "twice",
	[LENGTH] = "length",
	[OTHER_WAY] = "other-way",
	[SYNC_NONE] = "sync-none",
	[SYNC_WAY] = "sync-way",
	[OVERFLOW] = "overflow",
	[ACCEPTED] = "accepted",
};

#define LEN	1000
#define SIZE	(2 * PAGE_SIZE)
#define NO_PAGE	2048	/* a size of pages that no device has */
#define FIRST	0x5a
#define SECOND	0xa5

struct end {
	struct ib_device *ib;
	struct ib_pd *pd, *other_pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_mr *mr;
	union ib_gid gid;
	int gid_index;
	struct page *page[2];	/* contiguous, but each can be freed; NULL: it was */
	u64 dma;
	enum dma_data_direction dir;
	bool mapped;
	struct scatterlist sg;
};

static struct end src, dst;
static struct completion done;
static struct ib_cqe cqe;
static enum ib_wc_status status;

static void completed(struct ib_cq *cq, struct ib_wc *wc)
{
	status = wc->status;
	complete(&done);
}

/* ---- an end ---- */

static int find_gid(struct end *e)
{
	const struct ib_gid_attr *attr;
	int i;

	for (i = 0; i < 64; i++) {
		attr = rdma_get_gid_attr(e->ib, 1, i);
		if (IS_ERR(attr))
			continue;
		e->gid = attr->gid;
		e->gid_index = i;
		i = ipv6_addr_v4mapped((struct in6_addr *)&attr->gid) ? 1000 : i;
		rdma_put_gid_attr(attr);
	}
	return i > 1000 ? 0 : -ENOENT;
}

static struct {
	const char *name;
	struct ib_device *ib;
} wanted;

static int look_at(struct ib_device *ib)
{
	if (!wanted.ib && !strcmp(dev_name(&ib->dev), wanted.name) && ib_device_try_get(ib))
		wanted.ib = ib;
	return 0;
}

/* By name, as newer kernels do not find one for modules.  A client sees all there are. */
static struct ib_device *device_named(const char *name)
{
	static struct ib_client client = { .name = "rs_hca_bad", .add = look_at };

	wanted.name = name;
	wanted.ib = NULL;
	if (!ib_register_client(&client))
		ib_unregister_client(&client);
	return wanted.ib;
}

static int make(struct end *e, const char *name, enum dma_data_direction dir, int cqes)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
	};

	e->ib = device_named(name);
	if (!e->ib || (!rdma_protocol_iwarp(e->ib, 1) && find_gid(e)))
		return -ENODEV;
	e->pd = ib_alloc_pd(e->ib, 0);
	if (IS_ERR(e->pd))
		return PTR_ERR(e->pd);
	e->other_pd = ib_alloc_pd(e->ib, 0);
	if (IS_ERR(e->other_pd))
		return PTR_ERR(e->other_pd);
	e->cq = ib_alloc_cq(e->ib, NULL, cqes, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(e->cq))
		return PTR_ERR(e->cq);
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = ib_create_qp(e->pd, &init);
	if (IS_ERR(e->qp))
		return PTR_ERR(e->qp);
	e->dir = dir;
	e->page[0] = alloc_pages(GFP_KERNEL | __GFP_ZERO, 1);
	if (!e->page[0])
		return -ENOMEM;
	split_page(e->page[0], 1);
	e->page[1] = e->page[0] + 1;
	return 0;
}

static void give_back(struct end *e, unsigned int i)
{
	if (e->page[i])
		__free_page(e->page[i]);
	e->page[i] = NULL;
}

static void map(struct end *e)
{
	e->dma = ib_dma_map_page(e->ib, e->page[0], 0, SIZE, e->dir);
	e->mapped = !ib_dma_mapping_error(e->ib, e->dma);
}

static void unmap(struct end *e)
{
	if (e->mapped)
		ib_dma_unmap_page(e->ib, e->dma, SIZE, e->dir);
	e->mapped = false;
}

static void destroy(struct end *e)
{
	if (!IS_ERR_OR_NULL(e->qp))
		ib_destroy_qp(e->qp);
	if (!IS_ERR_OR_NULL(e->mr))
		ib_dereg_mr(e->mr);
	unmap(e);
	if (!IS_ERR_OR_NULL(e->cq))
		ib_free_cq(e->cq);
	if (!IS_ERR_OR_NULL(e->other_pd))
		ib_dealloc_pd(e->other_pd);
	if (!IS_ERR_OR_NULL(e->pd))
		ib_dealloc_pd(e->pd);
	give_back(e, 0);
	give_back(e, 1);
	if (e->ib)
		ib_device_put(e->ib);
}

static int connect_to(struct end *e, const struct end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE,
	};
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, (union ib_gid *)&peer->gid, 0, e->gid_index, 64, 0);
	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS,
		.timeout = 10,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.max_rd_atomic = 1,
	};
	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

/* ---- requests ---- */

static int post(struct end *e, struct ib_send_wr *wr)
{
	int err;

	cqe.done = completed;
	wr->wr_cqe = &cqe;
	reinit_completion(&done);
	err = ib_post_send(e->qp, wr, NULL);
	if (err)
		return err;
	return wait_for_completion_timeout(&done, 5 * HZ) ? 0 : -ETIMEDOUT;
}

static int do_register(struct end *e, enum wrong wrong)
{
	unsigned int size = wrong == PAGES ? NO_PAGE : PAGE_SIZE;
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.access = IB_ACCESS_LOCAL_WRITE,
	};

	if (wrong != ACCESS)
		wr.access |= IB_ACCESS_REMOTE_WRITE;
	e->mr = ib_alloc_mr(wrong == DOMAIN ? e->other_pd : e->pd, IB_MR_TYPE_MEM_REG,
			    SIZE / size);
	if (IS_ERR(e->mr))
		return PTR_ERR(e->mr);
	sg_init_table(&e->sg, 1);
	sg_set_page(&e->sg, e->page[0], SIZE, 0);
	sg_dma_address(&e->sg) = e->dma;
	sg_dma_len(&e->sg) = SIZE;
	if (ib_map_mr_sg(e->mr, &e->sg, 1, NULL, size) != 1)
		return -EIO;
	wr.mr = e->mr;
	wr.key = e->mr->rkey;
	return post(e, &wr.wr);
}

/* Several at once complete before anything is polled. */
static int do_write(u64 laddr, u64 raddr, u32 rkey, unsigned int times)
{
	struct ib_sge sge = {
		.addr = laddr,
		.length = LEN,
		.lkey = src.pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr[3] = {};
	unsigned int i;

	for (i = 0; i < times; i++) {
		wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		wr[i].wr.wr_cqe = &cqe;
		wr[i].wr.sg_list = &sge;
		wr[i].wr.num_sge = 1;
		wr[i].wr.next = i + 1 < times ? &wr[i + 1].wr : NULL;
		wr[i].remote_addr = raddr;
		wr[i].rkey = rkey;
	}
	return post(&src, &wr[0].wr);
}

static bool is_there(u8 what)
{
	return dst.page[0] && !memchr_inv(page_address(dst.page[0]), what, LEN);
}

static enum dma_data_direction other_way(enum dma_data_direction dir)
{
	return dir == DMA_TO_DEVICE ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

/* Uses the DMA API wrongly; afterwards the source is mapped as it should be. */
static void misuse(enum wrong wrong)
{
	switch (wrong) {
	case TWICE:
		ib_dma_unmap_page(src.ib, src.dma, SIZE, src.dir);
		unmap(&src);
		break;
	case LENGTH:
		ib_dma_unmap_page(src.ib, src.dma, LEN, src.dir);
		break;
	case OTHER_WAY:
		ib_dma_unmap_page(src.ib, src.dma, SIZE, other_way(src.dir));
		break;
	case SYNC_NONE:
		unmap(&src);
		ib_dma_sync_single_for_device(src.ib, src.dma, SIZE, src.dir);
		break;
	case SYNC_WAY:
		ib_dma_sync_single_for_cpu(src.ib, src.dma, SIZE, other_way(src.dir));
		return;
	default:
		return;
	}
	map(&src);
}

/* What comes after the write.  The target is unmapped before somebody else gets its page. */
static void finish(enum wrong wrong)
{
	if (wrong == FREED_SYNC || wrong == FREED_UNMAP)
		give_back(&dst, 0);
	if (wrong == FREED_SYNC)
		ib_dma_sync_single_for_cpu(dst.ib, dst.dma, SIZE, dst.dir);
	if (!dst.page[0])
		unmap(&dst);
}

static int act(enum wrong wrong)
{
	u64 off = 0, raddr = dst.mr->iova;
	u32 rkey = dst.mr->rkey;
	int err;

	switch (wrong) {
	case UNMAPPED:
		unmap(&src);
		break;
	case FREED:
		give_back(&src, 0);
		break;
	case FREED_SECOND:
		give_back(&src, 1);
		off = PAGE_SIZE;
		break;
	case FREED_ACROSS:
		give_back(&src, 1);
		off = PAGE_SIZE - LEN / 2;
		break;
	case FREED_TARGET:
		give_back(&dst, 0);
		break;
	case BEYOND:
		off = SIZE - LEN + 1;
		break;
	case UNSYNCED:
		memset(page_address(src.page[0]), SECOND, LEN);
		break;
	case BOUNDS:
		raddr += SIZE - LEN + 1;
		break;
	case DEREG:
		ib_dereg_mr(dst.mr);
		dst.mr = NULL;
		break;
	case UNREGISTERED:
		unmap(&dst);
		break;
	case LEAK:
		map(&src);
		break;
	default:
		misuse(wrong);
		break;
	}
	err = do_write(src.dma + off, raddr, rkey, wrong == OVERFLOW ? 3 : 1);
	if (wrong != UNREAD && dst.mapped && dst.page[0])
		ib_dma_sync_single_for_cpu(dst.ib, dst.dma, SIZE, dst.dir);
	pr_info("rs_hca_bad: %s: status %d, bytes %s\n", names[wrong], status,
		is_there(wrong == UNSYNCED ? SECOND : FIRST) ? "there" : "not there");
	finish(wrong);
	return err;
}

/* ---- iWARP ---- */

static struct rdma_cm_id *listener, *active, *passive;

static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {};
	int err;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rdma_resolve_route(id, 1000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		param.qp_num = src.qp->qp_num;
		rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		passive = id;
		param.qp_num = dst.qp->qp_num;
		err = rdma_accept(id, &param);
		if (err)	/* rdma_cm destroys it */
			passive = NULL;
		return err;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id == active)
			complete(&done);
		break;
	default:
		break;
	}
	return 0;
}

static int cm_listen(struct net *net, struct sockaddr_in *at)
{
	int err;

	listener = rdma_create_id(net, cm_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	err = rdma_bind_addr(listener, (struct sockaddr *)at);
	return err ?: rdma_listen(listener, 1);
}

static int cm_connect(struct net *net, struct sockaddr_in *at)
{
	int err;

	active = rdma_create_id(net, cm_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(active))
		return PTR_ERR(active);
	err = rdma_resolve_addr(active, NULL, (struct sockaddr *)at, 1000);
	if (err)
		return err;
	return wait_for_completion_timeout(&done, 5 * HZ) ? 0 : -ETIMEDOUT;
}

static int send_first(struct net *there)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(6998),
		.sin_addr.s_addr = in_aton(addr),
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };	/* of nothing */
	int err;

	err = ib_modify_qp(src.qp, &attr, IB_QP_STATE);
	if (!err)
		err = ib_modify_qp(dst.qp, &attr, IB_QP_STATE);
	if (!err)
		err = cm_listen(there, &at);
	if (!err)
		err = cm_connect(current->nsproxy->net_ns, &at);
	if (!err)
		err = post(&dst, &wr.wr);
	pr_info("rs_hca_bad: %s: status %d, bytes %s\n", names[ACCEPTED], status,
		is_there(FIRST) ? "there" : "not there");
	return err;
}

static int connected_by_cm(void)
{
	struct rdma_cm_id **ids[] = { &active, &passive, &listener };
	struct net *there = get_net_ns_by_fd(ns);
	unsigned int i;
	int err;

	if (IS_ERR(there))
		return PTR_ERR(there);
	err = send_first(there);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		if (!IS_ERR_OR_NULL(*ids[i]))
			rdma_destroy_id(*ids[i]);
	put_net(there);
	return err;
}

static int run(enum wrong wrong)
{
	int err;

	err = make(&src, from, wrong == DIRECTION ? DMA_FROM_DEVICE : DMA_TO_DEVICE,
		   wrong == OVERFLOW ? 1 : 32);
	if (!err)
		err = make(&dst, to, wrong == TARGET_DIRECTION ? DMA_TO_DEVICE : DMA_FROM_DEVICE,
			   32);
	if (!err && wrong == ACCEPTED)
		return connected_by_cm();
	if (!err)
		err = connect_to(&src, &dst);
	if (!err)
		err = connect_to(&dst, &src);
	if (err)
		return err;
	memset(page_address(src.page[0]), FIRST, SIZE);
	map(&src);
	map(&dst);
	if (!src.mapped || !dst.mapped)
		return -EIO;
	err = do_register(&dst, wrong);
	return err ?: act(wrong);
}

static int __init bad_init(void)
{
	int wrong = match_string(names, ARRAY_SIZE(names), do_case), err;

	if (wrong < 0)
		return -EINVAL;
	init_completion(&done);
	err = run(wrong);
	if (err)
		pr_info("rs_hca_bad: %s: error %d\n", do_case, err);
	destroy(&src);
	destroy(&dst);
	/* all is done: nothing to unload */
	return err ?: -ECANCELED;
}

module_init(bad_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Uses rs_hca wrongly, in order to see that it says so");
