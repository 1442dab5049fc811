// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections of iWARP devices: what iw_cm asks of a device.
 *
 * Owns the listeners, and an end of each connection: struct hca_iw.  Called by iw_cm, and by
 * qp.c when a queue pair ends.  There are no packets: the active end looks for the listener with
 * the address and calls it; the passive end answers by calling the active one.
 *
 * An end has a reference from its queue pair, one from the other end, one from queued work, and,
 * before it is accepted or rejected, one from the request.  hca_iw_lock guards which ends know each
 * other.  Events are told without it.
 */
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>

#include "rs_hca.h"

#define DATA_MAX	255
#define TRY_MS		200	/* between two SYNs */
#define TRIES		25
#define ANSWER_MS	10000	/* iw_cm may drop a request */

/*
 * struct hca_iw: an end of a connection
 * @id:		iw_cm's, with a reference; NULL: it is not to be told anything (any more)
 * @qp:		has this as its iw; NULL: not yet, or no more
 * @peer:	the other end, with a reference; NULL: not yet, or no more
 * @connecting:	@id waits for its answer
 * @tries:	so often the listener was looked for
 * @asked:	the listener was told; @work ends it if there is no answer
 */
struct hca_iw {
	refcount_t ref;
	struct hca_dev *dev;
	struct iw_cm_id *id;
	struct hca_qp *qp;
	struct hca_iw *peer;
	bool connecting, asked;
	unsigned int tries;
	struct delayed_work work;
	u32 ord, ird;
	u8 len;
	u8 data[DATA_MAX];
};

/*
 * struct hca_iw_listener: where an address and a port are waited for
 */
struct hca_iw_listener {
	struct list_head list;
	struct hca_dev *dev;
	struct iw_cm_id *id;
};

static LIST_HEAD(listeners);
static DEFINE_SPINLOCK(hca_iw_lock);	/* irq */

static void iw_put(struct hca_iw *iw)
{
	if (iw && refcount_dec_and_test(&iw->ref))
		kfree(iw);
}

static struct hca_iw *iw_new(struct hca_dev *dev)
{
	struct hca_iw *iw = kzalloc(sizeof(*iw), GFP_KERNEL);

	if (!iw)
		return NULL;
	refcount_set(&iw->ref, 1);
	iw->dev = dev;
	return iw;
}

/* ---- events ---- */

static int tell(struct iw_cm_id *id, enum iw_cm_event_type type, int status,
		const struct hca_iw *from)
{
	struct iw_cm_event event = {
		.event = type,
		.status = status,
		.local_addr = id->local_addr,
		.remote_addr = id->remote_addr,
	};

	if (from) {
		event.private_data = from->len ? (void *)from->data : NULL;
		event.private_data_len = from->len;
		event.ird = from->ird;
		event.ord = from->ord;
	}
	return id->event_handler(id, &event);
}

/* The last that @id hears. */
static void tell_end(struct iw_cm_id *id, bool connecting, int status, const struct hca_iw *from)
{
	if (!id)
		return;
	if (connecting)
		tell(id, IW_CM_EVENT_CONNECT_REPLY, status, from);
	else
		tell(id, IW_CM_EVENT_CLOSE, status, NULL);
	id->rem_ref(id);
}

/* ---- the end ---- */

/* Takes away what @iw has; the caller tells @id. */
static struct iw_cm_id *iw_cut(struct hca_iw *iw, struct hca_qp **qp, bool *connecting)
{
	struct iw_cm_id *id = iw->id;

	lockdep_assert_held(&hca_iw_lock);
	*connecting = iw->connecting;
	*qp = iw->qp;
	iw->id = NULL;
	iw->connecting = false;
	iw->qp = NULL;
	if (*qp)
		(*qp)->iw = NULL;
	return id;
}

/* Ends @iw, and the other end if the news gets there.  @status, @from: of a refusal. */
static void iw_end(struct hca_iw *iw, int status, const struct hca_iw *from)
{
	bool connecting, peer_connecting = false, heard = false, live = false;
	struct iw_cm_id *id, *peer_id = NULL;
	struct hca_qp *qp, *peer_qp = NULL;
	struct hca_iw *peer;
	unsigned long flags;

	spin_lock_irqsave(&hca_iw_lock, flags);
	id = iw_cut(iw, &qp, &connecting);
	peer = iw->peer;
	iw->peer = NULL;
	if (peer && peer->peer == iw && hca_wire_up(iw->dev, peer->dev)) {
		heard = true;
		peer->peer = NULL;
		peer_id = iw_cut(peer, &peer_qp, &peer_connecting);
		/* it must not go while it is told */
		live = peer_qp && refcount_inc_not_zero(&peer_qp->ref);
	}
	spin_unlock_irqrestore(&hca_iw_lock, flags);

	tell_end(id, connecting, status, from);
	if (live) {
		hca_qp_error(peer_qp);
		hca_qp_put(peer_qp);
	}
	tell_end(peer_id, peer_connecting, -ECONNRESET, NULL);
	if (qp)
		iw_put(iw);
	if (peer_qp)
		iw_put(peer);
	if (heard)
		iw_put(iw);
	iw_put(peer);
}

/**
 * hca_iw_close() - a queue pair ends, and so does its connection
 * @qp:	the queue pair
 *
 * Any context.
 */
void hca_iw_close(struct hca_qp *qp)
{
	struct hca_iw *iw;
	unsigned long flags;

	spin_lock_irqsave(&hca_iw_lock, flags);
	iw = qp->iw;
	if (iw)
		refcount_inc(&iw->ref);
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	if (!iw)
		return;
	iw_end(iw, -ECONNRESET, NULL);
	iw_put(iw);
}

/* ---- addresses ---- */

static __be16 port_of(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ? ((const struct sockaddr_in *)ss)->sin_port :
					  ((const struct sockaddr_in6 *)ss)->sin6_port;
}

/* Does the network device of @dev have the address? */
static bool has_addr(struct hca_dev *dev, const struct sockaddr_storage *ss)
{
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;
	bool found = false;

	if (ss->ss_family == AF_INET6)
		return ipv6_chk_addr(dev_net(dev->ndev),
				     &((const struct sockaddr_in6 *)ss)->sin6_addr, dev->ndev, 0);
	rcu_read_lock();
	in_dev = __in_dev_get_rcu(dev->ndev);
	if (in_dev)
		in_dev_for_each_ifa_rcu(ifa, in_dev)
			found |= ifa->ifa_local == ((const struct sockaddr_in *)ss)->sin_addr.s_addr;
	rcu_read_unlock();
	return found;
}

static bool is_any(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ?
		!((const struct sockaddr_in *)ss)->sin_addr.s_addr :
		ipv6_addr_any(&((const struct sockaddr_in6 *)ss)->sin6_addr);
}

static bool same_addr(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)b)->sin6_addr);
}

/*
 * rdma_cm listens on each device for each of its listeners, in whichever namespace; its own id,
 * which is the context, begins with a struct rdma_cm_id.
 */
static bool in_own_namespace(const struct hca_iw_listener *l)
{
	const struct rdma_cm_id *id = l->id->context;

	return net_eq(id->route.addr.dev_addr.net, dev_net(l->dev->ndev));
}

static bool listens(const struct hca_iw_listener *l, const struct sockaddr_storage *at)
{
	const struct sockaddr_storage *own = &l->id->local_addr;

	return own->ss_family == at->ss_family && port_of(own) == port_of(at) &&
	       (is_any(own) || same_addr(own, at)) && has_addr(l->dev, at) &&
	       in_own_namespace(l);
}

/* With a reference to its id. */
static struct iw_cm_id *find_listener(struct hca_dev *from, const struct sockaddr_storage *at,
				      struct hca_dev **dev)
{
	struct hca_iw_listener *l;
	struct iw_cm_id *id = NULL;
	unsigned long flags;

	spin_lock_irqsave(&hca_iw_lock, flags);
	list_for_each_entry(l, &listeners, list) {
		if (!listens(l, at))
			continue;
		*dev = l->dev;
		id = l->id;
		id->add_ref(id);
		break;
	}
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	return id;
}

/* ---- connecting ---- */

/* Tells a listener.  It calls accept or reject, now or later. */
static int request(struct hca_iw *iw, struct iw_cm_id *listener, struct hca_dev *dev)
{
	struct hca_iw *passive = iw_new(dev);
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.private_data = iw->data,
		.private_data_len = iw->len,
		.ird = iw->ord,
		.ord = iw->ird,
		.provider_data = passive,
	};
	unsigned long flags;
	int err = -ECONNRESET;

	if (!passive)
		return -ECONNREFUSED;
	spin_lock_irqsave(&hca_iw_lock, flags);
	if (iw->id) {
		event.local_addr = iw->id->remote_addr;
		event.remote_addr = iw->id->local_addr;
		refcount_inc(&iw->ref);
		passive->peer = iw;
		refcount_inc(&passive->ref);
		iw->peer = passive;
		err = 0;
	}
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	if (!err)
		err = listener->event_handler(listener, &event) ? -ECONNREFUSED : 0;
	if (err) {
		iw_end(passive, err, NULL);
		iw_put(passive);
	}
	return err;
}

static void connect_work(struct work_struct *work)
{
	struct hca_iw *iw = container_of(to_delayed_work(work), struct hca_iw, work);
	struct iw_cm_id *listener = NULL;
	struct sockaddr_storage at = {};
	unsigned int wait = TRY_MS;
	struct hca_dev *dev;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&hca_iw_lock, flags);
	if (iw->id)
		at = iw->id->remote_addr;
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	if (!at.ss_family)
		goto out;
	err = -ETIMEDOUT;
	if (iw->asked) {
		if (!iw->connecting)
			goto out;
	} else if (!hca_fault(iw->dev, HCA_FAULT_MAD))
		listener = find_listener(iw->dev, &at, &dev);
	if (listener && hca_wire_up(iw->dev, dev)) {
		iw->asked = true;
		err = request(iw, listener, dev);
		wait = ANSWER_MS;
	} else if (!iw->asked && iw->tries++ < TRIES) {
		/* TCP tries again, for this end still exists */
		err = 0;
	}
	if (!err) {
		refcount_inc(&iw->ref);
		schedule_delayed_work(&iw->work, msecs_to_jiffies(wait));
	}
	if (listener)
		listener->rem_ref(listener);
	if (err)
		iw_end(iw, err, NULL);
out:
	iw_put(iw);
}

static bool param_fits(const struct iw_cm_conn_param *param)
{
	return param->private_data_len <= DATA_MAX;
}

static void take_param(struct hca_iw *iw, const struct iw_cm_conn_param *param)
{
	iw->ord = param->ord;
	iw->ird = param->ird;
	iw->len = param->private_data_len;
	memcpy(iw->data, param->private_data, iw->len);
}

/* The queue pair that iw_cm means, without a reference: iw_cm takes one itself. */
struct ib_qp *hca_iw_get_qp(struct ib_device *ib, int qpn)
{
	struct hca_qp *qp = hca_qp_find(qpn);
	bool good = qp && qp->dev == to_hca(ib);

	if (qp)
		hca_qp_put(qp);
	return good ? &qp->ib : NULL;
}

int hca_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct hca_qp *qp = hca_qp_find(param->qpn);
	unsigned long flags;
	struct hca_iw *iw;
	int err = -EINVAL;

	if (!qp || !param_fits(param))
		goto out;
	err = -ENOMEM;
	iw = iw_new(qp->dev);
	if (!iw)
		goto out;
	take_param(iw, param);
	INIT_DELAYED_WORK(&iw->work, connect_work);
	spin_lock_irqsave(&hca_iw_lock, flags);
	iw->qp = qp;
	qp->iw = iw;
	iw->id = id;
	id->add_ref(id);
	iw->connecting = true;
	refcount_inc(&iw->ref);
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	schedule_delayed_work(&iw->work, 0);
	err = 0;
out:
	if (qp)
		hca_qp_put(qp);
	return err;
}

/* ---- accepting ---- */

int hca_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct hca_qp *qp = hca_qp_find(param->qpn), *peer_qp = NULL;
	struct hca_iw *iw = id->provider_data, *peer;
	struct iw_cm_id *peer_id = NULL;
	unsigned long flags;
	int err = -EINVAL;

	if (!qp || !param_fits(param))
		goto out;
	take_param(iw, param);
	err = -ECONNRESET;
	spin_lock_irqsave(&hca_iw_lock, flags);
	peer = iw->peer;
	if (peer && peer->connecting && refcount_inc_not_zero(&peer->qp->ref)) {
		peer_qp = peer->qp;
		iw->id = id;
		id->add_ref(id);
		iw->qp = qp;
		qp->iw = iw;
		refcount_inc(&iw->ref);
		peer->connecting = false;
		peer_id = peer->id;
		peer_id->add_ref(peer_id);
		err = 0;
	}
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	if (err)
		goto out;
	hca_qp_establish(peer_qp, qp->ib.qp_num, false);
	hca_qp_establish(qp, peer_qp->ib.qp_num, true);
	hca_qp_put(peer_qp);
	tell(id, IW_CM_EVENT_ESTABLISHED, 0, NULL);
	tell(peer_id, IW_CM_EVENT_CONNECT_REPLY, 0, iw);
	peer_id->rem_ref(peer_id);
out:
	if (qp)
		hca_qp_put(qp);
	if (err)
		iw_end(iw, err, NULL);
	iw_put(iw);
	return err;
}

int hca_iw_reject(struct iw_cm_id *id, const void *data, u8 len)
{
	struct hca_iw *iw = id->provider_data, *peer;
	unsigned long flags;

	iw->len = len;
	memcpy(iw->data, data, len);
	spin_lock_irqsave(&hca_iw_lock, flags);
	peer = iw->peer;
	if (peer)
		refcount_inc(&peer->ref);
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	if (peer) {
		iw_end(peer, -ECONNREFUSED, iw);
		iw_put(peer);
	}
	iw_put(iw);
	return 0;
}

/* ---- listening ---- */

int hca_iw_listen(struct iw_cm_id *id, int backlog)
{
	struct hca_iw_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);
	unsigned long flags;

	if (!l)
		return -ENOMEM;
	l->dev = to_hca(id->device);
	l->id = id;
	id->add_ref(id);
	id->provider_data = l;
	spin_lock_irqsave(&hca_iw_lock, flags);
	list_add_tail(&l->list, &listeners);
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	return 0;
}

int hca_iw_unlisten(struct iw_cm_id *id)
{
	struct hca_iw_listener *l = id->provider_data;
	unsigned long flags;

	spin_lock_irqsave(&hca_iw_lock, flags);
	list_del(&l->list);
	spin_unlock_irqrestore(&hca_iw_lock, flags);
	kfree(l);
	id->rem_ref(id);
	return 0;
}
