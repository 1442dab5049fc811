// SPDX-License-Identifier: GPL-2.0-only
/* Hosts, their cables, devices and settings: what changes, what breaks, what comes back. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"

#define FAULTS	"/sys/module/rs_hca/parameters/"
#define SETTINGS	"/proc/sys/net/rdmastream/"

#define WIRE	SIM_HOSTS	/* no host: where the cables are */
static int spaces[SIM_HOSTS + 1];
static int wire;		/* a socket where the cables are */

/* Of each host, when it is over; 0: it is not. */
static uint64_t cut_till[SIM_HOSTS], drained_till[SIM_HOSTS];
static uint64_t fault_till, short_till, lie_till;
static int tcp_mem;		/* of the whole machine */
static char tcp_mem_was[64];
static bool may_be_short;

/*
 * Kinds of rs_hca, and about how often: one in this many requests.  Not "reset": nobody can
 * drain a queue pair of such a device.
 */
static const struct {
	const char *name;
	unsigned int often;
} faults[] = {
	{ "delay", 3 }, { "loss", 100 }, { "repeat", 4 }, { "again", 4 }, { "replace", 4 },
	{ "mad", 3 }, { "post_send", 200 },
	{ "post_recv", 200 }, { "map", 100 }, { "alloc_pd", 2 }, { "create_cq", 2 },
	{ "create_qp", 2 }, { "modify_qp", 4 }, { "alloc_mr", 2 }, { "reg_mr", 4 },
	{ "remove", 400 },
};

#define N_FAULTS	(sizeof(faults) / sizeof(faults[0]))

/* What a setting is changed to; the first is as it was. */
static const struct {
	const char *name, *to[4];
} settings[] = {
	{ "ring_idle_ms", { "5000", "100", "1000", "60000" } },
	{ "ring_size", { "262144", "65536", "1048576", "4194304" } },
	{ "rmb_max", { "67108864", "1048576", "4194304", "0" } },
	{ "ring_mode", { "1", "0", "2", "1" } },
	{ "prelude", { "1", "0", "1", "0" } },
	{ "negotiate", { "1", "1", "1", "0" } },
	{ "links_per_path", { "1", "2", "4", "8" } },
	{ "link_probe_ms", { "500", "100", "2000", "500" } },
	{ "link_idle_ms", { "30000", "1000", "5000", "30000" } },
};

#define N_SETTINGS	(sizeof(settings) / sizeof(settings[0]))

static void put(const char *dir, const char *name, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s", dir, name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		rs_die("%s: %m", path);
	if (write(fd, value, strlen(value)) < 0)
		rs_die("%s to %s: %m", value, path);
	close(fd);
}

static void put_number(const char *dir, const char *name, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	put(dir, name, text);
}

static int space(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		rs_die("%s: %m", path);
	return fd;
}

void world_enter(int host)
{
	static int current = -1;

	if (host != current && setns(spaces[host], CLONE_NEWNET))
		rs_die("setns: %m");
	current = host;
}

void world_init(const char *seed)
{
	char name[16];

	tcp_mem = open("/proc/sys/net/ipv4/tcp_mem", O_RDWR | O_CLOEXEC);
	if (tcp_mem < 0 || read(tcp_mem, tcp_mem_was, sizeof(tcp_mem_was) - 1) < 0)
		rs_die("tcp_mem: %m");
	spaces[WIRE] = space("wire");
	world_enter(WIRE);
	wire = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (int i = 0; i < sim_hosts; i++) {
		snprintf(name, sizeof(name), "h%d", i);
		spaces[i] = space(name);
	}
	put(FAULTS, "seed", seed);
	/* then a closed socket may be reset, and its peer with it */
	may_be_short = !sim_random(4);
}

/* The host's cable, at the switch. */
static void cable(int host, bool in)
{
	struct ifreq ifr = { .ifr_flags = in ? IFF_UP : 0 };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "p%d", host);
	if (ioctl(wire, SIOCSIFFLAGS, &ifr))
		rs_die("%s: %m", ifr.ifr_name);
}

/* Return: the exit status. */
static int command(int host, const char *fmt, ...)
{
	char text[32 + 4 * SIM_HOSTS];
	va_list args;
	int status;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	world_enter(host);
	status = system(text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void device(int host, bool there)
{
	int status;

	status = there ? command(host, "exec rdma link add hca%d type rs_hca netdev eth0 2>/dev/null", host) :
			 command(host, "exec rdma link del hca%d 2>/dev/null", host);
	sim_note("host %d: device %s: %d", host, there ? "comes" : "goes", status);
}

static bool has_device(int host)
{
	char path[64];

	/* those of all namespaces are here */
	snprintf(path, sizeof(path), "/sys/class/infiniband/hca%d", host);
	return !access(path, F_OK);
}

bool world_is_short(void)
{
	return may_be_short;
}

void world_tell(void)
{
	fflush(stdout);
	for (int i = 0; i < sim_hosts; i++)
		command(i, "echo host %d; rsctl -d sockets; rsctl -d links; rsctl -o stats; ss -tanemio; "
			"nstat -as | grep -E '^Tcp.*(Abort|Rsts|Resets|Drop|Fail|Overflow|Prune|Memory|Bad)'", i);
}

void world_check(void)
{
	char text[20 + 4 * SIM_HOSTS];
	size_t n = snprintf(text, sizeof(text), "rs_invariants%s", sim_liar < 0 ? "" : " -l");

	for (int i = 0; i < sim_hosts; i++)
		n += snprintf(text + n, sizeof(text) - n, " h%d", i);
	fflush(stdout);
	if (command(0, "exec %s", text))
		sim_wrong("sockets, links and memory do not agree");
	sim_note("checked");
}

static void drain(int host, bool on)
{
	command(host, "exec rsctl drain %s >/dev/null", on ? "on" : "off");
}

/* What TCP may take, in pages. */
static void memory(const char *pages)
{
	if (pwrite(tcp_mem, pages, strlen(pages), 0) < 0)
		rs_die("tcp_mem: %m");
}

static uint64_t later(unsigned int most_ms)
{
	return sim_now_us() + 1000ULL * sim_size(most_ms);
}

static void faults_off(void)
{
	for (unsigned int i = 0; i < N_FAULTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "fault_%s", faults[i].name);
		put(FAULTS, name, "0");
	}
	fault_till = 0;
}

static void fault(void)
{
	unsigned int i = sim_random(N_FAULTS), often = 1 + sim_random(2 * faults[i].often);
	char name[32];

	snprintf(name, sizeof(name), "fault_%s", faults[i].name);
	put_number(FAULTS, name, often);
	put_number(FAULTS, "fault_delay_us", sim_size(20000));
	fault_till = later(4000);
	sim_note("fault: %s, once in %u", faults[i].name, often);
}

/* By RDMA, and in what TCP carries: simulate.sh has made the rules. */
static void lie(unsigned int often)
{
	put_number(FAULTS, "fault_lie", often);
	command(WIRE, "exec nft '%s'", often ? "add rule netdev liar says jump lies" :
					       "flush chain netdev liar says");
	lie_till = often ? later(4000) : 0;
	sim_note("lies: once in %u", often);
}

static void setting(int host, unsigned int i, unsigned int to)
{
	world_enter(host);
	put(SETTINGS, settings[i].name, settings[i].to[to]);
}

/* All at once, and without a word; it comes back. */
static void die(int host)
{
	sim_note("host %d: dies", host);
	cable(host, false);
	cut_till[host] = later(16000);
	conn_die(host);
	if (has_device(host))
		device(host, false);
}

void world_act(void)
{
	unsigned int r = sim_random(sim_liar < 0 ? 17 : 20), i;
	int host = sim_random(sim_hosts);

	if (r < 7) {
		fault();
	} else if (r < 9 && !cut_till[host]) {
		cable(host, false);
		cut_till[host] = later(16000);
		sim_note("host %d: cable out", host);
	} else if (r < 11 && !drained_till[host]) {
		drain(host, true);
		drained_till[host] = later(8000);
		sim_note("host %d: drained", host);
	} else if (r < 12) {
		device(host, !has_device(host));
	} else if (r < 13 && !short_till && may_be_short) {
		memory("60 90 120");
		short_till = later(2000);
		sim_note("memory is short");
	} else if (r < 14 && !cut_till[host] && !sim_random(4)) {	/* many connections end with it */
		die(host);
	} else if (r >= 17) {
		lie(1 + sim_random(40));
	} else {
		i = sim_random(N_SETTINGS);
		r = sim_random(4);
		setting(host, i, r);
		sim_note("host %d: %s=%s", host, settings[i].name, settings[i].to[r]);
	}
}

static void host_mend(int host, uint64_t now, bool all)
{
	if (cut_till[host] && (all || now > cut_till[host])) {
		cable(host, true);
		cut_till[host] = 0;
		sim_note("host %d: cable in", host);
	}
	if (drained_till[host] && (all || now > drained_till[host])) {
		drain(host, false);
		drained_till[host] = 0;
		sim_note("host %d: no longer drained", host);
	}
}

void world_mend(void)
{
	uint64_t now = sim_now_us();
	int host = sim_random(sim_hosts);

	if (fault_till && now > fault_till)
		faults_off();
	if (lie_till && now > lie_till)
		lie(0);
	if (short_till && now > short_till) {
		memory(tcp_mem_was);
		short_till = 0;
	}
	for (int i = 0; i < sim_hosts; i++)
		host_mend(i, now, false);
	if (!sim_random(20) && !has_device(host))
		device(host, true);
}

void world_calm(void)
{
	faults_off();
	memory(tcp_mem_was);
	if (lie_till)
		lie(0);
	for (int i = 0; i < sim_hosts; i++) {
		host_mend(i, 0, true);
		if (!has_device(i))
			device(i, true);
		for (unsigned int k = 0; k < N_SETTINGS; k++)
			setting(i, k, 0);
		/* so that what a peer owes is still seen when all is closed */
		put(SETTINGS, "link_idle_ms", "600000");
	}
	sim_note("calm");
}
