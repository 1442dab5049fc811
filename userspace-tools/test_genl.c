// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for genl.c, so that test.sh sees what rsctl makes of answers without a
 * module: some entries of each kind, with and without what may be left out.
 */
#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsctl.h"

#define MSG_MAX		4096
#define LONG_ADDR	"2001:db8:1111:2222:3333:4444:5555:"

static const uint8_t peer[RDMASTREAM_INSTANCE_LEN] = { 0x7b, 0x9a, 0xd4, 0x15 };

static struct nlmsghdr *entry(struct replies *r)
{
	struct nlmsghdr *msg = mnl_nlmsg_put_header(xcalloc(1, MSG_MAX));

	mnl_nlmsg_put_extra_header(msg, sizeof(struct genlmsghdr));
	r->msg = realloc(r->msg, (r->n + 1) * sizeof(*r->msg));
	if (!r->msg)
		abort();
	r->msg[r->n++] = msg;
	return msg;
}

static void endpoint(struct nlmsghdr *msg, int attr, const char *addr, int port)
{
	struct nlattr *nest = mnl_attr_nest_start(msg, attr);
	bool v6 = strchr(addr, ':');
	uint8_t bytes[16];

	inet_pton(v6 ? AF_INET6 : AF_INET, addr, bytes);
	mnl_attr_put(msg, RDMASTREAM_A_ENDPOINT_ADDR, v6 ? 16 : 4, bytes);
	mnl_attr_put_u16(msg, RDMASTREAM_A_ENDPOINT_PORT, htons(port));
	mnl_attr_nest_end(msg, nest);
}

static void stall(struct nlmsghdr *msg, uint32_t why, uint32_t n, uint64_t us)
{
	struct nlattr *nest;

	nest = mnl_attr_nest_start(msg, RDMASTREAM_A_DIRECTION_STALLS);
	mnl_attr_put_u32(msg, RDMASTREAM_A_STALL_REASON, why);
	mnl_attr_put_u32(msg, RDMASTREAM_A_STALL_COUNT, n);
	mnl_attr_put_u64(msg, RDMASTREAM_A_STALL_US, us);
	mnl_attr_nest_end(msg, nest);
}

static void direction(struct nlmsghdr *msg, int attr, bool full)
{
	static const uint32_t hist[24] = { [5] = 3, [6] = 100, [13] = 2, [23] = 1 };
	struct nlattr *nest = mnl_attr_nest_start(msg, attr);

	mnl_attr_put_u32(msg, RDMASTREAM_A_DIRECTION_CARRIER, full);
	mnl_attr_put_u64(msg, RDMASTREAM_A_DIRECTION_OFFSET, 123456);
	if (full) {
		mnl_attr_put_u32(msg, RDMASTREAM_A_DIRECTION_STALL,
				 RDMASTREAM_REASON_STALL_RING);
		mnl_attr_put_u64(msg, RDMASTREAM_A_DIRECTION_STALL_US, 1234567);
		stall(msg, RDMASTREAM_REASON_STALL_RING, 7, 7654321);
		stall(msg, RDMASTREAM_REASON_STALL_SLOT, 1, 21);
		mnl_attr_put(msg, RDMASTREAM_A_DIRECTION_HIST, sizeof(hist), hist);
	}
	mnl_attr_nest_end(msg, nest);
}

static void sockets(struct replies *r)
{
	struct nlmsghdr *msg = entry(r);

	endpoint(msg, RDMASTREAM_A_SOCK_LOCAL, "10.77.0.1", 5000);
	endpoint(msg, RDMASTREAM_A_SOCK_REMOTE, "10.77.0.2", 6379);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SOCK_MODE, RDMASTREAM_MODE_FRAMED);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SOCK_REASON, RDMASTREAM_REASON_NONE);
	mnl_attr_put_u8(msg, RDMASTREAM_A_SOCK_TCP_STATE, TCP_ESTABLISHED);
	mnl_attr_put(msg, RDMASTREAM_A_SOCK_PEER, sizeof(peer), peer);
	direction(msg, RDMASTREAM_A_SOCK_TX, true);
	direction(msg, RDMASTREAM_A_SOCK_RX, false);
	msg = entry(r);
	endpoint(msg, RDMASTREAM_A_SOCK_LOCAL, "fd77::1", 6379);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SOCK_MODE, RDMASTREAM_MODE_LISTEN);
	mnl_attr_put_u8(msg, RDMASTREAM_A_SOCK_TCP_STATE, TCP_LISTEN);
	msg = entry(r);
	endpoint(msg, RDMASTREAM_A_SOCK_LOCAL, "::ffff:10.77.0.3", 80);
	endpoint(msg, RDMASTREAM_A_SOCK_REMOTE, "::ffff:10.77.0.4", 40000);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SOCK_MODE, RDMASTREAM_MODE_FALLBACK);
	mnl_attr_put_u8(msg, RDMASTREAM_A_SOCK_TCP_STATE, TCP_CLOSE_WAIT);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SOCK_REASON, RDMASTREAM_REASON_NO_OPTION);
}

/* By LINK_MAKE, for the first socket. */
static bool link_made;

/* What is to be different, for some tests. */
static bool is_case(const char *name)
{
	const char *which = getenv("RSCTL_TEST");

	return which && !strcmp(which, name);
}

static struct nlmsghdr *link_up(struct replies *r, uint32_t id, const char *local,
				const char *remote, uint32_t rtt_us)
{
	struct nlmsghdr *msg = entry(r);

	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_ID, id);
	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_STATE, RDMASTREAM_LINK_STATE_UP);
	mnl_attr_put(msg, RDMASTREAM_A_LINK_PEER, sizeof(peer), peer);
	endpoint(msg, RDMASTREAM_A_LINK_LOCAL, local, 0);
	endpoint(msg, RDMASTREAM_A_LINK_REMOTE, remote, 4793);
	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_RTT_US, rtt_us);
	return msg;
}

/* Between other addresses of the peer, then between those of the first socket. */
static void links(struct replies *r)
{
	struct nlmsghdr *msg = link_up(r, 5, "10.77.1.1", "10.77.1.2", 123);

	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_QPN, 16777215);
	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_PEER_QPN, 16777214);
	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_RQ_CREDITS, 1024);
	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_SQ_FREE, 1024);
	mnl_attr_put_u64(msg, RDMASTREAM_A_LINK_UP_MS, 864000000);
	if (link_made && !is_case("unnamed"))
		link_up(r, 6, "10.77.0.1", "10.77.0.2", 45);
}

static struct nlmsghdr *pair(struct replies *r, bool active, unsigned int n_links)
{
	struct nlmsghdr *msg = entry(r);

	mnl_attr_put(msg, RDMASTREAM_A_PEER_INSTANCE, sizeof(peer), peer);
	if (active)
		mnl_attr_put(msg, RDMASTREAM_A_PEER_ACTIVE, 0, NULL);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PEER_LINKS, n_links);
	return msg;
}

static void tcp_path(struct nlmsghdr *msg, const char *local, const char *remote)
{
	struct nlattr *nest = mnl_attr_nest_start(msg, RDMASTREAM_A_PEER_PATH);

	endpoint(msg, RDMASTREAM_A_PATH_LOCAL, local, 0);
	endpoint(msg, RDMASTREAM_A_PATH_REMOTE, remote, 4793);
	mnl_attr_put(msg, RDMASTREAM_A_PATH_TCP, 0, NULL);
	mnl_attr_nest_end(msg, nest);
}

/* The other host establishes links, so no addresses are told until a socket waits for a link. */
static void passive_pairs(struct replies *r)
{
	struct nlmsghdr *msg;

	pair(r, false, 1);
	msg = pair(r, false, link_made && is_case("passive"));
	if (link_made && is_case("passive"))
		tcp_path(msg, "10.77.0.1", "10.77.0.2");
}

/* Another host, and two pairs of addresses of one, of which the second is the first socket's. */
static void peers(struct replies *r)
{
	static const uint8_t other[RDMASTREAM_INSTANCE_LEN] = { 0x7d, 1 };
	struct nlmsghdr *msg;
	struct nlattr *nest;

	if (is_case("passive") || is_case("unnamed")) {
		passive_pairs(r);
		return;
	}
	msg = entry(r);
	mnl_attr_put(msg, RDMASTREAM_A_PEER_INSTANCE, sizeof(other), other);
	tcp_path(msg, "10.77.3.1", "10.77.3.2");
	tcp_path(pair(r, true, 1), "10.77.1.1", "10.77.1.2");
	if (is_case("limit"))
		return;
	msg = pair(r, true, link_made);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PEER_CONNECTING, 0);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PEER_WAITING, 3);
	mnl_attr_put_strz(msg, RDMASTREAM_A_PEER_END_TEXT, "unreachable");
	mnl_attr_put_u64(msg, RDMASTREAM_A_PEER_END_MS, 12345);
	tcp_path(msg, "10.77.0.1", "10.77.0.2");
	nest = mnl_attr_nest_start(msg, RDMASTREAM_A_PEER_PATH);
	endpoint(msg, RDMASTREAM_A_PATH_REMOTE, "10.77.2.2", 4793);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PATH_FAILS, 2);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PATH_REFUSED, 0);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PATH_FLAPS, 1);
	mnl_attr_nest_end(msg, nest);
	nest = mnl_attr_nest_start(msg, RDMASTREAM_A_PEER_PATH);
	endpoint(msg, RDMASTREAM_A_PATH_LOCAL, LONG_ADDR "1", 0);
	endpoint(msg, RDMASTREAM_A_PATH_REMOTE, LONG_ADDR "2", 4793);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PATH_FAILS, 10);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PATH_REFUSED, 10);
	mnl_attr_put_u32(msg, RDMASTREAM_A_PATH_FLAPS, 0);
	mnl_attr_put_u64(msg, RDMASTREAM_A_PATH_RETRY_MS, 30000);
	mnl_attr_nest_end(msg, nest);
}

static void device(struct replies *r, const char *name, uint32_t problem)
{
	struct nlmsghdr *msg = entry(r);

	mnl_attr_put_strz(msg, RDMASTREAM_A_DEVICE_NAME, name);
	mnl_attr_put_u32(msg, RDMASTREAM_A_DEVICE_PORT, 1);
	mnl_attr_put_u32(msg, RDMASTREAM_A_DEVICE_PROBLEM, problem);
	mnl_attr_put_u32(msg, RDMASTREAM_A_DEVICE_LINKS, 2);
	if (problem)
		return;
	mnl_attr_put_u32(msg, RDMASTREAM_A_DEVICE_IFINDEX, 1);
	endpoint(msg, RDMASTREAM_A_DEVICE_ADDR, "10.77.0.1", 0);
	endpoint(msg, RDMASTREAM_A_DEVICE_ADDR, "fd77::1", 0);
	endpoint(msg, RDMASTREAM_A_DEVICE_ADDR, LONG_ADDR "1", 0);
	endpoint(msg, RDMASTREAM_A_DEVICE_ADDR, LONG_ADDR "1111", 0);
	endpoint(msg, RDMASTREAM_A_DEVICE_ADDR, LONG_ADDR "2222", 0);
}

static void memory(struct replies *r, uint32_t kind, uint64_t used)
{
	struct nlmsghdr *msg = entry(r);

	mnl_attr_put_u32(msg, RDMASTREAM_A_RMB_LINK, 5);
	mnl_attr_put_strz(msg, RDMASTREAM_A_RMB_DEVICE, "rxe0");
	mnl_attr_put_u32(msg, RDMASTREAM_A_RMB_KIND, kind);
	mnl_attr_put_u64(msg, RDMASTREAM_A_RMB_BYTES, 4 << 20);
	mnl_attr_put_u64(msg, RDMASTREAM_A_RMB_USED, used);
}

static void setting(struct nlmsghdr *msg, const char *name, uint64_t val)
{
	mnl_attr_put_strz(msg, RDMASTREAM_A_SETTING_NAME, name);
	mnl_attr_put_u64(msg, RDMASTREAM_A_SETTING_VALUE, val);
}

static void settings(struct replies *r)
{
	struct nlmsghdr *msg;

	setting(entry(r), "negotiate", 1);
	setting(entry(r), "ring_mode", 2);
	msg = entry(r);
	mnl_attr_put_strz(msg, RDMASTREAM_A_SETTING_NAME, "ring_size");
	mnl_attr_put_u64(msg, RDMASTREAM_A_SETTING_VALUE, 65536);
	mnl_attr_put_u64(msg, RDMASTREAM_A_SETTING_DEFAULT, 262144);
	mnl_attr_put_u64(msg, RDMASTREAM_A_SETTING_MINIMUM, 16384);
	mnl_attr_put_u64(msg, RDMASTREAM_A_SETTING_MAXIMUM, 4 << 20);
	mnl_attr_put(msg, RDMASTREAM_A_SETTING_POWER_OF_TWO, 0, NULL);
	msg = entry(r);
	mnl_attr_put_strz(msg, RDMASTREAM_A_SETTING_NAME, "family");
	mnl_attr_put_u64(msg, RDMASTREAM_A_SETTING_VALUE, 22);
	mnl_attr_put(msg, RDMASTREAM_A_SETTING_READ_ONLY, 0, NULL);
}

/* The least one: a page for credit cells, and a ring. */
static uint64_t rmb_max(void)
{
	uint64_t page = sysconf(_SC_PAGESIZE), least = page + (page > 16384 ? page : 16384);

	if (is_case("least"))
		return least;
	return is_case("less") ? least - 1 : 64 << 20;
}

static void info(struct replies *r)
{
	struct nlmsghdr *msg = entry(r);

	mnl_attr_put_strz(msg, RDMASTREAM_A_INFO_VERSION, "0.1.0");
	mnl_attr_put_u8(msg, RDMASTREAM_A_INFO_DRAIN, 0);
	mnl_attr_put_u32(msg, RDMASTREAM_A_INFO_LINKS, 1);
	mnl_attr_put_u64(msg, RDMASTREAM_A_INFO_RMB_BYTES, 4 << 20);
	mnl_attr_put_u64(msg, RDMASTREAM_A_INFO_RMB_MAX, rmb_max());
	mnl_attr_put(msg, RDMASTREAM_A_INFO_RMB_SHORT, 0, NULL);
}

/* Each time more. */
static void stats(struct replies *r)
{
	static uint64_t asked;
	struct nlmsghdr *msg = entry(r);
	struct nlattr *nest = mnl_attr_nest_start(msg, RDMASTREAM_A_STATS_COUNTERS);
	int i;

	asked++;
	for (i = 1; i <= RDMASTREAM_A_COUNTERS_MAX; i++)
		mnl_attr_put_u64(msg, i, i < 4 ? 1000 * asked * asked * i : 0);
	mnl_attr_nest_end(msg, nest);
}

void want(struct wants *w, uint16_t type, const void *data, size_t len)
{
	w->list[w->n].type = type;
	w->list[w->n].len = len;
	memcpy(w->list[w->n++].data, data, len);
}

/* Filters are the kernel's business: all is told. */
int genl_ask_for(uint8_t cmd, bool dump, const struct wants *wants,
		 struct replies *r)
{
	(void)dump;
	(void)wants;
	memset(r, 0, sizeof(*r));
	switch (cmd) {
	case RDMASTREAM_CMD_SOCK_GET:
		sockets(r);
		break;
	case RDMASTREAM_CMD_LINK_GET:
		links(r);
		break;
	case RDMASTREAM_CMD_PEER_GET:
		peers(r);
		break;
	case RDMASTREAM_CMD_DEVICE_GET:
		device(r, "rxe0", RDMASTREAM_DEVICE_PROBLEM_NONE);
		device(r, "siw0", RDMASTREAM_DEVICE_PROBLEM_SMALL_QUEUES);
		break;
	case RDMASTREAM_CMD_MEMORY_GET:
		memory(r, RDMASTREAM_RMB_KIND_RINGS, 1 << 20);
		memory(r, RDMASTREAM_RMB_KIND_CELLS, 64);
		break;
	case RDMASTREAM_CMD_SETTING_GET:
		settings(r);
		break;
	case RDMASTREAM_CMD_INFO_GET:
		info(r);
		break;
	case RDMASTREAM_CMD_STATS_GET:
		stats(r);
		break;
	}
	return EXIT_OK;
}

int genl_ask(uint8_t cmd, bool dump, struct replies *r)
{
	return genl_ask_for(cmd, dump, NULL, r);
}

int genl_set(uint8_t cmd, const struct wants *wants)
{
	if (cmd == RDMASTREAM_CMD_LINK_MAKE && wants->n == 1)
		link_made = true;
	else if (cmd != RDMASTREAM_CMD_SETTING_SET || wants->n != 2)
		return EXIT_FAILED;
	return EXIT_OK;
}

static struct nlmsghdr *event(struct replies *r, uint8_t cmd)
{
	struct nlmsghdr *msg = entry(r);
	struct genlmsghdr *genl = mnl_nlmsg_get_payload(msg);

	genl->cmd = cmd;
	return msg;
}

static void link_event(struct replies *r, bool up)
{
	struct nlmsghdr *msg = event(r, RDMASTREAM_CMD_LINK_NTF);

	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_ID, 5);
	mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_STATE, up ? RDMASTREAM_LINK_STATE_UP :
						      RDMASTREAM_LINK_STATE_BROKEN);
	mnl_attr_put(msg, RDMASTREAM_A_LINK_PEER, sizeof(peer), peer);
	if (up) {
		mnl_attr_put(msg, RDMASTREAM_A_LINK_ACTIVE, 0, NULL);
		mnl_attr_put_strz(msg, RDMASTREAM_A_LINK_DEVICE, "rxe0");
		mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_PORT, 1);
		endpoint(msg, RDMASTREAM_A_LINK_LOCAL, "10.77.0.1", 0);
		endpoint(msg, RDMASTREAM_A_LINK_REMOTE, "10.77.0.2", 4793);
	} else {
		mnl_attr_put_u32(msg, RDMASTREAM_A_LINK_REASON,
				 RDMASTREAM_REASON_LINK_LOST);
		mnl_attr_put_strz(msg, RDMASTREAM_A_LINK_END_TEXT, "unreachable");
	}
}

static void switch_event(struct replies *r, uint32_t carrier)
{
	struct nlmsghdr *msg = event(r, RDMASTREAM_CMD_SWITCH_NTF);

	endpoint(msg, RDMASTREAM_A_SWITCH_LOCAL, "10.77.0.1", 5000);
	endpoint(msg, RDMASTREAM_A_SWITCH_REMOTE, "10.77.0.2", 6379);
	mnl_attr_put(msg, RDMASTREAM_A_SWITCH_PEER, sizeof(peer), peer);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SWITCH_DIR, RDMASTREAM_DIR_RX);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SWITCH_CARRIER, carrier);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SWITCH_REASON,
			 RDMASTREAM_REASON_RING_GRANTED);
	mnl_attr_put_u64(msg, RDMASTREAM_A_SWITCH_OFFSET, 16384);
	mnl_attr_put_u32(msg, RDMASTREAM_A_SWITCH_EPOCH, 1);
	if (carrier == RDMASTREAM_CARRIER_RING)
		mnl_attr_put_u32(msg, RDMASTREAM_A_SWITCH_LINK, 5);
}

/* One of each. */
int genl_listen(int (*ready)(void), int (*told)(const struct nlmsghdr *msg))
{
	struct replies r = { 0 };
	int ret = ready();
	size_t i;

	link_event(&r, true);
	link_event(&r, false);
	switch_event(&r, RDMASTREAM_CARRIER_RING);
	switch_event(&r, RDMASTREAM_CARRIER_TCP);
	mnl_attr_put_u8(event(&r, RDMASTREAM_CMD_DRAIN_NTF),
			RDMASTREAM_A_INFO_DRAIN, 1);
	setting(event(&r, RDMASTREAM_CMD_SETTING_NTF), "link_probe_ms", 499);
	for (i = 0; i < r.n && !ret; i++)
		ret = told(r.msg[i]);
	replies_free(&r);
	return ret ? ret : told(NULL);
}

void replies_free(struct replies *r)
{
	while (r->n)
		free(r->msg[--r->n]);
	free(r->msg);
	r->msg = NULL;
}
