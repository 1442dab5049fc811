/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rs_hca: a software RDMA device that behaves like real ones, for tests.
 *
 * Shared by all files.  From the outside to the inside:
 *
 *	main.c		the module: devices are added by "rdma link add" and removed
 *	profile.c	properties of real devices, as a table
 *	device.c	attributes of a device; ports, PDs, address handles
 *	wire.c		addressing
 *	cq.c		completion queues
 *	qp.c		queue pairs: states, posting, flushing
 *	requester.c	executes the send queue
 *	responder.c	executes requests at the other end
 *	gsi.c		datagrams of QP 1, with which rdma_cm connects
 *	iwcm.c		connections of iWARP devices, for iw_cm
 *	subnet.c	the InfiniBand subnet: LIDs, P_Keys, what its manager does
 *	sa.c		the subnet administrator, which knows the paths
 *	ipoib.c		network interfaces of InfiniBand ports
 *	mr.c		registered memory; copying between memory regions
 *	dma.c		DMA addresses of the device, and their checks
 *	fault.c		fault injection, by a seed
 *	lie.c		forged requests of a malicious device
 *	count.c		counters
 *	report.c	reports of errors, with stack traces
 *
 * All ends are in one kernel, in any of its network namespaces: the requester's tasklet executes
 * a request; it finds the other queue pair by its number, and copies from memory to memory.
 *
 * Locks, outermost first; those of two devices or queue pairs are never nested:
 *
 *	qp->landing (bh)	writes through the queue pair, and their end
 *	  qp->lock (irq)	its queues and its state
 *	    cq->lock (irq)	completions
 *	  dma->lock (irq)	addresses
 *	hca_ipoib_lock (bh)	all interfaces of InfiniBand ports
 *	hca_devs_lock (bh)	all devices
 */
#ifndef RS_HCA_H
#define RS_HCA_H

#include <linux/interrupt.h>
#include <linux/platform_device.h>
#include <linux/prandom.h>
#include <linux/refcount.h>
#include <rdma/ib_verbs.h>

#include "compat.h"

/* Not a value that the kernel uses. */
#define HCA_DRIVER	((enum rdma_driver_id)0x7263)

#define HCA_LKEY	0x7263a100	/* local_dma_lkey; no MR has this index */
#define HCA_GIDS	64
#define HCA_QPN_MAX	0xffffff
#define HCA_PKEYS	8

/* ---- report.c ---- */

#define HCA_STACK	14

/*
 * struct hca_stack: where something was done
 * @n:	entries that are there
 * @pc:	addresses, the innermost first
 */
struct hca_stack {
	unsigned int n;
	unsigned long pc[HCA_STACK];
};

enum hca_past_kind { HCA_PAST_DMA, HCA_PAST_MR };

/*
 * struct hca_past: a mapping or registration that is no more
 * @start:	its first address, or its key without the lowest 8 bits
 * @len:	bytes, or 256
 */
struct hca_past {
	enum hca_past_kind kind;
	u64 start, len;
	struct hca_stack made, ended;
};

#define HCA_PASTS	512

/*
 * struct hca_report: what a device remembers in order to explain itself
 * @past:	the last mappings and registrations that ended
 * @next:	which of them is the oldest
 * @count:	reports so far
 */
struct hca_report {
	spinlock_t lock;	/* irq */
	struct hca_past *past;
	unsigned int next;
	atomic_t count;
};

struct hca_dev;
struct hca_iw;
struct hca_qp;
struct hca_wqe;

int hca_report_init(struct hca_dev *dev);
void hca_report_exit(struct hca_dev *dev);
void hca_stack_save(struct hca_stack *stack);
void hca_past_add(struct hca_dev *dev, enum hca_past_kind kind, u64 start,
		  u64 len, const struct hca_stack *made);
__printf(4, 5)
void hca_report(struct hca_dev *dev, const struct hca_wqe *wqe,
		const struct hca_stack *made, const char *fmt, ...);
__printf(5, 6)
void hca_report_past(struct hca_dev *dev, const struct hca_wqe *wqe,
		     enum hca_past_kind kind, u64 addr, const char *fmt, ...);

/* ---- profile.c ---- */

/*
 * struct hca_profile: how a kind of device behaves
 * @name:		what "profile=" calls it
 * @driver:		the driver that it stands for; 0: none
 * @iwarp:		of iWARP: rdma_cm by iw_cm, no immediate data
 * @ib:			with an InfiniBand link layer, else Ethernet
 * @page_size_cap:	page sizes of registrations, a bit each
 * @max_reg_pages:	pages of a fast registration
 * @max_inline:		bytes of a request that are copied when it is posted
 * @imm_opcode:		of the completion of a write with immediate data
 * @stale_sge:		a write without SGEs takes the first of its sg_list, if
 *			there is one
 * @tail_first:		the end of a message is placed before its begin, some time
 *			later
 * @moder_count:	completions that a queue collects before it tells of them
 * @moder_us:		... and for how long
 * @rq_first:		the receive queue is flushed before the send queue
 * @flush_us:		how long after the error queues are flushed
 */
struct hca_profile {
	const char *name;
	enum rdma_driver_id driver;
	bool iwarp, ib;
	u64 page_size_cap;
	int max_send_sge, max_recv_sge, max_qp_wr, max_cqe;
	unsigned int max_reg_pages, max_inline;
	enum ib_wc_opcode imm_opcode;
	bool stale_sge, tail_first, rq_first;
	unsigned int moder_count, moder_us, flush_us;
};

const struct hca_profile *hca_profile_find(const char *name);

/* ---- fault.c ---- */

enum hca_fault {
	HCA_FAULT_DELAY,	/* a request waits */
	HCA_FAULT_LOSS,		/* a request ends the connection */
	HCA_FAULT_REPEAT,	/* bytes are placed a second time, before the completion */
	HCA_FAULT_AGAIN,	/* answers are lost: what the peer has is read once more */
	HCA_FAULT_REPLACE,	/* ... and placed once more */
	HCA_FAULT_MAD,		/* a datagram of QP 1 is lost */
	HCA_FAULT_SA,		/* the subnet administrator does not answer */
	HCA_FAULT_POST_SEND,
	HCA_FAULT_POST_RECV,
	HCA_FAULT_MAP,		/* no DMA address */
	HCA_FAULT_ALLOC_PD,
	HCA_FAULT_CREATE_CQ,
	HCA_FAULT_CREATE_QP,
	HCA_FAULT_MODIFY_QP,	/* but not to reset or to the error state */
	HCA_FAULT_ALLOC_MR,
	HCA_FAULT_REG_MR,	/* the request completes with an error */
	HCA_FAULT_REMOVE,	/* the device goes */
	HCA_FAULT_RESET,	/* the device stops for ever: nothing is flushed */
	HCA_FAULT_LIE,		/* another request than was posted; of the "liar" alone */
	HCA_FAULTS
};

/*
 * struct hca_faults: a device's sequence of things that go wrong
 * @state:	pseudo-random numbers, from the seed at the time the device came
 * @since:	what hca_faults_since said when @asked began
 * @asked:	how often each kind could have happened since then
 * @done:	how often it did
 */
struct hca_faults {
	spinlock_t lock;	/* irq */
	struct rnd_state state;
	unsigned int since[HCA_FAULTS];
	u64 asked[HCA_FAULTS];
	atomic64_t done[HCA_FAULTS];
	u64 wire_busy_till;	/* ns, of ktime_get() */
};

extern const char * const hca_fault_names[HCA_FAULTS];

void hca_fault_init(struct hca_dev *dev);
bool hca_fault_now(struct hca_dev *dev, enum hca_fault what);

extern unsigned int hca_faults;	/* bits by enum hca_fault: the kinds that some device has */

/**
 * hca_fault() - shall it fail?
 * @dev:	the device
 * @what:	could happen now
 *
 * Costs next to nothing unless there are faults of this kind.
 */
static inline bool hca_fault(struct hca_dev *dev, enum hca_fault what)
{
	return unlikely(READ_ONCE(hca_faults) & (1U << what)) && hca_fault_now(dev, what);
}

u32 hca_fault_random(struct hca_dev *dev, u32 n);
u64 hca_fault_delay_ns(struct hca_dev *dev);
u64 hca_wire_ns(struct hca_dev *dev, u32 len);
enum hca_slow {
	HCA_SLOW_CQ,
	HCA_SLOW_CQ_END,
	HCA_SLOW_MR,
	HCA_SLOWS
};
void hca_fault_slow(struct hca_dev *dev, enum hca_slow what);
s64 hca_fault_flush_ns(const struct hca_dev *dev);

/* ---- count.c ---- */

enum hca_count {
	HCA_REQUESTS,		/* executed, of connected queue pairs */
	HCA_BYTES,		/* placed by them */
	HCA_RNRS,		/* requests that found no receive */
	HCA_UNANSWERED,		/* tries that nobody answered */
	HCA_MAPS, HCA_UNMAPS,
	HCA_MAPS_BH, HCA_UNMAPS_BH,	/* those with bottom halves off, as below a lock */
	HCA_SYNCS,
	HCA_INLINES,		/* requests whose bytes were copied when they were posted */
	HCA_COUNTS
};

/* ---- dma.c ---- */

enum hca_dma_mode {
	HCA_DMA_VIRT,	/* the kernel's own addresses: nothing is checked */
	HCA_DMA_IOMMU,	/* addresses of the device's own, all checked */
	HCA_DMA_BOUNCE,	/* ... and what is not synced is not there */
};

struct hca_map;

/*
 * struct hca_piece: memory that the device is about to access
 * @va:		where it is
 * @len:	how much of it is contiguous
 * @map:	keeps it there; NULL with HCA_DMA_VIRT
 */
struct hca_piece {
	void *va;
	u32 len;
	struct hca_map *map;
};

/*
 * struct hca_dma: the addresses of one device
 * @maps:	what is mapped, by address
 * @next:	where the next mapping goes: no address is used twice
 */
struct hca_dma {
	spinlock_t lock;	/* irq */
	struct rb_root maps;
	u64 next;
	bool bounce;
	struct platform_device *pdev;
	struct hca_dev *dev;
};

int hca_dma_init(struct hca_dev *dev, enum hca_dma_mode mode);
void hca_dma_exit(struct hca_dev *dev);
struct device *hca_dma_device(struct hca_dev *dev);
int hca_dma_get(struct hca_dev *dev, u64 addr, u32 len, bool write,
		const struct hca_wqe *wqe, struct hca_piece *piece);
void hca_dma_put(struct hca_piece *piece);

/* ---- device.c ---- */

/*
 * struct hca_ib_port: what the subnet manager has set, of an InfiniBand port; hca_devs_lock for
 * changes
 * @lid:	its address
 * @old_lid:	the one before, which a stale path leads to
 * @sm_lid:	where the subnet administrator is
 * @pkeys:	its table; 0: no entry
 * @off:	it is down, whatever the network device is
 */
struct hca_ib_port {
	u16 lid, old_lid, sm_lid;
	u16 pkeys[HCA_PKEYS];
	bool off;
};

/*
 * struct hca_dev: a device
 * @list:	hca_devs, hca_devs_lock
 * @ndev:	its network device: with an InfiniBand link layer the cable, and nothing more
 * @mrs:	registered memory by index
 * @gsi:	its QP 1, under RCU
 * @dead:	a reset that nothing comes back from
 * @dead_at:	when, before @dead
 * @going:	queued for removal
 */
struct hca_dev {
	struct ib_device ib;
	struct list_head list;
	struct net_device *ndev;
	const struct hca_profile *profile;
	struct hca_dma *dma;
	struct hca_report report;
	struct hca_faults faults;
	atomic64_t counts[HCA_COUNTS];
	struct xarray mrs;
	struct hca_qp __rcu *gsi;
	struct hca_ib_port port;
	bool dead, port_up;
	ktime_t dead_at;
	unsigned long going;
};

static inline void hca_count(struct hca_dev *dev, enum hca_count what, u64 n)
{
	atomic64_add(n, &dev->counts[what]);
}

static inline struct hca_dev *to_hca(struct ib_device *ib)
{
	return container_of(ib, struct hca_dev, ib);
}

int hca_dev_add(const char *name, struct net_device *ndev,
		const struct hca_profile *profile, enum hca_dma_mode mode);
bool hca_dev_port_up(struct hca_dev *dev);
void hca_dev_event(struct hca_dev *dev, enum ib_event_type type);
void hca_dev_port_changed(struct hca_dev *dev);
void hca_dev_remove(struct hca_dev *dev);
void hca_dev_reset(struct hca_dev *dev);

/*
 * struct hca_av: where a datagram or a connection goes
 * @grh:	there are GIDs: with an InfiniBand link layer only if they are needed
 * @dlid:	of the InfiniBand link layer; 0: Ethernet
 */
struct hca_av {
	union ib_gid sgid, dgid;
	u8 dmac[ETH_ALEN];
	u8 hop_limit, sl;
	bool grh;
	u16 dlid;
};

struct hca_ah {
	struct ib_ah ib;
	struct hca_av av;
	u8 sgid_index;
};

void hca_av_set(struct hca_av *av, const struct rdma_ah_attr *attr);

struct hca_pd {
	struct ib_pd ib;
};

/* ---- wire.c ---- */

extern struct list_head hca_devs;
extern spinlock_t hca_devs_lock;

struct hca_dev *hca_wire_find(const struct hca_av *av);
bool hca_wire_up(struct hca_dev *a, struct hca_dev *b);

/* ---- subnet.c ---- */

void hca_subnet_join(struct hca_dev *dev);
union ib_gid hca_subnet_gid(const struct hca_dev *dev);
u16 hca_subnet_pkey(const struct hca_dev *dev, unsigned int index);
int hca_subnet_accepts(const struct hca_dev *dev, u16 pkey);
bool hca_subnet_member(const struct hca_dev *dev, u16 pkey);
bool hca_subnet_joins(const struct hca_dev *a, const struct hca_dev *b, u16 pkey);
bool hca_subnet_carries(const struct hca_qp *from, const struct hca_qp *to);
bool hca_subnet_is_sm(u16 lid);

/* ---- sa.c ---- */

bool hca_sa_answer(struct hca_dev *dev, void *data);

/* ---- ipoib.c ---- */

void hca_ipoib_changed(struct hca_dev *dev);
int hca_ipoib_init(void);
void hca_ipoib_exit(void);

/* ---- cq.c ---- */

/*
 * struct hca_cqe: a completion, and which place in its queue it frees
 */
struct hca_cqe {
	struct ib_wc wc;
	struct hca_qp *qp;
	u64 frees;
	bool send;
};

/*
 * struct hca_cq: a completion queue
 * @ring:	its entries, from @tail (oldest) to @head
 * @seen:	up to where poll_cq() finds them: the rest is still being collected
 * @armed:	what the owner wants to be told of, 0: nothing
 * @timer:	ends the collecting
 */
struct hca_cq {
	struct ib_cq ib;
	struct hca_dev *dev;
	spinlock_t lock;	/* irq */
	struct hca_cqe *ring;
	u32 size;
	u64 head, tail, seen;
	enum ib_cq_notify_flags armed;
	bool solicited, ending;
	struct hrtimer timer;
};

static inline struct hca_cq *to_cq(struct ib_cq *ib)
{
	return container_of(ib, struct hca_cq, ib);
}

int hca_cq_create(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
		  hca_cq_udata *udata);
int hca_cq_pre_destroy(struct ib_cq *ib);
int hca_cq_destroy(struct ib_cq *ib, struct ib_udata *udata);
int hca_cq_poll(struct ib_cq *ib, int n, struct ib_wc *wc);
int hca_cq_arm(struct ib_cq *ib, enum ib_cq_notify_flags flags);
void hca_cq_add(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited);
void hca_cq_forget(struct hca_cq *cq, struct hca_qp *qp);

/* ---- qp.c ---- */

/*
 * struct hca_wqe: a request in a send queue
 * @flags:	IB_SEND_*
 * @access:	of a registration
 * @rkey:	of what is written, registered or invalidated
 * @av:		of datagrams
 * @by:		the stack that posted it
 * @own:	its bytes, with IB_SEND_INLINE
 */
#define HCA_INLINE_MAX	128
struct hca_wqe {
	u64 wr_id;
	enum ib_wr_opcode opcode;
	int flags, access;
	__be32 imm;
	u64 raddr;
	u32 rkey, len;
	struct ib_mr *mr;
	struct hca_av av;
	u32 remote_qpn, remote_qkey;
	u16 pkey_index;
	struct hca_stack by;
	u8 own[HCA_INLINE_MAX];
	unsigned int num_sge;
	struct ib_sge sge[];
};

/*
 * struct hca_rqe: a place in a receive queue
 */
struct hca_rqe {
	u64 wr_id;
	unsigned int num_sge;
	struct ib_sge sge[];
};

enum hca_stage {
	HCA_STAGE_NEW,		/* not looked at */
	HCA_STAGE_DELAYED,	/* it had to wait, as a fault */
	HCA_STAGE_TAIL,		/* its tail is placed */
	HCA_STAGE_REPEATED,	/* all was placed, but it will be again */
};

/*
 * struct hca_qp: a queue pair
 * @landing:	held while data of the peer lands by it: once the state has changed under
 *		this lock, no more data lands
 * @sq_head:	requests posted
 * @sq_next:	the first that has not been executed
 * @sq_free:	those below are no more: their completions, or later ones, were polled
 * @sq_lost:	if @lost, the first that the peer has and that has not completed
 * @sq_answered: the peer has those below: they are sent again for their answers alone
 * @rq_head:	...
 * @rq_next:	the first receive that nothing has landed in
 * @stage:	how far the request at @sq_next is
 * @tries:	how often it went unanswered
 * @rnr_tries:	how often the peer was not ready to receive
 * @told_est:	IB_EVENT_COMM_EST was told
 * @iw:	end of its connection, of an iWARP device; hca_iw_lock of iwcm.c
 * @mpa_waits:	it has accepted, and must not send before the peer has (RFC 5044, 7.1.2)
 * @lost:	answers are being lost, until @lost_till
 * @replace:	what is sent again is placed again
 * @run:	executes the send queue, flushes both
 * @timer:	it goes on then
 * @waits:	until @timer
 */
struct hca_qp {
	struct ib_qp ib;
	struct hca_dev *dev;
	refcount_t ref;
	struct completion gone;
	struct rcu_head rcu;

	spinlock_t landing;	/* bh */
	spinlock_t lock;	/* irq */
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct hca_av av;
	bool sig_all;

	void *sq, *rq;
	size_t sq_entry, rq_entry;
	u32 sq_size, rq_size, max_send_sge, max_recv_sge, max_inline;
	u64 sq_head, sq_next, sq_free, sq_lost, sq_answered;
	u64 rq_head, rq_next, rq_free;

	enum hca_stage stage;
	unsigned int tries, rnr_tries;
	bool told_est, waits, flush_waited, ended, lost, replace, mpa_waits;
	struct hca_iw *iw;
	ktime_t lost_till;
	struct tasklet_struct run;
	struct hrtimer timer;
};

static inline struct hca_qp *to_qp(struct ib_qp *ib)
{
	return container_of(ib, struct hca_qp, ib);
}

int hca_qp_create(struct ib_qp *ib, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int hca_qp_modify(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int hca_qp_query(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int hca_qp_destroy(struct ib_qp *ib, struct ib_udata *udata);
int hca_qp_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad);
int hca_qp_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad);
struct hca_qp *hca_qp_find(u32 qpn);
struct hca_qp *hca_qp_gsi(struct hca_dev *dev);
void hca_qp_put(struct hca_qp *qp);
void hca_qp_error(struct hca_qp *qp);
void hca_qp_establish(struct hca_qp *qp, u32 dest_qpn, bool passive);
void hca_qp_event(struct hca_qp *qp, enum ib_event_type type);
void hca_qp_sent(struct hca_qp *qp, const struct hca_wqe *wqe,
		 enum ib_wc_status status);
void hca_qp_unanswered(struct hca_qp *qp);
void hca_qp_rewind(struct hca_qp *qp);
void hca_qp_received(struct hca_qp *qp, const struct hca_rqe *rqe,
		     struct ib_wc *wc, bool solicited);
struct hca_wqe *hca_qp_wqe(struct hca_qp *qp);
struct hca_rqe *hca_qp_rqe(struct hca_qp *qp);
void hca_qp_flush(struct hca_qp *qp);

/* ---- requester.c ---- */

void hca_requester_run(struct tasklet_struct *t);
enum hrtimer_restart hca_requester_timer(struct hrtimer *timer);

/* ---- mr.c ---- */

enum hca_mr_state { HCA_MR_FREE, HCA_MR_VALID };

/*
 * struct hca_mr: registered memory
 * @all:	every address of the device, as get_dma_mr() gives it
 * @pages:	what map_mr_sg() was told, @n_pages of them of ib.page_size bytes
 * @iova:	since the registration took place, as the following
 * @shift:	of the page size that the device takes it to be
 */
struct hca_mr {
	struct ib_mr ib;
	struct hca_dev *dev;
	refcount_t ref;
	struct completion gone;
	struct rcu_head rcu;
	u32 index;
	bool all;
	enum hca_mr_state state;
	int access;
	u64 *pages;
	u32 n_pages, max_pages;
	u64 iova, length;
	unsigned int shift;
	struct hca_stack made;
};

static inline struct hca_mr *to_mr(struct ib_mr *ib)
{
	return container_of(ib, struct hca_mr, ib);
}

/*
 * struct hca_mem: memory that a request names
 * @sge:	by local keys; or one element by a remote key
 * @access:	what shall be done with it, 0: read
 */
struct hca_mem {
	struct hca_dev *dev;
	struct ib_pd *pd;
	const struct ib_sge *sge;
	unsigned int n;
	int access;
	const struct hca_wqe *wqe;
};

struct ib_mr *hca_mr_get_dma(struct ib_pd *pd, int access);
struct ib_mr *hca_mr_alloc(struct ib_pd *pd, enum ib_mr_type type, u32 max);
int hca_mr_dereg(struct ib_mr *ib, struct ib_udata *udata);
int hca_mr_map_sg(struct ib_mr *ib, struct scatterlist *sg, int n,
		  unsigned int *off);
enum ib_wc_status hca_mr_register(const struct hca_wqe *wqe);
enum ib_wc_status hca_mr_invalidate(struct hca_dev *dev, u32 key);
bool hca_mem_good(const struct hca_mem *mem, u64 len);
int hca_mem_copy(const struct hca_mem *to, const struct hca_mem *from,
		 u32 off, u32 len);
int hca_mem_io(const struct hca_mem *mem, u32 off, void *own, u32 len);

/* ---- lie.c ---- */

enum hca_lie {
	HCA_LIE_NONE,
	HCA_LIE_DROP,		/* it completes, but nothing is sent */
	HCA_LIE_TWICE,		/* the receiver is told twice */
	HCA_LIE_BYTES,		/* other bytes are placed */
	HCA_LIE_IMM,		/* another immediate value: done by hca_lie() */
	HCA_LIE_SHORT,		/* fewer bytes: likewise */
	HCA_LIES
};

enum hca_lie hca_lie(struct hca_dev *dev, struct hca_wqe *wqe);

/* ---- responder.c ---- */

enum hca_answer {
	HCA_ACK,
	HCA_SILENCE,		/* nobody is there */
	HCA_NAK_RNR,
	HCA_NAK_ACCESS,
	HCA_NAK_LENGTH,
	HCA_NAK_OP,
	HCA_LOCAL_ERROR,	/* the requester could not read its own memory */
};

/*
 * struct hca_request: a request on the wire
 * @off:	which part of its bytes are placed now
 * @len:	...
 * @last:	with it the message ends: the receiver is told
 * @lie:	what is wrong with it
 */
struct hca_request {
	struct hca_qp *from;
	const struct hca_wqe *wqe;
	struct hca_mem src;
	u32 off, len;
	bool last;
	enum hca_lie lie;
};

enum hca_answer hca_respond(struct hca_qp *qp, const struct hca_request *req);

/* ---- gsi.c ---- */

void hca_gsi_send(struct hca_qp *qp, const struct hca_wqe *wqe);

/* ---- iwcm.c ---- */

void hca_iw_close(struct hca_qp *qp);
struct ib_qp *hca_iw_get_qp(struct ib_device *ib, int qpn);
int hca_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int hca_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int hca_iw_reject(struct iw_cm_id *id, const void *data, u8 len);
int hca_iw_listen(struct iw_cm_id *id, int backlog);
int hca_iw_unlisten(struct iw_cm_id *id);

#endif
