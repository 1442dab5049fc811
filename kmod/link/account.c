// SPDX-License-Identifier: GPL-2.0-only
/* Charges links to a memory control group: see account.h. */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "account.h"

/*
 * Bytes that RMBs leave free in the control group: when it is full, the next allocation of a
 * program may cause an OOM kill.
 */
#define ACCOUNT_LEAVES	SZ_2M
/*
 * RMBs get this fraction of the limit of a group, because they cannot be reclaimed.  Peers, links
 * with their queues, requests and sending ends of rings each get a quarter of that.
 */
#define ACCOUNT_PART	8

#ifdef CONFIG_MEMCG
void rstream_account_to(struct rstream_link_net *ln, struct mem_cgroup *memcg)
{
	struct mem_cgroup *old = READ_ONCE(ln->memcg);

	if (!memcg || memcg == old || net_eq(ln->net, &init_net))
		return;
	rcu_read_lock();
	/* RCU keeps the group from being freed under mem_cgroup_online() */
	old = READ_ONCE(ln->memcg);
	if (!old || !mem_cgroup_online(old)) {
		css_get(&memcg->css);	/* the socket has a reference */
		mem_cgroup_put(cmpxchg(&ln->memcg, old, memcg) == old ? old : memcg);
	}
	rcu_read_unlock();
}

/* When a group is removed, the kernel transfers its charges to its parent.  Under RCU. */
static struct mem_cgroup *account_payer(const struct rstream_link_net *ln)
{
	struct mem_cgroup *memcg = READ_ONCE(ln->memcg);

	while (memcg && !mem_cgroup_online(memcg))
		memcg = parent_mem_cgroup(memcg);
	return memcg;
}

static struct mem_cgroup *account_get(const struct rstream_link_net *ln)
{
	struct mem_cgroup *memcg;

	rcu_read_lock();
	memcg = account_payer(ln);
	if (memcg && !css_tryget(&memcg->css))
		memcg = NULL;	/* another group has just replaced it */
	rcu_read_unlock();
	return memcg;
}

static unsigned long account_part(const struct rstream_link_net *ln)
{
	unsigned long pages = ULONG_MAX >> PAGE_SHIFT;
	struct mem_cgroup *memcg;

	rcu_read_lock();
	for (memcg = account_payer(ln); memcg; memcg = parent_mem_cgroup(memcg))
		pages = min3(pages, READ_ONCE(memcg->memory.max),
			     READ_ONCE(memcg->memory.high));
	rcu_read_unlock();
	return (pages << PAGE_SHIFT) / ACCOUNT_PART;
}

/*
 * Inactive page cache of @memcg, bytes: the kernel can reclaim it at once.  Other memory has to be
 * written to swap first.
 */
static u64 account_cache(struct mem_cgroup *memcg)
{
	const struct mem_cgroup_per_node *at;
	u64 pages = 0;
	int node, zone;

	for_each_node_state(node, N_MEMORY) {
		at = memcg->nodeinfo[node];
		for (zone = 0; zone < MAX_NR_ZONES; zone++)
			pages += READ_ONCE(at->lru_zone_size[zone][LRU_INACTIVE_FILE]);
	}
	return pages << PAGE_SHIFT;
}

/*
 * Bytes that can be charged to the group and its parents before an allocation fails.
 * @high: or before one is above memory.high
 */
static u64 account_room(struct mem_cgroup *memcg, bool high)
{
	unsigned long max, used;
	u64 room = U64_MAX, cache;

	rcu_read_lock();
	cache = account_cache(memcg);
	for (; memcg; memcg = parent_mem_cgroup(memcg)) {
		max = READ_ONCE(memcg->memory.max);
		if (high)
			max = min(max, READ_ONCE(memcg->memory.high));
		used = page_counter_read(&memcg->memory);
		room = min(room, ((u64)(max - min(used, max)) << PAGE_SHIFT) + cache);
	}
	rcu_read_unlock();
	return room;
}

static bool counter_is_high(struct page_counter *counter)
{
	return page_counter_read(counter) > READ_ONCE(counter->high);
}

/*
 * Is the group or a parent above memory.high or memory.swap.high?  If so, the kernel puts tasks
 * that charge it to sleep.
 */
static bool account_is_high(struct mem_cgroup *memcg)
{
	bool high = false;

	rcu_read_lock();
	for (; memcg && !high; memcg = parent_mem_cgroup(memcg))
		high = counter_is_high(&memcg->memory) || counter_is_high(&memcg->swap);
	rcu_read_unlock();
	return high;
}

bool rstream_account_can_charge(struct mem_cgroup *memcg, size_t size)
{
	unsigned long used, high;
	bool can = true;
	u64 cache;

	if (!memcg)
		return true;
	if (account_is_high(memcg))
		return false;
	rcu_read_lock();
	cache = account_cache(memcg);
	for (; memcg && can; memcg = parent_mem_cgroup(memcg)) {
		/* at memory.max, charging would reclaim memory that needs to be swapped out */
		high = min(READ_ONCE(memcg->memory.high), READ_ONCE(memcg->memory.max));
		used = page_counter_read(&memcg->memory);
		can = ((u64)(high - min(used, high)) << PAGE_SHIFT) + cache >= size;
	}
	rcu_read_unlock();
	return can;
}
#else
void rstream_account_to(struct rstream_link_net *ln, struct mem_cgroup *memcg)
{
}

static struct mem_cgroup *account_get(const struct rstream_link_net *ln)
{
	return NULL;
}

static unsigned long account_part(const struct rstream_link_net *ln)
{
	return ULONG_MAX / ACCOUNT_PART;
}

static u64 account_room(struct mem_cgroup *memcg, bool high)
{
	return U64_MAX;
}

static bool account_is_high(struct mem_cgroup *memcg)
{
	return false;
}

bool rstream_account_can_charge(struct mem_cgroup *memcg, size_t size)
{
	return true;
}
#endif

bool rstream_account_has_room(struct mem_cgroup *memcg, size_t size)
{
	return !memcg || account_room(memcg, false) >= size;
}

unsigned long rstream_account_rmb_max(const struct rstream_link_net *ln)
{
	return min(READ_ONCE(rstream_link_set(ln)->rmb_max), account_part(ln));
}

unsigned int rstream_account_most(const struct rstream_link_net *ln, unsigned int most,
				  size_t each)
{
	return min_t(unsigned long, most, max(account_part(ln) / 4 / each, 1UL));
}

bool rstream_account_on(struct rstream_account *account, const struct rstream_link_net *ln,
			gfp_t gfp)
{
	account->memcg = account_get(ln);
	if (account_is_high(account->memcg)) {
		mem_cgroup_put(account->memcg);
		return false;
	}
	account->outer = set_active_memcg(account->memcg);
	account->gfp = account->memcg ? (gfp & ~__GFP_HIGH) | __GFP_ACCOUNT | __GFP_NORETRY |
					__GFP_NOWARN : gfp;
	return true;
}

void rstream_account_off(struct rstream_account *account)
{
	set_active_memcg(account->outer);
	mem_cgroup_put(account->memcg);
}

void *rstream_account_zalloc(const struct rstream_link_net *ln, size_t size, gfp_t gfp)
{
	struct rstream_account account;
	void *mem;

	if (!rstream_account_on(&account, ln, gfp))
		return NULL;
	mem = kzalloc(size, account.gfp);
	rstream_account_off(&account);
	return mem;
}

bool rstream_account_leaves(const struct rstream_account *account, size_t size)
{
	return !account->memcg || account_room(account->memcg, true) >= size + ACCOUNT_LEAVES;
}

void rstream_account_end(struct rstream_link_net *ln)
{
	mem_cgroup_put(ln->memcg);
}
