/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two files of rs_floor.ko share. */
#ifndef RS_FLOOR_H
#define RS_FLOOR_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

enum {
	FLOOR_PAGES = 512,		/* what a memory region can have everywhere */
	FLOOR_BUFFER = FLOOR_PAGES * PAGE_SIZE,
	FLOOR_WINDOW = 32,		/* most messages on their way */
	FLOOR_RECVS = FLOOR_WINDOW + 8,
	FLOOR_SIGNAL_EVERY = 8,
	FLOOR_SENDS = 64,		/* >= FLOOR_WINDOW + FLOOR_SIGNAL_EVERY */
	FLOOR_SETUP_SENDS = 2,		/* registration and hello */
	FLOOR_WARM = 16,		/* round trips that do not count */
	FLOOR_TRIPS = 8,		/* least that do */
	FLOOR_SAMPLES = 100000,
	FLOOR_CM_MS = 10000,
	FLOOR_GRACE_MS = 20000,
};

enum floor_op { FLOOR_RTT, FLOOR_WRITE };
enum floor_mode { FLOOR_SOFTIRQ, FLOOR_WORKQUEUE, FLOOR_DIRECT };

/* The first message in each direction: where to write. */
struct floor_hello {
	__be64 addr;
	__be32 rkey;
	__be32 pad;
};

struct rdma_cm_id;
struct task_struct;

struct floor_conn {
	struct rdma_cm_id *id;
	bool server;
	enum floor_op op;
	enum floor_mode mode;
	u32 size;
	u32 window;		/* messages on their way, at most */
	int err;		/* the first one */

	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct task_struct *poller;
	struct ib_mr *mr;
	void *buffer;
	struct sg_table sgt;
	int mapped;		/* entries of sgt */
	struct floor_hello *hello;	/* ours, the peer's */
	u64 hello_dma;
	struct ib_cqe setup_cqe, hello_cqe, send_cqe, recv_cqe;

	/* Of the CQ's handlers. */
	u64 peer_addr;
	u32 peer_rkey;
	u32 sent, retired;	/* requests, modulo 2^32 */
	u32 due;		/* server: answers, or messages to credit */
	bool flush;		/* server: credit them at once */
	bool turn;		/* client, rtt: send the next message */
	bool last;		/* client, write: the last one is on its way */
	u64 messages, credited;	/* client, write */
	u64 start, end, began;	/* client: when, ns */
	u64 busy;		/* client, rtt */
	u32 trips;
	u32 *samples;		/* client, rtt: ns */

	bool closing;
	struct completion event;	/* client: the next step of the connection */
	struct completion finished;	/* client */
	struct work_struct close_work;	/* server */
	unsigned long close_queued;
	struct list_head node;		/* server */
};

void floor_fail(struct floor_conn *conn, int err);
int floor_prepare(struct floor_conn *conn);
void floor_release(struct floor_conn *conn);

#endif
