// SPDX-License-Identifier: GPL-2.0-only
/* shutdown(), close(), resets. */
#include "api.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

static volatile sig_atomic_t sigpipes;

static void count_sigpipe(int sig)
{
	(void)sig;
	sigpipes++;
}

static void half_close(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "ask", 3, 0) == 3);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT(recv(fd[1], buf, 8, MSG_WAITALL) == 3);
	EXPECT(!recv(fd[1], buf, 8, 0));
	EXPECT(!recv(fd[1], buf, 8, 0));	/* and again */
	EXPECT(send(fd[1], "answer", 6, 0) == 6);
	EXPECT(recv(fd[0], buf, 6, MSG_WAITALL) == 6);
	EXPECT(!shutdown(fd[1], SHUT_WR));
	EXPECT(!recv(fd[0], buf, 8, 0));
}

static void send_after_shutdown(void)
{
	int fd[2];

	signal(SIGPIPE, count_sigpipe);
	pair(fd);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT_ERRNO(send(fd[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	EXPECT(!sigpipes);
	EXPECT_ERRNO(send(fd[0], "x", 1, 0), EPIPE);
	EXPECT(sigpipes == 1);
	EXPECT_ERRNO(write(fd[0], "x", 1), EPIPE);
	EXPECT(sigpipes == 2);
}

static void shutdown_read(void)
{
	int fd[2];
	char c;

	pair(fd);
	EXPECT(!shutdown(fd[0], SHUT_RD));
	EXPECT(!recv(fd[0], &c, 1, 0));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recv(fd[1], &c, 1, 0) == 1);
}

/* As after close(): what arrives once both directions are shut down is answered with a reset. */
static void data_after_shutdown_of_both(void)
{
	int fd[2];

	pair(fd);
	EXPECT(!shutdown(fd[0], SHUT_RDWR));
	await(fd[1], POLLRDHUP);
	EXPECT(send(fd[1], "x", 1, MSG_NOSIGNAL) == 1);
	await(fd[1], POLLERR);
	EXPECT_SOON(send(fd[1], "x", 1, MSG_NOSIGNAL) == -1);
	await(fd[0], POLLERR);
}

static void shutdown_bad_how(void)
{
	int fd[2];

	pair(fd);
	EXPECT_ERRNO(shutdown(fd[0], 3), EINVAL);
}

static void *shut_soon(void *arg)
{
	usleep(100000);
	shutdown(*(int *)arg, SHUT_RDWR);
	return NULL;
}

static void recv_woken_by_shutdown(void)
{
	pthread_t thread;
	int fd[2];
	char c;

	pair(fd);
	pthread_create(&thread, NULL, shut_soon, &fd[0]);
	EXPECT(!recv(fd[0], &c, 1, 0));
}

/* What was sent before close() still arrives, then the end. */
static void close_delivers(void)
{
	static uint8_t buf[200000];
	size_t sent = 0, got = 0;
	ssize_t n;
	int fd[2];

	pair(fd);
	pattern_fill(buf, sizeof(buf), 2, 0);
	while (sent < sizeof(buf)) {
		n = send(fd[0], buf + sent, sizeof(buf) - sent, MSG_DONTWAIT);
		if (n < 0)
			break;
		sent += n;
	}
	EXPECT(sent > 10000);
	close(fd[0]);
	for (;;) {
		n = recv(fd[1], buf, sizeof(buf), 0);
		EXPECT(n >= 0);
		if (!n)
			break;
		EXPECT(pattern_check(buf, n, 2, got) == (size_t)n);
		got += n;
	}
	EXPECT(got == sent);
}

static void close_unread_resets(void)
{
	int fd[2];
	char c;

	pair(fd);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	await(fd[1], POLLIN);
	close(fd[1]);
	await(fd[0], POLLERR);
	EXPECT_ERRNO(recv(fd[0], &c, 1, 0), ECONNRESET);
	EXPECT(!recv(fd[0], &c, 1, 0));
}

static void linger_zero_resets(void)
{
	int fd[2], err = 0;
	socklen_t len = sizeof(err);

	pair(fd);
	reset(fd[1]);
	await(fd[0], POLLERR);
	EXPECT(rs_poll(fd[0], POLLIN, 0) & POLLHUP);
	EXPECT(!getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT(err == ECONNRESET);
	EXPECT_ERRNO(send(fd[0], "x", 1, MSG_NOSIGNAL), EPIPE);
}

static void recv_after_shutdown_and_reset(void)
{
	struct linger linger = { .l_onoff = 1 };
	int fd[2];
	char c;

	pair(fd);
	EXPECT(!shutdown(fd[0], SHUT_RD));
	EXPECT(!recv(fd[0], &c, 1, 0));
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	turn();
	close(fd[1]);
	await(fd[0], POLLERR);
	EXPECT_ERRNO(recv(fd[0], &c, 1, 0), ECONNRESET);
	EXPECT(!recv(fd[0], &c, 1, 0));
}

static void send_after_peer_close(void)
{
	int fd[2];

	pair(fd);
	close(fd[1]);
	await(fd[0], POLLRDHUP);
	EXPECT(send(fd[0], "x", 1, MSG_NOSIGNAL) == 1);
	await(fd[0], POLLERR);
	EXPECT_ERRNO(send(fd[0], "x", 1, MSG_NOSIGNAL), EPIPE);
}

/* The peer has closed, and its TCP is gone without a word: what is sent is answered by RST. */
static void send_to_none(void (*leave)(int fd))
{
	int fd[2];
	char c;

	signal(SIGPIPE, SIG_IGN);
	pair(fd);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recv(fd[1], &c, 1, 0) == 1);
	leave(fd[1]);
	EXPECT(send(fd[0], "y", 1, 0) == 1);
	EXPECT_SOON(send(fd[0], "z", 1, 0) < 0);
}

static void leave_fin_wait(int fd)
{
	set_int(fd, IPPROTO_TCP, TCP_LINGER2, 1);
	close(fd);
	usleep(2000000);	/* more than that second */
}
static void send_after_fin_wait(void) { send_to_none(leave_fin_wait); }

static void killed_in_send(void)
{
	static char buf[1 << 22];
	pid_t pid;
	int fd[2];

	pair(fd);
	pid = fork();
	if (!pid) {
		close(fd[1]);
		send(fd[0], buf, sizeof(buf), 0);
		_exit(0);
	}
	close(fd[0]);
	await(fd[1], POLLIN);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (recv(fd[1], buf, sizeof(buf), 0) > 0)
		;
	EXPECT(rs_poll(fd[1], POLLRDHUP, 0) & (POLLRDHUP | POLLERR));
}

static void fork_shares(void)
{
	int fd[2];
	char c;

	pair(fd);
	if (!fork()) {
		close(fd[0]);
		close(fd[1]);
		_exit(0);
	}
	wait(NULL);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recv(dup(fd[1]), &c, 1, 0) == 1);
}

static void fd_passed(void)
{
	char data = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &data, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int un[2], fd[2], got;

	pair(fd);
	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, un));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd[1], sizeof(int));
	EXPECT(sendmsg(un[0], &msg, 0) == 1);
	close(fd[1]);
	EXPECT(recvmsg(un[1], &msg, 0) == 1);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recv(got, &data, 1, 0) == 1 && data == 'x');
}

static size_t take_all(int fd)
{
	static char buf[65536];
	size_t sum = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		sum += n;
	EXPECT(!n);
	return sum;
}

/* close() waits for what is unsent, as long as it is told. */
static void linger_waits(void)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	uint64_t start;
	size_t len;
	int fd[2];

	pair(fd);
	EXPECT(!setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	len = fill(fd[0]);
	start = rs_now_ms();
	close(fd[0]);
	EXPECT(rs_now_ms() - start >= 900);
	turn();
	EXPECT(take_all(fd[1]) == len);
}

/* Unread bytes may still be read after shutdown(SHUT_RD), and new ones, too. */
static void *close_it(void *fd)
{
	close(*(int *)fd);
	return NULL;
}

/* What comes while close() waits for the peer to read is for nobody, too. */
static void send_to_lingering(void)
{
	static const struct linger wait = { .l_onoff = 1, .l_linger = 30 };
	pthread_t closer;
	int fd[2];

	signal(SIGPIPE, SIG_IGN);
	pair(fd);
	fill(fd[1]);
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)));
	pthread_create(&closer, NULL, close_it, &fd[1]);
	EXPECT_SOON(fcntl(fd[1], F_GETFD) < 0);		/* it closes */
	EXPECT_SOON(send(fd[0], "x", 1, MSG_DONTWAIT) < 0);
	EXPECT(errno == ECONNRESET || errno == EPIPE);
	pthread_join(closer, NULL);
}

static void shut_read_reads(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	await_bytes(fd[1], 2);
	EXPECT(!shutdown(fd[1], SHUT_RD));
	turn();
	EXPECT(recv(fd[1], buf, 8, 0) == 2);
	EXPECT(!recv(fd[1], buf, 8, 0));
	EXPECT(send(fd[0], "cd", 2, 0) == 2);
	await_bytes(fd[1], 2);
	note("%zd", recv(fd[1], buf, 8, 0));
	EXPECT(!recv(fd[1], buf, 8, 0));
}

static void half_close_both_orders(void)
{
	char buf[8];
	int fd[2];

	for (int i = 0; i < 2; i++) {
		pair(fd);
		EXPECT(!shutdown(fd[i], SHUT_WR));
		EXPECT(!recv(fd[!i], buf, 8, 0));
		turn();
		for (int k = 0; k < 3; k++) {
			EXPECT(send(fd[!i], "data", 4, 0) == 4);
			EXPECT(recv(fd[i], buf, 4, MSG_WAITALL) == 4);
		}
		close(fd[!i]);
		EXPECT(!recv(fd[i], buf, 8, 0));
		close(fd[i]);
	}
}

static void shutdown_again(void)
{
	static const int how[] = { SHUT_WR, SHUT_WR, SHUT_RD, SHUT_RDWR };
	int fd[2], r;
	char c;

	pair(fd);
	for (int i = 0; i < 4; i++) {
		r = shutdown(fd[0], how[i]);
		note("%d %d", r, r ? errno : 0);
	}
	EXPECT(!recv(fd[1], &c, 1, 0));
	EXPECT(!shutdown(fd[1], SHUT_RDWR));
	await(fd[0], POLLHUP);
	/* TCP is done with both some time later */
	EXPECT_SOON(shutdown(fd[0], SHUT_WR) == -1);
	note("%d", errno);
}

static void send_cut_by_reset(void)
{
	int fd[2], r;
	char c;

	pair(fd);
	fill(fd[0]);
	reset(fd[1]);
	await(fd[0], POLLERR);
	r = send(fd[0], "x", 1, MSG_NOSIGNAL);
	note("%d %d", r, errno);
	r = send(fd[0], "x", 1, MSG_NOSIGNAL);
	note("%d %d", r, errno);
	EXPECT(!recv(fd[0], &c, 1, 0));
}

/* A call that sleeps while another thread takes its connection away. */
enum { CALL_SIZE = 16 << 20 };

struct call {
	int fd;
	bool sends;
	pid_t tid;
	ssize_t got;
	int err;
	bool over;
};

static void *blocking_call(void *arg)
{
	static char buf[CALL_SIZE];
	struct call *call = arg;

	__atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
	call->got = call->sends ? send(call->fd, buf, sizeof(buf), MSG_NOSIGNAL) :
				  recv(call->fd, buf, 1, 0);
	call->err = errno;
	__atomic_store_n(&call->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool sleeps(const struct call *call)
{
	pid_t tid = __atomic_load_n(&call->tid, __ATOMIC_ACQUIRE);
	char name[64], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
	f = tid ? fopen(name, "r") : NULL;
	if (f) {
		if (fscanf(f, "%*d %*s %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	return state == 'S';
}

static void disconnected(bool sends)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	struct call call = { .sends = sends };
	pthread_t thread;
	uint16_t port;
	int fd[2], l;
	char c;

	pair(fd);
	if (sends)
		fill(fd[0]);
	call.fd = fd[0];
	pthread_create(&thread, NULL, blocking_call, &call);
	EXPECT_SOON(sleeps(&call));
	turn();
	/*
	 * The end of turn()'s child interrupts the call, which then begins again, or
	 * returns if some was sent.
	 */
	EXPECT_SOON(__atomic_load_n(&call.over, __ATOMIC_ACQUIRE) || sleeps(&call));
	EXPECT(!connect(fd[0], &unspec, sizeof(unspec)));
	pthread_join(thread, NULL);
	if (sends)
		EXPECT(call.got < CALL_SIZE);	/* a little room may have come meanwhile */
	else
		note("%zd %d", call.got, call.err);

	/* nothing of it is in the next connection */
	l = listener(&port);
	EXPECT(!connect_to(fd[0], port));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	fd[1] = accept(l, NULL, NULL);
	EXPECT(recv(fd[1], &c, 1, 0) == 1 && c == 'x');
	EXPECT(!recv(fd[1], &c, 1, 0));
}

static void disconnected_reader(void) { disconnected(false); }
static void disconnected_writer(void) { disconnected(true); }

/* What a writer that found no room has asked for is of no use to a program that has left. */
static void close_full(void)
{
	static uint8_t buf[65536];
	size_t len, sum = 0;
	ssize_t n;
	int fd[2];

	rs_rcvbuf = 4096;	/* it is full before there are records */
	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_SNDBUF, 4096);
	len = fill(fd[0]);
	EXPECT(!(rs_poll(fd[0], POLLOUT, 0) & POLLOUT));
	close(fd[0]);
	/* each stream shall look whether there is a link; TCP has none of ours */
	EXPECT(system("rsctl drain off >/dev/null 2>&1") != -1);
	turn();
	while ((n = recv(fd[1], buf, sizeof(buf), 0)) > 0) {
		EXPECT(pattern_check(buf, n, 1, sum) == (size_t)n);
		sum += n;
	}
	EXPECT(!n && sum == len);
}

static void dup_keeps(void)
{
	int fd[2], other;
	char c;

	pair(fd);
	other = dup(fd[0]);
	close(fd[0]);
	turn();
	EXPECT(send(other, "x", 1, 0) == 1);
	EXPECT(recv(fd[1], &c, 1, 0) == 1);
	EXPECT(!(rs_poll(fd[1], POLLIN | POLLRDHUP, 0)));
	close(other);
	EXPECT(!recv(fd[1], &c, 1, 0));
}

static void exec_keeps(void)
{
	char text[32], buf[8];
	int fd[2];

	pair(fd);
	snprintf(text, sizeof(text), "printf exec >&%d", fd[0]);
	EXPECT(!system(text));
	EXPECT(recv(fd[1], buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "exec", 4));
	EXPECT(!fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	EXPECT(system("true") == 0);
	EXPECT(!(rs_poll(fd[1], POLLIN, 0)));
}

/* Many processes, one socket: the end comes with the last. */
static void last_process(void)
{
	int fd[2], hold[2];
	pid_t pid;
	char c;

	pair(fd);
	EXPECT(!pipe(hold));
	pid = fork();
	if (!pid) {
		close(fd[1]);
		close(hold[1]);
		EXPECT(!read(hold[0], &c, 1));
		_exit(0);
	}
	close(fd[0]);
	EXPECT(!rs_poll(fd[1], POLLIN, 50));
	turn();
	close(hold[1]);
	EXPECT(!recv(fd[1], &c, 1, 0));
	waitpid(pid, NULL, 0);
}

static void killed_by_admin(void)
{
	char text[80], c;
	int fd[2];

	pair(fd);
	snprintf(text, sizeof(text), "ss -K -t sport = :%d dport = :%d >/dev/null",
		 rs_local_port(fd[0]), rs_remote_port(fd[0]));
	if (system(text) || !(rs_poll(fd[0], POLLIN, 1000) & POLLERR))
		api_skip("ss can't do that here");
	EXPECT_ERRNO(recv(fd[0], &c, 1, 0), ECONNABORTED);
	EXPECT(!recv(fd[0], &c, 1, 0));
	EXPECT_ERRNO(recv(fd[1], &c, 1, 0), ECONNRESET);
}

/* Does some interface hear this group? */
static bool is_joined(struct in_addr group)
{
	FILE *file = fopen("/proc/net/igmp", "r");
	char line[128], name[9];
	bool found = false;

	EXPECT(file);
	snprintf(name, sizeof(name), "%08X", group.s_addr);
	while (fgets(line, sizeof(line), file))
		found |= strstr(line, name) != NULL;
	fclose(file);
	return found;
}

/* Whoever closes first, a group that was joined is left. */
static void group_left(void)
{
	struct group_req req = { .gr_interface = 1 };
	struct sockaddr_in *in = (struct sockaddr_in *)&req.gr_group;
	int fd[2], first;

	for (first = 0; first < 2; first++) {
		pair(fd);
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(0xef4d0000 | (getpid() & 0x7fff) << 1 | first);
		EXPECT(!setsockopt(fd[0], IPPROTO_IP, MCAST_JOIN_GROUP, &req, sizeof(req)));
		EXPECT(is_joined(in->sin_addr));
		close(fd[first]);
		turn();
		close(fd[!first]);
		EXPECT_SOON(!is_joined(in->sin_addr));
	}
}

#define CASE(fn) { "end: " #fn, fn }
const struct api_case end_cases[] = {
	CASE(half_close),
	CASE(send_after_shutdown),
	CASE(shutdown_read),
	CASE(data_after_shutdown_of_both),
	CASE(shutdown_bad_how),
	CASE(recv_woken_by_shutdown),
	CASE(close_delivers),
	CASE(close_unread_resets),
	CASE(linger_zero_resets),
	CASE(recv_after_shutdown_and_reset),
	CASE(send_after_peer_close),
	CASE(send_after_fin_wait),
	CASE(killed_in_send),
	CASE(fork_shares),
	CASE(fd_passed),
	CASE(linger_waits),
	CASE(send_to_lingering),
	CASE(shut_read_reads),
	CASE(half_close_both_orders),
	CASE(shutdown_again),
	CASE(send_cut_by_reset),
	CASE(disconnected_reader),
	CASE(disconnected_writer),
	CASE(close_full),
	CASE(dup_keeps),
	CASE(exec_keeps),
	CASE(last_process),
	CASE(killed_by_admin),
	CASE(group_left),
	{ NULL, NULL },
};
