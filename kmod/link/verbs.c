// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices, queue pairs and work requests.
 *
 * Owns the list of usable RDMA devices, the queues of each link and their
 * accounting.  Called by cm.c (create), link.c (drain, destroy), ring.c and
 * rmb.c (posting).  It never decides what is sent: completions and messages go
 * to ring.c.
 */
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "cm.h"
#include "rmb.h"
#include "verbs.h"

static LIST_HEAD(rstream_devs);
static DEFINE_SPINLOCK(rstream_devs_lock);	/* bh; outside link->lock */
static atomic_t rstream_next_vector;

/* ---- devices ---- */

static int verbs_depth(const struct ib_device_attr *attr);

static enum rstream_dev_problem dev_problem(struct ib_device *ib)
{
	/* iWARP has no immediate data (RFC 5040). */
	if (rdma_protocol_iwarp(ib, rdma_start_port(ib)))
		return RSTREAM_DEV_IWARP;
	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return RSTREAM_DEV_NO_REG;
	if (verbs_depth(&ib->attrs) < 0)
		return RSTREAM_DEV_SMALL;
	return RSTREAM_DEV_GOOD;
}

/* What cannot be used is listed, too: to say why. */
static int client_add(struct ib_device *ib)
{
	struct rstream_dev *dev;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	dev->problem = dev_problem(ib);
	INIT_LIST_HEAD(&dev->links);
	init_completion(&dev->empty);
	spin_lock_bh(&rstream_devs_lock);
	list_add_tail(&dev->list, &rstream_devs);
	spin_unlock_bh(&rstream_devs_lock);
	return 0;
}

/*
 * Waits for our own workers only.  This runs before rdma_cm tells the ids of the
 * device, and ids that are not destroyed here it waits for itself.
 */
static void client_remove(struct ib_device *ib, void *data)
{
	struct rstream_dev *dev;
	struct rstream_link *link;
	bool found = false, empty;

	spin_lock_bh(&rstream_devs_lock);
	list_for_each_entry(dev, &rstream_devs, list) {
		if (dev->ib == ib) {
			found = true;
			break;
		}
	}
	if (!found) {
		spin_unlock_bh(&rstream_devs_lock);
		return;
	}
	dev->gone = true;
	list_del(&dev->list);
	list_for_each_entry(link, &dev->links, dev_list)
		rstream_link_break(link, RSTREAM_END_DEVICE);
	empty = list_empty(&dev->links);
	spin_unlock_bh(&rstream_devs_lock);
	if (!empty)
		wait_for_completion(&dev->empty);
	kfree(dev);
}

static struct ib_client rstream_ib_client = {
	.name = "rdmastream",
	.add = client_add,
	.remove = client_remove,
};

static bool dev_serves(const struct rstream_dev *dev, const struct net *net)
{
	return !dev->problem && rdma_dev_access_netns(dev->ib, net);
}

bool rstream_link_possible(struct net *net)
{
	struct rstream_dev *dev;
	/* streams that begin while the device is away want to return, too */
	bool yes = READ_ONCE(rstream_net(net)->links->drained_dev);

	if (yes)
		return true;
	spin_lock_bh(&rstream_devs_lock);
	list_for_each_entry(dev, &rstream_devs, list) {
		yes = dev_serves(dev, net);
		if (yes)
			break;
	}
	spin_unlock_bh(&rstream_devs_lock);
	return yes;
}

/* What @attr is as an address of @net. */
static bool gid_addr(const struct ib_gid_attr *attr, struct net *net,
		     struct rstream_addr *to)
{
	struct net_device *ndev;
	bool ok;

	memcpy(&to->addr, &attr->gid, sizeof(to->addr));
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	ok = !IS_ERR(ndev) && net_eq(dev_net(ndev), net) &&
	     !(ipv6_addr_type(&to->addr) & IPV6_ADDR_LINKLOCAL);
	if (ok)
		to->ifindex = ndev->ifindex;
	rcu_read_unlock();
	return ok;
}

/* The GIDs of a RoCE port are the IP addresses of its interfaces. */
static unsigned int port_addrs(struct ib_device *ib, u32 port, struct net *net,
			       struct rstream_addr *to, unsigned int max)
{
	int i, len = ib->port_data[port].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr;
	unsigned int n = 0;

	for (i = 0; i < len && n < max; i++) {
		attr = rdma_get_gid_attr(ib, port, i);
		if (IS_ERR(attr))
			continue;
		n += gid_addr(attr, net, &to[n]);
		rdma_put_gid_attr(attr);
	}
	return n;
}

/* RoCE addresses that @net can use. Return: how many. */
unsigned int rstream_verbs_addrs(struct net *net, struct rstream_addr *to,
				 unsigned int max)
{
	struct rstream_dev *dev;
	unsigned int n = 0;
	u32 port;

	spin_lock_bh(&rstream_devs_lock);
	list_for_each_entry(dev, &rstream_devs, list) {
		if (!dev_serves(dev, net))
			continue;
		rdma_for_each_port(dev->ib, port)
			if (rdma_protocol_roce(dev->ib, port))
				n += port_addrs(dev->ib, port, net, to + n,
						max - n);
	}
	spin_unlock_bh(&rstream_devs_lock);
	return n;
}

/* One port, for netlink. */
static void port_info(const struct rstream_dev *dev, u32 port, struct net *net,
		      struct rstream_addr *addrs, struct rstream_dev_info *info)
{
	enum ib_port_state state;
	struct rstream_link *link;
	unsigned int i;

	memset(info, 0, sizeof(*info));
	strscpy(info->name, dev_name(&dev->ib->dev), sizeof(info->name));
	info->port = port;
	info->problem = dev->problem;
	list_for_each_entry(link, &dev->links, dev_list)
		info->links += net_eq(rstream_link_netns(link), net);
	if (rdma_protocol_roce(dev->ib, port))
		info->n_addrs = port_addrs(dev->ib, port, net, addrs,
					   RSTREAM_INFO_ADDRS);
	else	/* an InfiniBand port's GIDs are no IP addresses */
		info->n_addrs = rstream_ipoib_addrs(net, dev->ib, port, addrs,
						    RSTREAM_INFO_ADDRS);
	for (i = 0; i < info->n_addrs; i++)
		info->addrs[i] = addrs[i].addr;
	if (info->n_addrs)
		info->ifindex = addrs[0].ifindex;
	if (info->problem)
		return;
	if (ib_get_cached_port_state(dev->ib, port, &state) ||
	    state != IB_PORT_ACTIVE)
		info->problem = RSTREAM_DEV_DOWN;
	else if (!info->n_addrs)
		info->problem = RSTREAM_DEV_NO_ADDR;
}

int rstream_dev_info_dump(struct net *net, unsigned int skip,
			  int (*fn)(const struct rstream_dev_info *info,
				    void *arg),
			  void *arg)
{
	struct {
		struct rstream_dev_info info;
		struct rstream_addr addrs[RSTREAM_INFO_ADDRS];
	} *room;
	struct rstream_dev *dev;
	int err = 0;
	u32 port;

	room = kmalloc(sizeof(*room), GFP_KERNEL);
	if (!room)
		return -ENOMEM;
	spin_lock_bh(&rstream_devs_lock);
	list_for_each_entry(dev, &rstream_devs, list) {
		if (!rdma_dev_access_netns(dev->ib, net))
			continue;
		rdma_for_each_port(dev->ib, port) {
			if (skip) {
				skip--;
				continue;
			}
			port_info(dev, port, net, room->addrs, &room->info);
			err = fn(&room->info, arg);
			if (err)
				goto out;
		}
	}
out:
	spin_unlock_bh(&rstream_devs_lock);
	kfree(room);
	return err;
}

/* From now on the device waits for rstream_verbs_detach(). */
int rstream_verbs_attach(struct rstream_link *link, struct ib_device *ib)
{
	struct rstream_dev *dev;
	int err = -ENODEV;

	spin_lock_bh(&rstream_devs_lock);
	list_for_each_entry(dev, &rstream_devs, list) {
		if (dev->ib != ib || !dev_serves(dev, rstream_link_netns(link)))
			continue;
		link->dev = dev;
		list_add(&link->dev_list, &dev->links);
		strscpy(link->dev_name, dev_name(&ib->dev),
			sizeof(link->dev_name));
		err = 0;
		break;
	}
	spin_unlock_bh(&rstream_devs_lock);
	return err;
}

void rstream_verbs_detach(struct rstream_link *link)
{
	struct rstream_dev *dev = link->dev;

	if (!dev)
		return;
	spin_lock_bh(&rstream_devs_lock);
	list_del(&link->dev_list);
	link->dev = NULL;
	if (dev->gone && list_empty(&dev->links))
		complete(&dev->empty);
	spin_unlock_bh(&rstream_devs_lock);
}

/* ---- completions ---- */

static void post_recv(struct rstream_link *link, unsigned int i)
{
	struct ib_sge sge = {
		.addr = link->ctrl_dma + (link->depth + i) * RSTREAM_CTRL_BYTES,
		.length = RSTREAM_CTRL_BYTES,
		.lkey = link->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &link->rq[i].cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (ib_post_recv(link->qp, &wr, NULL))
		rstream_link_break_locked(link, RSTREAM_END_POST_RECV);
}

static void wr_failed(struct rstream_link *link, const struct ib_wc *wc)
{
	lockdep_assert_held(&link->lock);
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		rstream_mib_inc(link->ln->rn,
				RSTREAM_MIB_WR_ERRORS);
	rstream_link_ends(link, RSTREAM_END_WR, ib_wc_status_msg(wc->status));
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rstream_link *link = cq->cq_context;
	struct rstream_slot *slot = container_of(wc->wr_cqe,
						 struct rstream_slot, cqe);

	rstream_mib_inc(link->ln->rn, RSTREAM_MIB_COMPLETIONS);
	spin_lock_bh(&link->lock);
	if (wc->status != IB_WC_SUCCESS) {
		wr_failed(link, wc);
	} else if (!rstream_link_alive(link)) {
		/* nothing counts after RSTREAM_LINK_EV_LOST */
	} else if (!(wc->wc_flags & IB_WC_WITH_IMM)) {
		/* the flag tells, not the opcode: hns names another one */
		rstream_link_break_locked(link, RSTREAM_END_NO_IMM);
	} else {
		/* anew before anything is answered: see ring.c on credits */
		post_recv(link, slot - link->rq);
		/* if that has broken the link, streams have their last count */
		if (rstream_link_alive(link))
			rstream_ring_message(link, wc->ex.imm_data,
					     wc->byte_len);
	}
	spin_unlock_bh(&link->lock);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rstream_link *link = cq->cq_context;
	struct rstream_slot *slot = container_of(wc->wr_cqe,
						 struct rstream_slot, cqe);
	u32 at, ahead;

	rstream_mib_inc(link->ln->rn, RSTREAM_MIB_COMPLETIONS);
	spin_lock_bh(&link->lock);
	if (wc->status != IB_WC_SUCCESS) {
		wr_failed(link, wc);
		goto out;
	}
	/* slot number n of the next depth ones behind sq_done: in order */
	div_u64_rem(link->sq_done, link->depth, &at);
	ahead = (slot - link->sq) + link->depth - at;
	if (ahead > link->depth)
		ahead -= link->depth;
	link->sq_done += ahead;
	link->settled_bytes = slot->tx_bytes;
	WARN_ON_ONCE(link->sq_done > link->sq_posted);
	if (link->timed && link->sq_done >= link->timed) {
		link->timed = 0;
		link->rtt_us = max_t(s64, ktime_us_delta(ktime_get(),
							 link->timed_at), 1);
	}
	if (rstream_link_alive(link))
		rstream_ring_sq_done(link);
	if (wq_has_sleeper(&link->wait))
		wake_up_all(&link->wait);
out:
	rstream_tx_unlock(link);
}

enum { EVENT_COMM_EST, EVENT_FATAL };

/* Called by drivers in any context, hard interrupts too. */
static void qp_event(struct ib_event *event, void *context)
{
	struct rstream_link *link = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		set_bit(EVENT_COMM_EST, &link->events);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		set_bit(EVENT_FATAL, &link->events);
		break;
	default:
		return;
	}
	queue_work(rstream_link_wq, &link->event_work);
}

static void event_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 event_work);

	if (test_and_clear_bit(EVENT_COMM_EST, &link->events))
		rstream_cm_comm_est(link);
	if (test_and_clear_bit(EVENT_FATAL, &link->events))
		rstream_link_break(link, RSTREAM_END_QP);
}

/* ---- queues ---- */

/*
 * Both queues have depth slots, and one more for ib_drain_qp().
 *
 *   depth + 1 <= max_qp_wr, max_cqe     each queue has a CQ of its own that
 *                                       holds a completion of every slot
 *   depth % SIGNAL_EVERY == 0           slot and sequence number agree
 *   depth >= 2 * SIGNAL_EVERY + SQ_CTRL
 *       A full send queue has a signalled request among any SIGNAL_EVERY; when
 *       all signalled ones have completed fewer than SIGNAL_EVERY slots are
 *       taken, so that data (which leaves SQ_CTRL free) finds room: a full queue
 *       always ends in a completion.
 *   depth / 4 >= 1, depth > RQ_RESERVE  see ring.c on receive credits
 */
static int verbs_depth(const struct ib_device_attr *attr)
{
	int depth = min3(RSTREAM_DEPTH_MAX, attr->max_qp_wr - 1,
			 attr->max_cqe - 1);

	static_assert(RSTREAM_DEPTH_MIN >=
		      2 * RSTREAM_SIGNAL_EVERY + RSTREAM_SQ_CTRL);
	static_assert(RSTREAM_DEPTH_MIN / 4 > RSTREAM_RQ_RESERVE);
	depth = rounddown(depth, RSTREAM_SIGNAL_EVERY);
	return depth < RSTREAM_DEPTH_MIN ? -EOPNOTSUPP : depth;
}

static size_t ctrl_bytes(const struct rstream_link *link)
{
	return 2 * link->depth * RSTREAM_CTRL_BYTES;
}

static int alloc_slots(struct rstream_link *link)
{
	unsigned int i;
	u64 dma;

	link->sq = kvcalloc(link->depth, sizeof(*link->sq), GFP_KERNEL);
	link->rq = kvcalloc(link->depth, sizeof(*link->rq), GFP_KERNEL);
	link->batch = kzalloc(sizeof(*link->batch), GFP_KERNEL);
	/* first half: sources of credits by send slot; second: receives */
	link->ctrl = kcalloc(2 * link->depth, RSTREAM_CTRL_BYTES, GFP_KERNEL);
	if (!link->sq || !link->rq || !link->batch || !link->ctrl)
		return -ENOMEM;
	dma = ib_dma_map_single(link->dev->ib, link->ctrl, ctrl_bytes(link),
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(link->dev->ib, dma))
		return -EIO;
	link->ctrl_dma = dma;
	link->ctrl_mapped = true;
	for (i = 0; i < link->depth; i++) {
		link->sq[i].cqe.done = send_done;
		link->rq[i].cqe.done = recv_done;
	}
	return 0;
}

static struct ib_cq *alloc_cq(struct rstream_link *link, int vector)
{
	return ib_alloc_cq(link->dev->ib, link, link->depth + 1,
			   vector % link->dev->ib->num_comp_vectors,
			   IB_POLL_SOFTIRQ);
}

static int alloc_queues(struct rstream_link *link)
{
	int vector = atomic_inc_return(&rstream_next_vector) & INT_MAX;
	struct ib_pd *pd;
	struct ib_cq *cq;

	pd = ib_alloc_pd(link->dev->ib, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	link->pd = pd;
	cq = alloc_cq(link, vector);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	link->send_cq = cq;
	cq = alloc_cq(link, vector);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	link->recv_cq = cq;
	return 0;
}

/*
 * Leaves the QP in INIT with all receives posted: a fast peer must find them.
 * On error the caller breaks the link, whose worker destroys what was made.
 */
int rstream_verbs_create(struct rstream_link *link)
{
	const struct ib_device_attr *attr = &link->dev->ib->attrs;
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = link,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	unsigned int i;
	int err;

	lockdep_assert_held(&link->setup_lock);
	err = verbs_depth(attr);
	if (err < 0)
		return err;
	link->depth = err;
	link->max_sge = min(attr->max_send_sge, RSTREAM_SGES_MAX);
	err = alloc_slots(link);
	if (err)
		return err;
	err = alloc_queues(link);
	if (err)
		return err;

	init.send_cq = link->send_cq;
	init.recv_cq = link->recv_cq;
	init.cap.max_send_wr = link->depth + 1;
	init.cap.max_recv_wr = link->depth + 1;
	init.cap.max_send_sge = link->max_sge;
	INIT_WORK(&link->event_work, event_work);
	err = rdma_create_qp(link->cm_id, link->pd, &init);
	if (err)
		return err;
	link->qp = link->cm_id->qp;
	link->qpn = link->qp->qp_num;
	link->port = link->cm_id->port_num;

	spin_lock_bh(&link->lock);
	for (i = 0; i < link->depth; i++)
		post_recv(link, i);
	spin_unlock_bh(&link->lock);
	return rstream_link_alive(link) ? 0 : -EIO;
}

void rstream_verbs_query(struct rstream_link *link)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	if (ib_query_qp(link->qp, &attr, IB_QP_PATH_MTU | IB_QP_DEST_QPN,
			&init))
		return;
	spin_lock_bh(&link->lock);
	link->path_mtu = ib_mtu_enum_to_int(attr.path_mtu);
	link->peer_qpn = attr.dest_qp_num;
	spin_unlock_bh(&link->lock);
}

/*
 * Nothing lands in our memory after return, and the HCA reads none: only a QP
 * in error whose both queues have been flushed warrants that.
 */
void rstream_verbs_drain(struct rstream_link *link)
{
	if (!link->qp)
		return;
	ib_drain_qp(link->qp);
	spin_lock_bh(&link->lock);
	link->sq_done = link->sq_posted;
	spin_unlock_bh(&link->lock);
}

void rstream_verbs_destroy(struct rstream_link *link)
{
	if (link->qp) {
		rdma_destroy_qp(link->cm_id);
		cancel_work_sync(&link->event_work);
		link->qp = NULL;
	}
	if (link->recv_cq)
		ib_free_cq(link->recv_cq);
	if (link->send_cq)
		ib_free_cq(link->send_cq);
	rstream_rmb_unregister(link);
	if (link->pd)
		ib_dealloc_pd(link->pd);
	if (link->ctrl_mapped)
		ib_dma_unmap_single(link->dev->ib, link->ctrl_dma,
				    ctrl_bytes(link), DMA_BIDIRECTIONAL);
	kfree(link->ctrl);
	kfree(link->batch);
	kvfree(link->rq);
	kvfree(link->sq);
}

/* ---- work requests ---- */

/* Send slots that nobody uses; data must leave RSTREAM_SQ_CTRL of them. */
unsigned int rstream_verbs_free(const struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	return link->depth - (unsigned int)(link->sq_posted - link->sq_done) -
	       link->batch->n;
}

static struct ib_send_wr *begin(struct rstream_link *link)
{
	struct rstream_batch *b = link->batch;
	u64 seq = link->sq_posted + b->n + 1;
	struct ib_send_wr *wr;
	u32 slot;

	lockdep_assert_held(&link->lock);
	memset(&b->wr[b->n], 0, sizeof(b->wr[b->n]));
	wr = &b->wr[b->n].rdma.wr;
	if (b->n)
		b->wr[b->n - 1].rdma.wr.next = wr;
	b->n++;
	div_u64_rem(seq, link->depth, &slot);
	wr->wr_cqe = &link->sq[slot].cqe;
	link->sq[slot].tx_bytes = link->tx_bytes;
	if (!(slot % RSTREAM_SIGNAL_EVERY))
		rstream_verbs_signal(link);
	return wr;
}

/* The request begun last shall tell when it has completed. */
void rstream_verbs_signal(struct rstream_link *link)
{
	struct rstream_batch *b = link->batch;
	struct ib_send_wr *wr = &b->wr[b->n - 1].rdma.wr;

	b->n_signalled += !(wr->send_flags & IB_SEND_SIGNALED);
	wr->send_flags |= IB_SEND_SIGNALED;
	link->sq_signalled = link->sq_posted + b->n;
	link->unsignalled_bytes = 0;
}

/* link->tx_bytes has grown by those of the request begun last. */
void rstream_verbs_mark(struct rstream_link *link)
{
	struct ib_cqe *cqe = link->batch->wr[link->batch->n - 1].rdma.wr.wr_cqe;

	container_of(cqe, struct rstream_slot, cqe)->tx_bytes = link->tx_bytes;
}

void rstream_verbs_write(struct rstream_link *link, u64 raddr, u32 rkey)
{
	struct ib_send_wr *wr = begin(link);
	struct ib_rdma_wr *rdma = container_of(wr, struct ib_rdma_wr, wr);

	wr->opcode = IB_WR_RDMA_WRITE;
	rdma->remote_addr = raddr;
	rdma->rkey = rkey;
}

void rstream_verbs_write_imm(struct rstream_link *link, u64 raddr, u32 rkey,
			     enum rstream_imm_type type, u32 id)
{
	struct ib_send_wr *wr = begin(link);
	struct ib_rdma_wr *rdma = container_of(wr, struct ib_rdma_wr, wr);

	wr->opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	wr->ex.imm_data = rstream_imm(type, link->tx_number++, id);
	rdma->remote_addr = raddr;
	rdma->rkey = rkey;
}

/* The message begun last is of another type. */
void rstream_verbs_retype(struct rstream_link *link, enum rstream_imm_type type)
{
	struct ib_send_wr *wr = &link->batch->wr[link->batch->n - 1].rdma.wr;

	wr->ex.imm_data = rstream_imm(type, rstream_imm_number(wr->ex.imm_data),
				      rstream_imm_id(wr->ex.imm_data));
}

void rstream_verbs_reg(struct rstream_link *link, struct ib_mr *mr)
{
	struct ib_send_wr *wr = begin(link);
	struct ib_reg_wr *reg = container_of(wr, struct ib_reg_wr, wr);

	wr->opcode = IB_WR_REG_MR;
	reg->mr = mr;
	reg->key = mr->rkey;
	reg->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	rstream_verbs_signal(link);
}

void rstream_verbs_sge(struct rstream_link *link, u64 addr, u32 len)
{
	struct rstream_batch *b = link->batch;
	struct ib_send_wr *wr = &b->wr[b->n - 1].rdma.wr;
	struct ib_sge *sge = &b->sge[b->n_sge++];

	sge->addr = addr;
	sge->length = len;
	sge->lkey = link->pd->local_dma_lkey;
	/* NULL before: irdma takes the first one of a write, even if num_sge is 0 */
	if (!wr->num_sge++)
		wr->sg_list = sge;
	link->unsignalled_bytes += len;
	if (link->unsignalled_bytes >= RSTREAM_SIGNAL_BYTES)
		rstream_verbs_signal(link);
}

/* The content of a credit cell, from memory that belongs to the send slot. */
void rstream_verbs_credit(struct rstream_link *link, u64 value)
{
	u64 seq = link->sq_posted + link->batch->n;
	__be64 *src;
	u32 slot;

	div_u64_rem(seq, link->depth, &slot);
	src = link->ctrl + slot * RSTREAM_CTRL_BYTES;
	src[0] = cpu_to_be64(value);
	src[1] = cpu_to_be64(~value);
	ib_dma_sync_single_for_device(link->pd->device,
				      link->ctrl_dma +
				      slot * RSTREAM_CTRL_BYTES,
				      RSTREAM_CTRL_BYTES, DMA_BIDIRECTIONAL);
	rstream_verbs_sge(link, link->ctrl_dma + slot * RSTREAM_CTRL_BYTES,
			  RSTREAM_CTRL_BYTES);
}

int rstream_verbs_post(struct rstream_link *link)
{
	struct rstream_batch *b = link->batch;
	int err;

	lockdep_assert_held(&link->lock);
	if (!b->n)
		return 0;
	err = ib_post_send(link->qp, &b->wr[0].rdma.wr, NULL);
	/* of a chain refused half-way some are in the queue: drained all alike */
	link->sq_posted += b->n;
	rstream_mib_inc(link->ln->rn, RSTREAM_MIB_POSTS);
	rstream_mib_add(link->ln->rn, RSTREAM_MIB_WRS, b->n);
	rstream_mib_add(link->ln->rn, RSTREAM_MIB_WRS_SIGNALLED, b->n_signalled);
	b->n = 0;
	b->n_sge = 0;
	b->n_signalled = 0;
	if (err)
		rstream_link_break_locked(link, RSTREAM_END_POST_SEND);
	return err;
}

bool rstream_verbs_map(struct rstream_link *link, struct rstream_frag *frag)
{
	struct ib_device *ib = link->pd->device;

	frag->dma = ib_dma_map_page(ib, frag->page, frag->off, frag->len,
				    DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib, frag->dma))
		return false;
	frag->dma_dev = ib;
	return true;
}

void rstream_verbs_unmap(struct rstream_frag *frag)
{
	if (!frag->dma_dev)
		return;
	ib_dma_unmap_page(frag->dma_dev, frag->dma, frag->len, DMA_TO_DEVICE);
	frag->dma_dev = NULL;
}

int rstream_verbs_init(void)
{
	return ib_register_client(&rstream_ib_client);
}

void rstream_verbs_exit(void)
{
	ib_unregister_client(&rstream_ib_client);
}
