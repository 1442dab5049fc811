# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Which packets are RDMA's, by $RDMA: for nft, and for tc.  Source it.
# shellcheck disable=SC2034	# for those that source it
case ${RDMA:=rxe} in
rxe)	rdma_nft=('udp dport 4791')
	rdma_tc=('dport 4791') ;;
siw)	rdma_nft=('tcp dport 4793' 'tcp sport 4793')
	rdma_tc=('dport 4793' 'sport 4793') ;;
esac

# nft's commands for a table that does this with those that come in.
rdma_rules() {	# TABLE [MATCH...] VERDICT
	local match
	echo "add table inet $1;"
	echo "add chain inet $1 in { type filter hook prerouting priority -400; };"
	for match in "${rdma_nft[@]}"; do
		echo "add rule inet $1 in $match ${*:2};"
	done
}
