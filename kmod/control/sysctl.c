// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings of a namespace (struct rstream_settings), through /proc/sys/net/rdmastream/ and netlink.
 *
 * Values are checked only here, and events.c reports changes.  Readers use READ_ONCE(), and
 * apply a new value to connections, rings and links created afterwards.
 */
#include <linux/capability.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/rdmastream.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "base/events.h"
#include "base/net.h"
#include "link/link.h"
#include "socket/socket.h"
#include "sysctl.h"

#define RING_SIZE_MIN	RSTREAM_RING_MIN
#define RING_SIZE_MAX	SZ_4M

static const struct rstream_settings defaults = {
	.negotiate = 1,
	.prelude = 1,
	/* short connections do not benefit from a ring */
	.ring_mode = RSTREAM_RING_THRESHOLD,
	.ring_threshold = SZ_16K,
	.loopback = 0,
	.ring_size = SZ_256K,
	.ring_idle_ms = 5000,
	.rmb_max = SZ_64M,
	.hello_timeout_ms = 5000,
	.cm_port = 4793,	/* 4789 to 4792 belong to VXLAN, RoCE and others */
	.cm_timeout_ms = 3000,
	.link_idle_ms = 30000,
	.link_probe_ms = 500,
	.link_stall_ms = 1500,
	.ack_timeout = 15,
	.retry_count = 6,
	.links_per_path = 1,
	.links_per_address = 64,
	.links_max = 4096,
	.max_orphans = 16384,
	.link_flap_decay_ms = 30000,	/* as the longest pause between attempts */
	.advertise_addrs = 1,
	.accept_addrs = 1,
};

static const int hello_timeout_min = 10, hello_timeout_max = 600 * 1000;
static const int cm_port_max = 65535;
static const int cm_timeout_min = 10, cm_timeout_max = 600 * 1000;
static const int link_idle_min = 100, link_idle_max = 24 * 3600 * 1000;
static const int ring_idle_min = 10, ring_idle_max = 24 * 3600 * 1000;
static const int probe_min = 10, probe_max = 60 * 1000;
static const int stall_max = 600 * 1000;	/* 0: never */
static const int ack_timeout_max = 31;	/* five bits; 0 would mean "never" */
static const int retry_count_max = 6;
static const int links_max = 8;
static const int links_bound = 65536;
static const int flap_decay_min = 100, flap_decay_max = 24 * 3600 * 1000;

static int protocol = IPPROTO_RDMASTREAM;

static int ring_size_take(rstream_ctl_table *table, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	unsigned int *size = table->data;
	unsigned int val = READ_ONCE(*size);
	struct ctl_table one = *table;
	int err;

	one.data = &val;
	err = proc_douintvec(&one, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	if (!is_power_of_2(val) || val < RING_SIZE_MIN || val > RING_SIZE_MAX)
		return -EINVAL;
	WRITE_ONCE(*size, val);
	return 0;
}

static proc_handler int_handler, ulong_handler, ring_size_handler;

/* An int of struct rstream_settings from @lo to @hi. */
#define SETTING_INT(name, lo, hi) {				\
	.procname = #name,					\
	.data = (void *)offsetof(struct rstream_settings, name),\
	.maxlen = sizeof(int),					\
	.mode = 0644,						\
	.proc_handler = int_handler,				\
	.extra1 = (void *)(lo),					\
	.extra2 = (void *)(hi),					\
}

#define SETTING_ULONG(name) {					\
	.procname = #name,					\
	.data = (void *)offsetof(struct rstream_settings, name),\
	.maxlen = sizeof(unsigned long),			\
	.mode = 0644,						\
	.proc_handler = ulong_handler,				\
}

/* Read-only information for users and libraries; the same in all namespaces. */
#define NUMBER(name, where) {					\
	.procname = name,					\
	.data = (where),					\
	.maxlen = sizeof(int),					\
	.mode = 0444,						\
	.proc_handler = proc_dointvec,				\
}

/* Here, .data of a writable entry is an offset into struct rstream_settings, see table_fill(). */
static const struct ctl_table template[] = {
	SETTING_INT(negotiate, SYSCTL_ZERO, SYSCTL_ONE),
	SETTING_INT(prelude, SYSCTL_ZERO, SYSCTL_ONE),
	SETTING_INT(ring_mode, SYSCTL_ZERO, SYSCTL_TWO),
	SETTING_ULONG(ring_threshold),
	SETTING_INT(loopback, SYSCTL_ZERO, SYSCTL_ONE),
	{
		.procname = "ring_size",
		.data = (void *)offsetof(struct rstream_settings, ring_size),
		.maxlen = sizeof(unsigned int),
		.mode = 0644,
		.proc_handler = ring_size_handler,
	},
	SETTING_INT(ring_idle_ms, &ring_idle_min, &ring_idle_max),
	SETTING_ULONG(rmb_max),
	SETTING_INT(hello_timeout_ms, &hello_timeout_min, &hello_timeout_max),
	SETTING_INT(cm_port, SYSCTL_ONE, &cm_port_max),
	SETTING_INT(cm_timeout_ms, &cm_timeout_min, &cm_timeout_max),
	SETTING_INT(link_idle_ms, &link_idle_min, &link_idle_max),
	SETTING_INT(link_probe_ms, &probe_min, &probe_max),
	SETTING_INT(link_stall_ms, SYSCTL_ZERO, &stall_max),
	SETTING_INT(ack_timeout, SYSCTL_ONE, &ack_timeout_max),
	SETTING_INT(retry_count, SYSCTL_ZERO, &retry_count_max),
	SETTING_INT(links_per_path, SYSCTL_ONE, &links_max),
	SETTING_INT(links_per_address, SYSCTL_ONE, &links_bound),
	SETTING_INT(links_max, SYSCTL_ONE, &links_bound),
	SETTING_INT(max_orphans, SYSCTL_ZERO, SYSCTL_INT_MAX),
	SETTING_INT(link_flap_decay_ms, &flap_decay_min, &flap_decay_max),
	SETTING_INT(advertise_addrs, SYSCTL_ZERO, SYSCTL_ONE),
	SETTING_INT(accept_addrs, SYSCTL_ZERO, SYSCTL_TWO),
	SETTING_INT(histograms, SYSCTL_ZERO, SYSCTL_ONE),
	NUMBER("family", &rstream_family),
	NUMBER("protocol", &protocol),
};

/*
 * Only the host may change the limits on memory, queue pairs and orphans, which belong to it; the
 * time after which a dead link ends, because until then the link occupies workers that all
 * namespaces share; and the port of links, because rdma_cm lets anybody use any port.  A namespace
 * begins with the host's values, and those that cannot change them follow them, except the port.
 */
static bool is_of_host(const struct ctl_table *entry)
{
	static const size_t those[] = {
		offsetof(struct rstream_settings, rmb_max),
		offsetof(struct rstream_settings, links_per_address),
		offsetof(struct rstream_settings, links_max),
		offsetof(struct rstream_settings, max_orphans),
		offsetof(struct rstream_settings, cm_port),
		offsetof(struct rstream_settings, cm_timeout_ms),
		offsetof(struct rstream_settings, link_probe_ms),
		offsetof(struct rstream_settings, link_stall_ms),
		offsetof(struct rstream_settings, ack_timeout),
		offsetof(struct rstream_settings, retry_count),
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(those); i++)
		if (entry->data == (void *)those[i])
			return true;
	return false;
}

static void table_fill(struct ctl_table *table, struct rstream_net *rn)
{
	int i;

	memcpy(table, template, sizeof(template));
	for (i = 0; i < ARRAY_SIZE(template); i++) {
		if (!(table[i].mode & 0222))
			continue;
		if (rn->net->user_ns != &init_user_ns && is_of_host(&table[i]))
			table[i].mode = 0444;
		table[i].data = (u8 *)&rn->set + (uintptr_t)table[i].data;
	}
}

/* ---- writing, and the event ---- */

static u64 setting_read(const struct ctl_table *entry, const void *at)
{
	if (entry->proc_handler == ulong_handler)
		return READ_ONCE(*(const unsigned long *)at);
	return READ_ONCE(*(const unsigned int *)at);
}

static void setting_write(const struct ctl_table *entry, u64 val)
{
	if (entry->proc_handler == ulong_handler)
		WRITE_ONCE(*(unsigned long *)entry->data, val);
	else
		WRITE_ONCE(*(unsigned int *)entry->data, val);
}

static int entry_index(const struct ctl_table *entry)
{
	int i = 0;

	while (template[i].procname != entry->procname)
		i++;
	return i;
}

/* Finds the namespace by the address of the setting @entry. */
static struct net *entry_net(const struct ctl_table *entry)
{
	u8 *set = (u8 *)entry->data - (uintptr_t)template[entry_index(entry)].data;

	return container_of((struct rstream_settings *)set, struct rstream_net,
			    set)->net;
}

/* ---- settings of the host, in other namespaces ---- */

/* Namespaces that cannot change them, so the host's apply; sysctl_table is theirs by then. */
static LIST_HEAD(followers);
static DEFINE_MUTEX(followers_lock);

/* The present value of setting @i in the initial namespace. */
static u64 host_value(int i)
{
	const struct rstream_settings *set = &rstream_net(&init_net)->set;

	return setting_read(&template[i], (const u8 *)set + (uintptr_t)template[i].data);
}

/* The host has changed @entry. */
static void tell_followers(const struct ctl_table *entry)
{
	int i = entry_index(entry);
	struct rstream_net *rn;
	u64 val;

	/* HELLO names the port, on which listeners of before still listen */
	if (!is_of_host(&template[i]) ||
	    template[i].data == (void *)offsetof(struct rstream_settings, cm_port))
		return;
	mutex_lock(&followers_lock);
	val = host_value(i);
	list_for_each_entry(rn, &followers, follow_node) {
		if (setting_read(&template[i], rn->sysctl_table[i].data) == val)
			continue;
		setting_write(&rn->sysctl_table[i], val);
		rstream_event_setting(rn->net, entry->procname, val);
	}
	mutex_unlock(&followers_lock);
}

static void tell_change(const struct ctl_table *entry, u64 before)
{
	u64 val = setting_read(entry, entry->data);
	struct net *net = entry_net(entry);

	if (val != before)
		rstream_event_setting(net, entry->procname, val);
	/* even then: others may have written meanwhile */
	if (net_eq(net, &init_net))
		tell_followers(entry);
}

static int handle(proc_handler *handler, rstream_ctl_table *table, int write,
		  void *buffer, size_t *lenp, loff_t *ppos)
{
	u64 before = setting_read(table, table->data);
	int err;

	/* the kernel itself lets uid 0 write, whatever its capabilities */
	if (write && !ns_capable(entry_net(table)->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	err = handler(table, write, buffer, lenp, ppos);
	if (!err && write)
		tell_change(table, before);
	return err;
}

static int int_handler(rstream_ctl_table *table, int write, void *buffer,
		       size_t *lenp, loff_t *ppos)
{
	return handle(proc_dointvec_minmax, table, write, buffer, lenp, ppos);
}

static int ulong_handler(rstream_ctl_table *table, int write, void *buffer,
			 size_t *lenp, loff_t *ppos)
{
	return handle(proc_doulongvec_minmax, table, write, buffer, lenp, ppos);
}

static int ring_size_handler(rstream_ctl_table *table, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	return handle(ring_size_take, table, write, buffer, lenp, ppos);
}

/* ---- the same, by netlink ---- */

static void setting_range(const struct ctl_table *entry, u64 *min, u64 *max)
{
	if (entry->proc_handler == ring_size_handler) {
		*min = RING_SIZE_MIN;
		*max = RING_SIZE_MAX;
	} else if (entry->proc_handler == ulong_handler) {
		*min = 0;
		*max = ULONG_MAX;
	} else {
		*min = *(const int *)entry->extra1;
		*max = *(const int *)entry->extra2;
	}
}

static void setting_info(const struct rstream_net *rn, int i,
			 struct rstream_setting_info *info)
{
	const struct ctl_table *entry = &rn->sysctl_table[i];
	bool settable = template[i].mode & 0222;

	*info = (struct rstream_setting_info){
		.name = entry->procname,
		.val = setting_read(entry, entry->data),
		.pow2 = entry->proc_handler == ring_size_handler,
		.read_only = !(entry->mode & 0222),
	};
	if (!settable)
		return;
	info->def = setting_read(entry, (u8 *)&defaults +
					(uintptr_t)template[i].data);
	setting_range(entry, &info->min, &info->max);
}

int rstream_setting_info_dump(struct net *net, unsigned int skip,
			      int (*fn)(const struct rstream_setting_info *info,
					void *arg), void *arg)
{
	struct rstream_setting_info info;
	int i, err = 0;

	for (i = skip; i < ARRAY_SIZE(template) && !err; i++) {
		setting_info(rstream_net(net), i, &info);
		err = fn(&info, arg);
	}
	return err;
}

int rstream_setting_set(struct net *net, const char *name, u64 val)
{
	const struct rstream_net *rn = rstream_net(net);
	struct rstream_setting_info info;
	int i;

	for (i = 0; i < ARRAY_SIZE(template); i++) {
		setting_info(rn, i, &info);
		if (strcmp(info.name, name))
			continue;
		if (info.read_only)
			return -EPERM;
		if (val < info.min || val > info.max)
			return -ERANGE;
		if (info.pow2 && !is_power_of_2(val))
			return -EINVAL;
		setting_write(&rn->sysctl_table[i], val);
		tell_change(&rn->sysctl_table[i], info.val);
		return 0;
	}
	return -ENOENT;
}

/* ---- namespaces ---- */

/* Takes over the host's settings, and follows them where they cannot be changed. */
static void follow(struct rstream_net *rn)
{
	int i;

	mutex_lock(&followers_lock);
	for (i = 0; i < ARRAY_SIZE(template); i++)
		if (is_of_host(&template[i]))
			setting_write(&rn->sysctl_table[i], host_value(i));
	if (rn->net->user_ns != &init_user_ns)
		list_add(&rn->follow_node, &followers);
	mutex_unlock(&followers_lock);
}

static void unfollow(struct rstream_net *rn)
{
	mutex_lock(&followers_lock);
	list_del(&rn->follow_node);
	mutex_unlock(&followers_lock);
}

int rstream_sysctl_net_init(struct rstream_net *rn)
{
	size_t n = ARRAY_SIZE(template);

	rn->set = defaults;
	INIT_LIST_HEAD(&rn->follow_node);
	/* before 6.6, an empty entry must end the table */
	rn->sysctl_table = kcalloc(n + 1, sizeof(*rn->sysctl_table), GFP_KERNEL_ACCOUNT);
	if (!rn->sysctl_table)
		return -ENOMEM;
	table_fill(rn->sysctl_table, rn);
	if (!net_eq(rn->net, &init_net))
		follow(rn);
	rn->sysctl = register_net_sysctl_sz(rn->net, "net/rdmastream", rn->sysctl_table, n);
	if (!rn->sysctl) {
		unfollow(rn);
		kfree(rn->sysctl_table);
		return -ENOMEM;
	}
	return 0;
}

void rstream_sysctl_net_exit(struct rstream_net *rn)
{
	unfollow(rn);
	unregister_net_sysctl_table(rn->sysctl);
	kfree(rn->sysctl_table);
}
