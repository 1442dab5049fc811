// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator: it knows the paths of the InfiniBand subnet.
 *
 * Owns only its faults.  Called by gsi.c with a datagram for it, which becomes the answer.  It
 * answers for PathRecord and ClassPortInfo, which is what rdma_cm and ib_sa ask for.
 */
#include <linux/moduleparam.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

#include "rs_hca.h"

/* IB specification, volume 1, table 188: in the upper byte of the status */
enum { SA_INVALID = 0x0200, SA_NO_RECORDS = 0x0300, SA_INVALID_GID = 0x0500 };

static ushort sa_status;
module_param(sa_status, ushort, 0644);
MODULE_PARM_DESC(sa_status, "status of all answers for paths; 0x300: no path");

static ushort sa_pkey;
module_param(sa_pkey, ushort, 0644);
MODULE_PARM_DESC(sa_pkey, "P_Key of all paths, whatever was asked for");

static bool sa_stale;
module_param(sa_stale, bool, 0644);
MODULE_PARM_DESC(sa_stale, "paths lead to the LIDs before the last change");

/* A new LID is known at once: queries come after the event. */
static struct hca_dev *owner(const union ib_gid *gid)
{
	struct hca_dev *dev;

	lockdep_assert_held(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list) {
		union ib_gid own = hca_subnet_gid(dev);

		if (dev->profile->ib && hca_dev_port_up(dev) && !memcmp(&own, gid, sizeof(own)))
			return dev;
	}
	return NULL;
}

static u16 status_of(const struct hca_dev *from, const struct hca_dev *to,
		     const struct sa_path_rec *rec, bool with_pkey)
{
	if (READ_ONCE(sa_status))
		return sa_status;
	if (!from || !to)
		return SA_INVALID_GID;
	if (with_pkey && !hca_subnet_joins(from, to, be16_to_cpu(rec->pkey)))
		return SA_NO_RECORDS;
	return 0;
}

static void set_lids(struct sa_path_rec *rec, const struct hca_dev *from, const struct hca_dev *to)
{
	bool stale = READ_ONCE(sa_stale);

	sa_path_set_slid(rec, stale ? from->port.old_lid : from->port.lid);
	sa_path_set_dlid(rec, stale ? to->port.old_lid : to->port.lid);
}

/* What rdma_cm asks for has both GIDs. */
static u16 path(struct ib_sa_mad *mad)
{
	ib_sa_comp_mask need = IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID;
	bool with_pkey = mad->sa_hdr.comp_mask & IB_SA_PATH_REC_PKEY;
	struct hca_dev *from, *to;
	struct sa_path_rec rec;
	u16 status;

	if ((mad->sa_hdr.comp_mask & need) != need)
		return SA_INVALID;
	memset(&rec, 0, sizeof(rec));
	ib_sa_unpack_path(mad->data, &rec);
	rec.rec_type = SA_PATH_REC_TYPE_IB;
	spin_lock_bh(&hca_devs_lock);
	from = owner(&rec.sgid);
	to = owner(&rec.dgid);
	status = status_of(from, to, &rec, with_pkey);
	if (!status)
		set_lids(&rec, from, to);
	spin_unlock_bh(&hca_devs_lock);
	if (status)
		return status;
	if (READ_ONCE(sa_pkey))
		rec.pkey = cpu_to_be16(sa_pkey);
	else if (!with_pkey)
		rec.pkey = cpu_to_be16(IB_DEFAULT_PKEY_FULL);
	rec.reversible = 1;
	rec.numb_path = 1;
	rec.sl = 0;
	rec.mtu_selector = IB_SA_EQ;
	rec.mtu = IB_MTU_2048;
	rec.rate_selector = IB_SA_EQ;
	rec.rate = IB_RATE_100_GBPS;
	rec.packet_life_time_selector = IB_SA_EQ;
	rec.packet_life_time = 18;
	memset(mad->data, 0, sizeof(mad->data));
	ib_sa_pack_path(&rec, mad->data);
	return 0;
}

static u16 class_port_info(struct ib_sa_mad *mad)
{
	struct ib_class_port_info *info = (void *)mad->data;

	memset(mad->data, 0, sizeof(mad->data));
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = IB_SA_CLASS_VERSION;
	info->cap_mask2_resp_time = cpu_to_be32(18);
	return 0;
}

/**
 * hca_sa_answer() - a datagram for the subnet administrator
 * @dev:	its sender
 * @data:	the datagram, which becomes the answer
 *
 * Return: is there an answer?
 */
bool hca_sa_answer(struct hca_dev *dev, void *data)
{
	struct ib_sa_mad *mad = data;
	u16 status;

	BUILD_BUG_ON(sizeof(*mad) != IB_MGMT_MAD_SIZE);
	if (mad->mad_hdr.mgmt_class != IB_MGMT_CLASS_SUBN_ADM ||
	    mad->mad_hdr.method != IB_MGMT_METHOD_GET || hca_fault(dev, HCA_FAULT_SA))
		return false;
	switch (be16_to_cpu(mad->mad_hdr.attr_id)) {
	case IB_SA_ATTR_PATH_REC:
		status = path(mad);
		break;
	case IB_SA_ATTR_CLASS_PORTINFO:
		status = class_port_info(mad);
		break;
	default:
		status = SA_INVALID;
	}
	mad->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	mad->mad_hdr.status = cpu_to_be16(status);
	return true;
}
