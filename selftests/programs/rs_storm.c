// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connects and closes as fast as it can, and counts what went wrong.  The
 * server answers each byte 'b' with one byte, 'u' with bytes that the client
 * does not read, and goes on until it is killed or has seen all connections.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"

static const char usage[] =
"rs_storm -s|-c HOST|-b [options]\n"
"  -s, -c HOST, -b   server, client, both in this process\n"
"  -k KIND  -K KIND  tcp4 tcp6 inet inet6 rds4 rds6; -K: the client's with -b\n"
"  -l HOST  -p PORT  -t SECONDS (limit)\n"
"  -n CONNECTS  -T THREADS\n"
"  -a                the server probes idle clients: a reset may have been lost\n"
"  -m MODE           close: nothing is sent; byte: one byte each way;\n"
"                    rst: the same, then a reset; unread: close with unread data\n";

enum mode { CLOSE, BYTE, RST, UNREAD };

static struct {
	bool server, client, keepalive;
	const char *host, *listen;
	struct rs_kind kind[2];
	uint16_t port;
	int connects, threads;
	enum mode mode;
	unsigned int limit;
} opt = { .port = 7200, .connects = 1000, .threads = 4, .limit = 60 };

static atomic_int next_connect, connected, served, errors;
static atomic_int last_error, last_port;
static _Atomic(const char *) last_what = "";
static int listener;

/* @port: the client's, 0 if there is none */
static void wrong(const char *what, int err, uint16_t port)
{
	errors++;
	last_error = err;
	last_what = what;
	last_port = port;
}

static void reset_on_close(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void keep_alive(int fd)
{
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
}

static void serve_one(int fd)
{
	char c, junk[3000] = { 0 };

	if (opt.keepalive)
		keep_alive(fd);
	while (recv(fd, &c, 1, 0) == 1)
		send(fd, junk, c == 'u' ? sizeof(junk) : 1, MSG_NOSIGNAL);
	close(fd);
	served++;
}

static void *serve(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			serve_one(fd);
		else if (errno == EINVAL)
			return NULL;	/* shut down: all is done */
		else if (errno != ECONNABORTED)
			wrong("accept", errno, 0);
	}
}

static void talk(int fd)
{
	char c = opt.mode == UNREAD ? 'u' : 'b';
	uint16_t port = rs_local_port(fd);
	int n;

	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1) {
		wrong("send", errno, port);
		return;
	}
	n = recv(fd, &c, 1, 0);
	if (n != 1)
		wrong(n ? "recv" : "early end", n ? errno : 0, port);
}

static void *storm(void *arg)
{
	(void)arg;
	while (next_connect++ < opt.connects) {
		int fd = rs_connect(&opt.kind[0], opt.host, opt.port, 0);

		if (fd < 0) {
			wrong("connect", -fd, 0);
			continue;
		}
		connected++;
		if (opt.mode != CLOSE)
			talk(fd);
		if (opt.mode == RST)
			reset_on_close(fd);
		close(fd);
	}
	return NULL;
}

static int report(uint64_t start, bool timed_out)
{
	uint64_t ms = rs_now_ms() - start;
	bool ok = !errors && !timed_out &&
		  (!opt.client || connected == opt.connects);

	printf("{\"connected\":%d,\"served\":%d,\"errors\":%d,\"last_error\":\"%s\",\"last_what\":\"%s\",\"last_port\":%d,\"ms\":%llu,\"timed_out\":%s,\"ok\":%s}\n",
	       connected, served, errors, strerrorname_np(last_error),
	       last_what, last_port,
	       (unsigned long long)ms, timed_out ? "true" : "false",
	       ok ? "true" : "false");
	fflush(stdout);
	return !ok;
}

static void *watchdog(void *arg)
{
	sleep(opt.limit);
	report(*(uint64_t *)arg, true);
	_exit(2);
}

static enum mode mode(const char *name)
{
	static const char * const names[] = { "close", "byte", "rst", "unread" };

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return i;
	rs_die("%s: no such mode", name);
}

static void option(int c)
{
	switch (c) {
	case 's':
		opt.server = true;
		break;
	case 'c':
		opt.client = true;
		opt.host = optarg;
		break;
	case 'a':
		opt.keepalive = true;
		break;
	case 'b':
		opt.client = true;
		opt.server = true;
		break;
	case 'k':
	case 'K':
		if (!rs_kind_parse(optarg, &opt.kind[c == 'k']))
			rs_die("%s: no such kind of socket", optarg);
		break;
	case 'l':
		opt.listen = optarg;
		break;
	case 'p':
		opt.port = atoi(optarg);
		break;
	case 't':
		opt.limit = rs_limit(optarg);
		break;
	case 'n':
		opt.connects = atoi(optarg);
		break;
	case 'T':
		opt.threads = atoi(optarg);
		break;
	case 'm':
		opt.mode = mode(optarg);
		break;
	default:
		fputs(usage, stderr);
		exit(1);
	}
}

static void run(void)
{
	pthread_t servers[opt.threads], clients[opt.threads];
	int i;

	if (opt.server)
		listener = rs_listen(&opt.kind[1], opt.listen ? opt.listen : "",
				     opt.port, 4096);
	for (i = 0; i < opt.threads; i++) {
		if (opt.server)
			pthread_create(&servers[i], NULL, serve, NULL);
		if (opt.client)
			pthread_create(&clients[i], NULL, storm, NULL);
	}
	for (i = 0; opt.client && i < opt.threads; i++)
		pthread_join(clients[i], NULL);
	while (opt.server && served < opt.connects)
		usleep(10000);	/* the watchdog bounds it */
	if (opt.server)
		shutdown(listener, SHUT_RDWR);
	for (i = 0; opt.server && i < opt.threads; i++)
		pthread_join(servers[i], NULL);
}

int main(int argc, char **argv)
{
	uint64_t start = rs_now_ms();
	pthread_t dog;
	int c;

	rs_kind_parse("tcp4", &opt.kind[1]);
	while ((c = getopt(argc, argv, "sc:abk:K:l:p:t:n:T:m:")) != -1)
		option(c);
	if (optind < argc || !(opt.server || opt.client) || opt.threads < 1)
		option('?');
	if (!opt.kind[0].domain)
		opt.kind[0] = opt.kind[1];
	if (!opt.host)
		opt.host = opt.listen;
	pthread_create(&dog, NULL, watchdog, &start);
	run();
	return report(start, false);
}
