// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends position-dependent bytes both ways over any number of connections and
 * checks every byte, the length and the end.  A transfer is a series of phases;
 * in each, every direction moves up to a goal.  Prints one line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "half.h"
#include "pattern.h"
#include "sock.h"

static const char usage[] =
"rs_stream -s|-c HOST|-b [options]\n"
"  -s, -c HOST, -b    server, client, both in this process\n"
"  -l HOST            address to listen at, or for -b to meet at\n"
"  -k KIND            tcp4 tcp6 inet inet6 rds4 rds6 (the server's, with -b)\n"
"  -K KIND            kind of the client with -b\n"
"  -p PORT  -C CONNS  -S SEED  -t SECONDS (limit of the whole)\n"
"  -n BYTES           from client to server (64K, 256M, 1G ...)\n"
"  -m BYTES           from server to client, default as -n\n"
"  -w BYTES  -r BYTES greatest chunk of one write, one read\n"
"  -W HOW             plain iov splice sendfile zerocopy\n"
"  -R HOW             plain iov splice peek waitall\n"
"  -e                 non-blocking, one thread with epoll\n"
"  --first client|server   the other says nothing before it has heard one byte\n"
"  --read-delay MS    let the peer fill the window first\n"
"  --read-when FILE   ... and until FILE is there\n"
"  --half-close       the client ends its direction before the server begins\n"
"  --hold FILE        when all is sent, create FILE.held and wait for FILE\n"
"  --hold-at BYTES    ... already when that much is sent each way\n"
"  --until FILE       go on beyond -n, 256 KiB at a time, until FILE is there\n"
"  --pace MS          wait before each of these\n"
"  --rcvbuf BYTES     SO_RCVBUF of all sockets\n"
"  --wait             until somebody listens\n"
"  --expect-reset     every connection must end with ECONNRESET\n";

enum { MAX_PHASES = 5 };

#define STRIDE (256 << 10)	/* bytes between the places where --until may end */

/* Goals of one phase, by sender: [0] client, [1] server. */
struct phase {
	uint64_t goal[2];
	bool hold;	/* behind it */
	bool end[2];	/* behind it, this direction ends */
};

struct conn {
	int fd;
	struct half half[2];	/* by sender */
};

/* One side: the client's or the server's end of all connections. */
struct side {
	bool server;
	struct rs_kind kind;
	struct conn *conns;
	pthread_t thread;
	int epoll;
};

static struct {
	bool run[2];
	const char *host, *listen;
	struct rs_kind kind[2];
	uint16_t port;
	int n_conns;
	uint64_t seed;
	uint64_t bytes[2];
	size_t chunk[2];	/* write, read */
	enum half_how how[2];	/* write, read */
	bool epoll;
	int first;		/* the side that speaks first; -1: neither waits */
	unsigned int read_delay;
	const char *read_when;
	bool half_close;
	const char *hold;
	uint64_t hold_at;
	const char *until;
	unsigned int pace;
	bool expect_reset;
	bool wait;
	unsigned int limit;
} opt = {
	.port = 7100, .n_conns = 1, .seed = 1, .bytes = { 1 << 20, -1 },
	.chunk = { 65536, 65536 }, .first = -1, .hold_at = -1, .limit = 60,
};

static struct phase phases[MAX_PHASES];
static int n_phases;
static struct side sides[2] = { { .server = false }, { .server = true } };
static uint64_t start_ms;
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what came of it ---- */

static void report_half(const struct side *side, int i, const struct half *h)
{
	printf("{\"side\":\"%s\",\"conn\":%d,\"dir\":\"%s\",\"offset\":%llu,\"what\":\"%s\",\"error\":\"%s\"",
	       side->server ? "server" : "client", i, h->tx ? "tx" : "rx",
	       (unsigned long long)h->offset, h->what ? h->what : "unfinished",
	       strerrorname_np(h->err));
	if (h->err == EBADMSG)
		printf(",\"belongs\":%lld", (long long)h->belongs);
	printf("}");
}

/*
 * A reset is told once, to the direction that asks first; the other one sees
 * EPIPE, ENOTCONN or the end.
 */
static bool half_good(const struct conn *conn, const struct half *h)
{
	if (!opt.expect_reset)
		return !h->err;
	return h->err != EBADMSG && (conn->half[0].err == ECONNRESET ||
				     conn->half[1].err == ECONNRESET);
}

static const char *side_name(void)
{
	return !opt.run[0] ? "server" : !opt.run[1] ? "client" : "both";
}

static int print_errors(const struct side *side, int errors, bool unfinished)
{
	for (int i = 0; side->conns && i < 2 * opt.n_conns; i++) {
		struct conn *conn = &side->conns[i / 2];
		struct half *h = &conn->half[i % 2];
		bool late = unfinished && !h->err &&
			    h->offset < opt.bytes[i % 2];

		if (half_good(conn, h) && !late)
			continue;
		if (errors++ < 8) {
			printf("%s", errors > 1 ? "," : "");
			report_half(side, i / 2, h);
		}
	}
	return errors;
}

/* One line. Return: exit status. */
static int report(bool timed_out)
{
	uint64_t sum[2] = { 0, 0 }, pause = 0;	/* sum: sent, received */
	unsigned int refused = 0;
	int errors;

	pthread_mutex_lock(&report_lock);
	for (int s = 0; s < 2; s++)
		for (int i = 0; sides[s].conns && i < 2 * opt.n_conns; i++) {
			struct half *h = &sides[s].conns[i / 2].half[i % 2];

			sum[!h->tx] += h->offset;
			refused += h->zc_refused;
			if (h->pause > pause)
				pause = h->pause;
		}
	printf("{\"side\":\"%s\",\"conns\":%d,\"tx_bytes\":%llu,\"rx_bytes\":%llu,\"ms\":%llu,\"longest_pause_ms\":%llu,\"enobufs\":%u,\"timed_out\":%s,\"first_errors\":[",
	       side_name(), opt.n_conns, (unsigned long long)sum[0],
	       (unsigned long long)sum[1],
	       (unsigned long long)(rs_now_ms() - start_ms),
	       (unsigned long long)pause, refused, timed_out ? "true" : "false");
	errors = print_errors(&sides[0], 0, timed_out);
	errors = print_errors(&sides[1], errors, timed_out);
	printf("],\"errors\":%d,\"ok\":%s}\n", errors,
	       errors || timed_out ? "false" : "true");
	fflush(stdout);
	return errors || timed_out;
}

static void *watchdog(void *arg)
{
	(void)arg;
	sleep(opt.limit);
	report(true);
	_exit(2);
}

/* ---- phases ---- */

static void add_phase(uint64_t client, uint64_t server, struct phase more)
{
	more.goal[0] = client < opt.bytes[0] ? client : opt.bytes[0];
	more.goal[1] = server < opt.bytes[1] ? server : opt.bytes[1];
	phases[n_phases++] = more;
}

static void plan(void)
{
	struct phase none = { 0 };

	if (opt.first >= 0)
		add_phase(opt.first == 0, opt.first == 1, none);
	if (opt.hold)
		add_phase(opt.hold_at, opt.hold_at,
			  (struct phase){ .hold = true });
	if (opt.half_close)
		add_phase(opt.bytes[0], opt.first == 1,
			  (struct phase){ .end = { true, false } });
	add_phase(opt.bytes[0], opt.bytes[1],
		  (struct phase){ .end = { !opt.half_close, true } });
}

/* ---- blocking: a thread for each direction ---- */

struct job {
	struct half *half;
	const struct phase *phase;
	int dir;
	pthread_t thread;
};

/*
 * Shall @h go on beyond its goal?  The sender decides that, at places that both
 * ends know.
 */
static bool goes_on(const struct half *h)
{
	char byte;

	if (!opt.until)
		return false;
	if (h->tx) {
		usleep(opt.pace * 1000);
		return access(opt.until, F_OK);
	}
	return recv(h->fd, &byte, 1, MSG_PEEK);
}

static void before_reading(const struct phase *phase)
{
	if (phase != phases)
		return;
	usleep(opt.read_delay * 1000);
	while (opt.read_when && access(opt.read_when, F_OK))
		usleep(10000);
}

static void *job_run(void *arg)
{
	struct job *job = arg;
	uint64_t goal = job->phase->goal[job->dir];
	int more;

	if (!job->half->tx)
		before_reading(job->phase);
	do {
		while ((more = half_step(job->half, goal)) > 0)
			;
		goal += STRIDE;
	} while (!more && job->phase->end[job->dir] && goes_on(job->half));
	if (!more && job->phase->end[job->dir])
		half_end(job->half);
	return NULL;
}

static void threads_phase(struct side *side, const struct phase *phase)
{
	struct job *jobs = calloc(2 * opt.n_conns, sizeof(*jobs));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	for (int i = 0; i < 2 * opt.n_conns; i++) {
		jobs[i].half = &side->conns[i / 2].half[i % 2];
		jobs[i].phase = phase;
		jobs[i].dir = i % 2;
		if (pthread_create(&jobs[i].thread, &attr, job_run, &jobs[i]))
			rs_die("no thread");
	}
	for (int i = 0; i < 2 * opt.n_conns; i++)
		pthread_join(jobs[i].thread, NULL);
	pthread_attr_destroy(&attr);
	free(jobs);
}

/* ---- non-blocking: one thread, level-triggered epoll ---- */

static bool half_idle(const struct half *h, const struct phase *phase, int dir)
{
	return h->offset >= phase->goal[dir] && !phase->end[dir];
}

/* Return: false if this direction has nothing more to do in @phase. */
static bool half_busy(struct half *h, const struct phase *phase, int dir)
{
	int more = half_step(h, phase->goal[dir]);

	if (!more && phase->end[dir])
		more = half_end(h);	/* -1: rx, and no end has come yet */
	return more > 0 ? !half_idle(h, phase, dir) : more < 0 && !h->err;
}

static uint32_t want(const struct half *h)
{
	return h->tx ? EPOLLOUT : EPOLLIN;
}

static void arm(struct side *side, int i, int op, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u32 = i };

	if (epoll_ctl(side->epoll, op, side->conns[i].fd, &ev))
		rs_die("epoll_ctl: %m");
}

static void epoll_phase(struct side *side, const struct phase *phase)
{
	uint8_t *busy = calloc(opt.n_conns, 1);
	struct epoll_event evs[64];
	int left = opt.n_conns;

	before_reading(phase);
	for (int i = 0; i < opt.n_conns; i++) {
		struct half *half = side->conns[i].half;

		busy[i] = (half_idle(&half[0], phase, 0) ? 0 : 1) |
			  (half_idle(&half[1], phase, 1) ? 0 : 2);
		left -= !busy[i];
		if (busy[i])
			arm(side, i, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
	}
	while (left) {
		int n = epoll_wait(side->epoll, evs, 64, -1);

		for (int e = 0; e < n; e++) {
			int i = evs[e].data.u32;
			struct conn *conn = &side->conns[i];
			uint32_t events = 0;

			for (int d = 0; d < 2; d++) {
				struct half *h = &conn->half[d];

				if (!(busy[i] & 1 << d))
					continue;
				if (evs[e].events & (want(h) | EPOLLERR | EPOLLHUP) &&
				    !half_busy(h, phase, d))
					busy[i] &= ~(1 << d);
				else
					events |= want(h);
			}
			arm(side, i, busy[i] ? EPOLL_CTL_MOD : EPOLL_CTL_DEL,
			    events);
			left -= !busy[i];
		}
	}
	free(busy);
}

/* ---- a side's life ---- */

static bool all_dead(const struct side *side)
{
	for (int i = 0; i < opt.n_conns; i++)
		if (!(rs_poll(side->conns[i].fd, 0, 0) & POLLHUP))
			return false;
	return true;
}

/* Until the file is there, or nothing is left that could go on. */
static void hold(struct side *side)
{
	static atomic_int arrived;
	char name[4096];
	struct stat st;

	if (++arrived == opt.run[0] + opt.run[1]) {
		snprintf(name, sizeof(name), "%s.held", opt.hold);
		close(open(name, O_CREAT | O_WRONLY, 0666));
	}
	while (stat(opt.hold, &st) && !all_dead(side))
		usleep(20000);
}

/* Both ends derive the same seeds: from the client's port and the direction. */
static void conn_init(struct side *side, struct conn *conn, uint16_t port)
{
	if (opt.epoll)
		rs_nonblock(conn->fd);
	for (int d = 0; d < 2; d++) {
		struct half *h = &conn->half[d];
		uint64_t mix = opt.seed << 32 | (uint32_t)port << 1 | d;

		h->fd = conn->fd;
		h->tx = d == side->server;
		h->blocking = !opt.epoll;
		h->how = opt.how[!h->tx];
		h->chunk = opt.chunk[!h->tx];
		h->seed = pattern_random(&mix);
		h->random = h->seed + side->server;
		half_init(h);
	}
}

static int client_open(const struct side *side, bool first)
{
	const char *host = opt.host ? opt.host : opt.listen;
	int flags = opt.epoll ? SOCK_NONBLOCK : 0, fd;

	for (;;) {
		fd = rs_connect(&side->kind, host, opt.port, flags);
		/* nobody listens yet; or a busy machine has not answered ARP in time */
		if (!opt.wait || !((fd == -ECONNREFUSED && first) || fd == -EHOSTUNREACH))
			return fd;
		usleep(50000);
	}
}

static void conns_open(struct side *side, int listener)
{
	int flags = opt.epoll ? SOCK_NONBLOCK : 0;

	for (int i = 0; i < opt.n_conns; i++) {
		struct conn *conn = &side->conns[i];

		if (side->server)
			conn->fd = accept4(listener, NULL, NULL, flags);
		else
			conn->fd = client_open(side, !i);
		if (conn->fd < 0)
			rs_die("%s: %s", side->server ? "accept" : "connect",
			       strerror(side->server ? errno : -conn->fd));
		conn_init(side, conn, side->server ? rs_remote_port(conn->fd) :
						     rs_local_port(conn->fd));
	}
}

static void *side_run(void *arg)
{
	struct side *side = arg;

	for (int i = 0; i < n_phases; i++) {
		if (opt.epoll)
			epoll_phase(side, &phases[i]);
		else
			threads_phase(side, &phases[i]);
		if (phases[i].hold)
			hold(side);
	}
	for (int i = 0; i < opt.n_conns; i++) {
		half_free(&side->conns[i].half[0]);
		half_free(&side->conns[i].half[1]);
		close(side->conns[i].fd);
	}
	return NULL;
}

static void *server_open(void *arg)
{
	conns_open(&sides[1], *(int *)arg);
	return NULL;
}

static void run(void)
{
	pthread_t accepter, dog;
	int listener = -1;

	for (int s = 0; s < 2; s++) {
		if (!opt.run[s])
			continue;
		sides[s].kind = opt.kind[s];
		sides[s].conns = calloc(opt.n_conns, sizeof(struct conn));
		sides[s].epoll = epoll_create1(EPOLL_CLOEXEC);
	}
	pthread_create(&dog, NULL, watchdog, NULL);
	if (opt.run[1]) {
		listener = rs_listen(&opt.kind[1], opt.listen ? opt.listen : "",
				     opt.port, 4096);
		pthread_create(&accepter, NULL, server_open, &listener);
	}
	if (opt.run[0])
		conns_open(&sides[0], -1);
	if (opt.run[1])
		pthread_join(accepter, NULL);
	for (int s = 0; s < 2; s++)
		if (opt.run[s])
			pthread_create(&sides[s].thread, NULL, side_run, &sides[s]);
	for (int s = 0; s < 2; s++)
		if (opt.run[s])
			pthread_join(sides[s].thread, NULL);
}

/* ---- options ---- */

static enum half_how how(const char *name, bool read)
{
	static const char * const names[] = {
		"plain", "iov", "splice", "sendfile", "zerocopy", "peek",
		"waitall",
	};

	for (int i = 0; i < 7; i++)
		if (!strcmp(name, names[i]) &&
		    !(read ? i == HALF_SENDFILE || i == HALF_ZEROCOPY :
			     i > HALF_ZEROCOPY))
			return i;
	rs_die("%s: no such way", name);
}

static struct rs_kind kind(const char *name)
{
	struct rs_kind kind;

	if (!rs_kind_parse(name, &kind))
		rs_die("%s: no such kind of socket", name);
	return kind;
}

enum { FIRST = 256, READ_DELAY, READ_WHEN, HALF_CLOSE, HOLD, HOLD_AT, UNTIL, PACE,
       EXPECT_RESET, WAIT, RCVBUF };

static const struct option longs[] = {
	{ "first", required_argument, NULL, FIRST },
	{ "read-delay", required_argument, NULL, READ_DELAY },
	{ "read-when", required_argument, NULL, READ_WHEN },
	{ "half-close", no_argument, NULL, HALF_CLOSE },
	{ "hold", required_argument, NULL, HOLD },
	{ "hold-at", required_argument, NULL, HOLD_AT },
	{ "until", required_argument, NULL, UNTIL },
	{ "pace", required_argument, NULL, PACE },
	{ "expect-reset", no_argument, NULL, EXPECT_RESET },
	{ "wait", no_argument, NULL, WAIT },
	{ "rcvbuf", required_argument, NULL, RCVBUF },
	{ NULL, 0, NULL, 0 },
};

static void option(int c)
{
	switch (c) {
	case 's':
		opt.run[1] = true;
		break;
	case 'c':
		opt.run[0] = true;
		opt.host = optarg;
		break;
	case 'b':
		opt.run[0] = true;
		opt.run[1] = true;
		break;
	case 'l':
		opt.listen = optarg;
		break;
	case 'k':
		opt.kind[1] = kind(optarg);
		break;
	case 'K':
		opt.kind[0] = kind(optarg);
		break;
	case 'p':
		opt.port = atoi(optarg);
		break;
	case 'C':
		opt.n_conns = atoi(optarg);
		break;
	case 'S':
		opt.seed = atoll(optarg);
		break;
	case 't':
		opt.limit = rs_limit(optarg);
		break;
	case 'n':
		opt.bytes[0] = rs_bytes(optarg);
		break;
	case 'm':
		opt.bytes[1] = rs_bytes(optarg);
		break;
	case 'w':
		opt.chunk[0] = rs_bytes(optarg);
		break;
	case 'r':
		opt.chunk[1] = rs_bytes(optarg);
		break;
	case 'W':
		opt.how[0] = how(optarg, false);
		break;
	case 'R':
		opt.how[1] = how(optarg, true);
		break;
	case 'e':
		opt.epoll = true;
		break;
	case FIRST:
		opt.first = !strcmp(optarg, "server");
		break;
	case READ_DELAY:
		opt.read_delay = atoi(optarg);
		break;
	case READ_WHEN:
		opt.read_when = optarg;
		break;
	case HALF_CLOSE:
		opt.half_close = true;
		break;
	case HOLD:
		opt.hold = optarg;
		break;
	case HOLD_AT:
		opt.hold_at = rs_bytes(optarg);
		break;
	case UNTIL:
		opt.until = optarg;
		break;
	case PACE:
		opt.pace = atoi(optarg);
		break;
	case EXPECT_RESET:
		opt.expect_reset = true;
		break;
	case WAIT:
		opt.wait = true;
		break;
	case RCVBUF:
		rs_rcvbuf = rs_bytes(optarg);
		break;
	default:
		fputs(usage, stderr);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int c;

	signal(SIGPIPE, SIG_IGN);
	opt.kind[1] = kind("tcp4");
	while ((c = getopt_long(argc, argv, "sc:bl:k:K:p:C:S:t:n:m:w:r:W:R:e",
				longs, NULL)) != -1)
		option(c);
	if (!opt.kind[0].domain)
		opt.kind[0] = opt.kind[1];
	if (opt.bytes[1] == (uint64_t)-1)
		opt.bytes[1] = opt.bytes[0];
	if (optind < argc || !(opt.run[0] || opt.run[1]) || !opt.chunk[0] ||
	    !opt.chunk[1] || opt.n_conns < 1 ||
	    (opt.epoll && (opt.how[1] == HALF_WAITALL || opt.until)))
		option('?');
	plan();
	start_ms = rs_now_ms();
	run();
	return report(false);
}
