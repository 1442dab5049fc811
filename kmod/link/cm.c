// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection manager: connects, accepts and disconnects links.
 *
 * Owns the cm_id of each link, the listeners of a namespace, and the private data that the
 * two sides exchange.  Called by peer.c (connect), link_life.c (setup, disconnect, destroy),
 * link_net.c (listen) and rdma_cm.  A handler never destroys an id, neither its own nor another:
 * only workers do, because rdma_destroy_id() may block for as long as the CM retransmits an
 * unanswered message.
 *
 * Handlers don't wait.  rdma_cm and ib_cm each have one worker for all namespaces, so memory is
 * allocated and objects of the device are created in workers of this module: request_work for a
 * link that a peer requests, link->cm.setup_work for the queues of any link.
 *
 * Authentication.  rdma_cm does not authenticate REQ and REP: anybody can send or forward them.
 * So both contain a proof that only the two ends of the TCP connection can compute, because its
 * key and input contain the secrets from their HELLOs.  The proof covers the addresses and queue
 * pair numbers as its sender sees them.  A man in the middle has separate queue pairs with the
 * two hosts, so a proof that it forwards does not match what the other host sees.  With iWARP,
 * the proof covers only the addresses.  The keys of the link, with which each end authenticates
 * its records about rings, are derived in the same way from the two complete messages.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <net/ipv6.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "base/events.h"
#include "account.h"
#include "cm.h"
#include "cm_data.h"
#include "device.h"
#include "peer_host.h"
#include "qp.h"

#define LISTEN_BACKLOG	64
#define LISTEN_PAUSE	(2 * HZ)	/* after a failure */
#define RELISTEN_PAUSE	HZ		/* after another port was set */
#define RNR_RETRIES	3	/* not needed, see msg.c on receive credits */

/* ---- private data ---- */

static_assert(RSTREAM_CM_SECRET_LEN == RSTREAM_SECRET_LEN);
static_assert(sizeof_field(struct rstream_cm_transcript, active_gid) == sizeof(union ib_gid));

static u64 transcript_hash(struct rstream_cm_transcript *t, enum rstream_cm_purpose why,
			   const struct rstream_ticket *ticket, bool active)
{
	const u8 *ours = ticket->ours.secret, *theirs = ticket->theirs.secret;
	siphash_key_t key;

	rstream_cm_transcript_for(t, why, active ? ours : theirs, active ? theirs : ours, key.key);
	return siphash(t, sizeof(*t), &key);
}

static bool is_iwarp(const struct rdma_cm_id *id)
{
	return rdma_protocol_iwarp(id->device, id->port_num);
}

static void ip_gid(const struct sockaddr_storage *ss, u8 *gid)
{
	if (ss->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(((const struct sockaddr_in *)ss)->sin_addr.s_addr,
				       (struct in6_addr *)gid);
	else
		memcpy(gid, &((const struct sockaddr_in6 *)ss)->sin6_addr,
		       sizeof(struct in6_addr));
}

/*
 * Fills in the ends of the queue pair's path: GIDs and queue pair numbers.  With iWARP, the IP
 * addresses of its TCP connection take the place of the GIDs, and the numbers remain 0, because
 * the ends do not learn each other's.  On InfiniBand, the passive side takes the GIDs from the
 * REQ, and sends to the LID in it.  Return: false if there is no path.
 */
static bool transcript_ends(struct rstream_cm_transcript *t, const struct rdma_cm_id *id,
			    bool active, u32 active_qpn, u32 passive_qpn)
{
	u8 *own = active ? t->active_gid : t->passive_gid;
	u8 *other = active ? t->passive_gid : t->active_gid;
	const struct sa_path_rec *path = id->route.path_rec;

	if (is_iwarp(id)) {
		ip_gid(&id->route.addr.src_addr, own);
		ip_gid(&id->route.addr.dst_addr, other);
		return true;
	}
	if (!path)
		return false;
	memcpy(own, &path->sgid, sizeof(path->sgid));
	memcpy(other, &path->dgid, sizeof(path->dgid));
	rstream_cm_transcript_qpns(t, active_qpn, passive_qpn);
	return true;
}

static void link_keys(struct rstream_link *link, struct rstream_cm_transcript *t)
{
	siphash_key_t keys[2];		/* active, passive */
	int i;

	for (i = 0; i < 4; i++)
		keys[i / 2].key[i % 2] = transcript_hash(t, RSTREAM_CM_KEY_ACTIVE + i,
							 &link->ticket,
							 link->active);
	spin_lock_bh(&link->lock);
	link->cm.proof_key = keys[link->active ? 0 : 1];
	link->cm.peer_proof_key = keys[link->active ? 1 : 0];
	spin_unlock_bh(&link->lock);
}

/* What the REQ or REP of @link contains. */
static void hello_fill(const struct rstream_link *link, u64 proof,
		       struct rstream_cm_hello *hello)
{
	const struct rstream_cm_fields fields = {
		.slot = link->slot,
		.rq_depth = link->qp.depth,
		.token = link->ticket.theirs.token,
		.own_token = link->ticket.ours.token,
		.link_id = link->id,
		.key = link->cm.key,
		.proof = proof,
	};

	rstream_cm_hello_write(hello, &fields);
}

/* The REQ of @link, with its proof. */
static int req_fill(const struct rstream_link *link,
		    const struct rdma_cm_id *id, struct rstream_cm_transcript *t)
{
	memset(t, 0, sizeof(*t));
	hello_fill(link, 0, &t->req);
	if (!transcript_ends(t, id, true, link->qp.num, 0))
		return -EPROTO;
	hello_fill(link, transcript_hash(t, RSTREAM_CM_PROOF_REQ, &link->ticket, true), &t->req);
	return 0;
}

static bool hello_valid(const struct rstream_cm_hello *hello, u8 len,
			struct rstream_cm_fields *fields)
{
	return rstream_cm_hello_read(hello, len, fields) && fields->link_id &&
	       fields->slot < RSTREAM_SLOTS && fields->rq_depth >= RSTREAM_DEPTH_MIN;
}

static void hello_apply(struct rstream_link *link,
			const struct rstream_cm_fields *fields)
{
	spin_lock_bh(&link->lock);
	link->peer_id = fields->link_id;
	link->msg.credits_max = fields->rq_depth - RSTREAM_RQ_RESERVE;
	link->msg.credits = link->msg.credits_max;
	spin_unlock_bh(&link->lock);
}

u64 rstream_cm_proof(struct rstream_link *link, bool ours, const void *what,
		     size_t len)
{
	siphash_key_t key;

	spin_lock_bh(&link->lock);
	key = ours ? link->cm.proof_key : link->cm.peer_proof_key;
	spin_unlock_bh(&link->lock);
	return siphash(what, len, &key);
}

static void conn_param(const struct rstream_link *link,
		       const struct rstream_cm_hello *hello,
		       struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = sizeof(*hello),
		/* no RDMA reads; some providers refuse 0 */
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = rstream_link_set(link->ln)->retry_count,
		.rnr_retry_count = RNR_RETRIES,
	};
}

/* ---- active side ---- */

/*
 * To an iWARP device, a request is a TCP connection.  A peer must not choose the port, or this host
 * would connect to any service at the address: another host's, if the peer advertises it, or that
 * of a node which the peer shares it with.
 */
static bool other_service(const struct rstream_link *link, const struct rdma_cm_id *id)
{
	return is_iwarp(id) &&
	       ((const struct sockaddr_in *)&link->remote)->sin_port !=
	       htons(rstream_link_set(link->ln)->cm_port);
}

/* Return: NONE, or why the link must end. */
static enum rstream_link_end resolved_addr(struct rstream_link *link, struct rdma_cm_id *id)
{
	/* rdma_cm may find the device of another namespace that has the same address */
	if (other_service(link, id) || !rstream_dev_is_of(id, link->ln->net) ||
	    rstream_dev_attach(link, id->device))
		return RSTREAM_END_NO_WAY;
	spin_lock_bh(&link->lock);
	if (link->local.ss_family == AF_UNSPEC)	/* routing has chosen */
		memcpy(&link->local, &id->route.addr.src_addr,
		       sizeof(link->local));
	spin_unlock_bh(&link->lock);
	/* on InfiniBand, this asks the subnet manager; its answer arrives as an event */
	if (rdma_resolve_route(id, rstream_link_set(link->ln)->cm_timeout_ms))
		return RSTREAM_END_NO_ROUTE;
	return RSTREAM_END_NONE;
}

/* Sends the REQ. */
static int connect_link(struct rstream_link *link)
{
	struct rdma_conn_param param;
	struct rstream_cm_transcript t;
	int err;

	err = rstream_qp_create(link);
	if (err)
		return err;
	err = req_fill(link, link->cm.id, &t);
	if (err)
		return err;
	conn_param(link, &t.req, &param);
	return rdma_connect(link->cm.id, &param);
}

/* The REP has arrived.  Return: NONE, or why the link must end. */
static enum rstream_link_end accepted(struct rstream_link *link, struct rdma_cm_id *id,
				      struct rdma_cm_event *event)
{
	const struct rstream_cm_hello *rep = event->param.conn.private_data;
	struct rstream_cm_fields fields;
	struct rstream_cm_transcript t;

	if (!hello_valid(rep, event->param.conn.private_data_len, &fields) ||
	    req_fill(link, id, &t) ||
	    !transcript_ends(&t, id, true, link->qp.num, event->param.conn.qp_num))
		return RSTREAM_END_BAD_ANSWER;
	t.rep = *rep;
	t.rep.proof = 0;
	if (fields.proof != transcript_hash(&t, RSTREAM_CM_PROOF_REP, &link->ticket, true)) {
		rstream_mib_reason(link->ln->rn, RSTREAM_R_LINK_UNAUTHENTICATED);
		return RSTREAM_END_UNPROVEN;
	}
	t.rep.proof = rep->proof;
	link_keys(link, &t);
	hello_apply(link, &fields);
	return RSTREAM_END_NONE;
}

/*
 * Does nothing once teardown has begun: link_down_work() sets @closing under setup_lock, and waits
 * only for what was started before.
 */
static void link_step(struct rstream_link *link, struct rdma_cm_id *id,
		      struct rdma_cm_event *event)
{
	enum rstream_link_end end = RSTREAM_END_NONE;

	mutex_lock(&link->cm.setup_lock);
	if (link->cm.closing || !rstream_link_alive(link))
		goto out;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		end = resolved_addr(link, id);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		queue_work(rstream_wqs[RSTREAM_WQ_SETUP], &link->cm.setup_work);
		break;
	default:
		if (link->active)
			end = accepted(link, id, event);
		if (end)
			break;
		spin_lock_bh(&link->lock);
		rstream_link_established(link);
		spin_unlock_bh(&link->lock);
	}
	if (end)
		rstream_link_break(link, end);
out:
	mutex_unlock(&link->cm.setup_lock);
}

/*
 * Return: enum rstream_cm_why, or 0 if rdma_cm or another protocol has rejected.  iWARP providers
 * report a rejection by the peer with different statuses, but all pass on its private data.
 */
static u8 why_rejected(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct rstream_cm_reject *rej;
	u8 len = 0;

	if (is_iwarp(id)) {
		rej = event->param.conn.private_data;
		len = event->param.conn.private_data_len;
	} else {
		rej = rdma_consumer_reject_data(id, event, &len);
	}
	return rstream_cm_reject_read(rej, len);
}

/* Ends @link; @why is a text of rdma_cm. */
static void cm_ends(struct rstream_link *link, enum rstream_link_end end, const char *why)
{
	spin_lock_bh(&link->lock);
	rstream_link_ends(link, end, why);
	spin_unlock_bh(&link->lock);
}

static void link_rejected(struct rstream_link *link, struct rdma_cm_id *id,
			  struct rdma_cm_event *event)
{
	enum rstream_link_end end = RSTREAM_END_REJECTED;
	u8 why = why_rejected(id, event);

	/* an attempt that was given up says nothing about the peer of today */
	if (!rstream_link_alive(link))
		return;
	if (why == RSTREAM_CM_DRAINED) {
		rstream_peer_declines(link->peer);
		end = RSTREAM_END_PEER_DRAINED;
	} else if (why == RSTREAM_CM_BAD_TOKEN) {
		end = rstream_peer_bad_token(link) ? RSTREAM_END_OLD_TOKEN : RSTREAM_END_BAD_TOKEN;
	} else if (!why && !is_iwarp(id) && event->status != IB_CM_REJ_CONSUMER_DEFINED) {
		/* from the peer's ib_cm: no listener, unknown GID, stale connection */
		cm_ends(link, end, rdma_reject_msg(id, event->status));
		return;
	}
	rstream_link_break(link, end);
}

static int link_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rstream_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		link_step(link, id, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		spin_lock_bh(&link->lock);
		rstream_link_disconnected(link);
		spin_unlock_bh(&link->lock);
		break;
	case RDMA_CM_EVENT_REJECTED:
		link_rejected(link, id, event);
		break;
	default:
		cm_ends(link, RSTREAM_END_CM_EVENT, rdma_event_msg(event->event));
	}
	return 0;
}

/* After an error, link_down_work() cleans up. */
int rstream_cm_connect(struct rstream_link *link,
		       const struct rstream_peer_route *route)
{
	const struct rstream_settings *set = rstream_link_set(link->ln);
	struct sockaddr *local;
	struct rdma_cm_id *id;
	int err = -ENOTCONN;

	mutex_lock(&link->cm.setup_lock);
	if (link->cm.closing)
		goto out;
	spin_lock_bh(&link->lock);	/* the link may be shown at any time */
	link->ticket = route->ticket;
	link->local = route->local;
	link->remote = route->remote;
	spin_unlock_bh(&link->lock);
	local = route->local.ss_family == AF_UNSPEC ? NULL :
						      (struct sockaddr *)&link->local;
	id = rdma_create_id(link->ln->net, link_handler, link, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id)) {
		err = PTR_ERR(id);
		goto out;
	}
	link->cm.id = id;
	rdma_set_ack_timeout(id, set->ack_timeout);
	err = rdma_resolve_addr(id, local, (struct sockaddr *)&link->remote,
				set->cm_timeout_ms);
out:
	mutex_unlock(&link->cm.setup_lock);
	if (err)
		rstream_link_break(link, RSTREAM_END_NO_WAY);
	return err;
}

/* ---- passive side ---- */

static void reject(struct rstream_link_net *ln, struct rdma_cm_id *id,
		   enum rstream_reason reason)
{
	static const u8 whys[] = {
		[RSTREAM_R_LINK_MALFORMED] = RSTREAM_CM_BAD_REQ,
		[RSTREAM_R_LINK_UNKNOWN] = RSTREAM_CM_BAD_TOKEN,
		[RSTREAM_R_LINK_UNAUTHENTICATED] = RSTREAM_CM_BAD_TOKEN,
		[RSTREAM_R_LINK_BUSY] = RSTREAM_CM_BUSY,
		[RSTREAM_R_DRAINED] = RSTREAM_CM_DRAINED,
	};
	struct rstream_cm_reject rej;

	rstream_cm_reject_write(&rej, whys[reason]);
	rstream_mib_inc(ln->rn, RSTREAM_MIB_LINKS_REJECTED);
	rstream_mib_reason(ln->rn, reason);
	rstream_event_link_refused(&id->route.addr.dst_addr, reason);
	rdma_reject(id, &rej, sizeof(rej), IB_CM_REJ_CONSUMER_DEFINED);
}

/*
 * An authentic REQ; its link owns it from link_takes() on.
 * @id:		created by rdma_cm for the REQ
 * @qpn:	queue pair number of the sender
 */
struct rstream_request {
	struct work_struct work;
	struct rstream_link_net *ln;
	struct rstream_host *host;	/* whose it is; a reference */
	struct rdma_cm_id *id;
	struct rstream_cm_hello hello;
	struct rstream_cm_fields fields;	/* of @hello */
	u32 qpn;
};

/* Sends the REP. */
static int accept_link(struct rstream_link *link)
{
	const struct rstream_request *req = link->cm.request;
	struct rdma_cm_id *id = link->cm.id;
	struct rstream_cm_transcript t = { .req = req->hello };
	struct rdma_conn_param param;
	int err;

	err = rstream_dev_attach(link, id->device);
	if (err)
		return err;
	rdma_set_ack_timeout(id, rstream_link_set(link->ln)->ack_timeout);
	hello_apply(link, &req->fields);
	err = rstream_qp_create(link);
	if (err)
		return err;
	hello_fill(link, 0, &t.rep);
	if (!transcript_ends(&t, id, false, req->qpn, link->qp.num))
		return -EPROTO;
	hello_fill(link, transcript_hash(&t, RSTREAM_CM_PROOF_REP, &link->ticket, false), &t.rep);
	link_keys(link, &t);
	conn_param(link, &t.rep, &param);
	rdma_lock_handler(id);
	err = rdma_accept(id, &param);
	rdma_unlock_handler(id);
	return err;
}

/*
 * Does @req come from the other end of an existing connection?  Return: NONE, with @ticket and
 * @name filled in, or the reason why not.
 */
static enum rstream_reason req_whose(const struct rstream_request *req,
				     struct rstream_ticket *ticket,
				     struct rstream_peer_name *name)
{
	struct rstream_cm_transcript t = { .req = req->hello };

	ticket->ours.token = req->fields.token;
	ticket->theirs.token = req->fields.own_token;
	if (!rstream_link_ops->find(req->ln->net, ticket, name))
		return RSTREAM_R_LINK_UNKNOWN;
	t.req.proof = 0;
	if (!transcript_ends(&t, req->id, false, req->qpn, 0) ||
	    req->fields.proof != transcript_hash(&t, RSTREAM_CM_PROOF_REQ, ticket, false))
		return RSTREAM_R_LINK_UNAUTHENTICATED;
	return RSTREAM_R_NONE;
}

/*
 * Return: a new link for @req, or NULL and the @reason.  The REQ is checked again, because its TCP
 * connection may have ended meanwhile.
 */
static struct rstream_link *link_requested(const struct rstream_request *req,
					   struct rstream_ticket *ticket,
					   enum rstream_reason *reason)
{
	struct rstream_link_net *ln = req->ln;
	bool drained = rstream_link_drained(ln->net);
	struct rstream_link *link = NULL;
	struct rstream_peer_name name;
	struct rstream_peer *peer;

	*reason = req_whose(req, ticket, &name);
	if (*reason)
		return NULL;
	*reason = RSTREAM_R_LINK_BUSY;
	peer = rstream_peer_get(ln->net, &name);
	if (!peer)
		return NULL;
	/* the active side of a pair never changes */
	if (!peer->active || peer->self)
		link = rstream_life_new(peer, NULL, req->fields.slot);
	rstream_peer_put(peer);
	/* the drain may begin or end meanwhile */
	if (!link && (drained || rstream_link_drained(ln->net)))
		*reason = RSTREAM_R_DRAINED;
	return link;
}

/*
 * @link takes over the request and its id: after this, link_down_work() cleans up.  Return: false
 * if teardown of the link has already begun.
 */
static bool link_takes(struct rstream_link *link, struct rstream_request *req,
		       const struct rstream_ticket *ticket)
{
	struct rdma_cm_id *id = req->id;
	bool takes;

	rdma_lock_handler(id);
	mutex_lock(&link->cm.setup_lock);
	takes = !link->cm.closing;
	if (takes) {
		link->cm.id = id;
		id->context = link;
		id->event_handler = link_handler;
		link->cm.request = req;
		spin_lock_bh(&link->lock);	/* as in rstream_cm_connect() */
		link->ticket = *ticket;
		memcpy(&link->local, &id->route.addr.src_addr, sizeof(link->local));
		memcpy(&link->remote, &id->route.addr.dst_addr, sizeof(link->remote));
		spin_unlock_bh(&link->lock);
		queue_work(rstream_wqs[RSTREAM_WQ_SETUP], &link->cm.setup_work);
	}
	mutex_unlock(&link->cm.setup_lock);
	rdma_unlock_handler(id);
	return takes;
}

static void request_work(struct work_struct *work)
{
	struct rstream_request *req = container_of(work, struct rstream_request, work);
	struct rstream_link_net *ln = req->ln;
	struct rstream_host *host = req->host;	/* @req may be the link's, and end with it */
	struct rstream_ticket ticket;
	enum rstream_reason reason;
	struct rstream_link *link;
	bool taken = false;

	link = link_requested(req, &ticket, &reason);
	if (link) {
		taken = link_takes(link, req, &ticket);
		rstream_link_put(link);
	} else {
		reject(ln, req->id, reason);
	}
	if (!taken) {
		rdma_destroy_id(req->id);
		kfree(req);
	}
	spin_lock_bh(&ln->lock);
	rstream_host_del_request(ln, host);
	rstream_host_put(ln, host);
	wake_up_all(&ln->wait);
	spin_unlock_bh(&ln->lock);
}

/*
 * Ignores events until the link takes over the id: if the connection has failed by then,
 * rdma_accept() fails.
 */
static int request_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

static bool request_add(struct rstream_link_net *ln, const struct rstream_request *from,
			const struct rstream_peer_name *name)
{
	struct rstream_request *req;
	bool add = false;

	/* GFP_NOWAIT: rdma_cm's worker must neither reclaim memory nor sleep for a group */
	req = rstream_account_zalloc(ln, sizeof(*req), GFP_NOWAIT | __GFP_NOWARN);
	if (!req)
		return false;
	*req = *from;
	spin_lock_bh(&ln->lock);
	req->host = ln->exiting ? NULL : rstream_host_get(ln, name);
	if (req->host) {
		add = rstream_host_add_request(ln, req->host);
		if (!add)
			rstream_host_put(ln, req->host);
	}
	spin_unlock_bh(&ln->lock);
	if (!add) {
		kfree(req);
		return false;
	}
	req->id->event_handler = request_handler;
	INIT_WORK(&req->work, request_work);
	queue_work(rstream_wqs[RSTREAM_WQ_REQUESTS], &req->work);
	return true;
}

/* Authenticates the REQ.  Return: if not 0, rdma_cm destroys the id. */
static int connect_request(struct rstream_link_net *ln, struct rdma_cm_id *id,
			   struct rdma_cm_event *event)
{
	const struct rstream_cm_hello *hello = event->param.conn.private_data;
	struct rstream_request req = { .ln = ln, .id = id, .qpn = event->param.conn.qp_num };
	enum rstream_reason reason = RSTREAM_R_LINK_MALFORMED;
	struct rstream_peer_name name;
	struct rstream_ticket ticket;

	if (hello_valid(hello, event->param.conn.private_data_len, &req.fields)) {
		req.hello = *hello;
		reason = req_whose(&req, &ticket, &name);
		if (!reason && !request_add(ln, &req, &name))
			reason = RSTREAM_R_LINK_BUSY;
	}
	if (!reason)
		return 0;
	reject(ln, id, reason);
	return -ECONNREFUSED;
}

static int listen_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return connect_request(id->context, id, event);
	return 0;
}

static struct rdma_cm_id *listen_at(struct rstream_link_net *ln, int family)
{
	struct sockaddr_storage any = { .ss_family = family };
	int port = rstream_link_set(ln)->cm_port;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(ln->net, listen_handler, ln, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	if (family == AF_INET6)
		((struct sockaddr_in6 *)&any)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&any)->sin_port = htons(port);
	err = rdma_set_afonly(id, 1);
	if (!err)
		err = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(id, LISTEN_BACKLOG);
	if (!err)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(err);
}

static void unlisten(struct rstream_link_net *ln)
{
	int i;

	lockdep_assert_held(&ln->listen_lock);
	WRITE_ONCE(ln->listening, false);
	for (i = 0; i < ARRAY_SIZE(ln->listen); i++) {
		if (ln->listen[i])
			rdma_destroy_id(ln->listen[i]);
		ln->listen[i] = NULL;
	}
}

/*
 * Listens for both families, or those that the kernel supports.  If that fails for one, a later use
 * retries, LISTEN_PAUSE after that.  The same if the namespace may not listen, because rdma_cm
 * would do so on the devices of the host, too.
 *
 * Each listener that comes or goes takes rdma_cm's lock, which is that of all namespaces.  So
 * programs cannot cause that at will: it goes when the namespace has had no sockets for a while,
 * and does not follow each change of the port.
 */
int rstream_cm_listen(struct rstream_link_net *ln)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct rdma_cm_id *id;
	int i, port = rstream_link_set(ln)->cm_port, err = 0;

	mutex_lock(&ln->listen_lock);
	if (ln->listen_port != port && (ln->listen[0] || ln->listen[1])) {
		unlisten(ln);
		WRITE_ONCE(ln->listen_again, get_jiffies_64() + RELISTEN_PAUSE);
	}
	WRITE_ONCE(ln->listen_port, port);
	if (!rstream_dev_may_listen(ln->net)) {
		err = -EACCES;
		goto out;
	}
	for (i = 0; i < ARRAY_SIZE(families); i++) {
		if (ln->listen[i])
			continue;
		id = listen_at(ln, families[i]);
		if (!IS_ERR(id)) {
			ln->listen[i] = id;
		} else if (PTR_ERR(id) != -EAFNOSUPPORT) {
			err = PTR_ERR(id);
			pr_err_ratelimited("cannot listen on rdma_cm port %d: error %d; peers cannot establish links to this host over IPv%d (is the port taken? see sysctl net.rdmastream.cm_port)\n",
					   port, err, families[i] == AF_INET6 ? 6 : 4);
		}
	}
out:
	if (err)
		WRITE_ONCE(ln->listen_again, get_jiffies_64() + LISTEN_PAUSE);
	WRITE_ONCE(ln->listening, !err);
	mutex_unlock(&ln->listen_lock);
	return err;
}

void rstream_cm_unlisten(struct rstream_link_net *ln)
{
	mutex_lock(&ln->listen_lock);
	unlisten(ln);
	mutex_unlock(&ln->listen_lock);
}

/* ---- both ---- */

/* Creates the queues, then sends REQ or REP.  link_down_work() waits for this. */
void rstream_cm_setup_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link, cm.setup_work);
	int err;

	if (!rstream_link_alive(link))
		return;
	err = link->active ? connect_link(link) : accept_link(link);
	if (!err)
		return;
	if (!link->active)
		reject(link->ln, link->cm.id, RSTREAM_R_LINK_BUSY);
	rstream_link_break(link, link->active ? RSTREAM_END_NOT_CONNECTED :
						RSTREAM_END_NOT_ACCEPTED);
}

void rstream_cm_disconnect(struct rstream_link *link)
{
	if (link->qp.ib)
		rdma_disconnect(link->cm.id);
}

void rstream_cm_destroy(struct rstream_link *link)
{
	if (link->cm.id)
		rdma_destroy_id(link->cm.id);
	link->cm.id = NULL;
	kfree(link->cm.request);
	link->cm.request = NULL;
}
