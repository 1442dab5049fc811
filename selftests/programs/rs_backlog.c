// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients that send as much as they may before the server accepts them.  Then it
 * accepts all, reads all, compares every byte, closes, and begins anew.  Both ends are
 * in this process, so that its control group is charged for all there is.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"

static const char usage[] =
"rs_backlog [options]\n"
"  -k KIND      tcp4 tcp6 inet inet6 rds4 rds6\n"
"  -n ROUNDS    -C CLIENTS of a round   -z BYTES that each may send\n"
"  -w MS        for which nobody could send any more before they are accepted\n"
"  -r BYTES     SO_RCVBUF\n"
"  -p PORT  -t SECONDS (limit)\n"
"  -M FILE      print the number in it when all of a round have closed\n"
"  -H           hold: when all are sent print how many bytes, go on when told by a\n"
"               line on standard input\n";

static struct {
	struct rs_kind kind;
	int rounds, clients, wait_ms;
	uint64_t bytes;
	uint16_t port;
	bool hold;
	const char *memory;
} opt = { .rounds = 1, .clients = 16, .wait_ms = 30, .bytes = 900000, .port = 7300 };

struct client {
	int fd, served;
	uint64_t sent;
};

static uint8_t chunk[65536];

/* Return: could anything be sent? */
static bool send_some(struct client *client, uint64_t seed)
{
	size_t n = sizeof(chunk);
	ssize_t sent;

	if (n > opt.bytes - client->sent)
		n = opt.bytes - client->sent;
	if (!n)
		return false;
	pattern_fill(chunk, n, seed, client->sent);
	sent = send(client->fd, chunk, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		rs_die("send: %m");
	if (sent > 0)
		client->sent += sent;
	return sent > 0;
}

static uint64_t send_all(struct client *clients)
{
	uint64_t last = rs_now_ms(), sent = 0;
	int i;

	while (rs_now_ms() - last < (uint64_t)opt.wait_ms) {
		bool any = false;

		for (i = 0; i < opt.clients; i++)
			any |= send_some(&clients[i], i);
		if (any)
			last = rs_now_ms();
		else
			usleep(1000);
	}
	for (i = 0; i < opt.clients; i++)
		sent += clients[i].sent;
	return sent;
}

static void read_all(struct client *client, uint64_t seed)
{
	uint64_t got = 0;

	while (got < client->sent) {
		ssize_t n = recv(client->served, chunk, sizeof(chunk), 0);

		if (n <= 0)
			rs_die("recv: %s after %llu of %llu bytes", n ? strerror(errno) : "end",
			       (unsigned long long)got, (unsigned long long)client->sent);
		if (pattern_check(chunk, n, seed, got) != (size_t)n)
			rs_die("wrong byte behind %llu", (unsigned long long)got);
		got += n;
	}
}

/* Whose is this connection? */
static struct client *client_of(struct client *clients, int served)
{
	uint16_t port = rs_remote_port(served);
	int i;

	for (i = 0; i < opt.clients; i++)
		if (rs_local_port(clients[i].fd) == port)
			return &clients[i];
	rs_die("a connection of nobody");
}

/* What the control group is charged for, say. */
static void tell_memory(void)
{
	FILE *file = fopen(opt.memory, "r");
	char line[64];

	if (!file || !fgets(line, sizeof(line), file))
		rs_die("%s: %m", opt.memory);
	fclose(file);
	fputs(line, stdout);
}

static void round_of(int listener, struct client *clients)
{
	uint64_t sent;
	int i, fd;

	for (i = 0; i < opt.clients; i++) {
		clients[i].fd = rs_connect(&opt.kind, NULL, opt.port, 0);
		if (clients[i].fd < 0)
			rs_die("connect: %s", strerror(-clients[i].fd));
		clients[i].sent = 0;
	}
	sent = send_all(clients);
	if (opt.hold) {
		printf("%llu\n", (unsigned long long)sent);
		fflush(stdout);
		if (!fgets((char *)chunk, sizeof(chunk), stdin))
			rs_die("nobody says go");
	}
	for (i = 0; i < opt.clients; i++) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			rs_die("accept: %m");
		client_of(clients, fd)->served = fd;
	}
	for (i = 0; i < opt.clients; i++)
		read_all(&clients[i], i);
	for (i = 0; i < opt.clients; i++) {
		close(clients[i].fd);
		close(clients[i].served);
	}
	if (opt.memory)
		tell_memory();
}

int main(int argc, char **argv)
{
	struct client *clients;
	int c, i, listener;

	rs_kind_parse("inet", &opt.kind);
	alarm(rs_limit("60"));
	while ((c = getopt(argc, argv, "k:n:C:z:w:r:p:t:M:H")) != -1) {
		switch (c) {
		case 'k':
			if (!rs_kind_parse(optarg, &opt.kind))
				rs_die("%s: no such kind of socket", optarg);
			break;
		case 'n':
			opt.rounds = atoi(optarg);
			break;
		case 'C':
			opt.clients = atoi(optarg);
			break;
		case 'z':
			opt.bytes = rs_bytes(optarg);
			break;
		case 'w':
			opt.wait_ms = atoi(optarg);
			break;
		case 'r':
			rs_rcvbuf = rs_bytes(optarg);
			break;
		case 'p':
			opt.port = atoi(optarg);
			break;
		case 't':
			alarm(rs_limit(optarg));
			break;
		case 'M':
			opt.memory = optarg;
			break;
		case 'H':
			opt.hold = true;
			break;
		default:
			fputs(usage, stderr);
			return 1;
		}
	}
	clients = calloc(opt.clients, sizeof(*clients));
	listener = rs_listen(&opt.kind, NULL, opt.port, opt.clients);
	for (i = 0; i < opt.rounds; i++)
		round_of(listener, clients);
	return 0;
}
