// SPDX-License-Identifier: GPL-2.0-only
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "account.h"

/*
 * Memory that RMBs leave to the control group, bytes: when a group is full, the next allocation
 * kills a process.
 */
#define ACCOUNT_LEAVES	SZ_2M
/*
 * RMBs get this part of the limit of a group, because they cannot be reclaimed.  Peers, links
 * with their queues, and sending ends of rings each get a quarter of that.
 */
#define ACCOUNT_PART	8

#ifdef CONFIG_MEMCG
void rstream_account_to(struct rstream_link_net *ln, struct mem_cgroup *memcg)
{
	struct mem_cgroup *old = READ_ONCE(ln->memcg);

	if (!memcg || memcg == old || net_eq(ln->net, &init_net))
		return;
	rcu_read_lock();
	/* with the lock it is not freed under mem_cgroup_online() */
	old = READ_ONCE(ln->memcg);
	if (!old || !mem_cgroup_online(old)) {
		css_get(&memcg->css);	/* the socket has a reference */
		mem_cgroup_put(cmpxchg(&ln->memcg, old, memcg) == old ? old : memcg);
	}
	rcu_read_unlock();
}

static struct mem_cgroup *account_get(const struct rstream_link_net *ln)
{
	struct mem_cgroup *memcg;

	rcu_read_lock();
	memcg = READ_ONCE(ln->memcg);
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
	for (memcg = READ_ONCE(ln->memcg); memcg; memcg = parent_mem_cgroup(memcg))
		pages = min3(pages, READ_ONCE(memcg->memory.max),
			     READ_ONCE(memcg->memory.high));
	rcu_read_unlock();
	return (pages << PAGE_SHIFT) / ACCOUNT_PART;
}

/* Is it, or a parent, above memory.high?  Tasks that charge it are then put to sleep. */
static bool account_is_high(struct mem_cgroup *memcg)
{
	bool high = false;

	rcu_read_lock();
	for (; memcg && !high; memcg = parent_mem_cgroup(memcg))
		high = page_counter_read(&memcg->memory) > READ_ONCE(memcg->memory.high);
	rcu_read_unlock();
	return high;
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
	return ULONG_MAX;
}

static bool account_is_high(struct mem_cgroup *memcg)
{
	return false;
}
#endif

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

bool rstream_account_leaves(const struct rstream_account *account)
{
	unsigned int n = account->memcg ? ACCOUNT_LEAVES >> PAGE_SHIFT : 0;
	struct page *page, *next;
	LIST_HEAD(pages);

	for (; n; n--) {
		page = alloc_page(account->gfp);
		if (!page)
			break;
		list_add(&page->lru, &pages);
	}
	list_for_each_entry_safe(page, next, &pages, lru)
		__free_page(page);
	return !n;
}

void rstream_account_end(struct rstream_link_net *ln)
{
	mem_cgroup_put(ln->memcg);
}
