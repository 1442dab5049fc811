// SPDX-License-Identifier: GPL-2.0-only
/* The module's netlink family, asked rightly and wrongly; sockets ended by netlink. */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rs_calls.h"
#include "sock.h"

/* of uapi/linux/rdmastream_netlink.h */
enum { STATS_GET = 4, DRAIN_SET = 5, A_DRAIN = 8, GROUP_EVENTS = 7 };

static uint16_t family;
static int stats_fd = -1;
static uint32_t group;

struct msg {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	char body[1000];
};

static void *put(struct msg *m, int type, const void *data, size_t len)
{
	struct nlattr *a = (void *)m + NLMSG_ALIGN(m->nl.nlmsg_len);

	if ((char *)a + NLA_HDRLEN + len > m->body + sizeof(m->body))
		return NULL;
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy(a + 1, data, len);
	m->nl.nlmsg_len = NLMSG_ALIGN(m->nl.nlmsg_len) + NLA_ALIGN(a->nla_len);
	return a;
}

static void begin(struct msg *m, int type, int flags, int cmd)
{
	memset(m, 0, sizeof(*m));
	m->nl.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN;
	m->nl.nlmsg_type = type;
	m->nl.nlmsg_flags = NLM_F_REQUEST | flags;
	m->genl.cmd = cmd;
	m->genl.version = 1;
}

static int open_netlink(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), on = 1;
	struct timeval soon = { .tv_usec = 200000 };

	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	return fd;
}

/* Answers until the last one. Return: 0, or -1 with the errno that was told. */
static int hear(int fd)
{
	char buf[16384] __attribute__((aligned(8)));
	const struct nlmsghdr *nl;

	for (;;) {
		int len = recv(fd, buf, sizeof(buf), 0);

		if (len < 0)
			return -1;
		for (nl = (void *)buf; NLMSG_OK(nl, len); nl = NLMSG_NEXT(nl, len)) {
			if (nl->nlmsg_type != NLMSG_ERROR && nl->nlmsg_type != NLMSG_DONE)
				continue;
			errno = -*(int *)NLMSG_DATA(nl);
			return errno ? -1 : 0;
		}
	}
}

/* ---- attributes, one number each: type, what it holds, how it is spoilt ---- */

static size_t copy(char *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return size;
}

static size_t value(uint32_t how, uint32_t salt, char *to)
{
	static const char *const names[] = { "ring_mode", "ring_size", "link_probe_ms", "family", "x" };
	static const uint32_t numbers[] = { 0, 1, 2, 3, 7, 47, 99, 65536, 0xffffffff };
	uint32_t number = numbers[salt % 9];
	uint64_t wide = number == 99 ? mix(salt) : number;
	uint16_t port = htons(salt);
	struct stat st = {};

	memset(to, 'x', 100);
	switch (how % 10) {
	case 0:	return copy(to, &number, 1);
	case 1:	return copy(to, &number, 4);
	case 2:	return copy(to, &wide, 8);
	case 3:	return strlen(strcpy(to, names[salt % 5])) + 1;
	case 4:	return strlen(strcpy(to, salt & 1 ? "rxe0" : "lo")) + 1;
	case 5:	return 16;
	case 6:	fstat(slot_fd(salt), &st);
		return copy(to, &(uint64_t){ st.st_ino }, 8);
	case 7:	return copy(to, &port, 2);
	case 8:	return salt % 100;
	default: return 0;
	}
}

static void put_attr(struct msg *m, uint32_t attr)
{
	char data[128];
	size_t len = value(attr >> 8 & 15, attr >> 20, data);
	struct nlattr *a;

	if (!(attr & 0xff))
		return;
	a = put(m, attr & 0xff, data, len);
	switch (attr >> 16 & 15) {
	case 1:	a->nla_len++;
		break;
	case 2:	a->nla_len = 3;
		break;
	case 3:	a->nla_len = 0xffff;
		break;
	case 4:	a->nla_type |= NLA_F_NESTED;
		break;
	case 5:	a->nla_type |= NLA_F_NET_BYTEORDER;
		break;
	}
}

/* Flags beyond those of netlink. */
enum { JOIN = 1 << 16, DEAF = 1 << 17, OTHER_VERSION = 1 << 18, CUT = 1 << 19 };

int do_netlink(const uint32_t *arg)
{
	int fd = open_netlink(NETLINK_GENERIC), err = 0;
	struct msg m;

	if (arg[1] & JOIN)
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
	begin(&m, family, arg[1] & 0xffff, arg[0]);
	if (arg[1] & OTHER_VERSION)
		m.genl.version = 7;
	put_attr(&m, arg[2]);
	put_attr(&m, arg[3]);
	if (arg[1] & CUT)
		m.nl.nlmsg_len -= 3;
	if (send(fd, &m, m.nl.nlmsg_len, 0) < 0 || (!(arg[1] & DEAF) && hear(fd)))
		err = errno;
	close(fd);
	errno = err;
	return err ? -1 : 0;
}

/* As "ss -K" does it. */
int do_destroy(const uint32_t *arg)
{
	struct {
		struct nlmsghdr nl;
		struct inet_diag_req_v2 req;
	} m = {
		.nl = { sizeof(m), SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
		.req = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = -1 },
	};
	union rs_addr from = {}, to = {};
	socklen_t from_len = sizeof(from), to_len = sizeof(to);
	int fd, err = 0;

	if (getsockname(slot_fd(arg[0]), &from.sa, &from_len))
		return -1;
	getpeername(slot_fd(arg[0]), &to.sa, &to_len);
	m.req.sdiag_family = from.sa.sa_family;
	m.req.id.idiag_sport = from.in.sin_port;
	m.req.id.idiag_dport = to.in.sin_port;
	if (from.sa.sa_family == AF_INET6) {
		memcpy(m.req.id.idiag_src, &from.in6.sin6_addr, 16);
		memcpy(m.req.id.idiag_dst, &to.in6.sin6_addr, 16);
	} else {
		memcpy(m.req.id.idiag_src, &from.in.sin_addr, 4);
		memcpy(m.req.id.idiag_dst, &to.in.sin_addr, 4);
	}
	memset(m.req.id.idiag_cookie, 0xff, sizeof(m.req.id.idiag_cookie));
	fd = open_netlink(NETLINK_SOCK_DIAG);
	if (send(fd, &m, sizeof(m), 0) < 0 || hear(fd))
		err = errno;
	close(fd);
	errno = err;
	return err ? -1 : 0;
}

/* ---- the family, its counters ---- */

#define for_each_attr(a, data, len) \
	for (a = (data); (char *)a + NLA_HDRLEN <= (char *)(data) + (len) && \
	     a->nla_len >= NLA_HDRLEN; a = (void *)a + NLA_ALIGN(a->nla_len))

static const struct nlattr *find(const void *data, size_t len, int type)
{
	const struct nlattr *a;

	for_each_attr(a, data, len)
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

static void find_family(void)
{
	char buf[8192];
	struct msg m;
	const struct nlattr *a;
	int len;

	begin(&m, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
	put(&m, CTRL_ATTR_FAMILY_NAME, "rdmastream", 11);
	send(stats_fd, &m, m.nl.nlmsg_len, 0);
	len = recv(stats_fd, buf, sizeof(buf), 0) - NLMSG_HDRLEN - GENL_HDRLEN;
	if (len <= 0)
		return;
	a = find(buf + NLMSG_HDRLEN + GENL_HDRLEN, len, CTRL_ATTR_FAMILY_ID);
	if (a)
		family = *(uint16_t *)(a + 1);
	a = find(buf + NLMSG_HDRLEN + GENL_HDRLEN, len, CTRL_ATTR_MCAST_GROUPS);
	a = a ? find(a + 1, a->nla_len - NLA_HDRLEN, 1) : NULL;		/* the only one */
	a = a ? find(a + 1, a->nla_len - NLA_HDRLEN, CTRL_ATTR_MCAST_GRP_ID) : NULL;
	if (a)
		group = *(uint32_t *)(a + 1);
}

bool netlink_init(void)
{
	stats_fd = open_netlink(NETLINK_GENERIC);
	find_family();
	return family;
}

/* Those of "counters", then the reasons. */
bool netlink_counters(uint64_t *counters)
{
	char buf[16384];
	const struct nlattr *a, *c;
	struct msg m;
	int len;

	memset(counters, 0, COUNTERS * sizeof(*counters));
	begin(&m, family, 0, STATS_GET);
	send(stats_fd, &m, m.nl.nlmsg_len, 0);
	len = recv(stats_fd, buf, sizeof(buf), 0) - NLMSG_HDRLEN - GENL_HDRLEN;
	if (len <= 0)
		return false;
	for_each_attr(a, (const struct nlattr *)(buf + NLMSG_HDRLEN + GENL_HDRLEN), len) {
		int which = a->nla_type & NLA_TYPE_MASK;

		if (which != 1 && which != 2)
			continue;
		for_each_attr(c, a + 1, a->nla_len - NLA_HDRLEN) {
			int at = (which - 1) * COUNTERS / 2 + (c->nla_type & NLA_TYPE_MASK);

			if (at < COUNTERS)
				memcpy(&counters[at], c + 1, c->nla_len - NLA_HDRLEN < 8 ? 4 : 8);
		}
	}
	return true;
}

void netlink_undrain(void)
{
	static const uint8_t off;
	struct msg m;

	begin(&m, family, NLM_F_ACK, DRAIN_SET);
	put(&m, A_DRAIN, &off, 1);
	send(stats_fd, &m, m.nl.nlmsg_len, 0);
	hear(stats_fd);
}
