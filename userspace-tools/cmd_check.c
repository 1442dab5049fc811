// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl check: would a connection to HOST PORT use RDMA?  Goes step by step up to the
 * first that fails, and tells why and what to do.
 *
 * Sends no data to the server, unless told that it is "rsctl check listen": then it
 * loads the connection, and asks the other end what it sees.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "rsctl.h"
#include "check.h"

#define CONNECT_MS	5000
#define HELLO_MS	7000
#define LINK_MS		12000
#define RING_MS		12000
#define LOOK_MS		50
#define RING_LEAST	(16 * 1024)
#define PINGS		50
#define LOAD_FIRST	(256 * 1024)
#define LOAD_MOST	(256ULL * 1024 * 1024)
#define LOAD_SECONDS	1.0

struct check {
	const char *host, *port;
	bool probe;
	struct here here;
	struct seen seen;
	struct told told;
	int fd;
	bool dropped;		/* two SYNs with the option were not answered */
	ino_t inode;
};

/* ---- telling ---- */

#define TEXT_AT	16	/* column in which the text of a step begins */

/* A line, unless @text is NULL. */
static void tell_text(const char *head, const char *reason, const char *text)
{
	unsigned int at = *head ? strlen(head) : TEXT_AT;

	if (!text)
		return;
	printf("%s%s%s", head, reason ? reason : "", reason ? ": " : "");
	print_folded(text, at + (reason ? strlen(reason) + 2 : 0), at);
	putchar('\n');
}

static void object(const char *step, bool good, const char *reason, const char *text,
		   const double *val, const char *cause, const char *remedy)
{
	static const char * const steps[] = {
		"module", "settings", "memory", "device", "connect", "option", "hello",
		"link", "rtt", "rings", "ping", "send", "receive", "load", NULL
	};

	json_object(NULL);
	json_choice("step", step, steps);
	json_bool("ok", good);
	json_str("reason", reason);
	json_str("text", text);
	json_double("value", val);
	json_str("cause", cause);
	json_str("remedy", remedy);
	json_object_end();
}

void check_json(void)
{
	object(NULL, false, NULL, "", NULL, NULL, NULL);
}

static void tell(const char *step, bool good, const char *reason, char *text,
		 const double *val, const char *cause, const char *remedy)
{
	if (opt.json) {
		object(step, good, reason, text, val, cause, remedy);
	} else {
		printf("%s%-4s%s  %-9s ",
		       opt.color ? good ? "\033[32m" : "\033[31m" : "",
		       good ? "ok" : "FAIL", opt.color ? "\033[0m" : "", step);
		tell_text("", reason, text);
		tell_text("      Cause:  ", NULL, cause);
		tell_text("      Remedy: ", NULL, remedy);
		fflush(stdout);
	}
	free(text);
}

static int good(const char *step, char *text)
{
	tell(step, true, NULL, text, NULL, NULL, NULL);
	return EXIT_OK;
}

static int good_value(const char *step, char *text, double val)
{
	tell(step, true, NULL, text, &val, NULL, NULL);
	return EXIT_OK;
}

static int bad(const char *step, const char *reason, char *text,
	       const char *cause, const char *remedy)
{
	tell(step, false, reason, text, NULL, cause, remedy);
	return EXIT_NO_RDMA;
}

/* One of the module's reasons, with its own words. */
static int bad_reason(const char *step, uint64_t reason)
{
	const struct item *item = reason_item(reason);
	char *name = reason_name(reason);

	bad(step, name, xprintf("%s", item ? item->text : "unknown"),
	    reason_cause(reason), reason_remedy(reason));
	free(name);
	return EXIT_NO_RDMA;
}

static int bad_there(const char *step, const char *name)
{
	const struct item *item;
	uint64_t i;

	for (i = 0; (item = reason_item(i)); i++)
		if (same_name(item->name, name))
			break;
	if (!item)
		return bad(step, "unknown", xprintf("at the other end"), NULL,
			   NULL);
	name = xprintf("%s-there", item->name);
	bad(step, name, xprintf("at the other end: %s", item->text),
	    reason_cause(i), reason_remedy(i));
	free((char *)name);
	return EXIT_NO_RDMA;
}

/* ---- this host ---- */

static int check_module(struct check *c)
{
	return good("module", xprintf("version %s, wire version %" PRIu64,
				      c->here.version, c->here.wire_version));
}

static int check_settings(struct check *c)
{
	if (c->here.drain)
		return bad_reason("settings", RDMASTREAM_REASON_DRAINED);
	if (!c->here.negotiate)
		return bad_reason("settings", RDMASTREAM_REASON_OFF);
	if (!c->here.ring_mode)
		return bad_reason("settings", RDMASTREAM_REASON_RING_OFF);
	return good("settings", c->here.ring_mode == 1 ?
		    xprintf("rings as soon as there is a link") :
		    xprintf("rings after %" PRIu64 " bytes",
			    c->here.ring_threshold));
}

/* What a link needs: a page for credit cells, which is registered first, and then a ring. */
static uint64_t least_memory(void)
{
	uint64_t page = sysconf(_SC_PAGESIZE);

	return page + (page > RING_LEAST ? page : RING_LEAST);
}

static int check_memory(struct check *c)
{
	char *used = human_bytes(c->here.rmb_bytes);
	char *max = human_bytes(c->here.rmb_max);
	char *text = xprintf("%s of %s registered for rings", used, max);

	free(used);
	free(max);
	if (c->here.rmb_max >= least_memory())
		return good("memory", text);
	return bad("memory", "rmb-limit", text,
		   "The ceiling (see \"rsctl memory\") leaves no room for a single ring.",
		   reason_remedy(RDMASTREAM_REASON_RMB_LIMIT));
}

static int check_device(struct check *c)
{
	char *problem;
	int ret;

	if (c->here.usable)
		return good("device", xprintf("%s%s", c->here.device,
					      c->here.usable > 1 ?
					      ", and others" : ""));
	if (!c->here.devices)
		return bad("device", "no-device",
			   xprintf("no RDMA device in this network namespace"),
			   "This host has none, its driver is not loaded, or it belongs to another network namespace (see \"rdma system\").",
			   "See \"rdma link\" and \"rdma system\"; for soft-RoCE, \"rdma link add rxe0 type rxe netdev DEV\".");
	problem = word_of(WORD_PROBLEM, c->here.problem);
	ret = bad("device", problem, xprintf("%s", c->here.device),
		  "No RDMA device is usable; see \"rsctl -d devices\".",
		  device_advice(c->here.problem));
	free(problem);
	return ret;
}

/* ---- the connection ---- */

/* Return: 0 or an errno. */
static int connect_in_time(int fd, const struct addrinfo *ai)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (poll(&p, 1, CONNECT_MS) != 1)
		return ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return errno;
	return err;
}

static void be_patient(int fd)
{
	struct timeval t = { .tv_sec = TALK_PATIENCE };

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* The first address that answers.  Return: the socket, or an errno negated. */
static int connect_any(const struct addrinfo *list)
{
	int err = EADDRNOTAVAIL, one = 1, fd;

	for (; list; list = list->ai_next) {
		fd = talk_socket(list->ai_family);
		if (fd < 0) {
			err = errno;
			continue;
		}
		/* older modules begin so anyway */
		setsockopt(fd, SOL_RDMASTREAM, RDMASTREAM_EAGER, &one, sizeof(one));
		fcntl(fd, F_SETFL, O_NONBLOCK);
		err = connect_in_time(fd, list);
		if (!err) {
			be_patient(fd);
			return fd;
		}
		close(fd);
	}
	return -err;
}

static char *address_of(int fd, bool remote)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (remote ? getpeername(fd, (void *)&ss, &len) :
		     getsockname(fd, (void *)&ss, &len))
		return xprintf("-");
	if (getnameinfo((void *)&ss, len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return xprintf("-");
	return xprintf(strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* The third SYN has no option.  Right after connect(). */
static bool option_dropped(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_total_retrans >= 2;
}

static int bad_connect(int err)
{
	if (err == ECONNREFUSED)
		return bad("connect", "refused", xprintf("%s", strerror(err)),
			   "Nothing listens on that port, or a firewall rejects the connection.",
			   "Start the server, or run \"rsctl check listen PORT\" there.");
	return bad("connect", "unreachable", xprintf("%s", strerror(err)),
		   "No answer from that address: routing, a firewall, or the host is down.",
		   "See \"ip route get\" and \"ping\"; RDMA is not involved yet.");
}

static int check_connect(struct check *c)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char *local, *remote;
	struct stat st;
	int err, ret;

	err = getaddrinfo(c->host, c->port, &hints, &list);
	if (err)
		return bad("connect", "no-address",
			   xprintf("%s: %s", c->host, gai_strerror(err)),
			   "The host name or the port cannot be resolved.",
			   "Use a numeric address.");
	c->fd = connect_any(list);
	freeaddrinfo(list);
	if (c->fd < 0)
		return bad_connect(-c->fd);
	c->dropped = option_dropped(c->fd);
	if (fstat(c->fd, &st)) {
		complain("fstat: %s", strerror(errno));
		return EXIT_FAILED;
	}
	c->inode = st.st_ino;
	local = address_of(c->fd, false);
	remote = address_of(c->fd, true);
	ret = good("connect", xprintf("%s > %s", local, remote));
	free(local);
	free(remote);
	return ret;
}

/* ---- what both ends have agreed on ---- */

/* Plain TCP, and the other end says what it has seen. */
static int bad_option_told(const struct told *t)
{
	if (!strcmp(t->module, "-"))
		return bad("option", "no-module-there",
			   xprintf("the other end has no module"),
			   "rdmastream is not loaded on the other host.",
			   "On the other host: modprobe rdmastream");
	if (!t->negotiate)
		return bad("option", "off-there",
			   xprintf("negotiation is off at the other end"),
			   "net.rdmastream.negotiate is 0 there.",
			   "On the other host: rsctl set negotiate 1, then restart the server.");
	if (!t->usable)
		return bad("option", "no-device-there",
			   xprintf("the other end has no usable RDMA device (%d in all)",
				   t->devices),
			   "A host without a usable device does not answer the option.",
			   "On the other host: rsctl -d devices");
	if (!strcmp(t->mode, "plain"))
		return bad("option", "option-lost-there",
			   xprintf("the option of our SYN did not arrive"),
			   "Something on the way there strips TCP option 254.",
			   "Look for firewalls and load balancers: tcpdump shows where it goes.");
	return bad("option", "option-lost-back",
		   xprintf("the option of the SYN-ACK did not arrive"),
		   "Something on the way back strips TCP option 254.",
		   "Look for firewalls and load balancers: tcpdump shows where it goes.");
}

static int bad_option(struct check *c)
{
	if (c->seen.reason != RDMASTREAM_REASON_NO_OPTION)
		return bad_reason("option", c->seen.reason);
	if (c->dropped)
		return bad("option", "option-dropped",
			   xprintf("two SYNs with the TCP option were not answered, one without it was"),
			   "Something on the way drops segments that have TCP option 254, unless packets were lost by chance.",
			   "Try again.  Let them through, or do without RDMA: rsctl set negotiate 0");
	if (c->probe && talk_status(c->fd, &c->told))
		return bad_option_told(&c->told);
	return bad("option", "no-option",
		   xprintf("the other end did not answer the TCP option"),
		   "The other host has no module or no usable device, its server does not use rdmastream, or something on the way strips the option.",
		   "Run \"rsctl check listen PORT\" there and \"rsctl check HOST PORT probe\" here to find out which.");
}

static int check_option(struct check *c)
{
	int ret = see_socket(c->inode, &c->seen);

	if (ret)
		return ret;
	if (!c->seen.found || c->seen.mode == RDMASTREAM_MODE_FALLBACK)
		return bad_option(c);
	return good("option", xprintf("answered"));
}

static int check_hello(struct check *c)
{
	int64_t end = now_ms() + HELLO_MS;
	char id[2 * 4 + 1];
	int ret;

	while (!c->seen.has_peer) {
		if (c->seen.mode == RDMASTREAM_MODE_FALLBACK ||
		    c->seen.mode == RDMASTREAM_MODE_CLOSED ||
		    c->seen.reason == RDMASTREAM_REASON_VERSION)
			return bad_reason("hello", c->seen.reason);
		if (now_ms() > end)
			return bad_reason("hello",
					  RDMASTREAM_REASON_HELLO_TIMEOUT);
		pause_ms(LOOK_MS);
		ret = see_socket(c->inode, &c->seen);
		if (ret)
			return ret;
	}
	snprintf(id, sizeof(id), "%02x%02x%02x%02x", c->seen.peer[0],
		 c->seen.peer[1], c->seen.peer[2], c->seen.peer[3]);
	return good("hello", xprintf("peer %s", id));
}

/* ---- the link ---- */

static int bad_link(const struct check *c, const struct links *l)
{
	char *text = xprintf("%s%s", l->active ?
			     "this host cannot establish a link" :
			     "the peer, which has to establish the link, has not done so",
			     *l->why ? "; latest attempt: " : "");
	char *all = xprintf("%s%s", text, l->why);
	char *remedy;
	int ret;

	free(text);
	if (l->active && l->refused > l->fails) {
		remedy = xprintf("On the other host: is rdma_cm port %" PRIu64 " in use (see the kernel log)? Is memory short (rsctl stats)?",
				 c->here.cm_port);
		ret = bad("link", "rdma-refused", all,
			  "The other host's rdma_cm refuses: the module does not listen there.",
			  remedy);
		free(remedy);
		return ret;
	}
	return bad("link", "rdma-unreachable", all,
		   "RDMA between the hosts is filtered (RoCE: UDP port 4791, both ways; iWARP: TCP port net.rdmastream.cm_port), or not configured on one of them.",
		   "Open the port in firewalls; try \"rping\" between the same addresses; run \"rsctl devices\" there.");
}

static int make_link(const struct check *c)
{
	struct wants wants = { 0 };
	uint64_t inode = c->inode;

	want(&wants, RDMASTREAM_A_SOCK_INODE, &inode, sizeof(inode));
	return genl_set(RDMASTREAM_CMD_LINK_MAKE, &wants);
}

static int check_link(struct check *c)
{
	int64_t start = now_ms(), end = start + LINK_MS;
	struct links l;
	int ret;

	ret = see_links(&c->seen, &l);
	if (ret)
		return ret;
	if (!l.known)
		return bad_reason("link", c->seen.reason &&
				  c->seen.reason != RDMASTREAM_REASON_WAIT_BYTES &&
				  c->seen.reason != RDMASTREAM_REASON_WAIT_LINK ?
				  c->seen.reason : RDMASTREAM_REASON_NO_DEVICE);
	if (l.self && !c->here.loopback)
		return bad_reason("link", RDMASTREAM_REASON_LOOPBACK);
	if (!l.up || !l.sure) {
		ret = make_link(c);
		l.up = 0;	/* until the module has seen to it */
	}
	while (!ret && !l.up && now_ms() < end) {
		pause_ms(LOOK_MS);
		ret = see_links(&c->seen, &l);
		if (!ret)
			ret = see_socket(c->inode, &c->seen);
		if (!ret && !l.up &&
		    (c->seen.reason == RDMASTREAM_REASON_PEER_DRAINED ||
		     l.drained))
			return bad_reason("link",
					  RDMASTREAM_REASON_PEER_DRAINED);
	}
	if (ret)
		return ret;
	if (!l.up)
		return bad_link(c, &l);
	return good("link", xprintf("%s, established by %s in %" PRId64 " ms", l.text,
				    l.active ? "this host" : "the peer",
				    now_ms() - start));
}

/* The liveness probe of a quiet link comes every other interval. */
static int check_rtt(struct check *c)
{
	int64_t end = now_ms() + 4 * (int64_t)c->here.link_probe_ms + 1000;
	struct links l;
	int ret;

	do {
		ret = see_links(&c->seen, &l);
		if (ret)
			return ret;
		if (l.rtt_us)
			return good_value("rtt", xprintf("%" PRIu64 " us for an RDMA write without data",
							 l.rtt_us), l.rtt_us);
		if (!l.up)
			break;
		pause_ms(LOOK_MS);
	} while (now_ms() < end);
	if (!l.up)
		return bad("rtt", "link-lost",
			   xprintf("the link broke: %s", l.why),
			   "RDMA packets are lost between the hosts.",
			   reason_remedy(RDMASTREAM_REASON_LINK_LOST));
	return good("rtt", xprintf("- (the link is busy)"));
}

/* ---- under load ---- */

static int bad_talk(const char *step)
{
	return bad(step, "no-answer", xprintf("the server did not answer"),
		   "The server is not \"rsctl check listen\", or the connection broke.",
		   "Run \"rsctl check listen\" there, or omit \"probe\".");
}

/* A link that comes up and breaks under load. */
static int bad_load(struct check *c)
{
	struct links l;
	int ret = see_links(&c->seen, &l);

	if (ret)
		return ret;
	return bad("load", "mtu", xprintf("the link broke under load%s%s",
					  *l.why ? ": " : "", l.why),
		   "Small RDMA packets get through, large ones do not: the MTU differs between the hosts or on the way.",
		   "Compare the MTUs of the interfaces (ip link) and of the switches; try \"ping -M do -s SIZE\".");
}

static bool told_ring(const struct check *c)
{
	return !strcmp(c->told.tx, "ring") && !strcmp(c->told.rx, "ring");
}

static bool wants_bytes(const struct check *c)
{
	const struct item *wait = reason_item(RDMASTREAM_REASON_WAIT_BYTES);

	return c->seen.reason == RDMASTREAM_REASON_WAIT_BYTES ||
	       same_name(wait->name, c->told.reason);
}

static bool move_both(const struct check *c, uint64_t bytes)
{
	double dummy;

	return talk_send(c->fd, bytes, &dummy) &&
	       talk_receive(c->fd, bytes, &dummy);
}

/* Rings in both directions, with not many more bytes than the two ends want. */
static int check_rings(struct check *c)
{
	uint64_t bytes = c->here.ring_threshold < LOAD_FIRST ?
			 c->here.ring_threshold + 4096 : LOAD_FIRST;
	int64_t end = now_ms() + RING_MS;
	double dummy;
	int ret;

	if (!talk_status(c->fd, &c->told) || !move_both(c, bytes))
		return bad_talk("rings");
	for (;;) {
		if (!talk_ping(c->fd, 4, &dummy) ||
		    !talk_status(c->fd, &c->told))
			return bad_talk("rings");
		ret = see_socket(c->inode, &c->seen);
		if (ret)
			return ret;
		if (c->seen.lost)
			return bad_load(c);
		if (c->seen.tx_ring && c->seen.rx_ring && told_ring(c))
			return good("rings", xprintf("in both directions"));
		if (wants_bytes(c) && bytes < LOAD_MOST) {
			bytes *= 2;
			if (!move_both(c, bytes))
				return bad_talk("rings");
			end = now_ms() + RING_MS;
		} else if (now_ms() > end) {
			break;
		} else {
			pause_ms(LOOK_MS);
		}
	}
	/* each end knows why it has granted none */
	if (!c->seen.rx_ring && c->seen.reason)
		return bad_reason("rings", c->seen.reason);
	if (!c->seen.tx_ring && *c->told.reason &&
	    strcmp(c->told.reason, "none"))
		return bad_there("rings", c->told.reason);
	return bad("rings", "none", xprintf("not granted in time"),
		   "The hosts are busy, or memory is short.",
		   "See \"rsctl sockets\" on both hosts.");
}

/* Twice as much each time, until it takes long enough to be measured. */
static int measure(struct check *c, const char *step,
		   bool (*move)(int fd, uint64_t bytes, double *seconds))
{
	uint64_t bytes = LOAD_FIRST;
	double seconds, rate;
	char *text;
	int ret;

	for (;;) {
		if (!move(c->fd, bytes, &seconds))
			return bad_talk(step);
		ret = see_socket(c->inode, &c->seen);
		if (ret)
			return ret;
		if (c->seen.lost)
			return bad_load(c);
		if (seconds > LOAD_SECONDS / 2 || bytes >= LOAD_MOST)
			break;
		bytes *= 2;
	}
	rate = seconds > 0 ? bytes / seconds : 0;
	text = human_bytes(rate);
	ret = good_value(step, xprintf("%s bytes/s", text), rate);
	free(text);
	return ret;
}

static int check_load(struct check *c)
{
	double us;
	int ret;

	if (!talk_ping(c->fd, PINGS, &us))
		return bad_talk("ping");
	good_value("ping", xprintf("%.0f us round trip between the two programs", us),
		   us);
	ret = measure(c, "send", talk_send);
	if (!ret)
		ret = measure(c, "receive", talk_receive);
	return ret;
}

static int run_steps(struct check *c)
{
	static int (* const steps[])(struct check *c) = {
		check_module, check_settings, check_memory, check_device,
		check_connect, check_option, check_hello, check_link,
		check_rtt,
	};
	static int (* const more[])(struct check *c) = {
		check_rings, check_load,
	};
	unsigned int i;
	int ret = EXIT_OK;

	for (i = 0; !ret && i < sizeof(steps) / sizeof(steps[0]); i++)
		ret = steps[i](c);
	for (i = 0; !ret && c->probe && i < sizeof(more) / sizeof(more[0]); i++)
		ret = more[i](c);
	return ret;
}

/* getaddrinfo() takes any number, and cuts it to 16 bits. */
static int check_port(const char *port)
{
	size_t digits = strspn(port, "0123456789");
	unsigned long val = strtoul(port, NULL, 10);

	if (*port && (port[digits] || (val >= 1 && val <= 65535)))
		return EXIT_OK;
	complain("check: \"%s\" is not a port", port);
	return EXIT_USAGE;
}

/* "[fd77::1]" is "fd77::1"; not freed */
static const char *without_brackets(const char *host)
{
	size_t len = strlen(host);

	if (len < 3 || *host != '[' || host[len - 1] != ']')
		return host;
	return xprintf("%.*s", (int)len - 2, host + 1);
}

int cmd_check(int argc, char **argv)
{
	struct check c = { .fd = -1 };
	int ret;

	if (argc == 3 && !strcmp(argv[1], "listen"))
		return check_port(argv[2]) ?: talk_listen(argv[2]);
	c.probe = argc == 4 && begins("probe", argv[3]);
	if (argc != 3 && !c.probe) {
		complain("check takes HOST PORT [probe], or listen PORT");
		return EXIT_USAGE;
	}
	if (check_port(argv[2]))
		return EXIT_USAGE;
	c.host = without_brackets(argv[1]);
	c.port = argv[2];
	/* without the module there is one line only */
	ret = see_here(&c.here);
	if (ret)
		return ret;
	if (opt.json)
		json_array();
	ret = run_steps(&c);
	if (opt.json)
		json_array_end();
	if (c.fd >= 0)
		close(c.fd);
	return ret;
}
