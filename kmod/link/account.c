// SPDX-License-Identifier: GPL-2.0-only
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "account.h"

/*
 * What RMBs leave, bytes: of a control group that is full a process is killed for whatever
 * it asks for next.
 */
#define ACCOUNT_LEAVES	SZ_2M

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
		memcg = NULL;	/* another one has just taken its place */
	rcu_read_unlock();
	return memcg;
}
#else
void rstream_account_to(struct rstream_link_net *ln, struct mem_cgroup *memcg)
{
}

static struct mem_cgroup *account_get(const struct rstream_link_net *ln)
{
	return NULL;
}
#endif

void rstream_account_on(struct rstream_account *account, const struct rstream_link_net *ln,
			gfp_t gfp)
{
	account->memcg = account_get(ln);
	account->outer = set_active_memcg(account->memcg);
	account->gfp = account->memcg ? (gfp & ~__GFP_HIGH) | __GFP_ACCOUNT | __GFP_NORETRY |
					__GFP_NOWARN : gfp;
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

	rstream_account_on(&account, ln, gfp);
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
