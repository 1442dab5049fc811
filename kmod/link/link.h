/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Links, and the two ends of a ring, as the streams see them.
 *
 * A link is one reliable connected QP between two hosts (network namespaces),
 * shared by many streams.  A ring is a power-of-two sized part of the receiver's
 * registered memory (RMB) that is granted to one stream: the receiver holds its
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
 *	  |=== zero-length WITH_IMM: DONE ======>|  memory may be reused
 *
 * Ring memory is reused only after DONE, which RC ordering delivers after the last
 * write of that sender, or after the QP of the link is in error and drained.
 * Therefore, the lifetime of a ring does not depend on the TCP connection through
 * which it was granted.
 *
 * Streams include no other header of this directory.  Links call streams through
 * struct rstream_link_ops.  Only device.c, qp.c, wr.c and rmb.c use the RDMA device, and only
 * cm.c and qp.c call rdma_cm.
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

/*
 * Minimum size of a ring.  At least a page: an RMB consists of pages, and readers take a byte's
 * offset in its page from its offset in the ring.
 */
#define RSTREAM_RING_MIN	(PAGE_SIZE > SZ_16K ? (u32)PAGE_SIZE : SZ_16K)
/* Smaller grants are refused. */
#define RSTREAM_GRANT_MIN	SZ_4K
/* Maximum size of a ring.  A peer may grant a larger one, but it is of no use. */
#define RSTREAM_RING_MAX	SZ_4M
/* Bytes of a (compound) page into which writes are copied, as in sk_page_frag_refill(). */
#define RSTREAM_CACHED_PAGE_SIZE	max_t(u32, PAGE_SIZE, SZ_32K)

struct rstream;
struct rstream_link;
struct rstream_peer;
struct rstream_rxring;
struct ubuf_info;

/* ---- peers: the other network namespace ---- */

/**
 * struct rstream_peer_name - identity of a peer
 * @instance:	the id in its HELLO
 * @local:	local address of the TCP connection, IPv6 or v4-mapped
 * @remote:	remote address of the TCP connection, likewise
 * @scope:	interface of a link-local @remote, else 0
 *
 * A host can claim any instance id, so an id counts only together with the addresses of the
 * connection: a host that claims another one's id shares nothing with it.  Both ends see the
 * same pair of addresses, so they agree on the connections to which a link belongs.
 */
struct rstream_peer_name {
	u8 instance[RSTREAM_INSTANCE_LEN];
	struct in6_addr local, remote;
	int scope;
};

/**
 * rstream_peer_get() - find or create a peer
 * @net:	the local network namespace
 * @name:	from a connection whose HELLO has arrived
 *
 * Context: any, does not sleep.
 * Return: a referenced peer, or NULL if out of memory or at the limit on peers.
 */
struct rstream_peer *rstream_peer_get(struct net *net,
				      const struct rstream_peer_name *name);
void rstream_peer_put(struct rstream_peer *peer);

#define RSTREAM_SECRET_LEN 16

/**
 * struct rstream_ticket - identity of a TCP connection for which a link is established
 * @ours:	from our HELLO
 * @theirs:	from the peer's HELLO; the token is 0 until the HELLO has arrived
 *
 * The tokens identify the connection in rdma_cm messages, which others may read.  The secrets
 * are sent only over TCP: whoever knows both must have seen both HELLOs.
 */
struct rstream_ticket {
	struct {
		u64 token;
		u8 secret[RSTREAM_SECRET_LEN];
	} ours, theirs;
};

/**
 * struct rstream_peer_route - addresses for rdma_cm
 * @local:	local address of the TCP connection (never v4-mapped)
 * @remote:	the peer's address and rdma_cm port, network order
 * @ticket:	of the TCP connection
 */
struct rstream_peer_route {
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct rstream_ticket ticket;
};

/**
 * rstream_peer_set_drained() - record whether the peer is drained
 * @peer:	the peer
 * @drained:	from its HELLO
 *
 * On the passive side, only the HELLO shows this.
 *
 * Context: any.
 */
void rstream_peer_set_drained(struct rstream_peer *peer, bool drained);

/**
 * rstream_peer_addrs() - add the addresses in the peer's HELLO
 * @peer:	the peer
 * @addrs:	@n addresses, IPv6 or v4-mapped, network order
 * @n:		number of addresses
 * @port:	its rdma_cm port
 *
 * Links are tried to these if the address of the TCP connection fails, or if one path is not
 * enough.  Context: any, does not sleep.
 */
void rstream_peer_addrs(struct rstream_peer *peer, const u8 addrs[][16],
			unsigned int n, u16 port);

/**
 * rstream_path_addrs() - further RDMA addresses of this namespace, for HELLO
 * @net:	the local network namespace
 * @own:	local address of the TCP connection, IPv6 or v4-mapped
 * @addrs:	result: one address of each RDMA netdev that does not have @own
 * @max:	size of @addrs
 *
 * Context: any, does not sleep.  Return: number of addresses.
 */
unsigned int rstream_path_addrs(struct net *net, const struct in6_addr *own,
				struct in6_addr *addrs, unsigned int max);

/**
 * rstream_peer_active() - does this host connect the links to this peer?
 * @peer:	the peer
 *
 * The namespace with the greater instance id (memcmp) is always the active side, so
 * two hosts never connect the same link from both ends.  A namespace with links to
 * itself (equal ids) is both ends.
 */
bool rstream_peer_active(const struct rstream_peer *peer);

/**
 * rstream_peer_want_link() - bring up a link in the background
 * @peer:	the peer; on the passive side this only adds a waiter
 * @route:	used for this attempt; copied
 * @rs:		the stream that needs the link
 *
 * @rs waits until ops->event() reports UP, or until rstream_waiter_forget().  It is also notified
 * of the first attempt that fails after each call.  While an attempt is in progress, or during the
 * pause after a failed one, this only adds @rs to the waiters: if there are any at the end of the
 * pause, another attempt follows.
 *
 * Context: any, does not sleep.
 */
void rstream_peer_want_link(struct rstream_peer *peer,
			    const struct rstream_peer_route *route,
			    struct rstream *rs);
void rstream_waiter_forget(struct rstream_peer *peer, struct rstream *rs);

/**
 * rstream_peer_asks() - the peer, which is passive, has requested a link
 * @peer:	the peer
 *
 * If the peer has declined links because it was drained, it is no longer drained: if a stream
 * waits for a link, the next attempt is made before the pause is over.
 * Context: any, does not sleep.
 */
void rstream_peer_asks(struct rstream_peer *peer);

/**
 * rstream_peer_link() - select a link to the peer that is up
 * @peer:	the peer
 * @size:	size of the ring that is wanted, bytes
 *
 * Prefers links with room for the ring, among these the ones with the fewest receiving rings,
 * then one whose device is on this CPU's NUMA node.
 *
 * Context: any. Return: a referenced link in state UP, or NULL.
 */
struct rstream_link *rstream_peer_link(struct rstream_peer *peer, u32 size);

/**
 * rstream_peer_has_better_link() - would a ring of the same size now go to another link?
 * @peer:	the peer of @ring's link
 * @ring:	a receiving end
 *
 * Return: true if so, and that link has room for it.  Context: any.
 */
bool rstream_peer_has_better_link(struct rstream_peer *peer, const struct rstream_rxring *ring);

/**
 * rstream_peer_want_more() - bring up another link if all are busy and a path allows more
 * @peer:	the peer; does nothing on the passive side
 * @route:	as in rstream_peer_want_link()
 *
 * Context: any, does not sleep.
 */
void rstream_peer_want_more(struct rstream_peer *peer,
			    const struct rstream_peer_route *route);

/* ---- links ---- */

/*
 * Only rstream_link_set_state() in link.c changes states.  It refuses transitions
 * other than these:
 *
 *	CONNECTING -> UP -> BROKEN -> DEAD
 *	     |                ^
 *	     +----------------+
 *
 * BROKEN: nothing more is posted; the QP is in error and being drained.
 * DEAD: drained and removed from all tables; the last reference frees the memory.
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
/* Why the link ended; valid once rstream_link_is_up() has returned false. */
enum rstream_reason rstream_link_reason(const struct rstream_link *link);

/*
 * The peer's id of the same link.  A GRANT contains it, because the receiver of the
 * GRANT looks it up among its own ids.
 */
u32 rstream_link_peer_id(const struct rstream_link *link);

/**
 * rstream_cm_proof() - keyed hash that only the two ends of a link can compute
 * @link:	the link
 * @ours:	with the key of this end; otherwise with that of the peer's end
 * @what:	the input
 * @len:	bytes
 *
 * Context: any.
 */
u64 rstream_cm_proof(struct rstream_link *link, bool ours, const void *what,
		     size_t len);

/**
 * rstream_link_find() - look up the link of a GRANT
 * @net:	the local network namespace
 * @peer:	the sender of the GRANT
 * @id:		the local id of the link, which the peer has learnt at bring-up
 *
 * A GRANT can overtake the last step of bring-up: see rstream_link_proven().
 *
 * Context: any. Return: a referenced link to @peer in any state, or NULL.
 */
struct rstream_link *rstream_link_find(struct net *net,
				       struct rstream_peer *peer, u32 id);

/**
 * rstream_link_proven() - an authentic GRANT for the link has arrived
 * @link:	from rstream_link_find()
 *
 * The GRANT shows that the peer's end is up.  The local end comes up, too, if it is ready.
 * Context: any.
 */
void rstream_link_proven(struct rstream_link *link);

/**
 * rstream_link_break() - give the link up
 * @link:	the link
 * @end:	why; the first one counts
 *
 * UP or CONNECTING becomes BROKEN.  A worker then sends RSTREAM_LINK_EV_LOST to every stream
 * with a ring on the link, because there may be many.  Does nothing if the link is already
 * BROKEN or DEAD.
 *
 * Context: any, not from within a callback of the link.
 */
void rstream_link_break(struct rstream_link *link, enum rstream_link_end end);

/* ---- receiving end ---- */

/**
 * struct rstream_rxring - a ring that this host has granted
 * @link:	its link, referenced
 * @id:		identifies the ring in immediate data, unique in the link,
 *		20 bits, not reused soon
 * @rkey:	remote key, for GRANT
 * @raddr:	remote address of its first byte, for GRANT
 * @size:	bytes, power of two
 * @mem:	its memory, contiguous in kernel address space
 * @landed:	bytes that have arrived since the ring was granted; counted in
 *		softirq from completions (smp_store_release), never decreases
 * @napi_id:	of its link, for programs that poll (SO_BUSY_POLL)
 * @want_credit: the sender is blocked and waits for a credit (set in
 *		softirq, cleared by the reader before it sends the credit)
 *
 * The stream keeps track of how much of @landed was read.  A DATA message that would
 * move @landed more than @size beyond the last credit sent is a protocol error:
 * ops->data() is called with bad = true, and @landed does not change.
 *
 * Once the link is BROKEN (see rstream_link_is_up()), @landed is frozen: it is the count that
 * RESUME reports.  The peer may still write beyond it for a while; that data is never read.
 * @mem remains readable until the ring is released.
 */
struct rstream_rxring {
	struct rstream_link *link;
	u32 id;
	u32 rkey;
	u64 raddr;
	u32 size;
	u8 *mem;
	u64 landed;
	unsigned int napi_id;
	bool want_credit;
	/* private to rxring.c follow, in a containing struct */
};

/**
 * rstream_rxring_alloc() - allocate a ring for one stream
 * @link:	a link that is up
 * @size:	bytes; rounded up to a power of two of at least RSTREAM_RING_MIN.  The
 *		ring is smaller if there is not enough memory
 * @rs:		the stream that is passed to ops->data()
 *
 * The ring never contains data of another peer, see rmb.c.
 *
 * Context: socket lock held (any form), does not sleep.
 * Return: the ring, or ERR_PTR: -EAGAIN registered memory is used up and more is being
 * registered (@rs waits as in rstream_peer_want_link(), and ops->event() follows: UP or
 * FAILED), -ENOMEM a limit on memory is reached or there is none, -ENOTCONN link not up.
 */
struct rstream_rxring *rstream_rxring_alloc(struct rstream_link *link, u32 size,
					    struct rstream *rs);

/**
 * rstream_rxring_switched() - the peer's SWITCH has arrived, with its credit cell
 * @ring:	the receiving end
 * @cell_addr:	where to write credits, from the record; checked by the
 *		peer's HCA, not by this host
 * @cell_rkey:	remote key of the cell, likewise
 * @peer_ring:	the sender's id of its end, used in interrupting credits
 */
void rstream_rxring_switched(struct rstream_rxring *ring, u64 cell_addr,
			     u32 cell_rkey, u32 peer_ring);

/**
 * rstream_rxring_credit() - report to the sender how much was consumed
 * @ring:	the receiving end
 * @consumed:	bytes of this ring read so far, counted from its grant
 * @interrupt:	use WRITE_WITH_IMM, which wakes the sender, instead of a silent WRITE
 *
 * If the send queue is full or there is no receive credit, the ring keeps the
 * newest value and writes it as soon as possible.
 * Context: socket lock held, does not sleep.
 */
void rstream_rxring_credit(struct rstream_rxring *ring, u64 consumed,
			   bool interrupt);

/**
 * rstream_rxring_larger() - how large may a replacement for this ring be?
 * @ring:	the receiving end
 * @size:	the wanted size, bytes, a power of two
 *
 * The rings of a link share half of rmb_max, and none grows beyond its share, so that
 * rings that are busy at the same time have the same size.
 *
 * Return: bytes, a power of two and larger than the ring; or 0 if the ring cannot grow.
 */
u32 rstream_rxring_larger(struct rstream_rxring *ring, u32 size);

/**
 * rstream_rxring_page() - the page of a ring that contains a byte
 * @ring:	the receiving end
 * @at:		bytes since the ring was granted
 *
 * For copy_page_to_iter(), which is cheaper with hardened usercopy.
 */
struct page *rstream_rxring_page(const struct rstream_rxring *ring, u64 at);

/**
 * rstream_rxring_left() - has the sender finished with the ring?
 * @ring:	the receiving end
 *
 * Return: true if the sender has sent DONE, or the link has ended.  Context: any.
 */
bool rstream_rxring_left(const struct rstream_rxring *ring);

/**
 * rstream_rxring_keep() - copy the contents of an unread ring, and release its registered memory
 * @ring:	the receiving end
 *
 * Does nothing unless the link is DEAD and there is memory for a copy of @landed bytes.  The
 * socket remains charged as before.
 * Context: process, socket lock held; nothing has been read from the ring.
 */
void rstream_rxring_keep(struct rstream_rxring *ring);

/**
 * rstream_rxring_withdraw() - release a ring whose GRANT was not sent
 * @ring:	the receiving end
 *
 * The peer does not know it, so the memory can be reused at once.  Context: any.
 */
void rstream_rxring_withdraw(struct rstream_rxring *ring);

/**
 * rstream_rxring_release() - the stream does not need the ring any more
 * @ring:	the receiving end
 *
 * After return, no ops->data() for the ring is running or will be called.  The memory is
 * reused only after the sender's DONE or after the link's drain, whatever arrives by TCP: the
 * host that refuses a grant or ends the connection may not be the one that writes.
 * Context: any; drops the ring's reference on the link.
 */
void rstream_rxring_release(struct rstream_rxring *ring);

/* ---- sending end ---- */

/**
 * struct rstream_frag - part of a page with data that the program has sent
 * @list:	in the transmit queue, then in the ring until released
 * @page:	referenced; may be a compound page
 * @off:	offset of the first byte in @page, bytes
 * @len:	bytes from there on
 * @dma:	DMA address of @off for @dma_dev; set by rstream_txring_post(),
 *		unmapped by rstream_frag_free()
 * @dma_dev:	NULL while not mapped
 * @uarg:	referenced; notified when the frag is freed; may be NULL
 * @copied:	@page was allocated for copies, by this module or by TCP
 * @charged:	RSTREAM_FRAG_COST, or 0 for the second part after a split; bytes
 * @end:	ring offset after this frag's last byte (set by post)
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

/* Memory of a frag itself, bytes: its creator charges it to the socket. */
#define RSTREAM_FRAG_COST	ALIGN(sizeof(struct rstream_frag), 16)

/**
 * struct rstream_txring - a ring that the peer has granted
 * @link:	its link, referenced
 * @id:		the local id of this end, identifies it in interrupting credits
 * @size:	bytes, power of two
 * @cell:	the peer writes here how many bytes it has consumed: __be64, then
 *		its complement, because a reader may find a half-written cell
 * @cell_addr:	remote address of @cell, for SWITCH
 * @cell_rkey:	remote key of @cell, for SWITCH
 * @written:	bytes posted since the ring was granted
 * @acked:	bytes that the peer had consumed at the time of the last post
 * @stalled:	enum rstream_reason: why the last post did not take everything, or NONE
 * @scheduled:	has waited in the queue of the link and may post now; read locklessly
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
	u64 acked;
	u8 stalled;
	bool scheduled;
	bool asks;
	bool notify;
};

/**
 * rstream_txring_valid() - can there be such a ring?
 * @ring_id:	the receiver's id of the ring, from GRANT
 * @raddr:	remote address of its first byte, from GRANT
 * @size:	bytes, from GRANT; must be a power of two, RSTREAM_GRANT_MIN at least
 *
 * To be called before the next two functions.  Any context.
 */
bool rstream_txring_valid(u32 ring_id, u64 raddr, u32 size);

/**
 * rstream_txring_open() - accept a grant
 * @link:	link of the GRANT
 * @ring_id:	the receiver's id of the ring, from GRANT
 * @rkey:	remote key of its memory, from GRANT
 * @raddr:	remote address of its first byte, from GRANT
 * @size:	bytes, from GRANT
 * @rs:		the stream that is passed to ops->space()
 *
 * Context: socket lock held, does not sleep.
 * Return: the ring, or ERR_PTR: -EINVAL the ring is already open, -ENOTCONN
 * link not up, -ENOMEM, -EAGAIN no free credit cell and more are being registered (ops->event()
 * follows, as for rstream_rxring_alloc()).
 */
struct rstream_txring *rstream_txring_open(struct rstream_link *link,
					   u32 ring_id, u32 rkey, u64 raddr,
					   u32 size, struct rstream *rs);

/**
 * rstream_txring_refuse() - notify the receiver that a grant is not used
 * @link:	link of the GRANT, which is authentic
 * @ring_id:	the receiver's id of the ring, from GRANT
 *
 * Called after rstream_txring_open() has failed.  Posts DONE, now or later: only DONE returns
 * the memory to the receiver.  Context: any, does not sleep.
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
 * Make the last message ask for an interrupting credit, and signal it, unless the ring is queued
 * on the link for the rest of the frags, see rstream_txring_post().
 */
#define RSTREAM_POST_CREDIT	1U
/* Likewise, but only if the last credit leaves no space for all frags. */
#define RSTREAM_POST_CREDIT_FULL	2U
/* Call ops->sent() when the last message has completed, unless a call is due already. */
#define RSTREAM_POST_NOTIFY	4U

/**
 * rstream_txring_post() - write frags to the peer
 * @ring:	the sending end
 * @frags:	list of struct rstream_frag, oldest first; posted ones are moved
 *		from its head to the ring's list of frags in flight.  A
 *		frag is split where the ring wraps, its
 *		space ends or a message is full
 * @queued:	bytes in @frags
 * @how:	RSTREAM_POST_*
 *
 * Posts as many work requests as ring space, send slots and receive credits allow, usually
 * as one chain.  If the link (not the ring) is out of resources, or other rings wait for them,
 * the ring is queued on the link, and ops->space() follows.  ops->space() also follows if ring
 * space that was credited cannot be reused yet because the writes to it have not completed.
 *
 * Context: socket lock held, does not sleep.
 * Return: bytes posted, 0 if nothing can be posted now, -ENOTCONN link broken,
 * -EPROTO bad credit cell.
 */
ssize_t rstream_txring_post(struct rstream_txring *ring,
			    struct list_head *frags, u64 queued, unsigned int how);

/**
 * rstream_txring_yield() - there is nothing to post now
 * @ring:	the sending end
 *
 * A stream that ops->space() has scheduled and that does not post must call this, because
 * other rings may wait behind it.
 * Context: socket lock held.
 */
void rstream_txring_yield(struct rstream_txring *ring);

/**
 * rstream_txring_ask() - send a zero-length message that only asks for a credit
 * @ring:	the sending end
 */
int rstream_txring_ask(struct rstream_txring *ring);

/**
 * rstream_txring_reap() - free frags that are not needed any more
 * @ring:	the sending end
 * @acked:	set to what rstream_txring_acked() would return, from the same read
 * @silent:	stop at the first frag with a @uarg
 * @cost:	set to the charge for the frags themselves, bytes
 *
 * These are the frags whose data the peer's software has consumed and whose work requests have
 * completed.  A writer that waits for memory also calls rstream_txring_sent(), or waits for the
 * next sweep of the link (settings.link_probe_ms).
 * Context: socket lock held.  Return: bytes freed (payload).
 */
size_t rstream_txring_reap(struct rstream_txring *ring, s64 *acked, bool silent,
			   size_t *cost);

/**
 * rstream_txring_cached_page() - take a page from the link's cache of sent pages
 * @ring:	the sending end
 *
 * Context: socket lock held.  Return: a compound page of RSTREAM_CACHED_PAGE_SIZE bytes with
 * arbitrary contents, to which the caller has the only reference; NULL if there is none.
 */
struct page *rstream_txring_cached_page(struct rstream_txring *ring);

/**
 * rstream_txring_sent() - have all posted writes completed locally?
 * @ring:	the sending end
 *
 * If the last ones were unsignalled, this posts a signalled request after
 * them, and ops->space() is called when it completes.
 */
bool rstream_txring_sent(struct rstream_txring *ring);

/**
 * rstream_txring_recall() - take back the frags in flight, after the link broke
 * @ring:	the sending end
 * @frags:	they are added at the front of this list, oldest first
 *
 * Not before RSTREAM_LINK_EV_DRAINED (rstream_link_is_dead()): until then, the HCA may read
 * the frags.  They are unmapped.  From the @end of each, the sender knows which ones to drop
 * or trim because the count in RESUME covers them.
 *
 * Context: socket lock held.  Return: bytes, or -EBUSY if not drained yet.
 */
ssize_t rstream_txring_recall(struct rstream_txring *ring,
			      struct list_head *frags);

/**
 * rstream_txring_close() - the stream writes no more
 * @ring:	the sending end
 *
 * The link takes over the frags in flight, and frees them when their work requests
 * have completed.  DONE is posted after the last write, now or as soon as a
 * slot is free.  No ops->space() follows after return.
 * Context: any, does not sleep.
 */
void rstream_txring_close(struct rstream_txring *ring);

struct rstream_frag *rstream_frag_alloc(gfp_t gfp);
void rstream_frag_free(struct rstream_frag *frag);	/* unmaps, puts page, uarg */

/* ---- callbacks of links to streams ---- */

enum rstream_link_event {
	RSTREAM_LINK_EV_UP,	/* the peer has a link, or more memory, now */
	RSTREAM_LINK_EV_FAILED,	/* the attempt to establish a link has failed */
	RSTREAM_LINK_EV_DECLINED, /* likewise: the peer is drained of RDMA */
	RSTREAM_LINK_EV_LOST,	/* the link of one of the stream's rings is BROKEN */
	RSTREAM_LINK_EV_DRAINED, /* that link is DEAD: frags can be recalled */
	RSTREAM_LINK_EV_IDLE,	/* the stream's ring has received nothing for some time */
	RSTREAM_LINK_EV_ROUTES,	/* routes or IPsec policies of the namespace have changed */
	RSTREAM_LINK_EV_BUSY,	/* another link would be useful: rstream_peer_want_more() */
	RSTREAM_LINK_EV_MOVE,	/* the stream's ring should be replaced by one on another link */
};

/**
 * struct rstream_link_ops - callbacks that the layer above implements
 * @data:	data or a request for credit has arrived in a ring; @bad: more than fits
 * @space:	a ring may have room again; @credit: because the peer has sent an interrupting
 *		credit, otherwise because the link has resources again
 * @sent:	a post with RSTREAM_POST_NOTIFY has completed
 * @event:	something has happened to a link that the stream uses
 * @find:	is there a connection with these tokens?  Called before a link is
 *		accepted; fills in the secrets of @ticket, and the name of the peer
 *
 * Links know nothing else about streams.
 *
 * All but @find are called in softirq or process context with bottom halves disabled, under
 * a lock of the link.  They only store values, wake tasks and queue work.  They never take a
 * socket lock, and never call a function of this file.  The stream's memory and its sock are
 * valid during the call, because a stream is removed from the tables
 * (rstream_rxring_release(), rstream_txring_close(), rstream_waiter_forget()) before its sock
 * is freed.  @find is called in any context, without a lock.
 */
struct rstream_link_ops {
	void (*data)(struct rstream *rs, struct rstream_rxring *ring, bool bad);
	void (*space)(struct rstream *rs, struct rstream_txring *ring, bool credit);
	void (*sent)(struct rstream *rs);
	void (*event)(struct rstream *rs, enum rstream_link_event ev);
	bool (*find)(struct net *net, struct rstream_ticket *ticket,
		     struct rstream_peer_name *name);
};

/* ---- per namespace ---- */

int rstream_link_net_init(struct net *net);
void rstream_link_net_exit(struct net *net);
int rstream_link_net_register(const struct rstream_link_ops *ops);	/* ib_client, workqueue */
void rstream_link_net_unregister(void);

/*
 * The rdma_cm listener of a namespace exists while it has users.  The first user starts
 * it in a worker.  After the last user, the links of the namespace are closed after the
 * idle time (immediately if the namespace is not the initial one), and then the
 * listener, because an rdma_cm_id pins its namespace.
 */
/* @memcg: the user's, see account.h.  Any context. */
void rstream_link_net_use(struct net *net, struct mem_cgroup *memcg);
/*
 * For an accepted socket, which already uses links: offers its memory control group, because
 * the socket may have had none until accept().  Any context.
 */
void rstream_link_net_pays(struct net *net, struct mem_cgroup *memcg);
/*
 * Can a task charge @size bytes to @memcg, or NULL, without being put to sleep because the group
 * or a parent is above memory.high or memory.swap.high then?  Any context.
 */
bool rstream_account_can_charge(struct mem_cgroup *memcg, size_t size);
/* Are there @size bytes left to memory.max of @memcg, or NULL, and its parents?  Any context. */
bool rstream_account_has_room(struct mem_cgroup *memcg, size_t size);
void rstream_link_net_unuse(struct net *net);	/* any context */

/* A link needs devices of the same transport at both ends. */
#define RSTREAM_TRANSPORT_IB	0x1	/* InfiniBand's, also over Ethernet (RoCE) */
#define RSTREAM_TRANSPORT_IWARP	0x2

/*
 * The transports of the usable RDMA devices of this namespace.  In a drain that started with a
 * device, all transports: devices may be gone now and return later.  Cheap, any context.
 */
unsigned int rstream_dev_transports(struct net *net);

static inline bool rstream_link_possible(struct net *net)
{
	return rstream_dev_transports(net);
}

/**
 * rstream_link_net_drain() - start or end a drain
 * @net:	the namespace
 * @on:		start
 *
 * On: breaks the existing links, of which streams are notified as usual, and declines requests
 * of peers.  Off: tries at once to establish links to peers with waiters; the caller notifies
 * the streams.
 * Context: process.
 */
void rstream_link_net_drain(struct net *net, bool on);
bool rstream_link_drained(const struct net *net);	/* any context */

/**
 * rstream_life_protects() - may @dev encrypt packets?
 * @dev:	the device of a route
 *
 * True if it is a tunnel, or if there is MACsec below it.  RDMA would bypass it, and send the
 * data unencrypted.
 *
 * Context: RCU read lock.
 */
bool rstream_life_protects(struct net_device *dev);

/* Changes with routes and IPsec policies.  Any context. */
int rstream_routes_genid(const struct net *net);

/* Number of links that may still use a device: 0 when a drain has completed. */
unsigned int rstream_link_net_count(const struct net *net);

#endif
