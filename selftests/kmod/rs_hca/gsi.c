// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams of QP 1, with which rdma_cm connects.
 *
 * Owns no data.  Called by the requester of a QP 1.  A datagram without a receiver or without a
 * posted receive is lost, and its sender is not notified.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "rs_hca.h"

struct datagram {
	union rdma_network_hdr hdr;
	u8 data[IB_MGMT_MAD_SIZE];
};

static bool is_ipv4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

/* The IP header with which it would have arrived. */
static void fill_header(union rdma_network_hdr *hdr, const struct hca_av *av, u32 len)
{
	len += sizeof(struct udphdr);
	if (is_ipv4(&av->dgid)) {
		hdr->roce4grh = (struct iphdr){
			.version = 4,
			.ihl = sizeof(struct iphdr) / 4,
			.tot_len = cpu_to_be16(sizeof(struct iphdr) + len),
			.ttl = av->hop_limit,
			.protocol = IPPROTO_UDP,
		};
		memcpy(&hdr->roce4grh.saddr, av->sgid.raw + 12, 4);
		memcpy(&hdr->roce4grh.daddr, av->dgid.raw + 12, 4);
		return;
	}
	hdr->ibgrh = (struct ib_grh){
		.version_tclass_flow = cpu_to_be32(6 << 28),
		.paylen = cpu_to_be16(len),
		.next_hdr = IPPROTO_UDP,
		.hop_limit = av->hop_limit,
		.sgid = av->sgid,
		.dgid = av->dgid,
	};
}

/* The VLAN of the receiving address. */
static void set_vlan(struct hca_dev *dev, const union ib_gid *gid, struct ib_wc *wc)
{
	const struct ib_gid_attr *attr;
	u16 vlan = 0xffff;

	attr = rdma_find_gid(&dev->ib, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr))
		return;
	rdma_read_gid_l2_fields(attr, &vlan, NULL);
	rdma_put_gid_attr(attr);
	if (vlan == 0xffff)
		return;
	wc->vlan_id = vlan;
	wc->wc_flags |= IB_WC_WITH_VLAN;
}

/* How the receiver learns the sender. */
static void set_source(struct hca_dev *dev, struct hca_dev *from, const struct hca_av *av,
		       struct ib_wc *wc)
{
	wc->wc_flags = IB_WC_GRH | IB_WC_WITH_SMAC | IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->network_hdr_type = is_ipv4(&av->dgid) ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	ether_addr_copy(wc->smac, from->ndev->dev_addr);
	set_vlan(dev, &av->dgid, wc);
}

static void deliver(struct hca_qp *qp, struct ib_wc *wc, struct datagram *d)
{
	const struct hca_rqe *rqe;

	wc->opcode = IB_WC_RECV;
	wc->src_qp = 1;
	wc->port_num = 1;
	spin_lock_bh(&qp->landing);
	rqe = qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS ? hca_qp_rqe(qp) : NULL;
	if (rqe) {
		const struct hca_mem to = {
			.dev = qp->dev,
			.pd = qp->ib.pd,
			.sge = rqe->sge,
			.n = rqe->num_sge,
			.access = IB_ACCESS_LOCAL_WRITE,
		};

		if (hca_mem_good(&to, wc->byte_len) &&
		    !hca_mem_io(&to, 0, d, wc->byte_len))
			hca_qp_received(qp, rqe, wc, true);
	}
	spin_unlock_bh(&qp->landing);
}

static bool read_data(struct hca_qp *qp, const struct hca_wqe *wqe, struct datagram *d)
{
	const struct hca_mem from = {
		.dev = qp->dev,
		.pd = qp->ib.pd,
		.sge = wqe->sge,
		.n = wqe->num_sge,
		.wqe = wqe,
	};

	return wqe->len <= sizeof(d->data) && hca_mem_good(&from, wqe->len) &&
	       !hca_mem_io(&from, 0, d->data, wqe->len);
}

/* To the subnet administrator, which may answer. */
static void ask_sa(struct hca_qp *qp, const struct hca_wqe *wqe, struct datagram *d)
{
	int index = hca_subnet_accepts(qp->dev, IB_DEFAULT_PKEY_FULL);
	struct ib_wc wc = {
		.byte_len = sizeof(*d),
		.slid = wqe->av.dlid,
		.pkey_index = index,
	};

	if (index >= 0 && hca_wire_up(qp->dev, qp->dev) && hca_sa_answer(qp->dev, d->data))
		deliver(qp, &wc, d);
}

/* On InfiniBand, by LIDs and P_Keys. */
static void send_ib(struct hca_qp *qp, struct hca_qp *peer, const struct hca_wqe *wqe,
		    struct datagram *d)
{
	int index = hca_subnet_accepts(peer->dev, hca_subnet_pkey(qp->dev, wqe->pkey_index));
	struct ib_wc wc = {
		.byte_len = sizeof(d->hdr) + wqe->len,
		.slid = READ_ONCE(qp->dev->port.lid),
		.sl = wqe->av.sl,
		.pkey_index = index,
		.wc_flags = wqe->av.grh ? IB_WC_GRH : 0,
	};

	if (index >= 0)
		deliver(peer, &wc, d);
}

static void send_eth(struct hca_qp *qp, struct hca_qp *peer, const struct hca_wqe *wqe,
		     struct datagram *d)
{
	struct ib_wc wc = { .byte_len = sizeof(d->hdr) + wqe->len };

	set_source(peer->dev, qp->dev, &wqe->av, &wc);
	deliver(peer, &wc, d);
}

/**
 * hca_gsi_send() - a datagram goes out
 * @qp:		the sender
 * @wqe:	the datagram
 */
void hca_gsi_send(struct hca_qp *qp, const struct hca_wqe *wqe)
{
	struct hca_dev *dev = NULL;
	struct hca_qp *peer = NULL;
	struct datagram d = {};

	if (!read_data(qp, wqe, &d)) {
		hca_qp_sent(qp, wqe, IB_WC_LOC_PROT_ERR);
		return;
	}
	if (wqe->av.grh)
		fill_header(&d.hdr, &wqe->av, wqe->len);
	if (qp->dev->profile->ib && hca_subnet_is_sm(wqe->av.dlid))
		ask_sa(qp, wqe, &d);
	else if (!hca_fault(qp->dev, HCA_FAULT_MAD))
		dev = hca_wire_find(&wqe->av);
	if (dev && hca_wire_up(qp->dev, dev))
		peer = hca_qp_gsi(dev);
	if (peer) {
		if (wqe->av.dlid)
			send_ib(qp, peer, wqe, &d);
		else
			send_eth(qp, peer, wqe, &d);
		hca_qp_put(peer);
	}
	if (dev)
		ib_device_put(&dev->ib);
	hca_qp_sent(qp, wqe, IB_WC_SUCCESS);
}
