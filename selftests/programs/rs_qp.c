// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queue pair for programs in Python that speak the protocol of links, and lie.
 *
 * usage: rs_qp [-d RECEIVES] [-m BYTES]
 *
 * One reliable connection, and memory (1 MiB) that its peer may write.  Reads a
 * command a line, answers each with a line, "ok ..." or "no REASON".  Bytes are in
 * hexadecimal.  Of the protocol it knows only how a message is sent with iWARP, which has no
 * immediate data: RDMA_WRITE, if there are bytes, and a SEND of VALUE and LENGTH.
 *
 *	route FROM TO PORT	-> ok QPN ADDR RKEY	TO is reached; then
 *	connect BYTES		-> ok REMOTE-QPN BYTES	REQ with these, and REP's
 *	listen FROM PORT	-> ok
 *	await MS		-> ok QPN ADDR RKEY REMOTE-QPN BYTES	a REQ has come
 *	accept BYTES		-> ok			REP with these
 *	reject BYTES		-> ok			of that REQ; await the next one
 *	write RADDR RKEY BYTES	-> ok			RDMA_WRITE, has completed
 *	imm VALUE RADDR RKEY BYTES	-> ok		RDMA_WRITE_WITH_IMM, likewise
 *	send BYTES		-> ok			SEND, likewise
 *	iwarp			-> ok 0|1		is the device of iWARP?
 *	recv MS			-> ok VALUE LENGTH	the next message
 *	read OFFSET LENGTH	-> ok BYTES		of the memory
 *	fill OFFSET BYTES	-> ok
 *	up			-> ok 0|1		has the connection not ended?
 *	hush			-> ok			no receive is posted any more
 *	disconnect		-> ok			the peer has heard of it, or was lost
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#define STAGE	1048576	/* what is sent */
#define LINE	(2 * STAGE + 256)
#define WAIT_MS	30000
#define PRIVATE	56
#define RECEIVE	64	/* bytes of a receive */

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *id;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr, *stage_mr, *recv_mr;
static uint8_t *memory, *stage, *recv_bufs;
static unsigned int receives = 512, size = 1048576;
static bool hushed, iwarp, ended;

/* What reports a write with iWARP. */
struct notice {
	uint32_t imm, len;
};

static bool no(const char *why)
{
	printf("no %s\n", why);
	return false;
}

static int unhex(const char *text, uint8_t *to, int max)
{
	int n = 0;
	unsigned int byte;

	while (n < max && sscanf(text + 2 * n, "%2x", &byte) == 1)
		to[n++] = byte;
	return n;
}

static void hex(const uint8_t *from, unsigned int n)
{
	while (n--)
		printf("%02x", *from++);
}

/* The next event, if it is @wanted; NULL: it was said why not. */
static struct rdma_cm_event *event_of(enum rdma_cm_event_type wanted, int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&fd, 1, ms) != 1) {
		no("time");
		return NULL;
	}
	if (rdma_get_cm_event(channel, &event)) {
		no(strerror(errno));
		return NULL;
	}
	if (event->event == wanted)
		return event;
	printf("no %s %d ", rdma_event_str(event->event), event->status);
	if (event->event == RDMA_CM_EVENT_REJECTED &&
	    event->param.conn.private_data_len >= 8)
		hex(event->param.conn.private_data, 8);
	printf("\n");
	rdma_ack_cm_event(event);
	return NULL;
}

static bool happens(enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event = event_of(wanted, WAIT_MS);

	if (event)
		rdma_ack_cm_event(event);
	return event;
}

static void post_recv(unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)recv_bufs + i * RECEIVE, RECEIVE, recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_recv(id->qp, &wr, &bad);
}

static bool make_queues(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 64, .max_recv_wr = receives + 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	unsigned int i;

	pd = ibv_alloc_pd(id->verbs);
	send_cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	recv_cq = ibv_create_cq(id->verbs, receives + 1, NULL, NULL, 0);
	if (!pd || !send_cq || !recv_cq)
		return no("queues");
	mr = ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	stage_mr = ibv_reg_mr(pd, stage, STAGE, 0);
	recv_mr = ibv_reg_mr(pd, recv_bufs, receives * RECEIVE, IBV_ACCESS_LOCAL_WRITE);
	if (!mr || !stage_mr || !recv_mr)
		return no("memory");
	attr.send_cq = send_cq;
	attr.recv_cq = recv_cq;
	if (rdma_create_qp(id, pd, &attr))
		return no(strerror(errno));
	for (i = 0; i < receives; i++)
		post_recv(i);
	ended = false;
	iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	return true;
}

/* With iWARP, the ends do not know each other's queue pair number: 0. */
static void tell_queues(void)
{
	printf("ok %u %llu %u", iwarp ? 0 : id->qp->qp_num, (unsigned long long)(uintptr_t)memory,
	       mr->rkey);
}

static bool address(const char *text, int port, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *in4 = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (inet_pton(AF_INET, text, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	} else {
		return no("address");
	}
	return true;
}

static bool do_route(const char *args)
{
	struct sockaddr_storage from, to;
	char a[64], b[64];
	int port;

	if (sscanf(args, "%63s %63s %d", a, b, &port) != 3 || !address(a, 0, &from) ||
	    !address(b, port, &to))
		return no("arguments");
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, (void *)&from, (void *)&to, WAIT_MS))
		return no(strerror(errno));
	if (!happens(RDMA_CM_EVENT_ADDR_RESOLVED))
		return false;
	if (rdma_resolve_route(id, WAIT_MS))
		return no(strerror(errno));
	if (!happens(RDMA_CM_EVENT_ROUTE_RESOLVED) || !make_queues())
		return false;
	tell_queues();
	printf("\n");
	return true;
}

static void conn_param(struct rdma_conn_param *param, const char *args, uint8_t *bytes)
{
	*param = (struct rdma_conn_param){
		.private_data = bytes,
		.private_data_len = unhex(args, bytes, PRIVATE),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 6,
		.rnr_retry_count = 3,
	};
}

static bool do_connect(const char *args)
{
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	uint8_t bytes[PRIVATE];

	conn_param(&param, args, bytes);
	if (rdma_connect(id, &param))
		return no(strerror(errno));
	event = event_of(RDMA_CM_EVENT_ESTABLISHED, WAIT_MS);
	if (!event)
		return false;
	printf("ok %u ", event->param.conn.qp_num);
	hex(event->param.conn.private_data, event->param.conn.private_data_len < PRIVATE ?
	    event->param.conn.private_data_len : PRIVATE);
	printf("\n");
	rdma_ack_cm_event(event);
	return true;
}

static bool do_listen(const char *args)
{
	struct sockaddr_storage from;
	char a[64];
	int port;

	if (sscanf(args, "%63s %d", a, &port) != 2 || !address(a, port, &from))
		return no("arguments");
	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (void *)&from) || rdma_listen(listener, 8))
		return no(strerror(errno));
	printf("ok\n");
	return true;
}

static bool do_await(const char *args)
{
	struct rdma_cm_event *event;
	uint8_t bytes[PRIVATE] = {};
	unsigned int remote, len;

	event = event_of(RDMA_CM_EVENT_CONNECT_REQUEST, atoi(args));
	if (!event)
		return false;
	id = event->id;
	remote = event->param.conn.qp_num;
	len = event->param.conn.private_data_len;
	len = len < PRIVATE ? len : PRIVATE;
	memcpy(bytes, event->param.conn.private_data, len);
	rdma_ack_cm_event(event);
	if (!make_queues())
		return false;
	tell_queues();
	printf(" %u ", remote);
	hex(bytes, len);
	printf("\n");
	return true;
}

static bool do_accept(const char *args)
{
	struct rdma_conn_param param;
	uint8_t bytes[PRIVATE];

	conn_param(&param, args, bytes);
	if (rdma_accept(id, &param))
		return no(strerror(errno));
	if (!happens(RDMA_CM_EVENT_ESTABLISHED))
		return false;
	printf("ok\n");
	return true;
}

static bool do_reject(const char *args)
{
	uint8_t bytes[PRIVATE];
	int n = unhex(args, bytes, PRIVATE);

	if (rdma_reject(id, bytes, n))
		return no(strerror(errno));
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	id = NULL;
	printf("ok\n");
	return true;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static int poll_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	struct timespec pause = { .tv_nsec = 200000 };
	double end = now_ms() + ms;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		if (n || now_ms() >= end)
			return n;
		nanosleep(&pause, NULL);
	}
}

/* Take events until the connection ends, or none comes for @ms. */
static bool ends(int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	while (!ended && poll(&fd, 1, ms) == 1 && !rdma_get_cm_event(channel, &event)) {
		ended = event->event == RDMA_CM_EVENT_DISCONNECTED;
		rdma_ack_cm_event(event);
	}
	return ended;
}

/* siw can forget what is posted while its connection ends. */
static bool completes(struct ibv_wc *wc)
{
	double end = now_ms() + WAIT_MS;

	while (poll_cq(send_cq, wc, 500) != 1)
		if (now_ms() >= end || (iwarp && ends(0)))
			return poll_cq(send_cq, wc, 0) == 1;
	return true;
}

/* What is in the stage. */
static bool post(struct ibv_send_wr *wr, unsigned int len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)stage, .length = len, .lkey = stage_mr->lkey };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (len) {
		wr->sg_list = &sge;
		wr->num_sge = 1;
	}
	if (ibv_post_send(id->qp, wr, &bad))
		return no("post");
	if (!completes(&wc))
		return no("time");
	return wc.status ? no(ibv_wc_status_str(wc.status)) : true;
}

static bool post_send(const void *bytes, unsigned int len)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	memcpy(stage, bytes, len);
	return post(&wr, len);
}

static bool post_message(struct ibv_send_wr *wr, unsigned int len)
{
	const struct notice notice = { wr->imm_data, htonl(len) };

	if (!iwarp)
		return post(wr, len);
	wr->opcode = IBV_WR_RDMA_WRITE;
	return (!len || post(wr, len)) && post_send(&notice, sizeof(notice));
}

static bool did(bool ok)
{
	if (ok)
		printf("ok\n");
	return ok;
}

static bool do_write(const char *args)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	unsigned long long raddr;
	unsigned int rkey;
	int at = 0;

	if (sscanf(args, "%llu %u %n", &raddr, &rkey, &at) < 2)
		return no("arguments");
	wr.wr.rdma.remote_addr = raddr;
	wr.wr.rdma.rkey = rkey;
	return did(post(&wr, unhex(args + at, stage, STAGE)));
}

static bool do_imm(const char *args)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	unsigned long long raddr;
	unsigned int imm, rkey;
	int at = 0;

	if (sscanf(args, "%u %llu %u %n", &imm, &raddr, &rkey, &at) < 3)
		return no("arguments");
	wr.imm_data = htonl(imm);
	wr.wr.rdma.remote_addr = raddr;
	wr.wr.rdma.rkey = rkey;
	return did(post_message(&wr, unhex(args + at, stage, STAGE)));
}

static bool do_send(const char *args)
{
	uint8_t bytes[RECEIVE];

	return did(post_send(bytes, unhex(args, bytes, sizeof(bytes))));
}

static bool do_iwarp(const char *args)
{
	(void)args;
	printf("ok %d\n", iwarp);
	return true;
}

static bool do_recv(const char *args)
{
	struct notice notice;
	struct ibv_wc wc;

	if (poll_cq(recv_cq, &wc, atoi(args)) != 1)
		return no("time");
	if (wc.status)
		return no(ibv_wc_status_str(wc.status));
	notice = (struct notice){ wc.imm_data, htonl(wc.byte_len) };
	if (iwarp && wc.byte_len != sizeof(notice))
		return no("notice");
	if (iwarp)
		memcpy(&notice, recv_bufs + wc.wr_id * RECEIVE, sizeof(notice));
	if (!hushed)
		post_recv(wc.wr_id);
	printf("ok %u %u\n", ntohl(notice.imm), ntohl(notice.len));
	return true;
}

static bool do_read(const char *args)
{
	unsigned int off, len;

	if (sscanf(args, "%u %u", &off, &len) != 2 || off > size || len > size - off)
		return no("arguments");
	printf("ok ");
	hex(memory + off, len);
	printf("\n");
	return true;
}

static bool do_fill(const char *args)
{
	unsigned int off;
	int at = 0;

	if (sscanf(args, "%u %n", &off, &at) != 1 || off > size)
		return no("arguments");
	unhex(args + at, memory + off, size - off);
	printf("ok\n");
	return true;
}

/*
 * With iWARP, a queue pair ends with its connection; siw of Linux 6.1 does not tell its state.
 * With RoCE, the queue pair of a connection may have failed.
 */
static bool do_up(const char *args)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)args;
	if (!iwarp && ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init))
		return no("query");
	printf("ok %d\n", iwarp ? !ends(0) : attr.qp_state == IBV_QPS_RTS);
	return true;
}

static bool do_hush(const char *args)
{
	(void)args;
	hushed = true;
	printf("ok\n");
	return true;
}

static bool do_disconnect(const char *args)
{
	(void)args;
	rdma_disconnect(id);
	return ends(WAIT_MS) ? did(true) : no("time");
}

static const struct {
	const char *name;
	bool (*fn)(const char *args);
	bool wants_id;
} commands[] = {
	{ "route", do_route, false }, { "connect", do_connect, true },
	{ "listen", do_listen, false }, { "await", do_await, false },
	{ "accept", do_accept, true }, { "reject", do_reject, true },
	{ "write", do_write, true }, { "imm", do_imm, true },
	{ "send", do_send, true }, { "iwarp", do_iwarp, true },
	{ "recv", do_recv, true }, { "read", do_read, false },
	{ "fill", do_fill, false }, { "up", do_up, true },
	{ "hush", do_hush, false }, { "disconnect", do_disconnect, true },
};

static void obey(char *line)
{
	size_t i, n = strcspn(line, " \n");

	line[strcspn(line, "\n")] = '\0';
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strlen(commands[i].name) != n || strncmp(commands[i].name, line, n))
			continue;
		if (commands[i].wants_id && !(id && id->qp))
			no("connection");
		else
			commands[i].fn(line + n + (line[n] == ' '));
		return;
	}
	no("command");
}

int main(int argc, char **argv)
{
	char *line = malloc(LINE);
	int opt;

	while ((opt = getopt(argc, argv, "d:m:")) != -1) {
		if (opt == 'd')
			receives = atoi(optarg);
		else if (opt == 'm')
			size = atoi(optarg);
		else
			return 2;
	}
	channel = rdma_create_event_channel();
	memory = aligned_alloc(4096, size);
	stage = aligned_alloc(4096, STAGE);
	recv_bufs = calloc(receives, RECEIVE);
	if (!line || !memory || !stage || !recv_bufs || !channel) {
		perror("rs_qp");
		return 1;
	}
	memset(memory, 0, size);
	while (fgets(line, LINE, stdin)) {
		obey(line);
		fflush(stdout);
	}
	return 0;
}
