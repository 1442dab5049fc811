// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module init and exit; creation and removal of namespaces.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "base/net.h"
#include "base/stats.h"
#include "control/netlink.h"
#include "control/sysctl.h"
#include "link/link.h"
#include "socket/socket.h"

unsigned int rstream_net_id;

static int __net_init net_init(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);
	int err;

	rn->net = net;
	get_random_bytes(rn->instance, sizeof(rn->instance));
	rstream_stream_net_init(rn);
	rstream_option_server_net_init(rn);
	err = rstream_mib_net_init(net);
	if (err)
		return err;
	err = rstream_sysctl_net_init(rn);
	if (err)
		goto no_sysctl;
	err = rstream_link_net_init(net);
	if (err)
		goto no_links;
	return 0;

no_links:
	rstream_sysctl_net_exit(rn);
no_sysctl:
	rstream_mib_net_exit(net);
	return err;
}

static void __net_exit net_exit(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);

	rstream_option_server_net_exit(rn);
	rstream_link_net_exit(net);
	rstream_sysctl_net_exit(rn);
	rstream_mib_net_exit(net);
}

static struct pernet_operations net_ops = {
	.init = net_init,
	.exit = net_exit,
	.id = &rstream_net_id,
	.size = sizeof(struct rstream_net),
};

static int __init rstream_init(void)
{
	int err = rstream_stream_init();

	if (err)
		return err;
	rstream_option_server_init();
	err = register_pernet_subsys(&net_ops);
	if (err)
		goto no_net;
	err = rstream_link_net_register(&rstream_ring_ops);
	if (err)
		goto no_link;
	err = rstream_netlink_init();
	if (err)
		goto no_netlink;
	err = rstream_af_init();
	if (err)
		goto no_family;
	return 0;

no_family:
	rstream_netlink_exit();
no_netlink:
	rstream_link_net_unregister();
no_link:
	unregister_pernet_subsys(&net_ops);
no_net:
	rstream_stream_exit();
	return err;
}

static void __exit rstream_exit(void)
{
	rstream_af_exit();
	rstream_netlink_exit();
	unregister_pernet_subsys(&net_ops);
	rstream_link_net_unregister();
	rstream_stream_exit();
}

module_init(rstream_init);
module_exit(rstream_exit);

MODULE_AUTHOR("The rdmastream developers");
MODULE_DESCRIPTION("AF_RDMASTREAM: TCP sockets whose bytes go by RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_SOFTDEP("pre: rdma_cm");
