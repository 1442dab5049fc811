// SPDX-License-Identifier: GPL-2.0-only
/* What each call does.  Threads share the descriptors; nobody looks after them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs_calls.h"
#include "sock.h"

#ifndef SOL_TCP		/* of netinet/tcp.h, beside which linux/tcp.h cannot be */
#define SOL_TCP IPPROTO_TCP
#endif

enum { AREA = 1 << 20, PORT = 20000, MOST_CHILDREN = 4 };
enum { ON_LOOPBACK = 0x10, BLOCKING = 0x20 };	/* of a kind */

const char *own4, *own6;

static int slots[SLOTS], first_fd;
static char *area;		/* behind it there is nothing */
static pid_t children[MOST_CHILDREN];

int slot_fd(uint32_t slot)
{
	return __atomic_load_n(&slots[slot % SLOTS], __ATOMIC_RELAXED);
}

/* What was there is closed, maybe while another thread uses it. */
static int keep(uint32_t slot, int fd)
{
	int old = __atomic_exchange_n(&slots[slot % SLOTS], fd, __ATOMIC_RELAXED);

	return old < 0 ? 0 : close(old);
}

static int keep_new(uint32_t slot, int fd)
{
	if (fd < 0)
		return -1;
	keep(slot, fd);
	return 0;
}

static size_t within(uint32_t size)
{
	return size < AREA ? size : AREA;
}

static void *mem(uint32_t where, size_t size)
{
	switch (where % 4) {
	case 0:	return area;
	case 1:	return size < AREA ? area + 1 : area;
	case 2:	return area + AREA - size / 2;	/* half of it is not there */
	default: return NULL;
	}
}

/* Once: a signal ends it. */
static bool await(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) > 0;
}

/* ---- sockets that come and go ---- */

static struct rs_kind kind_of(uint32_t kind)
{
	static const char *const names[] = { "inet", "rds4", "inet6", "rds6", "tcp4", "tcp6" };
	struct rs_kind k;

	rs_kind_parse(names[kind % 6], &k);
	return k;
}

int do_socket(const uint32_t *arg)
{
	struct rs_kind k = kind_of(arg[1] & 15);
	int type = arg[2] == 31 ? SOCK_DGRAM : SOCK_STREAM;

	if (arg[2] == 30)
		k.proto += 2;
	if (!(arg[1] & BLOCKING))
		type |= SOCK_NONBLOCK;
	return keep_new(arg[0], socket(k.domain, type, k.proto));
}

static const char *own(int family, bool loopback)
{
	if (family == AF_INET6)
		return loopback ? "::1" : own6;
	return loopback ? "127.0.0.1" : own4;
}

static socklen_t address(uint32_t addr, uint32_t port, union rs_addr *to)
{
	static const struct rs_kind v4 = { .family = AF_INET }, v6 = { .family = AF_INET6 };
	socklen_t len = sizeof(*to);
	union rs_addr other;
	char mapped[64];

	switch (addr % 10) {
	case 0:	len = rs_addr(&v4, own4, 0, to);
		break;
	case 1:	len = rs_addr(&v6, own6, 0, to);
		break;
	case 2:	len = rs_addr(&v4, NULL, 0, to);
		break;
	case 3:	len = rs_addr(&v6, NULL, 0, to);
		break;
	case 4:	strcat(strcpy(mapped, "::ffff:"), own4);
		len = rs_addr(&v6, mapped, 0, to);
		break;
	case 5:	len = rs_addr(&v4, "", 0, to);
		break;
	case 6:	len = rs_addr(&v6, "", 0, to);
		break;
	case 7:	memset(to, 0, sizeof(*to));		/* AF_UNSPEC */
		return 16;
	case 8:	len = rs_addr(&v4, "192.0.2.1", 0, to);
		break;
	case 9:	memset(to, 0xa5, sizeof(*to));
		return port;
	}
	to->in.sin_port = htons(PORT + port % 4);
	if (port >= 4 && port < 4 + SOCKETS) {		/* that of a socket */
		socklen_t other_len = sizeof(other);

		if (!getsockname(slot_fd(port - 4), &other.sa, &other_len))
			to->in.sin_port = other.in.sin_port;
	} else if (port == 10) {
		to->in.sin_port = 0;
	}
	return len;
}

/* A connection: what programs begin with. */
int do_pair(const uint32_t *arg)
{
	struct rs_kind server = kind_of(arg[2] & 15), client = kind_of(arg[3] & 15);
	union rs_addr addr;
	socklen_t len = sizeof(addr);
	int listener, active, passive = -1, err;

	client.family = server.family;
	if (client.domain != AF_RDMASTREAM)
		client.domain = server.family;
	else
		client.proto = server.family == AF_INET6;
	listener = socket(server.domain, SOCK_STREAM | SOCK_NONBLOCK, server.proto);
	active = socket(client.domain, SOCK_STREAM | SOCK_NONBLOCK, client.proto);
	rs_addr(&server, own(server.family, arg[2] & ON_LOOPBACK), 0, &addr);
	if (bind(listener, &addr.sa, rs_addr_len(&addr)) || listen(listener, 4) ||
	    getsockname(listener, &addr.sa, &len))
		goto out;
	if (connect(active, &addr.sa, len) && errno != EINPROGRESS)
		goto out;
	if (await(listener, POLLIN, 500))
		passive = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	await(active, POLLOUT, 500);
	if (arg[2] & BLOCKING)
		fcntl(passive, F_SETFL, O_RDWR);
	if (arg[3] & BLOCKING)
		fcntl(active, F_SETFL, O_RDWR);
out:
	err = errno;
	close(listener);
	if (passive >= 0) {
		keep(arg[0], passive);
		keep(arg[1], active);
		return 0;
	}
	close(active);
	errno = err;
	return -1;
}

int do_bind(const uint32_t *arg)
{
	int fd = slot_fd(arg[0]), on = 1;
	union rs_addr addr;
	socklen_t len = address(arg[1], arg[2], &addr);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, &addr.sa, len);
}

int do_listen(const uint32_t *arg)
{
	return listen(slot_fd(arg[0]), arg[1] == 31 ? -1 : (int)arg[1]);
}

int do_connect(const uint32_t *arg)
{
	union rs_addr addr;
	socklen_t len = address(arg[1], arg[2], &addr);

	return connect(slot_fd(arg[0]), &addr.sa, len);
}

int do_accept(const uint32_t *arg)
{
	union rs_addr addr;
	socklen_t len = arg[2] * 4;
	int fd = slot_fd(arg[1]);

	await(fd, POLLIN, arg[2] & 8 ? 20 : 0);
	return keep_new(arg[0], accept4(fd, arg[2] & 1 ? &addr.sa : NULL, &len,
					arg[2] & 16 ? 0 : SOCK_NONBLOCK));
}

int do_shutdown(const uint32_t *arg)
{
	return shutdown(slot_fd(arg[0]), arg[1] % 4);
}

int do_close(const uint32_t *arg)
{
	return keep(arg[0], -1);
}

int do_dup(const uint32_t *arg)
{
	return keep_new(arg[0], dup(slot_fd(arg[1])));
}

/* ---- bytes ---- */

int do_send(const uint32_t *arg)
{
	size_t size = within(arg[1]);

	return send(slot_fd(arg[0]), mem(arg[3], size), size, arg[2]);
}

struct message {
	struct msghdr hdr;
	struct iovec iov[3];
	union rs_addr addr;
	char control[128] __attribute__((aligned(8)));
};

/* Pieces by the lowest bits of @how; what else is in a message by those above. */
static void message(struct message *m, size_t size, uint32_t how)
{
	memset(m, 0, sizeof(*m));
	m->iov[0] = (struct iovec){ area, size / 2 };
	m->iov[1] = (struct iovec){ mem(how >> 2, size - size / 2), size - size / 2 };
	m->hdr.msg_iov = m->iov;
	m->hdr.msg_iovlen = how & 3;
	if (m->hdr.msg_iovlen == 1)
		m->iov[0].iov_len = size;
}

static void add_control(struct message *m, uint32_t how)
{
	struct cmsghdr *c = (void *)m->control;

	if (!(how & 16))
		return;
	m->hdr.msg_control = c;
	m->hdr.msg_controllen = CMSG_SPACE(4);
	c->cmsg_len = CMSG_LEN(how & 8 ? 100 : 4);
	c->cmsg_level = how & 4 ? SOL_IP : SOL_SOCKET;
	c->cmsg_type = how & 4 ? IP_TTL : SO_TIMESTAMPING;
	*(int *)CMSG_DATA(c) = how & 2 ? 8 : 0x7f;	/* SOF_TIMESTAMPING_TX_... */
}

static void make_message(struct message *m, const uint32_t *arg)
{
	message(m, within(arg[1]), arg[3]);
	add_control(m, arg[3]);
	if (!(arg[2] & MSG_FASTOPEN))
		return;
	m->hdr.msg_name = &m->addr;
	m->hdr.msg_namelen = address(arg[3] % 4, arg[3] / 4, &m->addr);
}

int do_sendmsg(const uint32_t *arg)
{
	struct message m;

	make_message(&m, arg);
	return sendmsg(slot_fd(arg[0]), &m.hdr, arg[2]);
}

int do_sendmmsg(const uint32_t *arg)
{
	struct message m;
	struct mmsghdr two[2];

	make_message(&m, arg);
	two[0].msg_hdr = m.hdr;
	two[1].msg_hdr = m.hdr;
	return sendmmsg(slot_fd(arg[0]), two, 2, arg[2]);
}

int do_write(const uint32_t *arg)
{
	size_t size = within(arg[1]);

	return write(slot_fd(arg[0]), mem(arg[2], size), size);
}

int do_recv(const uint32_t *arg)
{
	size_t size = within(arg[1]);

	return recv(slot_fd(arg[0]), mem(arg[3], size), size, arg[2]);
}

static void take_message(struct message *m, const uint32_t *arg)
{
	message(m, within(arg[1]), arg[3]);
	m->hdr.msg_control = m->control;
	m->hdr.msg_controllen = arg[3] & 16 ? 8 : sizeof(m->control);
	m->hdr.msg_name = &m->addr;
	m->hdr.msg_namelen = sizeof(m->addr);
}

int do_recvmsg(const uint32_t *arg)
{
	struct message m;

	take_message(&m, arg);
	return recvmsg(slot_fd(arg[0]), &m.hdr, arg[2]);
}

int do_recvmmsg(const uint32_t *arg)
{
	struct timespec soon = { .tv_nsec = 1000000 };
	struct message m;
	struct mmsghdr two[2];

	take_message(&m, arg);
	two[0].msg_hdr = m.hdr;
	two[1].msg_hdr = m.hdr;
	return recvmmsg(slot_fd(arg[0]), two, 2, arg[2], &soon);
}

int do_read(const uint32_t *arg)
{
	size_t size = within(arg[1]);

	return read(slot_fd(arg[0]), mem(arg[2], size), size);
}

/* So many from one end to the other, if they come. */
int do_move(const uint32_t *arg)
{
	int from = slot_fd(arg[0]), to = slot_fd(arg[1]), idle = 0, moved = 0;
	size_t left = within(arg[2]);

	while (idle < 3 && (left || moved < (int)within(arg[2]))) {
		int out = left ? send(from, area, left, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		int in = recv(to, area, AREA, MSG_DONTWAIT);

		if ((out < 0 || in < 0) && errno != EAGAIN && errno != EINTR)
			return -1;
		if (!in)
			break;
		left -= out > 0 ? out : 0;
		moved += in > 0 ? in : 0;
		if (out > 0 || in > 0)
			idle = 0;
		else if (!await(to, POLLIN, 1 + arg[3]))
			idle++;
	}
	return moved;
}

int do_sendfile(const uint32_t *arg)
{
	return sendfile(slot_fd(arg[0]), slot_fd(arg[1]), NULL, within(arg[2]));
}

int do_splice(const uint32_t *arg)
{
	return splice(slot_fd(arg[0]), NULL, slot_fd(arg[1]), NULL, within(arg[2]), arg[3]);
}

/* The same, from a pipe. */
int do_unsplice(const uint32_t *arg)
{
	return do_splice(arg);
}

int do_tee(const uint32_t *arg)
{
	return tee(slot_fd(arg[0]), slot_fd(arg[1]), within(arg[2]), arg[3]);
}

int do_vmsplice(const uint32_t *arg)
{
	struct iovec iov = { mem(arg[3], within(arg[1])), within(arg[1]) };

	return vmsplice(slot_fd(arg[0]), &iov, 1, arg[2]);
}

int do_pipe(const uint32_t *arg)
{
	int fd[2];

	if (pipe2(fd, arg[2] & 1 ? 0 : O_NONBLOCK))
		return -1;
	if (arg[2] & 2)
		fcntl(fd[1], F_SETPIPE_SZ, AREA);
	keep(arg[0], fd[0]);
	keep(arg[1], fd[1]);
	return 0;
}

int do_file(const uint32_t *arg)
{
	int fd = memfd_create("calls", 0);

	if (fd >= 0 && ftruncate(fd, within(arg[1])))
		return -1;
	return keep_new(arg[0], fd);
}

/* A ring of io_uring for one call. */
int do_uring(const uint32_t *arg)
{
	static const uint8_t codes[] = {
		IORING_OP_SEND, IORING_OP_RECV, IORING_OP_POLL_ADD, IORING_OP_READ,
		IORING_OP_WRITE, IORING_OP_SHUTDOWN, IORING_OP_ACCEPT, IORING_OP_SEND_ZC,
	};
	struct io_uring_params p = {};
	int fd = syscall(__NR_io_uring_setup, 4, &p), n = -1;
	size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	struct io_uring_sqe *sqe;
	char *sq;

	if (fd < 0)
		return -1;
	sq = mmap(NULL, sq_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   IORING_OFF_SQES);
	if (sq != MAP_FAILED && sqe != MAP_FAILED) {
		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = codes[arg[1] % 8];
		sqe->fd = slot_fd(arg[0]);
		if (sqe->opcode == IORING_OP_POLL_ADD) {
			sqe->poll32_events = POLLIN | POLLPRI;
		} else if (sqe->opcode == IORING_OP_SHUTDOWN) {
			sqe->len = arg[1] / 8 % 3;
		} else if (sqe->opcode != IORING_OP_ACCEPT) {
			sqe->addr = (unsigned long)area;
			sqe->len = within(arg[2]);
			sqe->msg_flags = arg[3];
		}
		if (arg[1] & 16)
			sqe->flags = IOSQE_ASYNC;
		*(unsigned int *)(sq + p.sq_off.array) = 0;
		__atomic_store_n((unsigned int *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
		n = syscall(__NR_io_uring_enter, fd, 1, arg[1] & 8 ? 1 : 0,
			    IORING_ENTER_GETEVENTS, NULL, 0);
	}
	munmap(sq, sq_size);
	munmap(sqe, p.sq_entries * sizeof(*sqe));
	close(fd);		/* what is under way is cancelled */
	return n;
}

/* ---- waiting ---- */

int do_epoll(const uint32_t *arg)
{
	return keep_new(arg[0], epoll_create1(0));
}

int do_epoll_ctl(const uint32_t *arg)
{
	struct epoll_event e = { .events = arg[3] | (arg[2] & 4 ? EPOLLET : 0) |
					   (arg[2] & 8 ? EPOLLONESHOT : 0) };

	return epoll_ctl(slot_fd(arg[0]), 1 + arg[2] % 3, slot_fd(arg[1]), &e);
}

int do_epoll_wait(const uint32_t *arg)
{
	struct epoll_event e[4];

	return epoll_wait(slot_fd(arg[0]), e, 4, arg[1]);
}

int do_poll(const uint32_t *arg)
{
	struct pollfd p = { .fd = slot_fd(arg[0]), .events = arg[1] };

	return poll(&p, 1, arg[2]);
}

int do_pause(const uint32_t *arg)
{
	return arg[0] ? usleep(arg[0] * 1000) : sched_yield();
}

/* ---- options ---- */

enum shape { INT, LINGER, TIMEVAL, TEXT, RULES, REPAIRS, MD5, BYTES };

/* of uapi/linux/rdmastream.h */
enum { SOL_OURS = IPPROTO_RDMASTREAM, OUR_RULES = 1, OUR_EAGER = 2 };

static const struct option {
	uint16_t level;
	uint8_t name, shape;
} options[] = {
	/* the module looks at these */
	{ SOL_OURS, OUR_RULES, RULES }, { SOL_OURS, OUR_EAGER, INT },
	{ SOL_SOCKET, SO_RCVLOWAT, INT }, { SOL_SOCKET, SO_LINGER, LINGER },
	{ SOL_SOCKET, SO_OOBINLINE, INT }, { SOL_SOCKET, SO_ZEROCOPY, INT },
	{ SOL_SOCKET, SO_PEEK_OFF, INT }, { SOL_TCP, TCP_CORK, INT },
	{ SOL_TCP, TCP_NODELAY, INT }, { SOL_TCP, TCP_INFO, BYTES },
	{ SOL_TCP, TCP_SAVE_SYN, INT }, { SOL_TCP, TCP_REPAIR, INT },
	{ SOL_TCP, TCP_ULP, TEXT }, { SOL_TCP, TCP_FASTOPEN_CONNECT, INT },
	{ SOL_TCP, TCP_ZEROCOPY_RECEIVE, BYTES }, { SOL_IPV6, IPV6_ADDRFORM, INT },
	/* and not at these */
	{ SOL_OURS, 3, INT }, { SOL_SOCKET, SO_SNDBUF, INT },
	{ SOL_SOCKET, SO_RCVBUF, INT }, { SOL_SOCKET, SO_KEEPALIVE, INT },
	{ SOL_SOCKET, SO_TIMESTAMPING, INT }, { SOL_SOCKET, SO_TIMESTAMPNS, INT },
	{ SOL_SOCKET, SO_REUSEPORT, INT }, { SOL_SOCKET, SO_SNDTIMEO, TIMEVAL },
	{ SOL_SOCKET, SO_RCVTIMEO, TIMEVAL }, { SOL_SOCKET, SO_BUSY_POLL, INT },
	{ SOL_SOCKET, SO_PRIORITY, INT }, { SOL_SOCKET, SO_MARK, INT },
	{ SOL_SOCKET, SO_BINDTODEVICE, TEXT }, { SOL_SOCKET, SO_ERROR, INT },
	{ SOL_SOCKET, SO_MAX_PACING_RATE, INT }, { SOL_SOCKET, SO_SNDBUFFORCE, INT },
	{ SOL_SOCKET, SO_RCVBUFFORCE, INT }, { SOL_SOCKET, SO_TXTIME, BYTES },
	{ SOL_SOCKET, SO_PROTOCOL, INT }, { SOL_SOCKET, SO_MEMINFO, BYTES },
	{ SOL_TCP, TCP_MAXSEG, INT }, { SOL_TCP, TCP_KEEPIDLE, INT },
	{ SOL_TCP, TCP_SYNCNT, INT }, { SOL_TCP, TCP_LINGER2, INT },
	{ SOL_TCP, TCP_DEFER_ACCEPT, INT }, { SOL_TCP, TCP_WINDOW_CLAMP, INT },
	{ SOL_TCP, TCP_QUICKACK, INT }, { SOL_TCP, TCP_CONGESTION, TEXT },
	{ SOL_TCP, TCP_MD5SIG, MD5 }, { SOL_TCP, TCP_USER_TIMEOUT, INT },
	{ SOL_TCP, TCP_REPAIR_QUEUE, INT }, { SOL_TCP, TCP_QUEUE_SEQ, INT },
	{ SOL_TCP, TCP_REPAIR_OPTIONS, REPAIRS }, { SOL_TCP, TCP_REPAIR_WINDOW, BYTES },
	{ SOL_TCP, TCP_FASTOPEN, INT }, { SOL_TCP, TCP_FASTOPEN_NO_COOKIE, INT },
	{ SOL_TCP, TCP_TIMESTAMP, INT }, { SOL_TCP, TCP_NOTSENT_LOWAT, INT },
	{ SOL_TCP, TCP_SAVED_SYN, BYTES }, { SOL_TCP, TCP_INQ, INT },
	{ SOL_TCP, TCP_TX_DELAY, INT }, { SOL_TCP, TCP_CC_INFO, BYTES },
	{ SOL_IP, IP_TOS, INT }, { SOL_IP, IP_TTL, INT }, { SOL_IP, IP_RECVERR, INT },
	{ SOL_IP, IP_TRANSPARENT, INT }, { SOL_IP, IP_MTU_DISCOVER, INT },
	{ SOL_IP, IP_XFRM_POLICY, BYTES }, { SOL_IP, IP_OPTIONS, BYTES },
	{ SOL_IPV6, IPV6_V6ONLY, INT }, { SOL_IPV6, IPV6_RECVERR, INT },
	{ SOL_IPV6, IPV6_TCLASS, INT }, { SOL_IPV6, IPV6_XFRM_POLICY, BYTES },
	{ SOL_IPV6, IPV6_RTHDR, BYTES },
};

const int option_count = sizeof(options) / sizeof(options[0]);

/* Beyond those of the table: any. */
static struct option option_of(uint32_t number)
{
	static const uint16_t levels[] = { SOL_SOCKET, SOL_TCP, SOL_IP, SOL_IPV6, SOL_OURS };

	if (number < (uint32_t)option_count)
		return options[number];
	return (struct option){ levels[(number >> 8) % 5], number & 0xff, BYTES };
}

static size_t fill_rules(char *buf, uint32_t value)
{
	static const uint8_t lens[] = { 0, 96, 120, 128, 129 };
	size_t n = value % 4, size = 24;		/* of a rule */

	for (size_t i = 0; i < n; i++) {
		char *rule = buf + i * size;

		memset(rule, 0, size);
		memset(rule + 10, 0xff, 2);
		inet_pton(AF_INET, own4, rule + 12);
		rule[16] = lens[mix(value + i) % 5];
		rule[17] = value >> 3 & 1;
		memset(rule + 20, 0xff, 2);
		rule[22] = value == 100;
	}
	return n * size;
}

static size_t copy(char *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return size;
}

/* Return: how long it should be. */
static size_t fill_option(char *buf, enum shape shape, uint32_t value)
{
	static const char *const texts[] = { "reno", "cubic", "lo", "eth0", "tls", "smc", "" };
	struct timeval tv = { .tv_usec = value % 100000 };
	struct linger linger = { value & 1, value >> 1 & 1 };
	struct tcp_repair_opt repair = { 2 + value % 3, value >> 8 };
	struct tcp_md5sig md5 = { .tcpm_keylen = value % 81 };

	for (int i = 0; i < 256; i += 8)
		memcpy(buf + i, &(uint64_t){ mix(value + i) }, 8);
	switch (shape) {
	case INT:	return copy(buf, &value, 4);
	case LINGER:	return copy(buf, &linger, sizeof(linger));
	case TIMEVAL:	return copy(buf, &tv, sizeof(tv));
	case TEXT:	return strlen(strcpy(buf, texts[value % 7]));
	case RULES:	return fill_rules(buf, value);
	case REPAIRS:	return copy(buf, &repair, sizeof(repair));
	case MD5:
		address(value % 4, 10, (void *)&md5.tcpm_addr);
		return copy(buf, &md5, sizeof(md5));
	default:	return 64;
	}
}

static const uint32_t as_it_should_be = 0xffff;

/* With others TCP keeps what is closed for hours. */
static uint32_t bounded(struct option o, uint32_t value)
{
	if (o.level == SOL_SOCKET && o.name == SO_MAX_PACING_RATE && value < 1 << 20)
		return value + (1 << 20);
	if (o.level == SOL_TCP && o.name == TCP_USER_TIMEOUT)
		return value % 60000;
	return value;
}

int do_setsockopt(const uint32_t *arg)
{
	struct option o = option_of(arg[1]);
	char buf[1024];
	uint32_t len = fill_option(buf, o.shape, bounded(o, arg[2]));

	if (arg[3] != as_it_should_be)
		len = arg[3];
	return setsockopt(slot_fd(arg[0]), o.level, o.name, len ? buf : NULL, len);
}

int do_getsockopt(const uint32_t *arg)
{
	struct option o = option_of(arg[1]);
	char *buf = mem(arg[3], 512);
	socklen_t len = arg[2] == as_it_should_be ? 256 : arg[2];

	return getsockopt(slot_fd(arg[0]), o.level, o.name, buf, &len);
}

static const unsigned long ioctls[] = {
	SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, FIONBIO, FIOASYNC, SIOCGIFFLAGS, 0x5399,
};

const int ioctl_count = sizeof(ioctls) / sizeof(ioctls[0]);

int do_ioctl(const uint32_t *arg)
{
	return ioctl(slot_fd(arg[0]), ioctls[arg[1] % ioctl_count], mem(arg[2], 4));
}

int do_fcntl(const uint32_t *arg)
{
	int fd = slot_fd(arg[0]), flags = O_RDWR;

	if (arg[1] & 1)
		flags |= O_NONBLOCK;
	if (arg[1] & 2)
		fcntl(fd, F_SETOWN, getpid());
	if (arg[1] & 4)
		flags |= O_ASYNC;
	return fcntl(fd, F_SETFL, flags);
}

int do_name(const uint32_t *arg)
{
	struct sockaddr *to = mem(arg[3], 128);
	socklen_t len = arg[2] == as_it_should_be ? 128 : arg[2];

	return arg[1] & 1 ? getpeername(slot_fd(arg[0]), to, &len) :
			    getsockname(slot_fd(arg[0]), to, &len);
}

/* Pages of a TCP socket, which may be got by TCP_ZEROCOPY_RECEIVE. */
int do_map(const uint32_t *arg)
{
	size_t len = within(arg[1]) + 4096;
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, slot_fd(arg[0]), 0);
	struct tcp_zerocopy_receive zc = { .address = (unsigned long)p, .length = len & ~4095 };
	socklen_t zc_len = sizeof(zc);
	int ret;

	if (p == MAP_FAILED)
		return -1;
	ret = getsockopt(slot_fd(arg[0]), SOL_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &zc_len);
	munmap(p, len);
	return ret;
}

/* ---- beside the sockets ---- */

static const struct setting {
	const char *name;
	const char *value[4];
} settings[] = {
	{ "negotiate", { "0", "1", "1", "1" } },
	{ "prelude", { "0", "1", "0", "1" } },
	{ "ring_mode", { "0", "1", "2", "2" } },
	{ "ring_threshold", { "0", "1", "4096", "100000" } },
	{ "loopback", { "0", "1", "1", "1" } },
	{ "ring_size", { "16384", "32768", "65536", "1048576" } },
	{ "ring_idle_ms", { "10", "20", "100", "5000" } },
	{ "rmb_max", { "0", "65536", "1000000", "67108864" } },
	{ "hello_timeout_ms", { "10", "50", "1000", "5000" } },
	{ "link_idle_ms", { "100", "200", "1000", "30000" } },
	{ "link_probe_ms", { "10", "50", "500", "1000" } },
	{ "links_per_path", { "1", "2", "3", "8" } },
	{ "links_per_address", { "1", "2", "64", "64" } },
	{ "links_max", { "1", "2", "3", "4096" } },
	{ "max_orphans", { "0", "1", "2", "16384" } },
	{ "histograms", { "0", "1", "1", "1" } },
	{ "advertise_addrs", { "0", "1", "0", "1" } },
	{ "accept_addrs", { "0", "1", "2", "2" } },
	{ "cm_port", { "4793", "4794", "0", "70000" } },
};

const int setting_count = sizeof(settings) / sizeof(settings[0]);

/* Of the namespace of the thread. */
int do_setting(const uint32_t *arg)
{
	const struct setting *s = &settings[arg[0] % setting_count];
	const char *value = s->value[arg[1] % 4];
	char path[100] = "/proc/sys/net/rdmastream/";
	int fd = open(strcat(path, s->name), O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, value, strlen(value));
	close(fd);
	return ret;
}

static void child(int fd, uint32_t how)
{
	signal(SIGUSR1, SIG_DFL);
	alarm(1);
	switch (how % 5) {
	case 0:	break;
	case 1:	send(fd, area, 100, MSG_NOSIGNAL);
		break;
	case 2:	fcntl(fd, F_SETFL, O_RDWR);
		recv(fd, area, AREA, 0);
		break;
	case 3:	shutdown(fd, SHUT_RDWR);
		break;
	case 4:	usleep(30000);		/* this thread closes them last */
		break;
	}
	_exit(0);
}

int do_fork(const uint32_t *arg)
{
	for (int i = 0; i < MOST_CHILDREN; i++) {
		pid_t none = 0, pid;

		if (!__atomic_compare_exchange_n(&children[i], &none, -1, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		pid = fork();
		if (!pid)
			child(slot_fd(arg[0]), arg[1]);
		children[i] = pid > 0 ? pid : 0;
		return pid;
	}
	errno = EAGAIN;
	return -1;
}

/* The thread goes to another network namespace, which ends with the program. */
int do_unshare(const uint32_t *arg)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		return -1;
	if (arg[0] & 1)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ioctl(fd, SIOCSIFFLAGS, &lo);
	return close(fd);
}

/* ---- begin and end of a program ---- */

void do_init(void)
{
	area = mmap(NULL, AREA + 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || mprotect(area + AREA, 4096, PROT_NONE))
		rs_die("mmap: %m");
	memset(area, 'a', AREA);
}

void do_begin(int fd)
{
	first_fd = fd;
	for (int i = 0; i < SLOTS; i++)
		slots[i] = -1;
}

void do_end(void)
{
	for (int i = 0; i < MOST_CHILDREN; i++) {
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
		children[i] = 0;
	}
	close_range(first_fd, ~0u, 0);
}
