// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl explain: what a reason means, its usual cause, and what to do.
 *
 * The meaning is the module's own text; cause and remedy are here.
 */
#include <stdio.h>
#include <string.h>

#include "rsctl.h"

struct advice {
	const char *cause;
	const char *remedy;
};

static const struct advice advices[] = {
	[RDMASTREAM_REASON_NONE] = {
		"Nothing prevents the use of RDMA.", "Nothing." },
	[RDMASTREAM_REASON_OFF] = {
		"net.rdmastream.negotiate is 0 in this network namespace.",
		"sysctl net.rdmastream.negotiate=1" },
	[RDMASTREAM_REASON_EXCLUDED] = {
		"A rule of \"rsctl run\" (-i, -x) or of RDMASTREAM_RULES excludes the connection.",
		"Change the rules if this connection should use RDMA." },
	[RDMASTREAM_REASON_NO_DEVICE] = {
		"No RDMA device on this host, or none on the peer, has an IP address.",
		"See \"rdma link\" and \"ibv_devinfo -v\" on both hosts." },
	[RDMASTREAM_REASON_FASTOPEN] = {
		"The program sent data with its SYN, which leaves no time to negotiate.",
		"Switch TCP Fast Open off in the program." },
	[RDMASTREAM_REASON_NO_MEMORY] = {
		"The kernel or the control group was out of memory.",
		"See dmesg and the memory limits of the control group." },
	[RDMASTREAM_REASON_NO_OPTION] = {
		"The peer does not run rdmastream, or a firewall strips TCP options.",
		"Run \"rsctl version\" there; compare SYN and SYN-ACK on both sides with tcpdump." },
	[RDMASTREAM_REASON_BAD_OPTION] = {
		"A middlebox returns TCP options unchanged, or the peer is faulty.",
		"Look for a proxy or load balancer on the way." },
	[RDMASTREAM_REASON_NO_OPTION_SPACE] = {
		"TCP-MD5 or TCP-AO signs the TCP header, or other options fill it.",
		"Do not use these options on this connection." },
	[RDMASTREAM_REASON_NO_HELLO] = {
		"Something between the hosts answered the option but speaks plain TCP, e.g. a proxy.",
		"Look for a proxy or load balancer on the way." },
	[RDMASTREAM_REASON_SPOKE_FIRST] = {
		"The server program sent data before the client had answered.",
		"Nothing; the next connection may succeed." },
	[RDMASTREAM_REASON_VERSION] = {
		"The hosts run very different versions of the module.",
		"Compare \"rsctl version\" on both hosts." },
	[RDMASTREAM_REASON_LOOPBACK] = {
		"Connections within a network namespace stay on TCP by default.",
		"To use RDMA anyway: sysctl net.rdmastream.loopback=1" },
	[RDMASTREAM_REASON_RING_OFF] = {
		"net.rdmastream.ring_mode is 0 in this network namespace.",
		"sysctl net.rdmastream.ring_mode=1" },
	[RDMASTREAM_REASON_WAIT_BYTES] = {
		"net.rdmastream.ring_mode is 2, and fewer than ring_threshold bytes were transferred.",
		"Nothing, or lower net.rdmastream.ring_threshold." },
	[RDMASTREAM_REASON_WAIT_LINK] = {
		"The first connections to a peer wait until rdma_cm has established a link.",
		"Nothing; if it persists, see \"rsctl links\"." },
	[RDMASTREAM_REASON_LINK_FAILED] = {
		"RDMA between the hosts is filtered or not configured.",
		"Try \"rping\" between the same addresses; RoCE needs UDP port 4791 open, iWARP TCP port net.rdmastream.cm_port, InfiniBand a subnet manager and the same P_Key." },
	[RDMASTREAM_REASON_RMB_LIMIT] = {
		"Rings of other connections use all memory that net.rdmastream.rmb_max allows, or an eighth of the control group's memory.max.",
		"Raise the lower of the two (\"rsctl memory\" shows it), or lower ring_size." },
	[RDMASTREAM_REASON_HELLO_TIMEOUT] = {
		"The peer, or the network, stalled just after connecting.",
		"Raise net.rdmastream.hello_timeout_ms on slow networks." },
	[RDMASTREAM_REASON_LATE_HELLO] = {
		"The peer's first bytes arrived after this host had stopped waiting for them.",
		"Raise net.rdmastream.hello_timeout_ms on both hosts." },
	[RDMASTREAM_REASON_TRUNCATED] = {
		"The peer or a firewall closed TCP in the middle of a stream.",
		"Look at the peer's kernel log and at firewalls on the way." },
	[RDMASTREAM_REASON_LINK_LOST] = {
		"An RDMA device or port went down; the stream continues over TCP.",
		"See \"rdma link\" and the kernel log on both hosts." },
	[RDMASTREAM_REASON_RING_REVOKED] = {
		"The peer needed the memory, or wants to grant a ring of another size.",
		"Nothing; \"rsctl sockets\" on the peer shows why." },
	[RDMASTREAM_REASON_RING_IDLE] = {
		"No data arrived for net.rdmastream.ring_idle_ms, so the memory was freed.",
		"Nothing; the stream gets a ring again when it is busy." },
	[RDMASTREAM_REASON_RING_GRANTED] = {
		"This direction of the connection switched from TCP to RDMA.", "Nothing." },
	[RDMASTREAM_REASON_DRAINED] = {
		"An administrator ran \"rsctl drain on\" in this network namespace.",
		"Run \"rsctl drain off\" when the work on the RDMA devices is done." },
	[RDMASTREAM_REASON_PEER_DRAINED] = {
		"An administrator ran \"rsctl drain on\" on the peer.",
		"Nothing; streams return to RDMA when the drain ends." },
	[RDMASTREAM_REASON_STALL_WINDOW] = {
		"The program at the other end reads more slowly than this one writes.",
		"Check what that program does; a larger SO_RCVBUF there allows more data in flight." },
	[RDMASTREAM_REASON_STALL_RING] = {
		"The program at the other end reads more slowly than this one writes, or the ring is too small for the round-trip time.",
		"Check what that program does; if it is waiting for data itself, raise net.rdmastream.ring_size there." },
	[RDMASTREAM_REASON_STALL_SLOT] = {
		"The RDMA device is busy; the link has reached its capacity.",
		"Use more links: raise net.rdmastream.links_per_path on both hosts." },
	[RDMASTREAM_REASON_STALL_CREDIT] = {
		"The other host's CPUs are busy, so it processes messages slowly.",
		"Use larger writes, or more links: raise net.rdmastream.links_per_path on both hosts." },
	[RDMASTREAM_REASON_LINK_MALFORMED] = {
		"Something other than rdmastream, or another version of it, connects to the rdma_cm port of this host.",
		"Compare \"rsctl version\" on both hosts, or choose another port: net.rdmastream.cm_port." },
	[RDMASTREAM_REASON_LINK_UNKNOWN] = {
		"The connection for which the peer wants a link has just ended here.",
		"Nothing; the peer tries again for its next connection." },
	[RDMASTREAM_REASON_PEER_LIMIT] = {
		"Too many network namespaces connect from one address, or in total.",
		"Nothing; their connections stay on TCP.  See Documentation/security.rst." },
	[RDMASTREAM_REASON_NO_COMMON_TRANSPORT] = {
		"RoCE and InfiniBand devices cannot exchange data with iWARP devices.",
		"Use devices of the same kind on both hosts; some can be switched between RoCE and iWARP (\"rdma link\", \"rsctl devices\")." },
	[RDMASTREAM_REASON_IPSEC] = {
		"An IPsec policy, MACsec or a tunnel protects this connection, or may do so; RDMA would carry its data unencrypted.",
		"Nothing, or exempt the peer from the policy or tunnel if the RDMA network is protected otherwise." },
	[RDMASTREAM_REASON_ORPHAN_LIMIT] = {
		"Programs have closed many connections whose peers do not read the remaining data, or TCP has used up net.ipv4.tcp_mem.",
		"Find the peers that do not read (rsctl sockets); if they are legitimate, raise net.rdmastream.max_orphans of the host or net.ipv4.tcp_mem." },
	[RDMASTREAM_REASON_LINK_UNAUTHENTICATED] = {
		"Another host forwards, replays or forges what this peer says; or there is NAT on the path of RoCE.",
		"\"rsctl monitor\" shows which address sends it; see Documentation/security.rst." },
	[RDMASTREAM_REASON_LINK_BUSY] = {
		"This host is short of memory, or the peer establishes very many links.",
		"See dmesg, \"rsctl devices\", net.rdmastream.links_per_path on the peer, and links_per_address and links_max here." },
	[RDMASTREAM_REASON_GRANT_REFUSED] = {
		"The peer had no memory or no link for the ring, or had nothing more to send.",
		"Nothing; the grant is repeated.  If it persists, see \"rsctl stats\" on the peer." },
};

/* For all other reasons, which are faults of the peer. */
static const struct advice peer_fault = {
	"The peer's module is faulty or malicious, or data was altered on the way.",
	"Compare \"rsctl version\" on both hosts; if the versions are equal, please report it.",
};

static const struct advice *advice_of(uint64_t reason)
{
	if (reason < sizeof(advices) / sizeof(advices[0]) &&
	    advices[reason].cause)
		return &advices[reason];
	return &peer_fault;
}

const char *reason_cause(uint64_t reason)
{
	return advice_of(reason)->cause;
}

const char *reason_remedy(uint64_t reason)
{
	return advice_of(reason)->remedy;
}

static void object(const struct item *item, const struct advice *advice)
{
	json_object(NULL);
	json_str("name", item->name);
	json_str("text", item->text);
	json_str("cause", advice->cause);
	json_str("remedy", advice->remedy);
	json_object_end();
}

void explain_json(void)
{
	object(reason_item(0), &peer_fault);
}

static void show(uint64_t reason)
{
	const struct item *item = reason_item(reason);
	const struct advice *advice = advice_of(reason);

	if (opt.json) {
		object(item, advice);
		return;
	}
	printf("%s: ", item->name);
	print_folded(item->text, strlen(item->name) + 2, 2);
	fputs(".\n  Cause:  ", stdout);
	print_folded(advice->cause, 10, 10);
	fputs("\n  Remedy: ", stdout);
	print_folded(advice->remedy, 10, 10);
	putchar('\n');
}

int cmd_explain(int argc, char **argv)
{
	const struct item *item;
	bool found = false;
	uint64_t i;

	if (argc > 2) {
		complain("explain takes one reason, or no argument to explain all");
		return EXIT_USAGE;
	}
	for (i = 0; (item = reason_item(i)); i++)
		if (argc == 1 || same_name(argv[1], item->name))
			found = true;
	if (!found) {
		complain("unknown reason \"%s\"; \"rsctl explain\" lists all",
			 argv[1]);
		return EXIT_USAGE;
	}
	if (opt.json)
		json_array();
	for (i = 0; (item = reason_item(i)); i++)
		if (argc == 1 || same_name(argv[1], item->name))
			show(i);
	if (opt.json)
		json_array_end();
	return EXIT_OK;
}
