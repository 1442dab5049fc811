// SPDX-License-Identifier: GPL-2.0-only
/* socket(), bind(), getsockname(), getpeername(), families. */
#include "api.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void socket_bad_proto(void)
{
	if (kind.domain != AF_RDMASTREAM)
		api_skip("IP families have protocols of their own");
	EXPECT_ERRNO(socket(AF_RDMASTREAM, SOCK_STREAM, 2), EPROTONOSUPPORT);
	EXPECT_ERRNO(socket(AF_RDMASTREAM, SOCK_STREAM, 6), EPROTONOSUPPORT);
	EXPECT_ERRNO(socket(AF_RDMASTREAM, SOCK_STREAM, -1), EPROTONOSUPPORT);
}

static void socket_bad_type(void)
{
	if (kind.domain == AF_RDMASTREAM) {
		EXPECT_ERRNO(socket(AF_RDMASTREAM, SOCK_DGRAM, 0),
			     ESOCKTNOSUPPORT);
		EXPECT_ERRNO(socket(AF_RDMASTREAM, SOCK_SEQPACKET, 0),
			     ESOCKTNOSUPPORT);
	} else {
		EXPECT_ERRNO(socket(kind.domain, SOCK_DGRAM, kind.proto),
			     EPROTONOSUPPORT);
	}
}

static void socket_identity(void)
{
	int fd = rs_socket(&kind, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len));
	EXPECT(type == SOCK_STREAM);
	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len));
	EXPECT(domain == kind.family);	/* that of the TCP socket inside */
	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &type, &len));
	EXPECT(type == IPPROTO_TCP);
}

static void getname_unbound(void)
{
	int fd = rs_socket(&kind, 0);
	union rs_addr addr;
	socklen_t len = sizeof(addr);

	EXPECT(!getsockname(fd, &addr.sa, &len));
	EXPECT(addr.sa.sa_family == kind.family);
	EXPECT(len == rs_addr_len(&addr));
	EXPECT(!rs_port(&addr));
	len = sizeof(addr);
	EXPECT_ERRNO(getpeername(fd, &addr.sa, &len), ENOTCONN);
}

static void getname_connected(void)
{
	union rs_addr ours, theirs;
	socklen_t a = sizeof(ours), b = sizeof(theirs);
	int fd[2];

	pair(fd);
	EXPECT(!getsockname(fd[0], &ours.sa, &a));
	EXPECT(!getpeername(fd[1], &theirs.sa, &b));
	EXPECT(a == b && !memcmp(&ours, &theirs, a));
	a = sizeof(ours);
	b = sizeof(theirs);
	EXPECT(!getpeername(fd[0], &ours.sa, &a));
	EXPECT(!getsockname(fd[1], &theirs.sa, &b));
	EXPECT(a == b && !memcmp(&ours, &theirs, a));
}

static void getname_truncated(void)
{
	union rs_addr addr;
	socklen_t len = 4;
	int fd[2];

	memset(&addr, 0x55, sizeof(addr));
	pair(fd);
	EXPECT(!getpeername(fd[0], &addr.sa, &len));
	EXPECT(len == (kind.family == AF_INET6 ? sizeof(addr.in6) :
						 sizeof(addr.in)));
	EXPECT(((unsigned char *)&addr)[4] == 0x55);
}

static void accept_address(void)
{
	union rs_addr addr;
	socklen_t len = sizeof(addr);
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);

	EXPECT(!connect_to(fd, port));
	EXPECT(accept(l, &addr.sa, &len) >= 0);
	EXPECT(addr.sa.sa_family == kind.family);
	EXPECT(rs_port(&addr) == rs_local_port(fd));
}

static void bind_in_use(void)
{
	uint16_t port;
	union rs_addr addr;
	socklen_t len;
	int fd = rs_socket(&kind, 0);

	listener(&port);
	len = rs_addr(&kind, host, port, &addr);
	EXPECT_ERRNO(bind(fd, &addr.sa, len), EADDRINUSE);
}

static void bind_twice(void)
{
	union rs_addr addr;
	socklen_t len = rs_addr(&kind, host, 0, &addr);
	int fd = rs_socket(&kind, 0);

	EXPECT(!bind(fd, &addr.sa, len));
	EXPECT(rs_local_port(fd));
	EXPECT_ERRNO(bind(fd, &addr.sa, len), EINVAL);
}

static void bind_foreign(void)
{
	const char *foreign = kind.family == AF_INET6 ? "2001:db8::1" :
							"192.0.2.1";
	union rs_addr addr;
	socklen_t len = rs_addr(&kind, foreign, 0, &addr);
	int fd = rs_socket(&kind, 0);

	EXPECT_ERRNO(bind(fd, &addr.sa, len), EADDRNOTAVAIL);
}

static void bind_malformed(void)
{
	union rs_addr addr;
	socklen_t len = rs_addr(&kind, host, 0, &addr);
	int fd = rs_socket(&kind, 0);

	EXPECT_ERRNO(bind(fd, &addr.sa, 7), EINVAL);
	EXPECT_ERRNO(bind(fd, (void *)8, len), EFAULT);
	addr.sa.sa_family = AF_UNIX;
	EXPECT_ERRNO(bind(fd, &addr.sa, len), EAFNOSUPPORT);
}

/* Security modules look at addresses before the socket does, and know only IP. */
static void address_own_family(void)
{
	union rs_addr addr;
	uint16_t port;
	socklen_t len;
	int fd;

	listener(&port);
	len = rs_addr(&kind, host, port, &addr);
	addr.sa.sa_family = AF_RDMASTREAM;
	fd = rs_socket(&kind, 0);
	EXPECT_ERRNO(connect(fd, &addr.sa, len), EAFNOSUPPORT);
	EXPECT_ERRNO(sendto(fd, "x", 1, MSG_FASTOPEN, &addr.sa, len), EAFNOSUPPORT);
	fd = rs_socket(&kind, 0);
	addr.in.sin_port = 0;
	EXPECT_ERRNO(bind(fd, &addr.sa, len), EAFNOSUPPORT);
}

/* What <linux/landlock.h> calls so, which distributions may have too old. */
enum { LANDLOCK_BIND_TCP = 1, LANDLOCK_CONNECT_TCP = 2 };

static void forbid_tcp(void)
{
	struct { uint64_t fs, net; } rules = { 0, LANDLOCK_BIND_TCP | LANDLOCK_CONNECT_TCP };
	int fd;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 4)
		api_skip("no Landlock rules for TCP in this kernel");
	fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	EXPECT(fd >= 0);
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	EXPECT(!syscall(SYS_landlock_restrict_self, fd, 0));
}

static void landlock_forbids(void)
{
	static const sa_family_t others[] = { AF_RDMASTREAM, AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6 };
	int fd = rs_socket(&kind, 0), i;
	union rs_addr addr, got;
	uint16_t port;
	socklen_t len;

	listener(&port);
	len = rs_addr(&kind, host, port, &addr);
	forbid_tcp();
	EXPECT_ERRNO(connect(fd, &addr.sa, len), EACCES);
	EXPECT_ERRNO(sendto(fd, "x", 1, MSG_FASTOPEN, &addr.sa, len), EACCES);
	addr.in.sin_port = htons(1);
	EXPECT_ERRNO(bind(fd, &addr.sa, len), EACCES);
	/* nor by an address that it doesn't know, or of the other family */
	for (i = 0; i < 5; i++) {
		if (others[i] == kind.family)
			continue;
		addr.sa.sa_family = others[i];
		addr.in.sin_port = htons(port);
		connect(fd, &addr.sa, len);
		sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, &addr.sa, len);
		EXPECT_ERRNO(getpeername(fd, &got.sa, &len), ENOTCONN);
		addr.in.sin_port = htons(1);
		EXPECT(bind(fd, &addr.sa, len) == -1);
		EXPECT(!rs_local_port(fd));
	}
}

static void v6_maps_v4(void)
{
	union rs_addr addr = { .in6.sin6_family = AF_INET6 };
	int l = rs_socket(&server_kind, 0), off = 0, fd;
	struct rs_kind four = { AF_INET, IPPROTO_TCP, AF_INET };

	if (kind.family != AF_INET6)
		api_skip("only for IPv6");
	EXPECT(!setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
	EXPECT(!bind(l, &addr.sa, sizeof(addr.in6)));
	EXPECT(!listen(l, 4));
	EXPECT(rs_connect(&four, NULL, rs_local_port(l), 0) >= 0);
	EXPECT(accept(l, NULL, NULL) >= 0);

	fd = rs_socket(&kind, 0);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &addr.in6.sin6_addr);
	addr.in6.sin6_port = htons(rs_local_port(l));
	EXPECT(!connect(fd, &addr.sa, sizeof(addr.in6)));
	EXPECT(send(fd, "x", 1, 0) == 1);
	fd = accept(l, NULL, NULL);
	EXPECT(fd >= 0 && recv(fd, &off, 1, 0) == 1);
}

static void v6_only(void)
{
	union rs_addr addr = { .in6.sin6_family = AF_INET6 };
	struct rs_kind four = { AF_INET, IPPROTO_TCP, AF_INET };
	int l = rs_socket(&server_kind, 0), on = 1;

	if (kind.family != AF_INET6)
		api_skip("only for IPv6");
	EXPECT(!setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)));
	EXPECT(!bind(l, &addr.sa, sizeof(addr.in6)));
	EXPECT(!listen(l, 4));
	EXPECT(rs_connect(&four, NULL, rs_local_port(l), 0) == -ECONNREFUSED);
}

static void mmap_refused(void)
{
	int fd = rs_socket(&kind, 0);

	if (!rs_kind_ours(&kind))
		api_skip("TCP maps for zero-copy receive");
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	EXPECT(errno == ENODEV);
}

static void socketpair_refused(void)
{
	int fd[2];

	EXPECT_ERRNO(socketpair(kind.domain, SOCK_STREAM, kind.proto, fd),
		     EOPNOTSUPP);
}

#define CASE(fn) { "address: " #fn, fn }
const struct api_case address_cases[] = {
	CASE(socket_bad_proto),
	CASE(socket_bad_type),
	CASE(socket_identity),
	CASE(getname_unbound),
	CASE(getname_connected),
	CASE(getname_truncated),
	CASE(accept_address),
	CASE(bind_in_use),
	CASE(bind_twice),
	CASE(bind_foreign),
	CASE(bind_malformed),
	CASE(address_own_family),
	CASE(landlock_forbids),
	CASE(v6_maps_v4),
	CASE(v6_only),
	CASE(mmap_refused),
	CASE(socketpair_refused),
	{ NULL, NULL },
};
