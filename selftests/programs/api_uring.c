// SPDX-License-Identifier: GPL-2.0-only
/* io_uring, by its system calls. */
#include "api.h"

#include <linux/io_uring.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES 8

static struct {
	int fd;
	unsigned int *sq_tail, *sq_mask, *array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static void *ring_map(size_t len, off_t off)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, ring.fd, off);

	EXPECT(p != MAP_FAILED);
	return p;
}

static void ring_make(void)
{
	struct io_uring_params p = {};
	char *sq, *cq;

	ring.fd = syscall(__NR_io_uring_setup, ENTRIES, &p);
	if (ring.fd < 0)
		api_skip("no io_uring here");
	sq = ring_map(p.sq_off.array + p.sq_entries * sizeof(unsigned int),
		      IORING_OFF_SQ_RING);
	cq = ring_map(p.cq_off.cqes + p.cq_entries * sizeof(*ring.cqes),
		      IORING_OFF_CQ_RING);
	ring.sqes = ring_map(p.sq_entries * sizeof(*ring.sqes), IORING_OFF_SQES);
	ring.sq_tail = (void *)(sq + p.sq_off.tail);
	ring.sq_mask = (void *)(sq + p.sq_off.ring_mask);
	ring.array = (void *)(sq + p.sq_off.array);
	ring.cq_head = (void *)(cq + p.cq_off.head);
	ring.cq_tail = (void *)(cq + p.cq_off.tail);
	ring.cq_mask = (void *)(cq + p.cq_off.ring_mask);
	ring.cqes = (void *)(cq + p.cq_off.cqes);
}

/* Submit one; @id comes back with its result.  @how: flags of the operation */
static void submit_for(int id, int op, int fd, const void *buf, size_t len, int flags, int how)
{
	unsigned int at = *ring.sq_tail & *ring.sq_mask;
	struct io_uring_sqe *sqe = &ring.sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (unsigned long)buf;
	sqe->len = len;
	sqe->msg_flags = flags;
	sqe->ioprio = how;
	sqe->user_data = id;
	ring.array[at] = at;
	__atomic_store_n(ring.sq_tail, *ring.sq_tail + 1, __ATOMIC_RELEASE);
	EXPECT(syscall(__NR_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0) == 1);
}

static void submit(int id, int op, int fd, const void *buf, size_t len, int flags)
{
	submit_for(id, op, fd, buf, len, flags, 0);
}

static bool have_result(void)
{
	return *ring.cq_head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
}

/* Wait for the result of @id, which must be next. */
static int result(int id, unsigned int *flags)
{
	struct io_uring_cqe *cqe;
	int res;

	if (!have_result())
		EXPECT(syscall(__NR_io_uring_enter, ring.fd, 0, 1,
			       IORING_ENTER_GETEVENTS, NULL, 0) >= 0);
	EXPECT(have_result());
	cqe = &ring.cqes[*ring.cq_head & *ring.cq_mask];
	EXPECT(cqe->user_data == (unsigned int)id);
	res = cqe->res;
	if (flags)
		*flags = cqe->flags;
	__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
	return res;
}

static void send_recv(void)
{
	char buf[8];
	int fd[2];

	ring_make();
	pair(fd);
	submit(1, IORING_OP_RECV, fd[1], buf, 8, 0);
	EXPECT(!have_result());
	turn();
	submit(2, IORING_OP_SEND, fd[0], "hello", 5, 0);
	/* who is first does not matter */
	EXPECT_SOON(*ring.cq_tail - *ring.cq_head == 2 ||
		    syscall(__NR_io_uring_enter, ring.fd, 0, 2,
			    IORING_ENTER_GETEVENTS, NULL, 0) < 0);
	for (int i = 0; i < 2; i++) {
		EXPECT(ring.cqes[*ring.cq_head & *ring.cq_mask].res == 5);
		++*ring.cq_head;
	}
	EXPECT(!memcmp(buf, "hello", 5));
	submit(3, IORING_OP_RECV, fd[1], buf, 8, MSG_DONTWAIT);
	EXPECT(result(3, NULL) == -EAGAIN);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	submit(4, IORING_OP_RECV, fd[1], buf, 8, 0);
	EXPECT(!result(4, NULL));
	submit(5, IORING_OP_SEND, fd[0], "x", 1, MSG_NOSIGNAL);
	EXPECT(result(5, NULL) == -EPIPE);
}

static void waits_for_all(void)
{
	char buf[8];
	int fd[2];

	ring_make();
	pair(fd);
	submit(1, IORING_OP_RECV, fd[1], buf, 8, MSG_WAITALL);
	for (int i = 0; i < 4; i++) {
		EXPECT(!have_result());
		EXPECT(send(fd[0], "ab", 2, 0) == 2);
		turn();
	}
	EXPECT(result(1, NULL) == 8 && !memcmp(buf, "abababab", 8));
}

static void polls(void)
{
	int fd[2];

	ring_make();
	pair(fd);
	submit(1, IORING_OP_POLL_ADD, fd[1], NULL, 0, POLLIN);
	EXPECT(!have_result());
	turn();
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(result(1, NULL) & POLLIN);
	submit(2, IORING_OP_POLL_ADD, fd[1], NULL, 0, POLLRDHUP);
	EXPECT(!have_result());
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT(result(2, NULL) & POLLRDHUP);
}

static void accepts(void)
{
	uint16_t port;
	int l, fd;
	char c;

	ring_make();
	l = listener(&port);
	submit(1, IORING_OP_ACCEPT, l, NULL, 0, 0);
	EXPECT(!have_result());
	fd = rs_socket(&kind, 0);
	EXPECT(!connect_to(fd, port));
	l = result(1, NULL);
	EXPECT(l >= 0);
	EXPECT(send(fd, "x", 1, 0) == 1 && recv(l, &c, 1, 0) == 1);
}

static void messages(void)
{
	char a[4], b[4];
	struct iovec out[2] = { { "abcd", 4 }, { "efgh", 4 } };
	struct iovec in[2] = { { a, 4 }, { b, 4 } };
	struct msghdr sent = { .msg_iov = out, .msg_iovlen = 2 };
	struct msghdr got = { .msg_iov = in, .msg_iovlen = 2 };
	int fd[2];

	ring_make();
	pair(fd);
	submit(1, IORING_OP_SENDMSG, fd[0], &sent, 1, 0);
	EXPECT(result(1, NULL) == 8);
	await_bytes(fd[1], 8);
	submit(2, IORING_OP_RECVMSG, fd[1], &got, 1, 0);
	EXPECT(result(2, NULL) == 8);
	EXPECT(!memcmp(a, "abcd", 4) && !memcmp(b, "efgh", 4));
	submit(3, IORING_OP_SEND, fd[0], (void *)8, 4, 0);
	EXPECT(result(3, NULL) == -EFAULT);
}

/* More than fits: it goes on when there is room. */
static void large(void)
{
	size_t len = 1 << 22, got = 0;
	char *out = malloc(len), *in = malloc(len);
	ssize_t n;
	int fd[2];

	for (size_t i = 0; i < len; i++)
		out[i] = i * 7 + (i >> 12);
	ring_make();
	pair(fd);
	submit(1, IORING_OP_SEND, fd[0], out, len, MSG_WAITALL);
	turn();
	while (got < len) {
		n = recv(fd[1], in + got, len - got, 0);
		EXPECT(n > 0);
		got += n;
	}
	EXPECT(result(1, NULL) == (int)len && !memcmp(in, out, len));
}

static void zero_copy(void)
{
	unsigned int flags;
	char buf[8];
	int fd[2], n;

	ring_make();
	pair(fd);
	submit(1, IORING_OP_SEND_ZC, fd[0], "hello", 5, 0);
	n = result(1, &flags);
	note("sent %d %x", n, flags);
	if (n < 0)
		return;
	EXPECT(recv(fd[1], buf, 8, 0) == 5 && !memcmp(buf, "hello", 5));
	EXPECT(!result(1, &flags));
	note("then %x", flags);
}

/* The notification for a send without copy says whether it was one. */
static bool was_copied(const int fd[2])
{
	static char out[16384], in[sizeof(out)];
	unsigned int flags;
	int res;

	submit_for(1, IORING_OP_SEND_ZC, fd[0], out, sizeof(out), MSG_WAITALL,
		   IORING_SEND_ZC_REPORT_USAGE);
	EXPECT(result(1, &flags) == sizeof(out) && flags & IORING_CQE_F_MORE);
	EXPECT(recv(fd[1], in, sizeof(in), MSG_WAITALL) == sizeof(in));
	res = result(1, &flags);
	EXPECT(flags & IORING_CQE_F_NOTIF);
	EXPECT(!res || res == (int)IORING_NOTIF_USAGE_ZC_COPIED);
	return res;
}

static void reports_copies(void)
{
	int fd[2];

	ring_make();
	pair(fd);
	if (in_place)
		EXPECT_SOON(!was_copied(fd));
	else
		was_copied(fd);
}

static void closes(void)
{
	char buf[8];
	int fd[2];

	ring_make();
	pair(fd);
	submit(1, IORING_OP_SHUTDOWN, fd[0], NULL, SHUT_WR, 0);
	EXPECT(!result(1, NULL));
	EXPECT(!recv(fd[1], buf, 8, 0));
	submit(2, IORING_OP_RECV, fd[0], buf, 8, 0);
	submit(3, IORING_OP_ASYNC_CANCEL, -1, (void *)2, 0, 0);
	EXPECT_SOON(*ring.cq_tail - *ring.cq_head == 2);
	*ring.cq_head += 2;
	submit(4, IORING_OP_CLOSE, fd[1], NULL, 0, 0);
	EXPECT(!result(4, NULL));
	EXPECT(!recv(fd[0], buf, 8, 0));
}

#define CASE(fn) { "uring: " #fn, fn }
const struct api_case uring_cases[] = {
	CASE(send_recv),
	CASE(waits_for_all),
	CASE(polls),
	CASE(accepts),
	CASE(messages),
	CASE(large),
	CASE(zero_copy),
	CASE(reports_copies),
	CASE(closes),
	{ NULL, NULL },
};
