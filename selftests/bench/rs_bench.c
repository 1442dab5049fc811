// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load for scripts/bench.  One client and one server measure one
 * way of carrying a stream: connections a second, round trips, streaming; or streaming
 * on many connections at once.  One thread only, and blocking calls but for the many.
 * The client prints lines "NAME VALUE".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rs_bench.h"

#ifndef AF_SMC
#define AF_SMC 43
#endif
#define IPPROTO_RDMASTREAM 257

static const char usage[] =
"rs_bench -s | -c HOST [options]\n"
"  -s         server, for ever\n"
"  -c HOST    client of the server at this IPv4 address\n"
"  -k KIND    tcp (default), ours, smc\n"
"  -p PORT    (7300)\n"
"  -t MS      time of one measurement (400)\n"
"  -i         fixed amounts, and what they cost: nanoseconds of a busy CPU, which\n"
"             are instructions where the clock counts these; one CPU only\n"
"  -n N       stream on N connections at once, only that\n"
"  -r         only round trips of 64 bytes\n"
"  -P         poll() instead of epoll for them: rsockets' preload library has no other\n"
"  -w         keep the measured connection until standard input ends; with -n stop at\n"
"             \"ready\", \"open\", \"moved\", \"streamed\" until there is a line of it\n";

enum {
	BUFFER = 1 << 20, MAX_SAMPLES = 100000, TRIAL = 512 << 10,
	TRIAL_WRITES = 2048,	/* are enough */
	CHUNK = 64 << 10,	/* of one connection of many, then comes the next one */
	CHUNKS = 16,		/* of each connection, on average, at least are counted */
	WARM_S = 20, COUNT_S = 20,	/* at most */
	FIRST = 24 << 10, THEN = 4 << 10,	/* bytes of an exchange of one of many */
};

/* What a connection is for: its first byte, which the server sends back. */
enum purpose { CONNECT_ONLY, MEASURE, CROWD };

/* What the client asks of the server; a connection is a series of orders. */
enum order_type { ECHO = 1, SINK };

struct order {
	uint32_t type;
	uint32_t size;		/* ECHO: of a message */
	uint64_t bytes;		/* SINK: of all */
};

/* Behind the last message of an ECHO, whose first byte says so, and behind SINK. */
struct answer {
	uint64_t busy_ms;	/* of all CPUs, during the order */
};

static const uint32_t rtt_sizes[] = { 64, 4096, 65536 };
static const uint32_t write_sizes[] = { 64, 4096, 65536, 1 << 20 };

/*
 * Follows the byte CROWD.  First all connections exchange a little: what moves to RDMA
 * shall have done so before queues are full of what still goes by TCP.  Then all stream.
 * The answer: ns, then the bytes of each connection.
 */
struct crowd {
	uint32_t n;		/* connections that will come */
	uint32_t exchanges;	/* FIRST bytes there, later THEN; one byte back */
	uint32_t warm;		/* streamed bytes of each that do not count */
	uint32_t pad;
	uint64_t ns;		/* then count for so long at least */
};

static char buffer[BUFFER];
static double samples[MAX_SAMPLES];
static double limit = 0.4;	/* seconds */
static bool with_poll;

/* ---- server ---- */

static void serve_echo(int fd, uint32_t size)
{
	bool last;

	do {
		recv_must(fd, buffer, size);
		last = buffer[0];
		send_all(fd, buffer, size);
	} while (!last);
}

static void serve_sink(int fd, uint64_t bytes)
{
	while (bytes) {
		size_t len = bytes < BUFFER ? bytes : BUFFER;
		ssize_t n = recv(fd, buffer, len, 0);

		if (n <= 0)
			die("recv: %s", n ? strerror(errno) : "early end");
		bytes -= n;
	}
}

/* Return: 0 at the end of the stream, -1 if nothing was there. */
static ssize_t recv_some(int fd)
{
	ssize_t n = recv(fd, buffer, CHUNK, MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN)
		die("recv: %m");
	if (n > 0)
		received += n;
	return n;
}

static void wait_for_any(struct pollfd *fds, nfds_t n, int ms)
{
	if (poll(fds, n, ms) < 0)
		die("poll: %m");
}

/* Return: for wait_for_crowd(), so that the kernel need not look at all, unless with_poll. */
static int watch(const struct pollfd *fds, uint32_t n)
{
	int epoll = epoll_create1(0);

	if (epoll < 0)
		die("epoll: %m");
	for (uint32_t i = 0; i < n && !with_poll; i++) {
		struct epoll_event event = { .events = fds[i].events, .data.u32 = i };

		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i].fd, &event))
			die("epoll: %m");
	}
	return epoll;
}

static void wait_for_crowd(int epoll, struct pollfd *fds, uint32_t n, int ms)
{
	struct epoll_event events[64];
	int found;

	if (with_poll) {
		wait_for_any(fds, n, ms);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		fds[i].revents = 0;
	found = epoll_wait(epoll, events, 64, ms);
	if (found < 0)
		die("epoll: %m");
	while (found--)
		fds[events[found].data.u32].revents = events[found].events;
}

/* Of the connections that can be read, each a bit. */
static void read_crowd(int epoll, struct pollfd *fds, uint32_t n, uint64_t *bytes)
{
	wait_for_crowd(epoll, fds, n, 1000);
	for (uint32_t i = 0; i < n; i++) {
		ssize_t got = fds[i].revents ? recv_some(fds[i].fd) : -1;

		if (!got)
			die("recv: early end of %u", i);
		if (got > 0)
			bytes[i] += got;
	}
}

static double sum(const uint64_t *values, uint32_t n)
{
	double all = 0;

	while (n--)
		all += values[n];
	return all;
}

static uint64_t least(const uint64_t *values, uint32_t n)
{
	uint64_t v = values[0];

	for (uint32_t i = 1; i < n; i++)
		if (values[i] < v)
			v = values[i];
	return v;
}

/* On "control" nothing comes but the end. */
static int accept_of_crowd(int listener, int control)
{
	struct pollfd fds[] = { { .fd = listener, .events = POLLIN },
				{ .fd = control, .events = POLLIN } };
	int fd;

	wait_for_any(fds, 2, -1);
	if (fds[1].revents)
		die("accept: early end of the client");
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept: %m");
	return fd;
}

/* The client goes on until it has the answer. */
static void serve_crowd(int listener, int control)
{
	struct pollfd *fds;
	struct crowd crowd;
	uint64_t *bytes, ns;
	double start;
	uint32_t i;
	int epoll;

	recv_must(control, &crowd, sizeof(crowd));
	fds = allocate(crowd.n, sizeof(*fds));
	bytes = allocate(crowd.n, sizeof(*bytes));
	for (i = 0; i < crowd.n; i++) {
		fds[i].fd = accept_of_crowd(listener, control);
		fds[i].events = POLLIN;
	}
	epoll = watch(fds, crowd.n);
	for (uint32_t goal = FIRST; crowd.exchanges--; goal += THEN) {
		while (least(bytes, crowd.n) < goal)
			read_crowd(epoll, fds, crowd.n, bytes);
		for (i = 0; i < crowd.n; i++)
			send_all(fds[i].fd, buffer, 1);
	}
	memset(bytes, 0, crowd.n * sizeof(*bytes));
	start = now();	/* a starved one shall be seen, not be waited for */
	do
		read_crowd(epoll, fds, crowd.n, bytes);
	while (least(bytes, crowd.n) < crowd.warm && now() - start < WARM_S);
	memset(bytes, 0, crowd.n * sizeof(*bytes));
	start = now();
	do {
		read_crowd(epoll, fds, crowd.n, bytes);
		ns = (now() - start) * 1e9;
	} while ((ns < crowd.ns || sum(bytes, crowd.n) < (double)crowd.n * CHUNKS * CHUNK) &&
		 ns < COUNT_S * 1e9);
	send_all(control, &ns, sizeof(ns));
	send_all(control, bytes, crowd.n * sizeof(*bytes));
	close(epoll);
	/* rsockets knows no fd that poll() skips, so those that are left come first. */
	while (crowd.n) {
		wait_for_any(fds, crowd.n, 1000);
		for (i = 0; i < crowd.n; i++) {
			if (!fds[i].revents || recv_some(fds[i].fd))
				continue;
			close(fds[i].fd);
			fds[i--] = fds[--crowd.n];
		}
	}
	free(fds);
	free(bytes);
}

static void serve_connection(int listener, int fd)
{
	struct order order;
	char byte;

	if (!recv_all(fd, &byte, 1))
		return;
	send_all(fd, &byte, 1);
	if (byte == CROWD)
		serve_crowd(listener, fd);
	while (byte == MEASURE && recv_all(fd, &order, sizeof(order))) {
		uint64_t start = busy_ms();
		struct answer answer;

		if (order.type == ECHO)
			serve_echo(fd, order.size);
		else
			serve_sink(fd, order.bytes);
		answer.busy_ms = busy_ms() - start;
		send_all(fd, &answer, sizeof(answer));
	}
}

static void serve(void)
{
	int listener = open_socket(), on = 1, fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)))
		die("bind: %m");
	if (listen(listener, 64))
		die("listen: %m");
	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			die("accept: %m");
		no_delay(fd);
		serve_connection(listener, fd);
		close(fd);
	}
}

/* ---- client ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return: the median of round trips, seconds. */
static double ping_pong(int fd, uint32_t size, double seconds)
{
	struct order order = { .type = ECHO, .size = size };
	double end = now() + seconds, start = 0, stop = 0;
	struct answer answer;
	int n = 0;
	bool last;

	memset(buffer, 0, size);
	send_all(fd, &order, sizeof(order));
	do {
		start = now();
		last = n >= 8 && (start >= end || n == MAX_SAMPLES - 1);
		buffer[0] = last;
		send_all(fd, buffer, size);
		recv_must(fd, buffer, size);
		stop = now();
		samples[n++] = stop - start;
	} while (!last);
	recv_must(fd, &answer, sizeof(answer));
	/* The first one also paid for the order. */
	qsort(samples + 1, n - 1, sizeof(*samples), compare);
	return samples[1 + (n - 1) / 2];
}

struct speed {
	double bytes_per_s;
	double cpu_ms_per_mib;	/* both ends */
};

static struct speed stream_bytes(int fd, uint32_t size, uint64_t bytes)
{
	struct order order = { .type = SINK, .bytes = bytes };
	uint64_t busy = busy_ms();
	double start = now();
	struct answer answer;

	send_all(fd, &order, sizeof(order));
	for (uint64_t left = bytes; left; left -= size)
		send_all(fd, buffer, size);
	recv_must(fd, &answer, sizeof(answer));
	busy = busy_ms() - busy + answer.busy_ms;
	return (struct speed){
		.bytes_per_s = bytes / (now() - start),
		.cpu_ms_per_mib = busy * 1048576.0 / bytes,
	};
}

/* A trial tells how many bytes fill the time. */
static struct speed stream(int fd, uint32_t size, double seconds)
{
	uint64_t trial = 2 * TRIAL / size > TRIAL_WRITES ? TRIAL_WRITES * size : 2 * TRIAL;
	uint64_t bytes = stream_bytes(fd, size, trial).bytes_per_s * seconds;

	if (bytes < trial)
		bytes = trial;
	return stream_bytes(fd, size, bytes / size * size);
}

static void connect_once(void)
{
	int fd = open_connection();
	char byte = CONNECT_ONLY;

	send_all(fd, &byte, 1);
	recv_must(fd, &byte, 1);
	close(fd);
}

static double connects_per_s(double seconds)
{
	double start = now(), end = start + seconds;
	int n = 0;

	do {
		connect_once();
		n++;
	} while (now() < end);
	return n / (now() - start);
}

static const char *size_name(uint32_t size)
{
	static char name[16];

	if (size >= 1 << 20)
		snprintf(name, sizeof(name), "%uM", size >> 20);
	else if (size >= 1 << 10)
		snprintf(name, sizeof(name), "%uK", size >> 10);
	else
		snprintf(name, sizeof(name), "%u", size);
	return name;
}

static void wait_for_end(void)
{
	char line[16];

	fflush(stdout);
	while (read(0, line, sizeof(line)) > 0)
		;
}

/* The connection that is measured, or the one that tells of the many. */
static int open_measured(char purpose)
{
	char byte = purpose;
	int fd;

	sent = 0;
	received = 0;
	fd = open_connection();
	send_all(fd, &byte, 1);
	recv_must(fd, &byte, 1);
	return fd;
}

static void print_sums(void)
{
	printf("sent %llu\nreceived %llu\n", (unsigned long long)sent,
	       (unsigned long long)received);
}

/* To warm up: windows grow, a ring is agreed on. */
static int open_warm(void)
{
	int fd = open_measured(MEASURE);

	ping_pong(fd, 65536, limit / 2);
	stream_bytes(fd, 65536, TRIAL);
	return fd;
}

static void print_rtt(int fd, uint32_t size)
{
	printf("rtt-%s %.1f\n", size_name(size), ping_pong(fd, size, limit) * 1e6);
}

static void measure(bool wait)
{
	int fd;

	printf("connects %.1f\n", connects_per_s(limit));
	fd = open_warm();
	for (int i = 0; i < 3; i++)
		print_rtt(fd, rtt_sizes[i]);
	for (int i = 0; i < 4; i++) {
		struct speed speed = stream(fd, write_sizes[i], 2 * limit);

		printf("stream-%s %.2f\n", size_name(write_sizes[i]),
		       speed.bytes_per_s / 1e6);
		printf("cpu-%s %.2f\n", size_name(write_sizes[i]),
		       speed.cpu_ms_per_mib);
	}
	print_sums();
	if (wait)
		wait_for_end();
	close(fd);
}

/* ---- client of many connections ---- */

/* All connections stand still, to be looked at. */
static void stop_at(const char *stage, bool wait)
{
	char line[16];

	if (!wait)
		return;
	puts(stage);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die("no line to go on from \"%s\"", stage);
}

static void send_some(int fd)
{
	ssize_t n = send(fd, buffer, CHUNK, MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN)
		die("send: %m");
	if (n > 0)
		sent += n;
}

static void exchange_all(const struct pollfd *fds, const struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->exchanges; i++) {
		for (uint32_t j = 0; j < crowd->n; j++)
			send_all(fds[j].fd, buffer, i ? THEN : FIRST);
		for (uint32_t j = 0; j < crowd->n; j++)
			recv_must(fds[j].fd, buffer, 1);
	}
}

static void print_crowd(uint32_t n, uint64_t ns, const uint64_t *bytes)
{
	double all = sum(bytes, n);

	printf("busy-%u %.2f\n", n, all / ns * 1e3);
	printf("fair-%u %.3f\n", n, all ? least(bytes, n) / (all / n) : 0);
}

static void measure_crowd(uint32_t n, bool wait)
{
	struct pollfd *fds = allocate(n + 1, sizeof(*fds));
	uint64_t *bytes = allocate(n, sizeof(*bytes)), ns;
	/* Windows shall have grown, but many take long. */
	struct crowd crowd = {
		.n = n, .exchanges = 3 + 16 / n, .warm = (16 << 20) / n,
		.ns = 4 * limit * 1e9,
	};
	int epoll;

	if (crowd.warm > 1 << 20)
		crowd.warm = 1 << 20;
	if (crowd.warm < 256 << 10)
		crowd.warm = 256 << 10;
	stop_at("ready", wait);
	fds[0].fd = open_measured(CROWD);
	fds[0].events = POLLIN;
	send_all(fds[0].fd, &crowd, sizeof(crowd));
	for (uint32_t i = 1; i <= n; i++) {
		fds[i].fd = open_connection();
		fds[i].events = POLLOUT;
	}
	stop_at("open", wait);
	exchange_all(fds + 1, &crowd);
	stop_at("moved", wait);
	epoll = watch(fds, n + 1);
	for (;;) {
		wait_for_crowd(epoll, fds, n + 1, -1);
		if (fds[0].revents)
			break;
		for (uint32_t i = 1; i <= n; i++)
			if (fds[i].revents)
				send_some(fds[i].fd);
	}
	recv_must(fds[0].fd, &ns, sizeof(ns));
	recv_must(fds[0].fd, bytes, n * sizeof(*bytes));
	print_crowd(n, ns, bytes);
	print_sums();
	stop_at("streamed", wait);
	for (uint32_t i = 1; i <= n; i++)
		close(fds[i].fd);
	close(fds[0].fd);
	close(epoll);
	free(fds);
	free(bytes);
}

/* ---- client that counts ---- */

/* What the only CPU has idled, exact to the nanosecond. */
static uint64_t idle_ns(void)
{
	FILE *f = fopen("/proc/timer_list", "r");
	unsigned long long ns;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " .idle_sleeptime : %llu nsecs", &ns) == 1) {
			fclose(f);
			return ns;
		}
	die("/proc/timer_list: no idle time");
}

/* Where a count begins, and where it ends: does nothing, but profile.c sees it. */
static bool warming;
static void mark(void)
{
#ifdef __x86_64__
	if (!warming)
		asm volatile(".byte 0x0f, 0x1f, 0x80\n\t.ascii \"rstm\"" : : : "memory");
#endif
}

/* Between the two readings of each of these the CPU does not idle. */
static double begin_count(void)
{
	uint64_t idle = idle_ns();
	double begin = now() * 1e9;

	mark();
	return begin - idle;
}

static double end_count(double begin)
{
	double end;

	mark();
	end = now() * 1e9;
	return end - idle_ns() - begin;
}

/* What is done later belongs to what was done: closing, acknowledging, freeing. */
static void settle(void)
{
	usleep(200000);
}

static double count_connects(int n)
{
	double begin;

	for (int i = 0; i < n / 4; i++)	/* to warm up */
		connect_once();
	settle();
	begin = begin_count();
	for (int i = 0; i < n; i++)
		connect_once();
	settle();
	return end_count(begin) / n;
}

static void exchange(int fd, uint32_t size, bool last)
{
	buffer[0] = last;
	send_all(fd, buffer, size);
	recv_must(fd, buffer, size);
}

static double count_ping_pong(int fd, uint32_t size, int n)
{
	struct order order = { .type = ECHO, .size = size };
	struct answer answer;
	double begin, count;

	memset(buffer, 0, size);
	send_all(fd, &order, sizeof(order));
	exchange(fd, size, false);	/* also pays for the order */
	begin = begin_count();
	for (int i = 0; i < n; i++)
		exchange(fd, size, false);
	count = end_count(begin);
	exchange(fd, size, true);
	recv_must(fd, &answer, sizeof(answer));
	return count / n;
}

static double count_stream(int fd, uint32_t size, int mib)
{
	double begin = begin_count();

	stream_bytes(fd, size, (uint64_t)mib << 20);
	settle();
	return end_count(begin) / mib;
}

static void count_all(void)
{
	int fd;

	printf("connect %.0f\n", count_connects(200));
	fd = open_measured(MEASURE);
	/* A ring grows when it was full. */
	warming = true;
	for (int i = 0; i < 3; i++) {
		count_stream(fd, 65536, 4);
		count_ping_pong(fd, 65536, 20);
	}
	warming = false;
	printf("rtt-64 %.0f\n", count_ping_pong(fd, 64, 2000));
	printf("rtt-4K %.0f\n", count_ping_pong(fd, 4096, 1000));
	printf("stream-4K %.0f\n", count_stream(fd, 4096, 16));
	printf("stream-64K %.0f\n", count_stream(fd, 65536, 32));
	/* last, for TCP is another one afterwards */
	printf("stream-64 %.0f\n", count_stream(fd, 64, 2));
	print_sums();
	close(fd);
}

static void set_kind(const char *kind)
{
	if (!strcmp(kind, "ours"))
		protocol = IPPROTO_RDMASTREAM;
	else if (!strcmp(kind, "smc"))
		domain = AF_SMC;
	else if (strcmp(kind, "tcp"))
		die("%s: no such kind", kind);
}

int main(int argc, char **argv)
{
	bool server = false, client = false, wait = false, count = false, rtt = false;
	int crowd = 0, c;

	signal(SIGPIPE, SIG_IGN);
	addr.sin_port = htons(7300);
	while ((c = getopt(argc, argv, "sc:k:p:t:in:rPw")) != -1)
		switch (c) {
		case 's':
			server = true;
			break;
		case 'c':
			client = inet_pton(AF_INET, optarg, &addr.sin_addr) == 1;
			break;
		case 'k':
			set_kind(optarg);
			break;
		case 'p':
			addr.sin_port = htons(atoi(optarg));
			break;
		case 't':
			limit = atoi(optarg) / 1e3;
			break;
		case 'i':
			count = true;
			break;
		case 'n':
			crowd = atoi(optarg);
			break;
		case 'r':
			rtt = true;
			break;
		case 'P':
			with_poll = true;
			break;
		case 'w':
			wait = true;
			break;
		}
	if (server == client || crowd < 0 || optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	if (server)
		serve();
	if (count)
		count_all();
	else if (crowd)
		measure_crowd(crowd, wait);
	else if (rtt)
		print_rtt(open_warm(), 64);
	else
		measure(wait);
	return 0;
}
