// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages of a link: those that wait to be posted, those that arrive, and receive credits.
 *
 * Owns the control messages of rings until they are posted, and the credits.  Called by rxring.c
 * and txring.c, which have something to say, and by qp.c with messages, slots and completions.
 * Everything runs under link->lock.  It never trusts a type, id or number of a message.
 *
 * Receive credits.  Each message consumes one of the peer's posted receives (a silent
 * credit consumes none).  If the peer has a queue of D receives, D - R messages may be in
 * flight to it (R = RSTREAM_RQ_RESERVE).  The peer reposts each receive before it processes
 * the message, and reports this by RQ_CREDIT after every D/4.  RQ_CREDIT itself needs no
 * credit, so there is no deadlock.  It always finds a receive: this host, with a queue of D',
 * sends one RQ_CREDIT for each D'/4 messages of the peer, and the peer can send only
 * D' - R < D' messages until it processes an RQ_CREDIT.  So at most 3 of these are in flight,
 * and 3 < R: RNR never happens.
 */
#include "ring.h"
#include "wr.h"

/* For how long after RENEW an end of the link is not a fault. */
#define RENEW_TIME	(10 * HZ)

/* ---- sent ---- */

static bool post_credit(struct rstream_link *link, struct rx_ring *ring)
{
	bool intr = ring->ctrl.due & DUE_INTR;

	if (intr && !link->msg.credits)
		return false;
	if (intr) {
		rstream_wr_message(link, ring->cell_addr, ring->cell_rkey,
				   RSTREAM_IMM_CREDIT, ring->peer_ring);
		link->msg.credits--;
	} else {
		rstream_wr_write(link, ring->cell_addr, ring->cell_rkey);
	}
	rstream_wr_credit(link, ring->consumed);
	if (intr)
		rstream_wr_message_end(link, RSTREAM_CTRL_BYTES);
	ring->credited = ring->consumed;
	ring->ctrl.due &= ~(DUE_CREDIT | DUE_INTR);
	rstream_link_count(link, intr ? RSTREAM_MIB_CREDITS_INTR : RSTREAM_MIB_CREDITS_SILENT);
	return true;
}

static bool post_empty(struct rstream_link *link, enum rstream_imm_type type,
		       u32 id)
{
	if (!link->msg.credits)
		return false;
	link->msg.credits--;
	rstream_wr_notice(link, type, id);
	return true;
}

bool rstream_msg_say(struct rstream_link *link, enum rstream_imm_type type, u32 id)
{
	lockdep_assert_held(&link->lock);
	return rstream_wr_room(link) && post_empty(link, type, id) && !rstream_wr_post(link);
}

void rstream_msg_signal(struct rstream_link *link)
{
	if (link->wr.signalled == link->wr.posted || !rstream_wr_room(link))
		return;
	rstream_wr_write(link, 0, 0);
	rstream_wr_signal(link);
	rstream_wr_post(link);
}

/*
 * Have all writes to the peer for this ring completed?  If not, makes sure that their completion
 * calls rstream_msg_kick().  A device must not repeat a write to memory that the peer has reused.
 */
static bool ctrl_completed(struct rstream_link *link, const struct ring_ctrl *ctrl)
{
	if (link->wr.done >= ctrl->last_sq)
		return true;
	if (link->wr.signalled < ctrl->last_sq)
		rstream_msg_signal(link);
	return false;
}

/* Posts one message that is due.  Return: false if a slot, credit or completion is missing. */
static bool ctrl_post_one(struct rstream_link *link, struct ring_ctrl *ctrl)
{
	struct rx_ring *rx = container_of(ctrl, struct rx_ring, ctrl);
	struct tx_ring *tx = container_of(ctrl, struct tx_ring, ctrl);

	if (!rstream_link_alive(link) || !rstream_wr_fits(link))
		return false;
	if (ctrl->due & (DUE_FREED | DUE_DONE) && !ctrl_completed(link, ctrl))
		return false;
	if (ctrl->due & DUE_CREDIT) {
		if (!post_credit(link, rx))
			return false;
	} else if (ctrl->due & DUE_FREED) {
		if (!post_empty(link, RSTREAM_IMM_FREED, rx->pub.id))
			return false;
		ctrl->due &= ~DUE_FREED;
	} else if (ctrl->due & DUE_ASK) {
		if (!post_empty(link, RSTREAM_IMM_DATA_WANT, tx->peer_ring))
			return false;
		ctrl->due &= ~DUE_ASK;
		return !rstream_wr_post(link);	/* a zero-length write */
	} else if (ctrl->due & DUE_DONE) {
		if (!post_empty(link, RSTREAM_IMM_DONE, tx->peer_ring))
			return false;
		rstream_wr_signal(link);
		ctrl->due &= ~DUE_DONE;
		list_add_tail(&tx->ending, &link->tx.ending);
	}
	ctrl->last_sq = link->wr.posted + link->wr.batch->n;
	return !rstream_wr_post(link);
}

/*
 * Messages that only lack a receive credit are on a separate list, which is walked only when there
 * are credits: a peer can make many wait for long.
 */
static void ctrl_wait(struct rstream_link *link, struct ring_ctrl *ctrl)
{
	bool no_credit = rstream_link_alive(link) && rstream_wr_fits(link) && !link->msg.credits &&
			 link->wr.done >= ctrl->last_sq;

	if (!list_empty(&ctrl->list) && ctrl->no_credit == no_credit)
		return;
	list_move_tail(&ctrl->list, no_credit ? &link->msg.no_credit : &link->msg.waiting);
	ctrl->no_credit = no_credit;
}

/* Posts what is due, now or in rstream_msg_kick().  May free @ctrl. */
bool rstream_msg_flush(struct rstream_link *link, struct ring_ctrl *ctrl)
{
	struct rx_ring *rx = container_of(ctrl, struct rx_ring, ctrl);

	lockdep_assert_held(&link->lock);
	while (ctrl->due) {
		if (ctrl_post_one(link, ctrl))
			continue;
		ctrl_wait(link, ctrl);
		return false;
	}
	list_del_init(&ctrl->list);
	if (!ctrl->tx && !rx->rs)
		rstream_rxring_said(rx);
	return true;
}

static void return_receives(struct rstream_link *link)
{
	if (link->msg.unreported < link->qp.depth / 4 || !rstream_wr_room(link))
		return;
	rstream_wr_notice(link, RSTREAM_IMM_RQ_CREDIT, link->msg.unreported);
	link->msg.unreported = 0;
	rstream_wr_post(link);
}

/* Not before READY, for which a credit must remain; an honest peer probes only after it. */
static void answer_probe(struct rstream_link *link)
{
	if (!link->msg.owes_ack || link->life.setup != RSTREAM_SETUP_READY ||
	    !rstream_wr_room(link) || !post_empty(link, RSTREAM_IMM_PROBE_ACK, 0))
		return;
	link->msg.owes_ack = false;
	rstream_wr_post(link);
}

/*
 * Sends READY once this end has registered its memory.  With iWARP, the active side must be the
 * first to send (RFC 5044, 7.1.2), so the passive side waits for its READY.
 */
void rstream_msg_say_ready(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	/* a peer can take all slots, by messages whose receives are returned, or all credits */
	if (!rstream_link_alive(link) || link->life.setup != RSTREAM_SETUP_REGISTERED ||
	    !rstream_wr_room(link) || !link->msg.credits ||
	    (link->iwarp && !link->active && !link->life.peer_ready))
		return;
	rstream_link_set_setup(link, RSTREAM_SETUP_READY);
	link->msg.credits--;
	rstream_wr_notice(link, RSTREAM_IMM_READY, 0);
	rstream_wr_post(link);
}

/* There may be slots or credits again: serves the waiters, control messages first. */
void rstream_msg_kick(struct rstream_link *link)
{
	struct ring_ctrl *ctrl, *next_ctrl;

	lockdep_assert_held(&link->lock);
	rstream_msg_say_ready(link);
	return_receives(link);
	answer_probe(link);
	list_for_each_entry_safe(ctrl, next_ctrl, &link->msg.waiting, list) {
		/* without slots, stop; without credits, go on: silent credits need none */
		if (!rstream_msg_flush(link, ctrl) && !rstream_wr_fits(link))
			return;
	}
	while (link->msg.credits && !list_empty(&link->msg.no_credit)) {
		ctrl = list_first_entry(&link->msg.no_credit, struct ring_ctrl, list);
		if (!rstream_msg_flush(link, ctrl) && !rstream_wr_fits(link))
			return;
	}
	if (rstream_link_alive(link))
		rstream_sched_next(link);
}

/* Has the peer sent no RQ_CREDIT for more than @most sweeps?  Called once a sweep. */
bool rstream_msg_overdue(struct rstream_link *link, unsigned int most)
{
	lockdep_assert_held(&link->lock);
	return !link->msg.credits && ++link->msg.no_credit_sweeps > most;
}

/* ---- received ---- */

/* Only on iWARP does the peer's software answer probes; elsewhere, its device does. */
static void got_probe(struct rstream_link *link, enum rstream_imm_type type)
{
	if (!link->iwarp) {
		rstream_link_break_locked(link, RSTREAM_END_UNKNOWN);
	} else if (type == RSTREAM_IMM_PROBE) {
		link->msg.owes_ack = true;
		answer_probe(link);
	} else if (link->probe.timed) {
		rstream_link_probed(link);
	}
}

/*
 * If the peer ends the link now, that will not count against the path.  Only once the link was up
 * for a second: otherwise, a peer could make this host establish links all the time.
 */
static void got_renew(struct rstream_link *link)
{
	if (link->was_up && time_after(jiffies, link->up_at + HZ))
		link->probe.renews_until = get_jiffies_64() + RENEW_TIME;
}

void rstream_msg_got(struct rstream_link *link, __be32 imm, u32 len)
{
	unsigned int type = rstream_imm_type(imm);
	u32 id = rstream_imm_id(imm);

	lockdep_assert_held(&link->lock);
	/* before anything is counted, so that counts remain exact */
	if (rstream_imm_number(imm) != link->msg.number++) {
		rstream_link_break_locked(link, RSTREAM_END_OUT_OF_ORDER);
		return;
	}
	if (type != RSTREAM_IMM_RQ_CREDIT)
		link->msg.unreported++;
	switch (type) {
	case RSTREAM_IMM_DATA:
	case RSTREAM_IMM_DATA_WANT:
		rstream_rxring_data(link, id, len, type == RSTREAM_IMM_DATA_WANT);
		break;
	case RSTREAM_IMM_CREDIT:
		rstream_txring_credit(link, id);
		break;
	case RSTREAM_IMM_DONE:
		rstream_rxring_done(link, id);
		break;
	case RSTREAM_IMM_FREED:
		rstream_txring_freed(link, id);
		break;
	case RSTREAM_IMM_READY:
		rstream_link_peer_ready(link);
		rstream_msg_say_ready(link);
		break;
	case RSTREAM_IMM_PROBE:
	case RSTREAM_IMM_PROBE_ACK:
		got_probe(link, type);
		break;
	case RSTREAM_IMM_RENEW:
		got_renew(link);
		break;
	case RSTREAM_IMM_RQ_CREDIT:
		if (!id || id > link->msg.credits_max - link->msg.credits) {
			rstream_link_break_locked(link, RSTREAM_END_RQ_CREDITS);
			break;
		}
		link->msg.credits += id;
		/* return_receives() reports at least a quarter: less counts as withholding */
		if (id >= link->msg.credits_max / 4)
			link->msg.no_credit_sweeps = 0;
		rstream_msg_kick(link);
		break;
	default:
		rstream_link_break_locked(link, RSTREAM_END_UNKNOWN);
	}
	if (rstream_link_alive(link))
		return_receives(link);
}
