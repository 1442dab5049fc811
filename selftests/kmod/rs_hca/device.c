// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of a device; its port, PDs and address handles; its removal.
 *
 * Removal of a device.  ib_core asks all clients to release it, waits until there are no
 * references, and calls dealloc().  Until then, these may use it:
 *
 *  1. hca_devs: removed only in dealloc(); a lookup takes a reference, which ib_core
 *     refuses once the removal has begun.
 *  2. Queue pairs, completion queues and registrations belong to their users, who must
 *     have destroyed them: ib_core warns if not.
 *  3. ib_unregister_device_queued() has its own reference.
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "rs_hca.h"

static int query_device(struct ib_device *ib, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	struct hca_dev *dev = to_hca(ib);
	const struct hca_profile *p = dev->profile;

	memset(attr, 0, sizeof(*attr));
	attr->max_mr_size = -1ULL;
	attr->page_size_cap = p->page_size_cap;
	attr->max_qp = 65536;
	attr->max_qp_wr = p->max_qp_wr;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->max_send_sge = p->max_send_sge;
	attr->max_recv_sge = p->max_recv_sge;
	attr->max_sge_rd = 1;
	attr->max_cq = 65536;
	attr->max_cqe = p->max_cqe;
	attr->max_mr = 65536;
	attr->max_pd = 65536;
	attr->max_qp_rd_atom = 16;
	attr->max_qp_init_rd_atom = 16;
	attr->max_res_rd_atom = 65536;
	attr->max_ah = 65536;
	attr->max_fast_reg_page_list_len = p->max_reg_pages;
	attr->max_pkeys = p->ib ? HCA_PKEYS : 1;
	addrconf_addr_eui48((u8 *)&attr->sys_image_guid, dev->ndev->dev_addr);
	return 0;
}

bool hca_dev_port_up(struct hca_dev *dev)
{
	return netif_running(dev->ndev) && netif_carrier_ok(dev->ndev) &&
	       !READ_ONCE(dev->port.off);
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct hca_dev *dev = to_hca(ib);
	bool up = hca_dev_port_up(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = iboe_get_mtu(dev->ndev->mtu) ?: IB_MTU_256;
	attr->gid_tbl_len = dev->profile->iwarp ? 1 : HCA_GIDS;
	attr->ip_gids = 1;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = SZ_1G;
	attr->pkey_tbl_len = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	if (!dev->profile->ib)
		return 0;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 1;
	attr->ip_gids = 0;
	attr->pkey_tbl_len = HCA_PKEYS;
	attr->lid = READ_ONCE(dev->port.lid);
	attr->sm_lid = READ_ONCE(dev->port.sm_lid);
	attr->max_vl_num = 4;
	attr->subnet_timeout = 18;
	return 0;
}

static int port_immutable(struct ib_device *ib, u32 port,
			  struct ib_port_immutable *immutable)
{
	bool iwarp = to_hca(ib)->profile->iwarp;

	if (to_hca(ib)->profile->ib) {
		immutable->gid_tbl_len = 1;
		immutable->pkey_tbl_len = HCA_PKEYS;
		/* without QP 0: the subnet manager sets the ports by other ways */
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB & ~RDMA_CORE_CAP_IB_SMI;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
		return 0;
	}
	immutable->gid_tbl_len = iwarp ? 1 : HCA_GIDS;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = iwarp ? RDMA_CORE_PORT_IWARP :
					    RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = iwarp ? 0 : IB_MGMT_MAD_SIZE;
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	struct hca_dev *dev = to_hca(ib);

	if (index >= (dev->profile->ib ? HCA_PKEYS : 1))
		return -EINVAL;
	*pkey = dev->profile->ib ? READ_ONCE(dev->port.pkeys[index]) : IB_DEFAULT_PKEY_FULL;
	return 0;
}

/* Not for RoCE ports: those ib_core handles. */
static int query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	if (to_hca(ib)->profile->ib) {
		*gid = hca_subnet_gid(to_hca(ib));
		return 0;
	}
	memset(gid, 0, sizeof(*gid));
	ether_addr_copy(gid->raw, to_hca(ib)->ndev->dev_addr);
	return 0;
}

/* ib_cm says of an InfiniBand port that it is there. */
static int modify_port(struct ib_device *ib, u32 port, int mask, struct ib_port_modify *modify)
{
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ib, u32 port)
{
	return to_hca(ib)->profile->ib ? IB_LINK_LAYER_INFINIBAND : IB_LINK_LAYER_ETHERNET;
}

/* ---- protection domains, address handles ---- */

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return hca_fault(to_hca(pd->device), HCA_FAULT_ALLOC_PD) ? -ENOMEM : 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

void hca_av_set(struct hca_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	memset(av, 0, sizeof(*av));
	if (attr->type == RDMA_AH_ATTR_TYPE_IB) {
		av->dlid = rdma_ah_get_dlid(attr);
		av->sl = rdma_ah_get_sl(attr);
		if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
			return;
	}
	av->grh = true;
	av->dgid = grh->dgid;
	av->hop_limit = grh->hop_limit;
	if (grh->sgid_attr)
		av->sgid = grh->sgid_attr->gid;
	if (attr->type == RDMA_AH_ATTR_TYPE_ROCE)
		ether_addr_copy(av->dmac, attr->roce.dmac);
}

static int create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init,
		     struct ib_udata *udata)
{
	struct hca_ah *ah = container_of(ib, struct hca_ah, ib);

	hca_av_set(&ah->av, init->ah_attr);
	ah->sgid_index = rdma_ah_read_grh(init->ah_attr)->sgid_index;
	return 0;
}

/* ib_mad compares an answer with its request. */
static int query_ah(struct ib_ah *ib, struct rdma_ah_attr *attr)
{
	const struct hca_ah *ah = container_of(ib, struct hca_ah, ib);
	const struct hca_av *av = &ah->av;

	memset(attr, 0, sizeof(*attr));
	attr->type = ib->type;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_dlid(attr, av->dlid);
	rdma_ah_set_sl(attr, av->sl);
	if (av->grh)
		rdma_ah_set_grh(attr, (union ib_gid *)&av->dgid, 0, ah->sgid_index,
				av->hop_limit, 0);
	return 0;
}

static int destroy_ah(struct ib_ah *ib, u32 flags)
{
	return 0;
}

/* ---- used only by user space, or by iw_cm ---- */

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 len, u64 virt,
				 int access, HCA_DMAH_PARAM struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void iw_add_ref(struct ib_qp *ib)
{
	refcount_inc(&to_qp(ib)->ref);
}

static void iw_rem_ref(struct ib_qp *ib)
{
	hca_qp_put(to_qp(ib));
}

/* ---- life ---- */

static void dealloc(struct ib_device *ib)
{
	struct hca_dev *dev = to_hca(ib);

	spin_lock_bh(&hca_devs_lock);
	list_del(&dev->list);
	spin_unlock_bh(&hca_devs_lock);
	if (dev->profile->ib)
		dev_put(dev->ndev);
	hca_dma_exit(dev);
	WARN_ON(!xa_empty(&dev->mrs));
	xa_destroy(&dev->mrs);
	hca_report_exit(dev);
}

static const struct ib_device_ops dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = HCA_DRIVER,

	.alloc_mr = hca_mr_alloc,
	.alloc_pd = alloc_pd,
	.create_ah = create_ah,
	.create_cq = hca_cq_create,
	.create_qp = hca_qp_create,
	.dealloc_driver = dealloc,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = hca_mr_dereg,
	.destroy_ah = destroy_ah,
	.destroy_cq = hca_cq_destroy,
	.destroy_qp = hca_qp_destroy,
	.get_dma_mr = hca_mr_get_dma,
	.get_link_layer = link_layer,
	.get_port_immutable = port_immutable,
	.iw_accept = hca_iw_accept,
	.iw_add_ref = iw_add_ref,
	.iw_connect = hca_iw_connect,
	.iw_create_listen = hca_iw_listen,
	.iw_destroy_listen = hca_iw_unlisten,
	.iw_get_qp = hca_iw_get_qp,
	.iw_reject = hca_iw_reject,
	.iw_rem_ref = iw_rem_ref,
	.map_mr_sg = hca_mr_map_sg,
	.modify_port = modify_port,
	.modify_qp = hca_qp_modify,
	.poll_cq = hca_cq_poll,
	.post_recv = hca_qp_post_recv,
	.post_send = hca_qp_post_send,
	.pre_destroy_cq = hca_cq_pre_destroy,
	.query_ah = query_ah,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = hca_qp_query,
	.reg_user_mr = reg_user_mr,
	.req_notify_cq = hca_cq_arm,

	INIT_RDMA_OBJ_SIZE(ib_ah, hca_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, hca_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, hca_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, hca_qp, ib),
};

static bool taken(const struct net_device *ndev)
{
	struct hca_dev *dev;
	bool found = false;

	spin_lock_bh(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list)
		found |= dev->ndev == ndev;
	spin_unlock_bh(&hca_devs_lock);
	return found;
}

/**
 * hca_dev_add() - add a device
 * @name:	its name
 * @ndev:	its network device, in any network namespace
 * @profile:	which device it imitates
 * @mode:	kind of its DMA addresses
 */
int hca_dev_add(const char *name, struct net_device *ndev,
		const struct hca_profile *profile, enum hca_dma_mode mode)
{
	struct hca_dev *dev;
	int err;

	if (taken(ndev))
		return -EEXIST;
	dev = ib_alloc_device(hca_dev, ib);
	if (!dev)
		return -ENOMEM;
	dev->ndev = ndev;
	/* if devices are exclusive to a namespace: that of the netdev */
	if (!rdma_dev_access_netns(&dev->ib, dev_net(ndev)))
		write_pnet(&dev->ib.coredev.rdma_net, dev_net(ndev));
	dev->profile = profile;
	dev->port_up = hca_dev_port_up(dev);
	if (profile->ib)
		dev_hold(ndev);
	INIT_LIST_HEAD(&dev->list);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	hca_fault_init(dev);
	/* from here on, dealloc() cleans up */
	ib_set_device_ops(&dev->ib, &dev_ops);
	if (profile->driver)
		dev->ib.ops.driver_id = profile->driver;
	err = hca_report_init(dev);
	if (!err)
		err = hca_dma_init(dev, mode);
	if (err)
		goto fail;
	dev->ib.node_type = profile->iwarp ? RDMA_NODE_RNIC : RDMA_NODE_IB_CA;
	dev->ib.phys_port_cnt = 1;
	dev->ib.num_comp_vectors = num_possible_cpus();
	dev->ib.local_dma_lkey = HCA_LKEY;
	addrconf_addr_eui48((u8 *)&dev->ib.node_guid, ndev->dev_addr);
	if (profile->iwarp)
		strscpy(dev->ib.iw_ifname, ndev->name, sizeof(dev->ib.iw_ifname));
	if (profile->ib)
		hca_subnet_join(dev);
	else
		err = ib_device_set_netdev(&dev->ib, ndev, 1);
	if (err)
		goto fail;
	spin_lock_bh(&hca_devs_lock);
	list_add_tail(&dev->list, &hca_devs);
	spin_unlock_bh(&hca_devs_lock);
	err = ib_register_device(&dev->ib, name, hca_dma_device(dev));
	if (!err)
		return 0;
fail:
	ib_dealloc_device(&dev->ib);
	return err;
}

/* Tells the users what has happened to the port. */
void hca_dev_event(struct hca_dev *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = 1,
		.event = type,
	};

	ib_dispatch_event(&event);
}

void hca_dev_port_changed(struct hca_dev *dev)
{
	bool up = hca_dev_port_up(dev);

	if (up == dev->port_up)
		return;
	dev->port_up = up;
	hca_ipoib_changed(dev);
	hca_dev_event(dev, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

/* Removes a device in the background; from any context. */
void hca_dev_remove(struct hca_dev *dev)
{
	if (!test_and_set_bit(0, &dev->going))
		ib_unregister_device_queued(&dev->ib);
}

/**
 * hca_dev_reset() - the device fails
 * @dev:	the device
 *
 * Like an adapter whose firmware has crashed: it reports that, and from then on executes
 * nothing and completes nothing.  Its driver may flush later, see hca_fault_flush_ns().
 */
void hca_dev_reset(struct hca_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ib,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	dev->dead_at = ktime_get();
	/* pairs with step() */
	smp_store_release(&dev->dead, true);
	ib_dispatch_event(&event);
}
