// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl explain: what a reason means, why it usually comes, what to do.
 *
 * What it means is the module's own text; cause and remedy are here.
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
		"The connection is as it was wished to be.", "Nothing." },
	[RDMASTREAM_REASON_OFF] = {
		"net.rdmastream.negotiate is 0 in this network namespace.",
		"sysctl net.rdmastream.negotiate=1" },
	[RDMASTREAM_REASON_EXCLUDED] = {
		"It was started by \"rsctl run\" with -i or -x, or has set RDMASTREAM_RULES.",
		"Other rules, if this one should negotiate." },
	[RDMASTREAM_REASON_NO_DEVICE] = {
		"Here or at the peer no RDMA device has a GID for an address.",
		"See \"rdma link\" and \"ibv_devinfo -v\" on both hosts." },
	[RDMASTREAM_REASON_FASTOPEN] = {
		"The program sent data with its SYN, which leaves no time to agree.",
		"Switch TCP Fast Open off in the program." },
	[RDMASTREAM_REASON_NO_MEMORY] = {
		"The kernel or the control group was out of memory.",
		"See dmesg and the memory limits of the control group." },
	[RDMASTREAM_REASON_NO_OPTION] = {
		"The peer has no rdmastream, or a firewall strips TCP options.",
		"Run \"rsctl version\" there; compare SYN and SYN-ACK on both sides with tcpdump." },
	[RDMASTREAM_REASON_BAD_OPTION] = {
		"A middlebox sends TCP options back, or the peer is broken.",
		"Look for a proxy or load balancer on the way." },
	[RDMASTREAM_REASON_NO_ROOM] = {
		"TCP-MD5 or TCP-AO signs the header, or other options fill it.",
		"Do without those for this connection." },
	[RDMASTREAM_REASON_NO_HELLO] = {
		"Something between the hosts answered the option but speaks plain TCP, e.g. a proxy.",
		"Look for a proxy or load balancer on the way." },
	[RDMASTREAM_REASON_SPOKE_FIRST] = {
		"The server's program sent before the client's answer came.",
		"Nothing; the next connection may agree." },
	[RDMASTREAM_REASON_VERSION] = {
		"The hosts run very different versions of the module.",
		"Compare \"rsctl version\" on both." },
	[RDMASTREAM_REASON_SELF] = {
		"Connections of a host with itself stay on TCP by default.",
		"sysctl net.rdmastream.upgrade_self=1, if RDMA is wanted all the same." },
	[RDMASTREAM_REASON_UPGRADE_OFF] = {
		"net.rdmastream.upgrade is 0 in this network namespace.",
		"sysctl net.rdmastream.upgrade=1" },
	[RDMASTREAM_REASON_WAIT_BYTES] = {
		"net.rdmastream.upgrade is 2 and upgrade_bytes are not reached.",
		"Nothing, or a smaller net.rdmastream.upgrade_bytes." },
	[RDMASTREAM_REASON_WAIT_LINK] = {
		"The first connection to a peer waits for rdma_cm.",
		"Nothing; if it stays so, see \"rsctl links\"." },
	[RDMASTREAM_REASON_LINK_FAILED] = {
		"RDMA between the hosts is filtered or not configured.",
		"Try \"rping\" between the same addresses; RoCE needs UDP port 4791 open." },
	[RDMASTREAM_REASON_RMB_LIMIT] = {
		"Rings of other connections use all of net.rdmastream.rmb_max.",
		"Raise net.rdmastream.rmb_max or lower ring_size." },
	[RDMASTREAM_REASON_HELLO_TIMEOUT] = {
		"The peer, or the network, stalled just after connecting.",
		"Raise net.rdmastream.hello_timeout_ms on slow networks." },
	[RDMASTREAM_REASON_LATE_HELLO] = {
		"The peer's first bytes took longer than this host was ready to wait.",
		"Raise net.rdmastream.hello_timeout_ms on both hosts." },
	[RDMASTREAM_REASON_TRUNCATED] = {
		"The peer or a firewall closed TCP in the middle of a stream.",
		"Look at the peer's kernel log and at firewalls on the way." },
	[RDMASTREAM_REASON_LINK_LOST] = {
		"An RDMA device or port went down; the stream goes on over TCP.",
		"See \"rdma link\" and the kernel log on both hosts." },
	[RDMASTREAM_REASON_RING_REVOKED] = {
		"The peer needed the memory, or grants a ring of another size.",
		"Nothing; \"rsctl sockets\" on the peer tells why." },
	[RDMASTREAM_REASON_RING_IDLE] = {
		"Nothing came for net.rdmastream.ring_idle_ms; memory was given back.",
		"Nothing: the stream gets a ring again when it is busy." },
	[RDMASTREAM_REASON_UPGRADED] = {
		"A direction that was on TCP goes by RDMA from there on.", "Nothing." },
	[RDMASTREAM_REASON_DRAINED] = {
		"An administrator ran \"rsctl drain on\" in this network namespace.",
		"\"rsctl drain off\", when the work on the RDMA devices is done." },
	[RDMASTREAM_REASON_PEER_DRAINED] = {
		"An administrator ran \"rsctl drain on\" on the peer.",
		"Nothing; streams return to RDMA when that is over." },
	[RDMASTREAM_REASON_STALL_WINDOW] = {
		"The program at the other end reads more slowly than this one writes.",
		"See what it does there; a greater SO_RCVBUF there lets more be under way." },
	[RDMASTREAM_REASON_STALL_RING] = {
		"The program at the other end reads more slowly than this one writes, or the ring is too small for the distance.",
		"See what it does there; if it waits itself, raise net.rdmastream.ring_size there." },
	[RDMASTREAM_REASON_STALL_SLOT] = {
		"The RDMA device is busy: the link carries all that it can.",
		"More links: net.rdmastream.links_per_peer, on both hosts." },
	[RDMASTREAM_REASON_STALL_CREDIT] = {
		"The other host is slow to process messages of the link: its CPUs are busy.",
		"Larger writes, or more links: net.rdmastream.links_per_peer, on both hosts." },
	[RDMASTREAM_REASON_LINK_MALFORMED] = {
		"Something else than rdmastream connects to our rdma_cm port, or another version.",
		"Compare \"rsctl version\" on both; another port: net.rdmastream.cm_port." },
	[RDMASTREAM_REASON_LINK_STRANGER] = {
		"The connection that the peer wants the link for has just ended here.",
		"Nothing: it tries again for the next one." },
	[RDMASTREAM_REASON_LINK_BUSY] = {
		"This host is short of memory, or the peer makes very many links.",
		"See dmesg, \"rsctl devices\", and net.rdmastream.links_per_peer on the peer." },
	[RDMASTREAM_REASON_GRANT_REFUSED] = {
		"The peer had no memory or link for the ring, or had all sent.",
		"Nothing; it is tried again.  If it stays so, see \"rsctl stats\" on the peer." },
};

/* All that are not in the list are the peer's faults. */
static const struct advice peer_fault = {
	"The peer's module is broken, hostile, or its bytes were changed on the way.",
	"Compare \"rsctl version\" on both hosts; report it if they are equal.",
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

static void show(uint64_t reason)
{
	const struct item *item = reason_item(reason);
	const struct advice *advice = advice_of(reason);

	if (opt.json) {
		json_object(NULL);
		json_str("name", item->name);
		json_str("text", item->text);
		json_str("cause", advice->cause);
		json_str("remedy", advice->remedy);
		json_object_end();
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
		complain("explain takes one reason at a time, or none for all");
		return EXIT_USAGE;
	}
	for (i = 0; (item = reason_item(i)); i++)
		if (argc == 1 || same_name(argv[1], item->name))
			found = true;
	if (!found) {
		complain("unknown reason \"%s\"; \"rsctl explain\" tells them all",
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
