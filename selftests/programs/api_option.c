// SPDX-License-Identifier: GPL-2.0-only
/* Options, and what TCP_INFO tells. */
#include "api.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../uapi/linux/rdmastream.h"

/*
 * All small options of a level: what setting 1 gives, what then is read.  Some
 * are left away, because their values are those of a moment.
 */
static void sweep(int fd, int level, int last, const char *but)
{
	for (int name = 1; name <= last; name++) {
		char text[16];
		int v = 1, set, got;
		socklen_t len = sizeof(v);

		snprintf(text, sizeof(text), " %d ", name);
		if (strstr(but, text))
			continue;
		errno = 0;
		set = setsockopt(fd, level, name, &v, sizeof(v)) ? errno : 0;
		v = 0;
		errno = 0;
		got = getsockopt(fd, level, name, &v, &len) ? errno : 0;
		note("%d: %d %d %d %d", name, set, got, got ? 0 : v, len);
	}
}

/* Incoming CPU, peer's name, NAPI id, cookie, memory, peer's credentials, netns, port group */
#define SOCKET_BUT " 7 8 9 10 13 14 16 17 28 31 32 33 34 49 50 51 52 53 54 55 56 57 59 60 64 71 72 "
/* MSS, info, cong., repair, queue, ULP, timestamp, saved SYN, zero-copy receive */
#define TCP_BUT " 2 11 13 14 19 20 21 22 24 26 28 29 30 31 35 36 38 39 "

static void socket_options(void)
{
	int fd = rs_socket(&kind, 0), both[2];

	sweep(fd, SOL_SOCKET, 80, SOCKET_BUT);
	pair(both);
	sweep(both[0], SOL_SOCKET, 80, SOCKET_BUT);
	/* it would be deaf, and TCP keeps it for minutes when it closes */
	set_int(both[0], SOL_SOCKET, SO_BINDTOIFINDEX, 0);
	set_int(both[0], SOL_SOCKET, SO_MAX_PACING_RATE, -1);
}

static void ulp(int fd)
{
	char name[16] = "?";
	socklen_t len = sizeof(name);
	int err = getsockopt(fd, IPPROTO_TCP, TCP_ULP, name, &len) ? errno : 0;

	note("ULP: %d %d %c", err, len, name[0]);
	len = -1;
	err = getsockopt(fd, IPPROTO_TCP, TCP_ULP, name, &len) ? errno : 0;
	note("ULP: %d", err);
}

static void tcp_options(void)
{
	int fd = rs_socket(&kind, 0), both[2];

	ulp(fd);
	sweep(fd, IPPROTO_TCP, 45, TCP_BUT);
	pair(both);
	ulp(both[0]);
	sweep(both[0], IPPROTO_TCP, 45, TCP_BUT);
}

static void ip_options(void)
{
	int fd = rs_socket(&kind, 0), both[2];

	/* 14: the MTU of the path; 1 of IPv6: changes what the socket is */
	sweep(fd, IPPROTO_IP, 52, " 14 16 17 33 41 51 52 ");
	if (kind.family == AF_INET6)
		sweep(fd, IPPROTO_IPV6, 80, " 1 24 26 34 35 64 65 66 67 ");
	pair(both);
	sweep(both[0], IPPROTO_IP, 52, " 14 16 17 33 41 51 52 ");
}

static void malformed(void)
{
	int fd[2], v = 1;
	socklen_t len = 2;

	pair(fd);
	EXPECT_ERRNO(setsockopt(fd[0], SOL_SOCKET, SO_KEEPALIVE, &v, 1), EINVAL);
	EXPECT_ERRNO(setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &v, 1), EINVAL);
	EXPECT_ERRNO(setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, (void *)8, 4),
		     EFAULT);
	EXPECT_ERRNO(setsockopt(fd[0], IPPROTO_TCP, 9999, &v, 4), ENOPROTOOPT);
	EXPECT_ERRNO(getsockopt(fd[0], IPPROTO_TCP, 9999, &v, &len), ENOPROTOOPT);
	EXPECT_ERRNO(setsockopt(fd[0], 9999, 1, &v, 4), ENOPROTOOPT);
	EXPECT(!getsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &v, &len) && len == 2);
	len = -1;
	EXPECT_ERRNO(getsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &v, &len), EINVAL);
}

static int set_rules(int fd, struct rdmastream_rule rule)
{
	return setsockopt(fd, SOL_RDMASTREAM, RDMASTREAM_RULES, &rule, sizeof(rule));
}

/* With whom to negotiate: before connect() and listen(), else never. */
static void rules(void)
{
	struct rdmastream_rule all = { .port_max = 65535 };
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0), own = rs_socket(&kind, 0);

	if (!rs_kind_ours(&kind))
		api_skip("not TCP's");
	EXPECT_ERRNO(setsockopt(fd, SOL_RDMASTREAM, RDMASTREAM_RULES, &all, 1), EINVAL);
	EXPECT_ERRNO(set_rules(fd, (struct rdmastream_rule){ .prefix_len = 129 }), EINVAL);
	EXPECT_ERRNO(set_rules(fd, (struct rdmastream_rule){ .exclude = 2 }), EINVAL);
	EXPECT_ERRNO(set_rules(fd, (struct rdmastream_rule){ .port_min = 1 }), EINVAL);
	EXPECT_ERRNO(set_rules(fd, (struct rdmastream_rule){ .reserved = 1 }), EINVAL);
	EXPECT(!set_rules(fd, all) && !set_rules(own, all));
	EXPECT(!listen(own, 1));
	EXPECT_ERRNO(set_rules(own, all), EISCONN);
	EXPECT(!connect_to(fd, port));
	EXPECT_ERRNO(set_rules(fd, all), EISCONN);
	EXPECT(accept(l, NULL, NULL) >= 0);
	EXPECT_ERRNO(set_rules(fd, all), EISCONN);
}

static void buffers(void)
{
	static const int opt[] = { SO_RCVBUF, SO_SNDBUF };
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);

	for (int i = 0; i < 2; i++) {
		set_int(fd, SOL_SOCKET, opt[i], 30000);
		set_int(l, SOL_SOCKET, opt[i], 20000);
	}
	l = connect_accept(fd, l, port);
	for (int i = 0; i < 2; i++) {
		note("%d %d", get_int(fd, SOL_SOCKET, opt[i]),
		     get_int(l, SOL_SOCKET, opt[i]));
		set_int(fd, SOL_SOCKET, opt[i], 1);
		note("least %d", get_int(fd, SOL_SOCKET, opt[i]));
		set_int(fd, SOL_SOCKET, opt[i], 1 << 30);
		note("most %d", get_int(fd, SOL_SOCKET, opt[i]));
	}
}

/* Newer kernels limit the window, too. */
static void buffer_clamps_window(void)
{
	int fd = rs_socket(&kind, 0), both[2], fresh;

	set_int(fd, SOL_SOCKET, SO_RCVBUF, 100000);
	fresh = get_int(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP);
	note("fresh %d", fresh);
	if (!fresh)		/* otherwise, it is what TCP has made of the packets */
		return;
	pair(both);
	for (int i = 0; i < 2; i++) {
		set_int(both[i], SOL_SOCKET, SO_RCVBUF, 100000);
		/* by how much depends on the packets that have arrived */
		note("limited %d", get_int(both[i], IPPROTO_TCP, TCP_WINDOW_CLAMP) <=
				   get_int(both[i], SOL_SOCKET, SO_RCVBUF));
	}
}

static void keepalive(void)
{
	int fd[2];

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(fd[0], IPPROTO_TCP, TCP_KEEPIDLE, 7);
	set_int(fd[0], IPPROTO_TCP, TCP_KEEPINTVL, 3);
	set_int(fd[0], IPPROTO_TCP, TCP_KEEPCNT, 2);
	EXPECT(get_int(fd[0], IPPROTO_TCP, TCP_KEEPIDLE) == 7);
	EXPECT(get_int(fd[0], IPPROTO_TCP, TCP_KEEPINTVL) == 3);
	EXPECT(get_int(fd[0], IPPROTO_TCP, TCP_KEEPCNT) == 2);
}

static struct tcp_info info(int fd)
{
	struct tcp_info i = {};
	socklen_t len = sizeof(i);

	EXPECT(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len));
	EXPECT(len > offsetof(struct tcp_info, tcpi_notsent_bytes));
	return i;
}

/* TCP_INFO is of what the program has sent and got. */
static void info_counts(void)
{
	static char buf[100000];
	struct tcp_info a[2], b[2];
	int fd[2];

	pair(fd);
	for (int i = 0; i < 2; i++)
		a[i] = info(fd[i]);
	EXPECT(send(fd[0], buf, 50000, 0) == 50000);
	turn();
	EXPECT(recv(fd[1], buf, 50000, MSG_WAITALL) == 50000);
	EXPECT(send(fd[1], buf, 100, 0) == 100);
	EXPECT(recv(fd[0], buf, 100, MSG_WAITALL) == 100);
	EXPECT_SOON(info(fd[0]).tcpi_bytes_acked - a[0].tcpi_bytes_acked == 50000);
	for (int i = 0; i < 2; i++)
		b[i] = info(fd[i]);
	EXPECT(b[1].tcpi_bytes_received - a[1].tcpi_bytes_received == 50000);
	EXPECT(b[0].tcpi_bytes_received - a[0].tcpi_bytes_received == 100);
	EXPECT(b[0].tcpi_bytes_sent - a[0].tcpi_bytes_sent >= 50000);
	EXPECT(!b[0].tcpi_notsent_bytes);
	EXPECT(b[0].tcpi_last_data_sent < 5000 && b[0].tcpi_last_data_recv < 5000);
}

static void info_unsent(void)
{
	static char buf[65536];
	int fd[2], n;

	pair(fd);
	while (send(fd[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	EXPECT(!ioctl(fd[0], SIOCOUTQNSD, &n) && n > 0);
	EXPECT(info(fd[0]).tcpi_notsent_bytes > 0);
}

static void info_idle(void)
{
	struct tcp_info i;
	uint64_t before;
	char c;
	int fd[2];

	pair(fd);
	usleep(300000);			/* the subject is time */
	EXPECT(info(fd[0]).tcpi_last_data_sent >= 250);
	before = rs_now_ms();
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recv(fd[1], &c, 1, 0) == 1);
	/* no older than that, whatever else the machine has done meanwhile; in ticks */
	i = info(fd[1]);
	EXPECT(i.tcpi_last_data_recv <= rs_now_ms() - before + 20 ||
	       i.tcpi_last_data_recv > 100000);
	i = info(fd[0]);
	EXPECT(i.tcpi_last_data_sent <= rs_now_ms() - before + 20);
}

static void info_states(void)
{
	int fd[2], l;
	uint16_t port;

	fd[0] = rs_socket(&kind, 0);
	note("fresh %d", info(fd[0]).tcpi_state);
	l = listener(&port);
	note("listens %d", info(l).tcpi_state);
	pair(fd);
	note("%d", info(fd[0]).tcpi_state);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLRDHUP);
	EXPECT_SOON(info(fd[0]).tcpi_state == 5);	/* FIN_WAIT2 */
	note("their end %d", info(fd[1]).tcpi_state);
	EXPECT(!shutdown(fd[1], SHUT_WR));
	EXPECT_SOON(info(fd[1]).tcpi_state == 7);	/* CLOSE */
	EXPECT_SOON(info(fd[0]).tcpi_state == 7);
}

static void info_short(void)
{
	struct tcp_info i;
	socklen_t len = 1;
	int fd[2];

	memset(&i, 0x55, sizeof(i));
	pair(fd);
	EXPECT(!getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &i, &len) && len == 1);
	EXPECT(i.tcpi_state == 1 && i.tcpi_ca_state == 0x55);
	len = 100;
	EXPECT(!getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &i, &len) && len == 100);
	EXPECT(((unsigned char *)&i)[100] == 0x55);
}

/* Either it is served or refused, but nothing is lost. */
static void receive_by_mapping(void)
{
	struct tcp_zerocopy_receive zc = {};
	socklen_t len = sizeof(zc);
	static char in[10000], out[10000];
	int fd[2], r;

	pair(fd);
	EXPECT(send(fd[0], out, sizeof(out), 0) == sizeof(out));
	EXPECT_SOON(recv(fd[1], in, sizeof(in), MSG_PEEK) == sizeof(in));
	zc.address = (unsigned long)mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd[1], 0);
	zc.length = 8192;
	r = getsockopt(fd[1], IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &len);
	EXPECT(r == 0 || errno == EINVAL || errno == ENOPROTOOPT);
	len = r ? 0 : zc.length;
	EXPECT(recv(fd[1], in, sizeof(in) - len, MSG_WAITALL) ==
	       (ssize_t)sizeof(in) - (ssize_t)len);
	EXPECT_ERRNO(recv(fd[1], in, 1, MSG_DONTWAIT), EAGAIN);
}

/*
 * A call of TCP's that has begun before there is a connection would take records for
 * bytes of the program's.
 */
static void receive_by_mapping_too_early(void)
{
	struct tcp_zerocopy_receive zc = {};
	socklen_t len = sizeof(zc);
	int fd = rs_socket(&kind, 0);

	errno = 0;
	getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &len);
	EXPECT(!rs_kind_ours(&kind) || errno == ENOPROTOOPT);
}

static int sign(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct tcp_md5sig md5 = { .tcpm_keylen = 6, .tcpm_key = "secret" };

	memcpy(&md5.tcpm_addr, addr, len);
	return setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5));
}

/* TCP-MD5, RFC 2385: a header that nobody may add to. */
static void signed_segments(void)
{
	struct sockaddr_storage addr = {};
	socklen_t len = sizeof(addr);
	int l, c, s;
	char buf[4];

	l = rs_listen(&server_kind, host, 0, 1);
	EXPECT(!getsockname(l, (struct sockaddr *)&addr, &len));
	if (sign(l, (struct sockaddr *)&addr, len))
		api_skip("no TCP-MD5 here");
	c = rs_socket(&kind, 0);
	EXPECT(!sign(c, (struct sockaddr *)&addr, len));
	s = connect_accept(c, l, rs_local_port(l));
	EXPECT(s >= 0);
	EXPECT(send(c, "ask", 3, 0) == 3);
	EXPECT(recv(s, buf, 3, MSG_WAITALL) == 3);
	EXPECT(!shutdown(c, SHUT_WR));
	EXPECT(!recv(s, buf, 1, 0));
	EXPECT(send(s, "yes", 3, 0) == 3);
	EXPECT(recv(c, buf, 3, MSG_WAITALL) == 3);
}

#define CASE(fn) { "option: " #fn, fn }
const struct api_case option_cases[] = {
	CASE(socket_options),
	CASE(tcp_options),
	CASE(ip_options),
	CASE(malformed),
	CASE(rules),
	CASE(buffers),
	CASE(buffer_clamps_window),
	CASE(keepalive),
	CASE(info_counts),
	CASE(info_unsent),
	CASE(info_idle),
	CASE(info_states),
	CASE(info_short),
	CASE(receive_by_mapping),
	CASE(receive_by_mapping_too_early),
	CASE(signed_segments),
	{ NULL, NULL },
};
