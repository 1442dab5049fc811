// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMASTREAM_RULES: the peers with which a program lets its socket negotiate.  Set only
 * while the socket is neither connected nor a listener; read by connect(), and when a SYN is
 * answered.  Owned by the stream, freed with it.
 */
#include <linux/rdmastream.h>
#include <net/ipv6.h>

#include "rules.h"

struct rstream_rules {
	unsigned int n;
	struct rdmastream_rule rule[] __counted_by(n);
};

static bool is_valid(const struct rdmastream_rule *rule)
{
	return rule->prefix_len <= 128 && rule->exclude <= 1 &&
	       rule->port_min <= rule->port_max && !rule->reserved;
}

static struct rstream_rules *read_rules(sockptr_t optval, unsigned int n)
{
	struct rstream_rules *rules;
	unsigned int i;

	rules = kmalloc(struct_size(rules, rule, n), GFP_KERNEL_ACCOUNT);
	if (!rules)
		return ERR_PTR(-ENOMEM);
	rules->n = n;
	if (copy_from_sockptr(rules->rule, optval, n * sizeof(*rules->rule))) {
		kfree(rules);
		return ERR_PTR(-EFAULT);
	}
	for (i = 0; i < n; i++) {
		if (!is_valid(&rules->rule[i])) {
			kfree(rules);
			return ERR_PTR(-EINVAL);
		}
	}
	return rules;
}

int rstream_rules_set(struct rstream *rs, sockptr_t optval, unsigned int optlen)
{
	unsigned int n = optlen / sizeof(struct rdmastream_rule);
	struct rstream_rules *rules = NULL;
	int err = 0;

	if (optlen % sizeof(struct rdmastream_rule) || n > RDMASTREAM_RULES_MAX)
		return -EINVAL;
	if (n)
		rules = read_rules(optval, n);
	if (IS_ERR(rules))
		return PTR_ERR(rules);
	lock_sock(rs->sk);
	/* a listener that does not negotiate is IDLE, too */
	if (rs->mode == RSTREAM_IDLE && rs->sk->sk_state == TCP_CLOSE)
		swap(rs->rules, rules);
	else
		err = -EISCONN;
	release_sock(rs->sk);
	kfree(rules);
	return err;
}

static bool allows(const struct rstream_rules *rules, const struct in6_addr *addr, u16 port)
{
	const struct rdmastream_rule *rule;

	for (rule = rules->rule; rule < rules->rule + rules->n; rule++) {
		if (port >= rule->port_min && port <= rule->port_max &&
		    ipv6_prefix_equal(addr, (const struct in6_addr *)rule->addr,
				      rule->prefix_len))
			return !rule->exclude;
	}
	return rules->rule[rules->n - 1].exclude;
}

bool rstream_rules_connect(const struct rstream *rs, const struct sockaddr_unsized *addr,
			   int len)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	struct in6_addr mapped;

	if (!rs->rules)
		return true;
	if (addr->sa_family == AF_INET6 && len >= SIN6_LEN_RFC2133)
		return allows(rs->rules, &in6->sin6_addr, ntohs(in6->sin6_port));
	if (addr->sa_family != AF_INET || len < (int)sizeof(*in))
		return true;	/* TCP will refuse it */
	ipv6_addr_set_v4mapped(in->sin_addr.s_addr, &mapped);
	return allows(rs->rules, &mapped, ntohs(in->sin_port));
}

bool rstream_rules_accept(const struct rstream *rs, const struct sock_common *client)
{
	struct in6_addr mapped;

	if (!rs->rules)
		return true;
#if IS_ENABLED(CONFIG_IPV6)
	if (client->skc_family == AF_INET6)
		return allows(rs->rules, &client->skc_v6_daddr, client->skc_num);
#endif
	ipv6_addr_set_v4mapped(client->skc_daddr, &mapped);
	return allows(rs->rules, &mapped, client->skc_num);
}
