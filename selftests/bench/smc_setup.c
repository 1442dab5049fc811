// SPDX-License-Identifier: GPL-2.0-only
/*
 * What SMC-R needs on soft-RoCE, where nothing tells it which device belongs to
 * which network: a user EID and a PNET id, the same on both hosts.  And what it has
 * carried, to tell it from SMC that has fallen back to TCP.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/smc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
"smc_setup add NETDEV IBDEV   user EID, PNET id of the netdev and of port 1\n"
"smc_setup stats              what SMC-R has carried, lines \"NAME VALUE\"\n";

/* An EID is filled up with spaces, and 0 follows. */
static const char eid[SMC_MAX_EID_LEN + 1] = "RDMASTREAM.BENCH                ";
static const char pnet_id[] = "BENCH";

static struct mnl_socket *nl;
static char buf[8192];

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("smc_setup: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static struct nlmsghdr *request(uint16_t family, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = time(NULL);
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	return nlh;
}

/* Return: 0 or minus errno; @cb sees every message of the answer. */
static int talk(struct nlmsghdr *nlh, mnl_cb_t cb, void *data)
{
	unsigned int seq = nlh->nlmsg_seq, port = mnl_socket_get_portid(nl);
	int ret;

	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		ret = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (ret >= 0)
			ret = mnl_cb_run(buf, ret, seq, port, cb, data);
	} while (ret > 0);
	return ret < 0 ? -errno : 0;
}

static int family_cb(const struct nlmsghdr *nlh, void *data)
{
	struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			*(uint16_t *)data = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static uint16_t genl_id(const char *name)
{
	struct nlmsghdr *nlh = request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	uint16_t id = 0;
	int err;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, name);
	err = talk(nlh, family_cb, &id);
	if (err || !id)
		die("generic netlink family %s: %s", name, strerror(-err));
	return id;
}

static void ask(struct nlmsghdr *nlh, const char *what)
{
	int err = talk(nlh, NULL, NULL);

	if (err && err != -EEXIST)
		die("%s: %s", what, strerror(-err));
}

static void add(const char *netdev, const char *ibdev)
{
	uint16_t pnet = genl_id(SMCR_GENL_FAMILY_NAME);
	struct nlmsghdr *nlh;

	nlh = request(genl_id(SMC_GENL_FAMILY_NAME), SMC_NETLINK_ADD_UEID, NLM_F_ACK);
	mnl_attr_put_strz(nlh, SMC_NLA_EID_TABLE_ENTRY, eid);
	ask(nlh, "user EID");

	nlh = request(pnet, SMC_PNETID_ADD, NLM_F_ACK);
	mnl_attr_put_strz(nlh, SMC_PNETID_NAME, pnet_id);
	mnl_attr_put_strz(nlh, SMC_PNETID_ETHNAME, netdev);
	ask(nlh, "PNET id of the netdev");

	nlh = request(pnet, SMC_PNETID_ADD, NLM_F_ACK);
	mnl_attr_put_strz(nlh, SMC_PNETID_NAME, pnet_id);
	mnl_attr_put_strz(nlh, SMC_PNETID_IBNAME, ibdev);
	mnl_attr_put_u8(nlh, SMC_PNETID_IBPORT, 1);
	ask(nlh, "PNET id of the RDMA device");
}

static void print_tech(const struct nlattr *tech)
{
	struct nlattr *attr;

	mnl_attr_for_each_nested(attr, tech)
		switch (mnl_attr_get_type(attr)) {
		case SMC_NLA_STATS_T_TX_BYTES:
			printf("tx-bytes %llu\n",
			       (unsigned long long)mnl_attr_get_u64(attr));
			break;
		case SMC_NLA_STATS_T_RX_BYTES:
			printf("rx-bytes %llu\n",
			       (unsigned long long)mnl_attr_get_u64(attr));
			break;
		}
}

static int stats_cb(const struct nlmsghdr *nlh, void *data)
{
	struct nlattr *stats, *attr;

	(void)data;
	mnl_attr_for_each(stats, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(stats) != SMC_GEN_STATS)
			continue;
		mnl_attr_for_each_nested(attr, stats)
			if (mnl_attr_get_type(attr) == SMC_NLA_STATS_SMCR_TECH)
				print_tech(attr);
	}
	return MNL_CB_OK;
}

static void stats(void)
{
	struct nlmsghdr *nlh = request(genl_id(SMC_GENL_FAMILY_NAME),
				       SMC_NETLINK_GET_STATS, NLM_F_DUMP);
	int err = talk(nlh, stats_cb, NULL);

	if (err)
		die("statistics: %s", strerror(-err));
}

int main(int argc, char **argv)
{
	nl = mnl_socket_open(NETLINK_GENERIC);
	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		die("netlink: %m");
	if (argc == 4 && !strcmp(argv[1], "add")) {
		add(argv[2], argv[3]);
	} else if (argc == 2 && !strcmp(argv[1], "stats")) {
		stats();
	} else {
		fputs(usage, stderr);
		return 2;
	}
	return 0;
}
