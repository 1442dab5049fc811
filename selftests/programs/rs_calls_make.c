// SPDX-License-Identifier: GPL-2.0-only
/* Programs: at random, changed, from text and to text; those to begin with. */
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rs_calls.h"

#define X(n, a0, a1, a2, a3, w) { .name = #n, .make = do_##n, .weight = w, \
	.arg = { ARG_##a0, ARG_##a1, ARG_##a2, ARG_##a3 } },
const struct call_info call_infos[CALL_KINDS] = { RS_CALLS(X) };
#undef X

uint64_t rnd_state;

/* Of neighbours it makes numbers that have nothing in common (splitmix64). */
uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

uint32_t rnd(uint32_t below)
{
	return (mix(rnd_state++) >> 32) % below;
}

enum { PIPE_OUT = SOCKETS, PIPE_IN, A_FILE, AN_EPOLL };

#define ONE_OF(a) ((a)[rnd(sizeof(a) / sizeof((a)[0]))])

/* ---- arguments ---- */

static uint32_t some_flags(const uint32_t *flags, size_t n)
{
	uint32_t all = 0;

	while (rnd(2))
		all |= flags[rnd(n)];
	return all;
}

static uint32_t rnd_send(void)
{
	static const uint32_t flags[] = {
		MSG_DONTWAIT, MSG_MORE, MSG_OOB, MSG_ZEROCOPY, MSG_EOR, MSG_DONTROUTE, MSG_CONFIRM,
		MSG_FASTOPEN,
	};
	uint32_t all = some_flags(flags, 7 + !rnd(4));

	return rnd(50) ? all : mix(all + rnd(1000));
}

static uint32_t rnd_recv(void)
{
	static const uint32_t flags[] = {
		MSG_DONTWAIT, MSG_PEEK, MSG_OOB, MSG_TRUNC, MSG_WAITALL, MSG_ERRQUEUE,
		MSG_CMSG_CLOEXEC, MSG_CTRUNC,
	};
	uint32_t all = some_flags(flags, 8);

	return rnd(50) ? all : mix(all + rnd(1000));
}

static uint32_t rnd_size(void)
{
	static const uint32_t sizes[] = {
		0, 1, 2, 7, 8, 24, 100, 512, 1000, 1448, 4095, 4096, 4097, 8192, 16384, 16385, 32768,
		65535, 65536, 65537, 100000, 262144, 1 << 20,
	};

	return rnd(4) ? ONE_OF(sizes) : 1 + rnd(1 << rnd(20));
}

static uint32_t rnd_value(void)
{
	static const uint32_t values[] = {
		0, 1, 1, 1, 2, 3, 4, 7, 8, 20, 100, 255, 256, 1000, 2304, 4096, 10000, 65535, 65536,
		1 << 20, 0x7fffffff, 0x80000000, -1,
	};

	return rnd(8) ? ONE_OF(values) : mix(rnd(~0u));
}

static uint32_t rnd_length(void)
{
	static const uint32_t lengths[] = { 0, 1, 3, 4, 8, 12, 16, 24, 60, 104, 255, 800, -1 };

	return rnd(3) ? 0xffff : ONE_OF(lengths);
}

/* type, what it holds, how it is spoilt, salt: rs_calls_netlink.c */
static uint32_t rnd_attr(void)
{
	uint32_t type = rnd(8) ? rnd(16) : rnd(256);

	return type | rnd(10) << 8 | (rnd(4) ? 0 : rnd(6)) << 16 | rnd(1 << 12) << 20;
}

static uint32_t rnd_nlflags(void)
{
	static const uint32_t flags[] = { 4, 0x300, 0x304, 0x100, 0x200, 0xc00 };

	return ONE_OF(flags) | (rnd(6) ? 0 : 1 << (16 + rnd(4)));
}

static uint32_t rnd_poll(void)
{
	static const uint32_t events[] = { POLLIN, POLLOUT, POLLPRI, POLLRDHUP, POLLERR };

	return ONE_OF(events) | (rnd(2) ? ONE_OF(events) : 0);
}

static uint32_t rnd_kind(void)
{
	uint32_t kind = rnd(5) ? rnd(4) : rnd(6);

	return kind | (rnd(4) ? 0 : 0x10) | (rnd(8) ? 0 : 0x20);
}

static uint32_t rnd_option(void)
{
	if (rnd(2))
		return rnd(OUR_OPTIONS);
	return rnd(8) ? rnd(option_count) : 0x100 + rnd(5 << 8);
}

/* Where program_random() puts something. */
static uint32_t rnd_usual_fd(void)
{
	static const uint32_t slots[] = { 0, 1, 0, 1, PIPE_OUT, PIPE_IN, A_FILE };

	return ONE_OF(slots);
}

/* Draining takes its time. */
static uint32_t rnd_command(void)
{
	uint32_t cmd = rnd(16) ? rnd(16) : rnd(256);

	return cmd != 5 || !rnd(4) ? cmd : 3;
}

static uint32_t rnd_arg(enum arg kind)
{
	switch (kind) {
	case ARG_NONE:		return 0;
	case ARG_SOCK:		return rnd(8) ? rnd(2) : rnd(SOCKETS);
	case ARG_FD:		return rnd(8) ? rnd_usual_fd() : rnd(SLOTS);
	case ARG_PIPE:		return rnd(8) ? PIPE_OUT + rnd(2) : rnd(SLOTS);
	case ARG_EPOLL:		return rnd(8) ? AN_EPOLL : rnd(SLOTS);
	case ARG_KIND:		return rnd_kind();
	case ARG_ADDR:		return rnd(10);
	case ARG_PORT:		return rnd(3) ? rnd(11) : rnd(150);
	case ARG_SIZE:		return rnd_size();
	case ARG_SEND:		return rnd_send();
	case ARG_RECV:		return rnd_recv();
	case ARG_SPLICE:	return rnd(16);
	case ARG_MEM:		return rnd(6) ? rnd(2) : rnd(4);
	case ARG_MS:		return rnd(8) ? rnd(4) : rnd(21);
	case ARG_POLL:		return rnd_poll();
	case ARG_SMALL:		return rnd(32);
	case ARG_OPTION:	return rnd_option();
	case ARG_VALUE:		return rnd_value();
	case ARG_LENGTH:	return rnd_length();
	case ARG_IOCTL:		return rnd(ioctl_count);
	case ARG_SETTING:	return rnd(setting_count);
	case ARG_COMMAND:	return rnd_command();
	case ARG_NLFLAGS:	return rnd_nlflags();
	case ARG_ATTR:		return rnd(3) ? rnd_attr() : 0;
	}
	return 0;
}

/* ---- programs ---- */

#define CALL(thread, name, ...) { CALL_##name, thread, { __VA_ARGS__ } }

/* What the module's family understands: command, flags, attributes without their salt. */
static void ask_rightly(uint32_t *arg)
{
	static const uint32_t asked[][ARGS] = {
		{ 1, 4 }, { 4, 4 }, { 2, 0x300 }, { 3, 0x300 }, { 9, 0x300 }, { 10, 0x300 },
		{ 11, 0x300 }, { 12, 0x300 }, { 12, 0x300, 0x301 }, { 13, 4, 0x301, 0x202 },
		{ 14, 4, 0x607 }, { 14, 4, 0x607 }, { 5, 4, 0x008 },
		{ 2, 0x300, 0x102, 0x405 }, { 2, 0x300, 0x504, 0x106 }, { 3, 0x300, 0x103 },
		{ 3, 0x300, 0x607 }, { 3, 0x300, 0x508, 0x70c }, { 3, 0x300, 0x40b, 0x105 },
		{ 3, 0x300, 0x10f, 0x70d }, { 9, 0x300, 0x501 }, { 10, 0x300, 0x401 },
	};

	memcpy(arg, ONE_OF(asked), sizeof(asked[0]));
	for (int i = 2; i < ARGS; i++)
		if (arg[i])
			arg[i] |= rnd(1 << 12) << 20;
}

static struct call rnd_call(void)
{
	struct call c = { .thread = rnd(THREADS) };
	uint32_t all = 0, at;

	for (int i = 0; i < CALL_KINDS; i++)
		all += call_infos[i].weight;
	at = rnd(all);
	while (at >= call_infos[c.kind].weight)
		at -= call_infos[c.kind++].weight;
	for (int i = 0; i < ARGS; i++)
		c.arg[i] = rnd_arg(call_infos[c.kind].arg[i]);
	if (c.kind == CALL_netlink && rnd(2))
		ask_rightly(c.arg);
	return c;
}

static void insert(struct program *p, uint32_t at, struct call c)
{
	if (p->n == CALLS)
		return;
	memmove(&p->call[at + 1], &p->call[at], (p->n - at) * sizeof(c));
	p->call[at] = c;
	p->n++;
	p->alone += at < p->alone;
}

static void drop(struct program *p, uint32_t at)
{
	p->n--;
	p->alone -= at < p->alone;
	memmove(&p->call[at], &p->call[at + 1], (p->n - at) * sizeof(p->call[0]));
}

static bool makes(int call)
{
	return call == CALL_socket || call == CALL_pair || call == CALL_pipe || call == CALL_file ||
	       call == CALL_epoll;
}

/* How many calls run alone first; rarely too few for a socket to be there when others run. */
static uint32_t rnd_alone(const struct program *p)
{
	uint32_t least = 0;

	while (rnd(8) && least < p->n && makes(p->call[least].kind))
		least++;
	return least + rnd(p->n + 1 - least);
}

void program_random(struct program *p)
{
	const struct call pair = CALL(0, pair, 0, 1, rnd_kind(), rnd_kind());
	const struct call pipe = CALL(0, pipe, PIPE_OUT, PIPE_IN, rnd(4));
	const struct call file = CALL(0, file, A_FILE, 1 << 18);
	const struct call epoll = CALL(0, epoll, AN_EPOLL);

	p->n = 0;
	p->alone = 0;
	if (rnd(4))
		insert(p, 0, pair);
	if (!rnd(3))
		insert(p, p->n, pipe);
	if (!rnd(3))
		insert(p, p->n, file);
	if (!rnd(4))
		insert(p, p->n, epoll);
	while (p->n < 4 || rnd(8))
		insert(p, p->n, rnd_call());
	p->alone = rnd_alone(p);
}

static void change_arg(struct call *c)
{
	uint32_t n = 0, i;
	enum arg kind;

	while (n < ARGS && call_infos[c->kind].arg[n])
		n++;
	i = rnd(n);
	kind = call_infos[c->kind].arg[i];
	if (kind == ARG_SIZE && rnd(2))
		c->arg[i] += rnd(3) - 1;
	else
		c->arg[i] = rnd_arg(kind);
}

/* What follows of another program, behind some of this one. */
static void graft(struct program *p, const struct program *other)
{
	uint32_t from = rnd(other->n);

	p->n = 1 + rnd(p->n);
	while (from < other->n && p->n < CALLS)
		p->call[p->n++] = other->call[from++];
	p->alone = rnd_alone(p);
}

static void change_once(struct program *p, const struct program *other)
{
	uint32_t at = rnd(p->n);
	struct call c = p->call[at];

	switch (rnd(16)) {
	case 0 ... 4:
		change_arg(&p->call[at]);
		break;
	case 5 ... 8:
		insert(p, rnd(p->n + 1), rnd_call());
		break;
	case 9:
	case 10:
		if (p->n > 1)
			drop(p, at);
		break;
	case 11:
		insert(p, rnd(p->n + 1), c);
		break;
	case 12:
		p->call[at] = p->call[p->n - 1];
		p->call[p->n - 1] = c;
		break;
	case 13:
		p->call[at].thread = rnd(THREADS);
		break;
	case 14:
		p->alone = rnd_alone(p);
		break;
	case 15:
		graft(p, other);
		break;
	}
}

void program_change(struct program *p, const struct program *other)
{
	do {
		change_once(p, other);
	} while (rnd(3));
}

/* ---- text: number, calls of the first thread alone; then thread, call, arguments ---- */

size_t program_print(const struct program *p, char *text, size_t size)
{
	size_t len = snprintf(text, size, "program %lu %u\n", p->number, p->alone);

	for (const struct call *c = p->call; c < p->call + p->n; c++) {
		len += snprintf(text + len, size - len, "%u %s", c->thread,
				call_infos[c->kind].name);
		for (int i = 0; i < ARGS && call_infos[c->kind].arg[i]; i++)
			len += snprintf(text + len, size - len, " %#x", c->arg[i]);
		len += snprintf(text + len, size - len, "\n");
	}
	return len;
}

static bool parse_call(const char *line, struct call *c)
{
	unsigned int thread;
	char name[16];

	memset(c, 0, sizeof(*c));
	if (sscanf(line, "%u %15s %i %i %i %i", &thread, name, (int *)&c->arg[0],
		   (int *)&c->arg[1], (int *)&c->arg[2], (int *)&c->arg[3]) < 2)
		return false;
	c->thread = thread % THREADS;
	for (; c->kind < CALL_KINDS; c->kind++)
		if (!strcmp(name, call_infos[c->kind].name))
			return true;
	return false;
}

bool program_parse(FILE *in, struct program *p)
{
	char line[128];
	struct call c;
	long at;

	do {
		if (!fgets(line, sizeof(line), in))
			return false;
	} while (sscanf(line, "program %lu %u", &p->number, &p->alone) != 2);
	for (p->n = 0; at = ftell(in), fgets(line, sizeof(line), in);) {
		if (!strncmp(line, "program", 7)) {
			fseek(in, at, SEEK_SET);
			break;
		}
		if (p->n < CALLS && parse_call(line, &c))
			p->call[p->n++] = c;
	}
	if (p->alone > p->n)
		p->alone = p->n;
	return true;
}

/* ---- what to begin with ---- */

#define SEED(alone, ...) { 0, sizeof((struct call[]){ __VA_ARGS__ }) / sizeof(struct call), \
			   alone, { __VA_ARGS__ } }

enum { INET, RDS4, INET6, RDS6, TCP4 };
/* at these places of the table in rs_calls_do.c */
enum { OPT_RULES, OPT_EAGER, OPT_LINGER = 3, OPT_ZEROCOPY = 5, OPT_CORK = 7, OPT_INFO = 9 };
enum { NATURAL = 0xffff, DUMP = 0x300, DO = 4 };

/* To rings, then what ARGS are, then the end of both. */
#define ON_RINGS(alone, kind, ...) \
	SEED(alone, CALL(0, pair, 0, 1, kind, kind), CALL(0, move, 0, 1, 16384, 5), \
	     CALL(0, move, 1, 0, 16384, 5), CALL(0, pause, 5), \
	     CALL(0, move, 0, 1, 65536, 5), __VA_ARGS__, \
	     CALL(0, shutdown, 0, 1), CALL(0, recv, 1, 1 << 20))

static const struct program seeds[] = {
	ON_RINGS(6, INET, CALL(0, move, 0, 1, 262144, 20), CALL(1, move, 1, 0, 100000, 20),
		 CALL(2, poll, 0, POLLIN, 5)),
	ON_RINGS(6, RDS6, CALL(0, send, 0, 1000, MSG_OOB), CALL(0, poll, 1, POLLPRI, 20),
		 CALL(0, recv, 1, 8, MSG_OOB), CALL(0, recv, 1, 4096, MSG_PEEK)),
	ON_RINGS(7, INET6, CALL(0, pipe, PIPE_OUT, PIPE_IN, 2), CALL(0, send, 0, 65536, 0),
		 CALL(0, splice, 1, PIPE_IN, 65536, 1), CALL(0, unsplice, PIPE_OUT, 0, 65536, 5),
		 CALL(0, tee, PIPE_OUT, PIPE_IN, 4096, 2)),
	ON_RINGS(6, RDS4, CALL(0, setsockopt, 0, OPT_ZEROCOPY, 1, NATURAL),
		 CALL(0, send, 0, 100000, MSG_ZEROCOPY), CALL(0, move, 0, 1, 8192, 20),
		 CALL(0, recvmsg, 0, 0, MSG_ERRQUEUE, 0)),
	ON_RINGS(7, INET, CALL(0, file, A_FILE, 1 << 20), CALL(0, sendfile, 0, A_FILE, 1 << 20),
		 CALL(1, recv, 1, 1 << 20, MSG_WAITALL), CALL(2, netlink, 3, DUMP)),
	ON_RINGS(6, RDS4, CALL(0, netlink, 2, DUMP), CALL(0, netlink, 9, DUMP),
		 CALL(1, netlink, 11, DUMP), CALL(2, netlink, 4, DO)),
	ON_RINGS(6, INET, CALL(0, setsockopt, 0, OPT_CORK, 1, NATURAL), CALL(0, send, 0, 100, MSG_MORE),
		 CALL(1, setsockopt, 0, OPT_CORK, 0, NATURAL), CALL(1, recvmsg, 1, 100, 0, 2)),
	ON_RINGS(6, INET6, CALL(0, move, 0, 1, 262144, 20), CALL(1, destroy, 1),
		 CALL(2, setting, 7, 0)),
	ON_RINGS(8, RDS4, CALL(0, epoll, AN_EPOLL), CALL(0, epoll_ctl, AN_EPOLL, 1, 4, POLLIN),
		 CALL(0, fork, 1, 4), CALL(1, uring, 1, 1, 4096), CALL(0, uring, 0, 0, 4096),
		 CALL(0, epoll_wait, AN_EPOLL, 10)),
	ON_RINGS(6, INET, CALL(0, send, 0, 1 << 20, 0), CALL(0, getsockopt, 0, OPT_INFO, NATURAL),
		 CALL(0, ioctl, 0, 1), CALL(1, ioctl, 1, 0),
		 CALL(0, setsockopt, 0, OPT_LINGER, 1, NATURAL)),
	SEED(2, CALL(0, pair, 0, 1, INET, TCP4), CALL(0, move, 1, 0, 1000, 10),
	     CALL(0, move, 0, 1, 100000, 10), CALL(1, shutdown, 1, 2), CALL(2, close, 0)),
	SEED(4, CALL(0, socket, 0, INET), CALL(0, bind, 0, 0, 0), CALL(0, listen, 0, 5),
	     CALL(0, socket, 1, RDS4), CALL(1, connect, 1, 0, 4), CALL(0, accept, 2, 0, 9),
	     CALL(1, send, 1, 100, 0), CALL(2, recv, 2, 100, 0), CALL(0, close, 0)),
	SEED(1, CALL(0, unshare, 0), CALL(0, pair, 0, 1, 0x10 | INET, 0x10 | RDS4),
	     CALL(0, setting, 4, 1), CALL(0, move, 0, 1, 65536, 10), CALL(1, close, 1)),
	SEED(2, CALL(0, socket, 0, RDS6), CALL(0, setsockopt, 0, OPT_RULES, 2, NATURAL),
	     CALL(0, setsockopt, 0, OPT_EAGER, 1, NATURAL), CALL(0, connect, 0, 1, 1),
	     CALL(1, poll, 0, POLLOUT, 10), CALL(2, connect, 0, 7, 0)),
};

int program_seed(int i, struct program *p)
{
	if (i >= (int)(sizeof(seeds) / sizeof(seeds[0])))
		return 0;
	*p = seeds[i];
	return 1;
}
