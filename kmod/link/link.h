/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Links, and the two ends of a ring, as the streams see them.
 *
 * A link is one reliable-connected QP between two hosts (network namespaces),
 * shared by many streams.  A ring is a power-of-two piece of the receiver's
 * registered memory (RMB) granted to one stream: the receiver holds its
 * rstream_rxring, the sender its rstream_txring.
 *
 *	sender                                receiver
 *	  |      GRANT (record on TCP)           |  rstream_rxring_alloc()
 *	  |<-------------------------------------|
 *	  |  rstream_txring_open()               |
 *	  |      SWITCH (record on TCP)          |
 *	  |------------------------------------->|  rstream_rxring_switched()
 *	  |  rstream_txring_post()               |
 *	  |=== RDMA_WRITE_WITH_IMM: DATA =======>|  ops->data()
 *	  |                                      |  rstream_rxring_credit()
 *	  |<== RDMA_WRITE of the credit cell ====|
 *	  |  rstream_txring_close()              |
 *	  |=== zero-length WITH_IMM: DONE ======>|  memory may be used again
 *
 * Ring memory is reused only after DONE, which RC ordering puts behind the
 * last write of that sender, or after the QP of the link is in error and
 * drained.  Therefore the life of a ring does not depend on the TCP
 * connection through which it was granted.
 *
 * The one header of links that others include.  What links tell streams goes by struct
 * rstream_link_ops.  Everything that calls ib_* is in device.c, qp.c, wr.c and rmb.c,
 * everything that calls rdma_* in cm.c and qp.c.
 */
#ifndef RSTREAM_LINK_H
#define RSTREAM_LINK_H

#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/mm_types.h>
#include <net/net_namespace.h>

#include "base/net.h"
#include "base/stats.h"
#include "end.h"
#include "lent.h"

/* No ring is smaller: at least a page, as one that is lent belongs to one ring. */
#define RSTREAM_RING_MIN	(PAGE_SIZE > SZ_16K ? (u32)PAGE_SIZE : SZ_16K)
/* A grant of less is refused. */
#define RSTREAM_GRANT_MIN	SZ_4K
/* No ring is greater; one that a peer grants may be, but that earns it nothing. */
#define RSTREAM_RING_MAX	SZ_4M
/* Of a page for copies, as sk_page_frag_refill() allocates it if it can; bytes. */
#define RSTREAM_CACHED_PAGE_SIZE	max_t(u32, PAGE_SIZE, SZ_32K)

struct rstream;
struct rstream_link;
struct rstream_peer;
struct ubuf_info;

/* ---- peers: the other network namespace ---- */

/**
 * struct rstream_peer_name - who a peer is: what it says, and from where
 * @instance:	the id that its HELLO has stated
 * @local:	our address of the TCP connection, IPv6 or v4-mapped
 * @remote:	its address of the TCP connection, likewise
 * @scope:	interface of a link-local @remote, else 0
 *
 * Anybody can state an instance id, so it counts only together with the addresses between
 * which it was said: a host that takes the name of another shares nothing with it.  Both ends
 * see the same pair, so they agree on whose a link is.
 */
struct rstream_peer_name {
	u8 instance[RSTREAM_INSTANCE_LEN];
	struct in6_addr local, remote;
	int scope;
};

/**
 * rstream_peer_get() - find or make the peer of this name
 * @net:	our network namespace
 * @name:	of a connection whose HELLO has come
 *
 * Context: any, does not sleep.
 * Return: the peer with a reference, or NULL without memory or beyond the
 * bound on peers per namespace.
 */
struct rstream_peer *rstream_peer_get(struct net *net,
				      const struct rstream_peer_name *name);
void rstream_peer_put(struct rstream_peer *peer);

#define RSTREAM_SECRET_LEN 16

/**
 * struct rstream_ticket - a TCP connection, for which a link is made
 * @ours:	said by our HELLO
 * @theirs:	said by the peer's; its token is 0 until that is here
 *
 * The tokens name the connection to rdma_cm of the peer, where others may read them.
 * The secrets are said on TCP only: knowing them proves that both HELLOs were received.
 */
struct rstream_ticket {
	struct {
		u64 token;
		u8 secret[RSTREAM_SECRET_LEN];
	} ours, theirs;
};

/**
 * struct rstream_peer_route - how the peer is reached by rdma_cm
 * @local:	our address of the TCP connection (never v4-mapped)
 * @remote:	the peer's address, port = its rdma_cm port, network order
 * @ticket:	of that connection
 */
struct rstream_peer_route {
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct rstream_ticket ticket;
};

/**
 * rstream_peer_tells() - the peer's HELLO says whether it is drained
 * @peer:	of that HELLO
 * @drained:	what it says
 *
 * A peer that makes the links itself would not tell otherwise.
 *
 * Context: any.
 */
void rstream_peer_tells(struct rstream_peer *peer, bool drained);

/**
 * rstream_peer_addrs() - addresses that the peer's HELLO has named
 * @peer:	the peer
 * @addrs:	@n of them, IPv6 or v4-mapped, network order
 * @n:		how many
 * @port:	its rdma_cm port
 *
 * Links are tried there, too, when the address of the TCP connection fails.
 * Context: any, does not sleep.
 */
void rstream_peer_addrs(struct rstream_peer *peer, const u8 addrs[][16],
			unsigned int n, u16 port);

/**
 * rstream_link_addrs() - where else rdma_cm of others reaches this namespace
 * @net:	our network namespace
 * @own:	our address of the TCP connection, IPv6 or v4-mapped
 * @addrs:	filled: one address of each other RDMA netdev
 * @max:	room in @addrs
 *
 * Context: any, does not sleep.  Return: how many.
 */
unsigned int rstream_link_addrs(struct net *net, const struct in6_addr *own,
				struct in6_addr *addrs, unsigned int max);

/**
 * rstream_peer_active() - is it we who connect links to this peer?
 * @peer:	the peer
 *
 * The namespace with the greater instance id (memcmp) is the active side, for
 * ever; so two hosts never make the same link from both ends.  A namespace
 * connected with itself (equal ids) is both ends at once.
 */
bool rstream_peer_active(const struct rstream_peer *peer);

/**
 * rstream_peer_want_link() - bring up a link in the background
 * @peer:	the peer; on the passive side this only notes the wish
 * @route:	used for this try; copied
 * @rs:		the stream that asks; ops->event() tells it, and every
 *		other stream waiting for the peer, when the link is up or when
 *		the try has failed.  Remains on the peer's list of waiters until
 *		told, or until rstream_peer_forget().
 *
 * Does nothing but add @rs to the waiters while a try is under way or the
 * back-off after a failed try runs (the failed try is repeated when it ends
 * if there are waiters).
 *
 * Context: any, does not sleep.
 */
void rstream_peer_want_link(struct rstream_peer *peer,
			    const struct rstream_peer_route *route,
			    struct rstream *rs);
void rstream_peer_forget(struct rstream_peer *peer, struct rstream *rs);

/**
 * rstream_peer_asks() - the peer, the passive side, has asked for a link
 * @peer:	the peer
 *
 * If it has declined links before, being drained, that is over: the next try
 * does not wait for the back-off.  A stream must have asked for a link before.
 * Context: any, does not sleep.
 */
void rstream_peer_asks(struct rstream_peer *peer);

/**
 * rstream_peer_link() - a link to the peer that is up
 * @peer:	the peer
 * @size:	bytes of the ring that is wanted
 *
 * Of several: one with room for the ring, if there is any; of those the one with
 * the fewest rings.
 *
 * Context: any. Return: a referenced link in state UP, or NULL.
 */
struct rstream_link *rstream_peer_link(struct rstream_peer *peer, u32 size);

/**
 * rstream_peer_want_more() - more links, if all are in use and more are allowed
 * @peer:	the peer; does nothing on the passive side
 * @route:	as in rstream_peer_want_link()
 *
 * Context: any, does not sleep.
 */
void rstream_peer_want_more(struct rstream_peer *peer,
			    const struct rstream_peer_route *route);

/* ---- links ---- */

/*
 * One function, rstream_link_set_state() in link.c, changes states and refuses
 * what is not an arrow here:
 *
 *	CONNECTING -> UP -> BROKEN -> DEAD
 *	     |                ^
 *	     +----------------+
 *
 * BROKEN: nothing is posted any more, the QP is in error and being drained.
 * DEAD: drained, out of all tables; memory goes with the last reference.
 */
enum rstream_link_state {
	RSTREAM_LINK_CONNECTING,
	RSTREAM_LINK_UP,
	RSTREAM_LINK_BROKEN,
	RSTREAM_LINK_DEAD,
};

void rstream_link_hold(struct rstream_link *link);
void rstream_link_put(struct rstream_link *link);	/* any context */
u32 rstream_link_id(const struct rstream_link *link);	/* ours, per namespace */
bool rstream_link_is_up(const struct rstream_link *link);
bool rstream_link_is_dead(const struct rstream_link *link);
/* Why it ended; only after rstream_link_is_up() has been false. */
enum rstream_reason rstream_link_reason(const struct rstream_link *link);

/*
 * The peer's id of the same link: what a GRANT of a ring of this link states,
 * because the receiver of the GRANT looks it up among its own ids.
 */
u32 rstream_link_peer_id(const struct rstream_link *link);

/**
 * rstream_link_proof() - what only the two ends of a link can make of some bytes
 * @link:	the link
 * @ours:	by our end of it; else by the peer's, which makes another one
 * @what:	the bytes
 * @len:	how many
 *
 * Context: any.
 */
u64 rstream_link_proof(struct rstream_link *link, bool ours, const void *what,
		       size_t len);

/**
 * rstream_link_find() - the link that a GRANT names
 * @net:	our network namespace
 * @peer:	the sender of the GRANT
 * @id:	our own id of the link, as the peer learnt it when the link was made
 *
 * A GRANT can overtake the last step of bring-up: see rstream_link_proven().
 *
 * Context: any. Return: a referenced link to @peer in whatever state, or NULL.
 */
struct rstream_link *rstream_link_find(struct net *net,
				       struct rstream_peer *peer, u32 id);

/**
 * rstream_link_proven() - a GRANT with the right proof has named the link
 * @link:	from rstream_link_find()
 *
 * So the peer's end is up, and ours becomes so, if it lacks nothing else.
 * Context: any.
 */
void rstream_link_proven(struct rstream_link *link);

/**
 * rstream_link_break() - give the link up
 * @link:	the link
 * @end:	why; the first one counts
 *
 * UP or CONNECTING becomes BROKEN and every stream with a ring on the link is
 * told RSTREAM_LINK_EV_LOST before return (the caller's too: the callbacks take
 * no socket lock).  Nothing happens if it is BROKEN or DEAD already.
 *
 * Context: any, not from within a callback of the link.
 */
void rstream_link_break(struct rstream_link *link, enum rstream_link_end end);

/* ---- receiving end ---- */

/**
 * struct rstream_rxring - a ring that we granted
 * @link:	its link, referenced
 * @id:		names the ring in the immediate value, unique in the link,
 *		20 bits, not reused soon
 * @rkey:	remote key, for GRANT
 * @raddr:	remote address of its first byte, for GRANT
 * @size:	bytes, power of two
 * @mem:	its memory, linear in our address space
 * @landed:	bytes that have arrived since the ring was granted; counted in
 *		softirq from completions (smp_store_release), never decreases
 * @want_credit: sender is blocked and wants to be told of space (set in
 *		softirq, cleared by the reader before it sends the credit)
 *
 * How much of @landed was read is the stream's business, but a DATA message
 * which would put @landed more than @size beyond the last credit sent is a
 * protocol error: ops->data() is told with bad = true and @landed stays.
 *
 * From RSTREAM_LINK_EV_LOST on @landed does not change any more: it is the count
 * for RESUME.  Late writes of the peer may still land behind it, where nobody
 * reads; @mem remains readable until the ring is released.
 */
struct rstream_rxring {
	struct rstream_link *link;
	u32 id;
	u32 rkey;
	u64 raddr;
	u32 size;
	u8 *mem;
	u64 landed;
	bool want_credit;
	/* private to ring.c follow, in a containing struct */
};

/**
 * rstream_rxring_alloc() - cut a ring for one stream
 * @link:	a link that is up
 * @size:	bytes; rounded up to a power of two of at least 16 KiB.  The ring is
 *		smaller where that much can't be had
 * @rs:		the stream that ops->data() is told of
 *
 * Memory that another peer's link has used is zeroed.
 *
 * Context: socket lock held (any form), does not sleep.
 * Return: the ring, or ERR_PTR: -EAGAIN registered memory is used up and more
 * is being registered (ops->event() follows: UP or FAILED; @rs is among
 * the waiters of the peer until then), -ENOMEM ceiling of the
 * namespace reached or no memory, -ENOTCONN link not up.
 */
struct rstream_rxring *rstream_rxring_alloc(struct rstream_link *link, u32 size,
					    struct rstream *rs);

/**
 * rstream_rxring_switched() - the peer's SWITCH named its credit cell
 * @ring:	the receiving end
 * @cell_addr:	where credits are written, from the record; checked by the
 *		peer's HCA, not by us
 * @cell_rkey:	remote key for that, likewise
 * @peer_ring:	the sender's id of its end, used in interrupting credits
 */
void rstream_rxring_switched(struct rstream_rxring *ring, u64 cell_addr,
			     u32 cell_rkey, u32 peer_ring);

/**
 * rstream_rxring_credit() - tell the sender how much was consumed
 * @ring:	the receiving end
 * @consumed:	bytes of this ring read so far, counted from its grant
 * @interrupt:	by WRITE_WITH_IMM (wakes the sender) instead of a silent WRITE
 *
 * If the send queue or the receive-queue credits of the link are used up the
 * newest value is remembered in the ring and written as soon as possible.
 * Context: socket lock held, does not sleep.
 */
void rstream_rxring_credit(struct rstream_rxring *ring, u64 consumed,
			   bool interrupt);

/**
 * rstream_rxring_larger() - how large may a ring in this one's place be?
 * @ring: of a stream
 * @size: that it would like, bytes, a power of two
 *
 * All rings of a link may have half of rmb_max, and none grows beyond its share of that,
 * so that of those that are busy at the same time none has more than others.
 *
 * Returns: bytes, a power of two and larger than the ring; or 0, if there is no memory
 * for that.
 */
u32 rstream_rxring_larger(struct rstream_rxring *ring, u32 size);

/**
 * rstream_rxring_page() - the page of a ring where a byte is
 * @ring:	the receiving end
 * @at:		bytes since the ring was granted
 *
 * With a reference the page can be read for as long as needed: until the last one is
 * dropped the memory is not used for another ring, even if the link ends.  The caller must
 * not credit the byte before it has taken its reference.
 */
struct page *rstream_rxring_page(const struct rstream_rxring *ring, u64 at);

/**
 * rstream_rxring_left() - will nobody write into the ring any more?
 * @ring:	the receiving end
 *
 * Return: true if its sender has said DONE, or the link has ended.  Context: any.
 */
bool rstream_rxring_left(const struct rstream_rxring *ring);

/**
 * rstream_rxring_withdraw() - release a ring whose GRANT has not gone out
 * @ring:	the receiving end
 *
 * Nobody else knows of it, so the memory can be used again at once.  Context: any.
 */
void rstream_rxring_withdraw(struct rstream_rxring *ring);

/**
 * rstream_rxring_release() - the stream has no more interest in the ring
 * @ring:	the receiving end
 *
 * No ops->data() for it runs or comes after return.  The memory is
 * reused only after the sender's DONE or after the link's drain, whatever TCP has
 * brought: the end that refuses a grant or ends the connection need not be the writer.
 * Context: any; drops the ring's reference on the link.
 */
void rstream_rxring_release(struct rstream_rxring *ring);

/* ---- sending end ---- */

/**
 * struct rstream_frag - a piece of one page, bytes that the application wrote
 * @list:	in the transmit queue, then in the ring until released
 * @page:	referenced; may be a compound page
 * @off:	of the first byte within @page, bytes
 * @len:	bytes from there on
 * @dma:	bus address of @off for @dma_dev; set by rstream_txring_post(),
 *		unmapped by rstream_frag_free()
 * @dma_dev:	NULL while not mapped
 * @uarg:	referenced; told when the frag is freed; NULL: nobody waits for that
 * @copied:	@page was allocated for copies, the program's and perhaps TCP's
 * @charged:	RSTREAM_FRAG_COST, or 0: a part of one that was split; bytes
 * @end:	ring offset behind this frag's last byte (set by post)
 * @sq_seq:	number of the work request that carries its last byte (post)
 */
struct rstream_frag {
	struct list_head list;
	struct page *page;
	u32 off;
	u32 len;
	u64 dma;
	struct ib_device *dma_dev;
	struct ubuf_info *uarg;
	bool copied;
	u8 charged;
	u64 end;
	u64 sq_seq;
};

/* What a frag costs itself, bytes: whoever makes one charges it to its socket. */
#define RSTREAM_FRAG_COST	ALIGN(sizeof(struct rstream_frag), 16)

/**
 * struct rstream_txring - a ring that the peer granted us
 * @link:	its link, referenced
 * @id:		our own id of this end, names it in interrupting credits
 * @size:	bytes, power of two
 * @cell:	the peer writes here how many bytes it has consumed: __be64, then
 *		its complement, because a reader may meet a half-written cell
 * @cell_addr:	remote address of @cell, for SWITCH
 * @cell_rkey:	remote key of @cell, for SWITCH
 * @written:	bytes posted since the ring was granted
 * @stalled:	enum rstream_reason: why the last post took not all, or NONE
 * @scheduled:	it waited for its turn, and may post now; read locklessly
 * @asks:	the last post has asked for an interrupting credit
 * @notify:	a post with RSTREAM_POST_NOTIFY has not completed; read locklessly
 */
struct rstream_txring {
	struct rstream_link *link;
	u32 id;
	u32 size;
	__be64 *cell;
	u64 cell_addr;
	u32 cell_rkey;
	u64 written;
	u8 stalled;
	bool scheduled;
	bool asks;
	bool notify;
};

/**
 * rstream_txring_open() - accept a grant
 * @link:	link named in GRANT
 * @ring_id:	the receiver's id of the ring, from GRANT
 * @rkey:	remote key of its memory, from GRANT
 * @raddr:	remote address of its first byte, from GRANT
 * @size:	bytes, from GRANT; must be a power of two, RSTREAM_GRANT_MIN at least
 * @rs:		the stream told by ops->space()
 *
 * Context: socket lock held, does not sleep. Return: ring or ERR_PTR: -EINVAL
 * impossible grant, or of a ring that we have, -ENOTCONN, -ENOMEM, -EAGAIN no credit
 * cell is free, more are being registered (ops->event() follows as for a
 * receive ring).
 */
struct rstream_txring *rstream_txring_open(struct rstream_link *link,
					   u32 ring_id, u32 rkey, u64 raddr,
					   u32 size, struct rstream *rs);

/**
 * rstream_txring_refuse() - tell the receiver that a grant is not used
 * @link:	link named in GRANT, which is proven to come from its other end
 * @ring_id:	the receiver's id of the ring, from GRANT
 *
 * If rstream_txring_open() has failed.  DONE is posted, now or later, which alone gives
 * the receiver its memory back.  Context: any, does not sleep.
 */
void rstream_txring_refuse(struct rstream_link *link, u32 ring_id);

/**
 * rstream_txring_acked() - bytes of the ring that the peer has consumed
 * @ring:	the sending end
 *
 * Reads the credit cell.  Return: the count, or a negative errno if the cell
 * holds more than @written (-EPROTO).
 */
s64 rstream_txring_acked(struct rstream_txring *ring);

/*
 * The last message asks for an interrupting credit and for its completion; not if the
 * ring waits to be scheduled for the rest, see rstream_txring_post().
 */
#define RSTREAM_POST_CREDIT	1U
/* Call ops->sent() when the last message has completed, unless a call is due already. */
#define RSTREAM_POST_NOTIFY	2U

/**
 * rstream_txring_post() - write frags to the peer
 * @ring:	the sending end
 * @frags:	list of struct rstream_frag, oldest first; what was posted is
 *		moved from its head to the ring's list of frags in flight.  A
 *		frag is split (rstream_frag_split()) where the ring wraps, its
 *		space ends or a message is full
 * @how:	RSTREAM_POST_*
 *
 * Chains as many work requests as space in the ring, slots in the send queue
 * and receive-queue credits allow, one ib_post_send() for all.  If link
 * resources (not ring space) stop it, or others wait for these, the ring is put on
 * the link's waiters and ops->space() follows; so it does if the space is
 * there but for writes that have not completed.
 *
 * Context: socket lock held, does not sleep.
 * Return: bytes posted, 0 if nothing can be posted now, -ENOTCONN link broken,
 * -EPROTO bad credit cell.
 */
ssize_t rstream_txring_post(struct rstream_txring *ring,
			    struct list_head *frags, unsigned int how);

/**
 * rstream_txring_yield() - nothing is to be posted now
 * @ring:	the sending end
 *
 * A stream that was scheduled by ops->space() and does not post has to call this: others
 * may be waiting behind it.
 * Context: socket lock held.
 */
void rstream_txring_yield(struct rstream_txring *ring);

/**
 * rstream_txring_ask() - zero-length message that only asks for a credit
 * @ring:	the sending end
 */
int rstream_txring_ask(struct rstream_txring *ring);

/**
 * rstream_txring_reap() - give back frags that nobody needs any more
 * @ring:	the sending end
 * @acked:	set to what rstream_txring_acked() would return, of the same read
 * @silent:	stop at the first frag with a @uarg
 * @cost:	set to what the frags themselves were charged for, bytes
 *
 * These are the frags that the peer's software has consumed and whose work requests have
 * completed.  A writer that is blocked for want of memory calls rstream_txring_sent(), too,
 * or waits for the next sweep of the link (settings.probe_ms).
 * Context: socket lock held.  Return: bytes freed (payload).
 */
size_t rstream_txring_reap(struct rstream_txring *ring, s64 *acked, bool silent,
			   size_t *cost);

/**
 * rstream_txring_cached_page() - a page whose bytes have been sent and acknowledged
 * @ring:	the sending end
 *
 * Context: socket lock held.  Return: a compound page of RSTREAM_CACHED_PAGE_SIZE bytes with
 * arbitrary contents, the caller's the only reference; NULL if there is none.
 */
struct page *rstream_txring_cached_page(struct rstream_txring *ring);

/**
 * rstream_txring_sent() - have all posted writes completed locally?
 * @ring:	the sending end
 *
 * If the last ones were unsignalled this posts something signalled behind
 * them, and ops->space() is called when it completes.
 */
bool rstream_txring_sent(struct rstream_txring *ring);

/**
 * rstream_txring_recall() - take the frags in flight back, after a break
 * @ring:	the sending end
 * @frags:	they are put before the head of this list, oldest first
 *
 * Not before RSTREAM_LINK_EV_DRAINED (rstream_link_is_dead()): until then the
 * HCA may read them.  The frags come unmapped; @end of each tells which bytes
 * of the ring it was, so the sender drops or trims what the RESUME count covers.
 *
 * Context: socket lock held.  Return: bytes, or -EBUSY if not drained yet.
 */
ssize_t rstream_txring_recall(struct rstream_txring *ring,
			      struct list_head *frags);

/**
 * rstream_txring_close() - the stream writes no more
 * @ring:	the sending end
 *
 * Frags in flight go over to the link and are freed when their work requests
 * have completed; DONE is posted behind the last write, now or as soon as a
 * slot is free.  No ops->space() comes after return.
 * Context: any, does not sleep.
 */
void rstream_txring_close(struct rstream_txring *ring);

struct rstream_frag *rstream_frag_alloc(gfp_t gfp);
void rstream_frag_free(struct rstream_frag *frag);	/* unmaps, puts page, uarg */

/*
 * Shortens @frag (not mapped yet) to @len bytes; the rest is in the frag that is
 * returned, with a reference of its own on the page.  NULL without memory.
 */
struct rstream_frag *rstream_frag_split(struct rstream_frag *frag, u32 len,
					gfp_t gfp);

/* ---- what links tell streams ---- */

enum rstream_link_event {
	RSTREAM_LINK_EV_UP,	/* the peer has a link (or more memory) now */
	RSTREAM_LINK_EV_FAILED,	/* the try to make one has failed */
	RSTREAM_LINK_EV_DECLINED, /* likewise: the peer is drained of RDMA */
	RSTREAM_LINK_EV_LOST,	/* the link under one of its rings is BROKEN */
	RSTREAM_LINK_EV_DRAINED, /* and DEAD now: frags can be recalled */
	RSTREAM_LINK_EV_IDLE,	/* nothing came in the stream's ring for long */
	RSTREAM_LINK_EV_ROUTES,	/* routes or IPsec policies of the namespace have changed */
};

/**
 * struct rstream_link_ops - what the layer above implements
 * @data:	bytes have come in a ring, or a request for credit; @bad: more than it holds
 * @space:	a ring may have room again; @credit: that is the peer's answer to what was
 *		asked, else of the link's own resources
 * @sent:	what was posted with RSTREAM_POST_NOTIFY has completed
 * @event:	something has happened to a link of the stream's
 * @find:	is there a living connection with these tokens?  Asked before a link is
 *		accepted; fills the secrets of @ticket, and the name of the peer
 *
 * Links know nothing else of streams.
 *
 * All but @find are called in softirq or process context with bottom halves off, under a
 * lock of the link: they note, wake and queue work.  They never take a socket lock and
 * never call a function of this file.  The stream's memory and its sock are valid for the
 * time of the call, because a stream leaves the tables (rstream_rxring_release(),
 * rstream_txring_close(), rstream_peer_forget()) before its sock is freed.  @find is
 * called in any context, without a lock.
 */
struct rstream_link_ops {
	void (*data)(struct rstream *rs, struct rstream_rxring *ring, bool bad);
	void (*space)(struct rstream *rs, struct rstream_txring *ring, bool credit);
	void (*sent)(struct rstream *rs);
	void (*event)(struct rstream *rs, enum rstream_link_event ev);
	bool (*find)(struct net *net, struct rstream_ticket *ticket,
		     struct rstream_peer_name *name);
};

/*
 * Counted on this side of the contract: RING_TX_*, RING_RX_*, CREDITS_*,
 * STALL_RING, STALL_SLOT, STALL_RQ, LINKS_*, CM_REJECTED, WR_ERRORS, PROBES.
 */

/* ---- per namespace ---- */

int rstream_link_net_init(struct net *net);
void rstream_link_net_exit(struct net *net);
int rstream_link_init(const struct rstream_link_ops *ops);	/* ib_client, workqueue */
void rstream_link_exit(void);

/*
 * The rdma_cm listener of a namespace exists while somebody uses it.  The
 * first user starts it in a worker.  With the last user gone, links of a
 * namespace are closed after the idle time (immediately if the namespace is
 * not the initial one), and then the listener, because an rdma_cm_id pins its
 * namespace.
 */
/* @memcg: the user's, see account.h.  Any context. */
void rstream_link_use(struct net *net, struct mem_cgroup *memcg);
/* So may the group of a user that was not known before: a listener's may be the host's. */
void rstream_link_pays(struct net *net, struct mem_cgroup *memcg);
void rstream_link_unuse(struct net *net);	/* any context */

/*
 * Is there an RDMA device that this namespace could use?  If it is drained: was
 * there one?  Cheap, any context.
 */
bool rstream_link_possible(struct net *net);

/**
 * rstream_link_drain() - make no links any more, or again
 * @net:	the namespace
 * @on:		from now on it is drained
 *
 * On: links that are there are broken, and the peers' requests are declined.
 * Streams hear of that as of any loss of a link.  Off: peers that somebody waits
 * for are tried at once.  Telling the streams is the caller's business.
 * Context: process.
 */
void rstream_link_drain(struct net *net, bool on);
bool rstream_link_drained(const struct net *net);	/* any context */

/**
 * rstream_dev_protects() - may packets be encrypted on their way through @dev?
 * @dev:	where a route leads
 *
 * It is a tunnel, or there is MACsec below it.  RDMA does not take that way: it would
 * carry in clear what is protected there.
 *
 * Context: RCU read lock.
 */
bool rstream_dev_protects(struct net_device *dev);

/* Another number when routes or IPsec policies have changed.  Any context. */
int rstream_routes_genid(const struct net *net);

/* Links that may still hold a device: 0 when a drain is done. */
unsigned int rstream_link_count(const struct net *net);

#endif
