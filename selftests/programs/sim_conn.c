// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: what programs do with both of their ends.
 *
 * What an end writes is a function of where it is in its stream, so that what the other
 * one reads is known.  What must hold: no byte is wrong; poll() and calls agree; no error
 * comes unless the other end has left, and what was read then is the begin of what was
 * written; else all comes, and then the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"
#include "sim.h"

#define PORT		7000
#define TEXTS		8
#define TEXT_SIZE	(4U << 20)	/* then it begins again */
#define MOST		(1U << 20)	/* bytes of a call */
#define LEAST		4096		/* of a buffer: with less TCP takes minutes for some bytes */

struct end {
	int fd;			/* -1: closed */
	int host, text;
	uint64_t sent, got;
	uint64_t dry_at;	/* when it had last read all that was sent */
	bool shut;		/* it has said that no more follows */
	bool over;		/* it has read the end, or an error */
	bool left;		/* it has closed without having read all */
	bool zerocopy;
	int err;
};

#define PATIENT_US	20000000ULL

/* [0] has connected to [1] */
struct conn {
	unsigned int id;	/* 0: free */
	bool accepted;
	uint64_t closed_at;	/* when the first end has closed, having read all */
	struct end end[2];
};

struct conn_sums conn_sums;

static uint64_t patient_till;	/* all that was on its way must have come by then */
static struct conn conns[SIM_CONNS];
static int listeners[SIM_HOSTS][2];
static uint8_t *texts[TEXTS];
static int text_files[TEXTS];
static int pipes[2];
static uint8_t buf[2 * MOST];

static struct rs_kind kinds[2];		/* IPv4, IPv6 */

void conn_init(void)
{
	for (int i = 0; i < TEXTS; i++) {
		text_files[i] = memfd_create("text", MFD_CLOEXEC);
		if (text_files[i] < 0 || ftruncate(text_files[i], TEXT_SIZE))
			rs_die("memfd: %m");
		texts[i] = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
				text_files[i], 0);
		if (texts[i] == MAP_FAILED)
			rs_die("mmap: %m");
		pattern_fill(texts[i], TEXT_SIZE, i, 0);
	}
	rs_kind_parse(sim_plain ? "tcp4" : "inet", &kinds[0]);
	rs_kind_parse(sim_plain ? "tcp6" : "rds6", &kinds[1]);
	if (pipe2(pipes, O_NONBLOCK | O_CLOEXEC))
		rs_die("pipe: %m");
	for (int i = 0; i < sim_hosts; i++) {
		world_enter(i);
		for (int k = 0; k < 2; k++) {
			listeners[i][k] = rs_listen(&kinds[k], "", PORT + k, 64);
			rs_nonblock(listeners[i][k]);
		}
	}
}

static void address(int host, const struct rs_kind *kind, union rs_addr *addr)
{
	char text[32];

	snprintf(text, sizeof(text), kind->family == AF_INET ? "10.79.0.%d" : "fd79::%x", host + 1);
	rs_addr(kind, text, PORT + (kind - kinds), addr);
}

static struct conn *free_conn(void)
{
	for (int i = 0; i < SIM_CONNS; i++)
		if (!conns[i].id)
			return &conns[i];
	return NULL;
}

static void options(struct end *e)
{
	int value = LEAST + sim_size(MOST), one = 1;

	if (!sim_random(4))
		setsockopt(e->fd, SOL_SOCKET, sim_random(2) ? SO_SNDBUF : SO_RCVBUF, &value,
			   sizeof(value));
	if (!sim_random(3))
		setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	e->zerocopy = !sim_random(3) &&
		      !setsockopt(e->fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one));
}

void conn_open(void)
{
	static unsigned int last_id;
	const struct rs_kind *kind = &kinds[sim_random(2)];
	int from = sim_random(sim_hosts), to = sim_random(sim_hosts - 1);
	struct conn *c = free_conn();
	union rs_addr addr;
	int err = 0;

	if (!c)
		return;
	to += to >= from;
	*c = (struct conn){
		.id = ++last_id,
		.end = {
			{ .host = from, .text = sim_random(TEXTS), .fd = -1 },
			{ .host = to, .text = sim_random(TEXTS), .fd = -1 },
		},
	};
	world_enter(from);
	c->end[0].fd = rs_socket(kind, SOCK_NONBLOCK | SOCK_CLOEXEC);
	options(&c->end[0]);
	address(to, kind, &addr);
	if (connect(c->end[0].fd, &addr.sa, rs_addr_len(&addr)))
		err = errno;
	conn_sums.opened++;
	sim_note("conn %u: from %d to %d, %s: %d", c->id, from, to,
		 kind->family == AF_INET ? "IPv4" : "IPv6", err);
	if (err != EINPROGRESS && err) {
		close(c->end[0].fd);
		c->id = 0;
		conn_sums.failed++;
	}
}

static struct conn *whose(int host, uint16_t port, int kind)
{
	for (int i = 0; i < SIM_CONNS; i++) {
		struct conn *c = &conns[i];
		union rs_addr addr;
		socklen_t len = sizeof(addr);

		if (!c->id || c->accepted || c->end[1].host != host || c->end[0].fd < 0 ||
		    getsockname(c->end[0].fd, &addr.sa, &len) || rs_port(&addr) != port)
			continue;
		if ((addr.sa.sa_family == AF_INET6) == kind)
			return c;
	}
	return NULL;
}

void conn_accept(void)
{
	for (int i = 0; i < sim_hosts * 2; i++) {
		union rs_addr addr;
		socklen_t len = sizeof(addr);
		int fd = accept4(listeners[i / 2][i % 2], &addr.sa, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct conn *c;

		if (fd < 0)
			continue;
		c = whose(i / 2, rs_port(&addr), i % 2);
		sim_note("conn %u: accepted", c ? c->id : 0);
		if (!c) {	/* the other end has left */
			close(fd);
			continue;
		}
		c->accepted = true;
		c->end[1].fd = fd;
		options(&c->end[1]);
	}
}

/* ---- what an end can do ---- */

/* Any bytes and any end may come of what a liar says, but no other connection's. */
static bool is_lied(const struct conn *c)
{
	return c->end[0].host == sim_liar || c->end[1].host == sim_liar;
}

static struct end *peer_of(struct conn *c, struct end *e)
{
	return &c->end[e == &c->end[0]];
}

static const uint8_t *text_at(const struct end *e, uint64_t off, size_t *len)
{
	size_t at = off % TEXT_SIZE;

	if (*len > TEXT_SIZE - at)
		*len = TEXT_SIZE - at;
	return texts[e->text] + at;
}

static bool is_right(const struct end *writer, uint64_t off, const uint8_t *from, size_t len)
{
	while (len) {
		size_t n = len;

		if (memcmp(text_at(writer, off, &n), from, n))
			return false;
		from += n;
		off += n;
		len -= n;
	}
	return true;
}

/* TCP, too, resets what is closed when it is short of memory. */
static bool may_have_left(const struct end *e)
{
	return e->left || (e->fd < 0 && world_is_short());
}

/* Is it one that a program of TCP's must expect? */
static void failed(struct conn *c, struct end *e, const char *what, int err)
{
	struct end *peer = peer_of(c, e);

	e->err = err;
	e->over = true;
	sim_note("conn %u.%d: %s: %s", c->id, e == &c->end[1], what, strerrorname_np(err));
	if (!c->accepted)
		return;		/* not even connected, perhaps */
	peer->left = may_have_left(peer);
	if (!peer->left && !peer->err && !is_lied(c))
		sim_wrong("conn %u.%d: %s: %s, but its peer is there", c->id,
			  e == &c->end[1], what, strerrorname_np(err));
}

static void leave(struct conn *c, struct end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
	if (c->end[0].fd >= 0 || c->end[1].fd >= 0)
		return;
	for (int i = 0; i < 2; i++)
		if (c->end[i].sent > c->end[!i].got)
			conn_sums.unread += c->end[i].sent - c->end[!i].got;
	if (!c->accepted) {
		conn_sums.failed++;
	} else if (c->end[0].err || c->end[1].err || c->end[0].left || c->end[1].left) {
		conn_sums.aborted++;
	} else {
		conn_sums.whole++;
		for (int i = 0; i < 2; i++)
			if (c->end[i].got != c->end[!i].sent && !is_lied(c))
				sim_wrong("conn %u.%d has read %llu of %llu", c->id, i,
					  (unsigned long long)c->end[i].got,
					  (unsigned long long)c->end[!i].sent);
	}
	conn_sums.bytes += c->end[0].got + c->end[1].got;
	sim_note("conn %u: is over, %llu and %llu bytes", c->id,
		 (unsigned long long)c->end[0].got, (unsigned long long)c->end[1].got);
	c->id = 0;
}

static void zerocopy_done(struct end *e)
{
	struct msghdr msg = { .msg_control = buf, .msg_controllen = 4096 };

	while (e->zerocopy && recvmsg(e->fd, &msg, MSG_ERRQUEUE) >= 0)
		msg.msg_controllen = 4096;
}

static ssize_t put_file(struct end *e, size_t len)
{
	off_t at = e->sent % TEXT_SIZE;

	text_at(e, e->sent, &len);
	return sendfile(e->fd, text_files[e->text], &at, len);
}

static ssize_t put_plain(struct end *e, size_t len, int flags)
{
	const uint8_t *from = text_at(e, e->sent, &len);

	return send(e->fd, from, len, flags | MSG_NOSIGNAL);
}

static void do_write(struct conn *c, struct end *e)
{
	static const char * const names[] = { "send", "send more", "zero copy", "sendfile" };
	unsigned int how = sim_random(8);
	struct end *peer = peer_of(c, e);
	size_t len = sim_size(MOST);
	ssize_t n;

	if (peer->got == e->sent)
		peer->dry_at = sim_now_us();
	how = how < 5 ? 0 : how - 4;
	if (how == 2 && !e->zerocopy)
		how = 0;
	zerocopy_done(e);
	if (how == 3)
		n = put_file(e, len);
	else
		n = put_plain(e, len, how == 1 ? MSG_MORE : how == 2 ? MSG_ZEROCOPY : 0);
	sim_note("conn %u.%d: %s %zu: %zd", c->id, e == &c->end[1], names[how], len,
		 n < 0 ? -errno : n);
	if (n > 0)
		e->sent += n;
	else if (errno == ENOTCONN && !c->accepted)
		return;
	else if (errno != EAGAIN && errno != ENOBUFS)
		failed(c, e, names[how], errno);
}

/* From the pipe, which is empty then. */
static ssize_t get_spliced(struct end *e, size_t len)
{
	ssize_t n = splice(e->fd, NULL, pipes[1], NULL, len, SPLICE_F_NONBLOCK);

	for (ssize_t done = 0; n > 0 && done < n;) {
		ssize_t m = read(pipes[0], buf + done, n - done);

		if (m <= 0)
			rs_die("pipe: %m");
		done += m;
	}
	return n;
}

static void do_read(struct conn *c, struct end *e)
{
	static const char * const names[] = { "recv", "peek", "splice" };
	unsigned int how = sim_random(8);
	const struct end *peer = peer_of(c, e);
	size_t len = sim_size(MOST);
	struct pollfd pfd = { .fd = e->fd, .events = POLLIN };
	bool ready = poll(&pfd, 1, 0) > 0 && pfd.revents & POLLIN;
	ssize_t n;

	how = how < 6 ? 0 : how - 5;
	if (how == 2)
		n = get_spliced(e, len);
	else
		n = recv(e->fd, buf, len, how == 1 ? MSG_PEEK : 0);
	sim_note("conn %u.%d: %s %zu: %zd", c->id, e == &c->end[1], names[how], len,
		 n < 0 ? -errno : n);
	if (n < 0 && errno == ENOTCONN && !c->accepted)
		return;
	if (n < 0 && errno != EAGAIN) {
		failed(c, e, names[how], errno);
		return;
	}
	if (n < 0) {
		/* what was ready must be there; but perhaps no memory to read it by splice */
		if (ready && how != 2)
			sim_wrong("conn %u.%d: ready, but %s has nothing", c->id,
				  e == &c->end[1], names[how]);
		return;
	}
	if (!is_lied(c) && !is_right(peer, e->got, buf, n))
		sim_wrong("conn %u.%d: %s: wrong bytes in %zd at %llu, which would be right at %lld",
			  c->id, e == &c->end[1], names[how], n, (unsigned long long)e->got,
			  (long long)pattern_locate(buf, n, peer->text));
	if (!is_lied(c) && e->got + n > peer->sent)
		sim_wrong("conn %u.%d: more than was sent", c->id, e == &c->end[1]);
	if (how != 1)
		e->got += n;
	if (!n && how != 1) {
		e->over = true;
		if (!peer->shut && !peer->left && !is_lied(c))
			sim_wrong("conn %u.%d: an end that nobody has said", c->id, e == &c->end[1]);
	}
}

static void do_shut(struct conn *c, struct end *e)
{
	int zero = 0;

	setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, &zero, sizeof(zero));
	if (!c->accepted)
		return;
	e->shut = true;
	sim_note("conn %u.%d: shutdown: %d", c->id, e == &c->end[1],
		 shutdown(e->fd, SHUT_WR) ? errno : 0);
}

static void leave_early(struct conn *c, struct end *e, bool hard)
{
	struct linger now = { .l_onoff = 1 };

	if (hard)
		setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	e->left = true;
	sim_note("conn %u.%d: leaves, %s", c->id, e == &c->end[1], hard ? "hard" : "softly");
	leave(c, e);
}

void conn_die(int host)
{
	for (int i = 0; i < SIM_CONNS; i++)
		for (int k = 0; k < 2; k++)
			if (conns[i].id && conns[i].end[k].fd >= 0 &&
			    conns[i].end[k].host == host)
				leave_early(&conns[i], &conns[i].end[k], true);
}

static void do_option(struct conn *c, struct end *e)
{
	static const struct {
		int level, name;
		unsigned int most;
	} which[] = {
		{ SOL_SOCKET, SO_RCVBUF, MOST }, { SOL_SOCKET, SO_SNDBUF, MOST },
		{ IPPROTO_TCP, TCP_NODELAY, 0 }, { IPPROTO_TCP, TCP_CORK, 0 },
		{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, MOST },
		{ IPPROTO_TCP, TCP_QUICKACK, 0 },
	};
	unsigned int i = sim_random(sizeof(which) / sizeof(which[0]));
	int value = which[i].most ? LEAST + sim_size(which[i].most) : sim_random(2);

	sim_note("conn %u.%d: option %d.%d = %d: %d", c->id, e == &c->end[1], which[i].level,
		 which[i].name, value,
		 setsockopt(e->fd, which[i].level, which[i].name, &value, sizeof(value)) ?
		 errno : 0);
}

/*
 * Both have said and heard the end, or one has failed.  But TCP forgets what was closed, and
 * the rest of its bytes, if its peer has not taken them for two minutes.
 */
static bool close_done(struct conn *c, struct end *e)
{
	const struct end *peer = peer_of(c, e);

	if (!e->err && !(e->shut && e->over))
		return false;
	if (!e->err && !peer->over && sim_now_us() - peer->dry_at > PATIENT_US &&
	    !peer->left)
		return false;
	c->closed_at = sim_now_us();
	leave(c, e);
	return true;
}

/* One that has been closed for long: its other end, which has to read before TCP forgets it. */
static struct end *due(struct conn **conn)
{
	for (int i = 0; i < SIM_CONNS; i++) {
		struct conn *c = &conns[i];

		if (!c->id || !c->closed_at || sim_now_us() - c->closed_at < PATIENT_US)
			continue;
		for (int k = 0; k < 2; k++) {
			struct pollfd pfd = { .fd = c->end[k].fd, .events = POLLIN };

			*conn = c;
			if (pfd.fd >= 0 && !c->end[k].over && poll(&pfd, 1, 0) > 0)
				return &c->end[k];
		}
	}
	return NULL;
}

/* Some end that is open, or NULL. */
static struct end *choose(struct conn **conn)
{
	for (int tries = 0; tries < 20; tries++) {
		struct conn *c = &conns[sim_random(SIM_CONNS)];
		struct end *e = &c->end[sim_random(2)];

		*conn = c;
		if (c->id && e->fd >= 0)
			return e;
	}
	return NULL;
}

void conn_act(void)
{
	unsigned int r = sim_random(200);
	struct conn *c;
	struct end *e = r % 2 ? due(&c) : NULL;

	if (e) {
		do_read(c, e);
		return;
	}
	e = choose(&c);
	if (!e || close_done(c, e))
		return;
	if (r < 90)
		do_read(c, e);
	else if (r < 180 && !e->shut)
		do_write(c, e);
	else if (r < 194)
		do_option(c, e);
	else if (r < 199)
		do_shut(c, e);
	else
		leave_early(c, e, sim_random(2));
}

/* ---- the end ---- */

/* One step of an end.  Return: it has done something. */
static bool settle_end(struct conn *c, struct end *e)
{
	struct pollfd pfd = { .fd = e->fd, .events = POLLIN };

	if (!c->accepted) {	/* will never be, or will be reset */
		e->left = true;
		leave(c, e);
		return true;
	}
	if (close_done(c, e))
		return true;
	if (is_lied(c)) {	/* it might never come to its end */
		leave_early(c, e, sim_random(2));
		return true;
	}
	if (!e->shut) {
		do_shut(c, e);
		return true;
	}
	if (e->over)
		return false;
	if (poll(&pfd, 1, 0) > 0) {
		zerocopy_done(e);
		do_read(c, e);
		return true;
	}
	/* its reset was lost with the wire, and TCP does not repeat it */
	if (!may_have_left(peer_of(c, e)) || sim_now_us() < patient_till)
		return false;
	e->left = true;
	leave(c, e);
	return true;
}

static bool all_over(void)
{
	for (int i = 0; i < SIM_CONNS; i++)
		if (conns[i].id)
			return false;
	return true;
}

bool conn_settle(uint64_t us)
{
	static const struct timespec nap = { .tv_nsec = 5000000 }, long_nap = { .tv_nsec = 300000000 };
	unsigned int still = 0;
	uint64_t end = sim_now_us() + us;

	patient_till = sim_now_us() + us / 4;
	/* what is on its way to a listener */
	for (int i = 0; i < 800; i++) {
		conn_accept();
		nanosleep(&nap, NULL);
	}
	while (!all_over() && sim_now_us() < end) {
		bool moved = false;

		conn_accept();
		for (int i = 0; i < SIM_CONNS; i++)
			for (int k = 0; k < 2; k++)
				if (conns[i].id && conns[i].end[k].fd >= 0)
					moved |= settle_end(&conns[i], &conns[i].end[k]);
		still = moved ? 0 : still + 1;
		if (!moved)
			nanosleep(still < 200 ? &nap : &long_nap, NULL);
	}
	for (int i = 0; i < SIM_CONNS; i++) {
		struct conn *c = &conns[i];

		if (c->id)
			printf("conn %u, from %d to %d: fds %d %d, sent %llu %llu, read %llu %llu\n", c->id,
			       c->end[0].host, c->end[1].host, c->end[0].fd, c->end[1].fd,
			       (unsigned long long)c->end[0].sent, (unsigned long long)c->end[1].sent,
			       (unsigned long long)c->end[0].got, (unsigned long long)c->end[1].got);
	}
	for (int i = 0; i < sim_hosts * 2; i++)
		close(listeners[i / 2][i % 2]);
	return all_over();
}
