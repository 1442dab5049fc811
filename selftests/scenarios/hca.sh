#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=1800 seed=1
# Over rs_hca, a device that behaves as real ones do: hosts are network namespaces of one
# VM, joined by a veth pair.  Does it report what is wrong; then, with profiles and kinds
# of DMA address, other scenarios as they are.  From the environment: HCA (the
# directory of rs_hca.ko; that beside MODULE's), SUITE (scenarios), PROFILES and DMA (what
# to run them with, each with each; else each profile with one kind of address),
# LIMIT (seconds for each), REPORTS=no (only these).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

here=$(cd "$(dirname "$0")" && pwd)
# what depends little on the device runs with some of them
declare -A more=()
if [ -z "${SUITE+set}" ]; then
	more=([plain/virt]="hca/charge hca/pressure hca/setup hca/crowd hca/devices hca/faults hca/verbs
			hca/turns hca/dummy hca/reset"
		[irdma/bounce]=hca/faults [irdma-iwarp/bounce]=hca/faults [siw/iommu]=hca/setup
		[ib/virt]="hca/ib hca/pkeys")
	export EVERY=${EVERY-0}	# few of the calls of hca/verbs
fi
: "${SUITE=hca/transfer}"

# ---- two hosts with a device each: what scenarios call VM 0 and VM 1 ----

add_hosts() {
	local i
	ip netns add h0 && ip netns add h1 &&
		ip -n h0 link add eth0 type veth peer name eth0 netns h1 || return
	for i in 0 1; do
		host $i sysctl -q -w net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
		host $i ip -batch - <<-END || return
			link set lo up
			link set eth0 up
		END
	done
}
# With an InfiniBand link layer, the addresses are those of the port's own interface.
add_addresses() {	# HOST PROFILE
	local dev=eth0
	[ "$2" != ib ] || dev=ib0
	host "$1" ip -batch - <<-END
		link set $dev up
		addr add 10.77.0.$(($1 + 1))/24 dev $dev
		addr add fd77::$(($1 + 1))/64 dev $dev nodad
	END
}
add_devices() {	# PROFILE DMA
	local i
	echo "$1" >$params/profile
	echo "$2" >$params/dma
	for i in 0 1; do
		host $i rdma link add hca$i type rs_hca netdev eth0 && add_addresses $i "$1" || return
	done
}
del_devices() {
	local i
	for i in 0 1; do
		! rdma link show hca$i/1 >/dev/null 2>&1 || rdma link del hca$i || return
		host $i ip addr flush dev eth0 scope global
	done
}
del_hosts() { ip netns del h0 && ip netns del h1; }

# ---- what it reports ----

# The kernel's log since "begin".  Not $RANDOM: "ok" calls this in a subshell, and bash seeds that
# by the time and the process, so that some of the numbers appear twice.
begin() {
	echo "rs_hca: test $SRANDOM" | tee "$tmp/begin" >/dev/kmsg
}
said() { dmesg | sed "1,/$(<"$tmp/begin")\$/d; s/^\[[^]]*\] //"; }
wrong() {	# CASE STATUS BYTES [REPORT]
	begin
	host 0 insmod "$HCA/rs_hca_bad.ko" do="$1" ns=9 2>/dev/null 9</run/netns/h1
	said | grep -v '^rs_hca:  '
	said | grep -q "rs_hca_bad: $1: status $2, bytes $3\$" || return
	if [ -n "${4-}" ]; then
		said | grep -q "rs_hca: seeded: hca.: .*$4"
	else
		! said | grep -q "rs_hca: seeded:"
	fi
}
# The same, of the DMA API.  Kernels with CONFIG_DMA_API_DEBUG must have found it, too.  They count
# it; a line in the log would be a finding of the judge.
dma_debug=/sys/kernel/debug/dma-api
wrong_use() {	# as wrong
	local had status
	[ "$(cat $dma_debug/disabled 2>/dev/null)" = N ] || { wrong "$@"; return; }
	had=$(<$dma_debug/error_count)
	echo 0 >$dma_debug/num_errors
	wrong "$@" && [ "$(<$dma_debug/error_count)" -gt "$had" ]
	status=$?
	echo 1 >$dma_debug/num_errors
	return $status
}
# The last report has the stacks that made and ended what it was done to, and that asked for it.
explained() {	# CASE
	local by
	if [ -z "$(cat /proc/self/stack 2>/dev/null)" ]; then
		skip "$1: the report has the stack" "a kernel without stack traces"
		return
	fi
	for by in "request posted by" "made by" "ended by"; do
		ok "$1: the report has the stack: $by" has_stack "$by"
	done
}
has_stack() {	# BY
	said | awk -v by="rs_hca:   $1:" '$0 == by { on = 1; next } !/^rs_hca:     / { on = 0 } on' |
		grep rs_hca_bad
}
forgotten() {
	begin
	del_devices && said | grep 'never unmapped'
}

reports() {	# DMA
	local dma=$1 there=there
	echo -n seeded >$params/report_as
	[ "$dma" != bounce ] || there="not there"
	ok "$dma: two devices" add_devices plain "$dma" || return
	ok "$dma: correct use causes no report" wrong good 0 there
	ok "$dma: source is not mapped" wrong unmapped 4 "not there" "reads from .*, where nothing is mapped"
	explained "$dma: source is not mapped"
	ok "$dma: wrong direction" wrong direction 4 "not there" "reads from .* the other direction"
	ok "$dma: wrong direction of the target" \
		wrong target-direction 10 "not there" "writes to .* the other direction"
	ok "$dma: freed page" wrong freed 4 "not there" "reads from .* freed"
	ok "$dma: freed second page" wrong freed-second 4 "not there" "reads from .* freed"
	ok "$dma: freed page at the end" wrong freed-across 4 "not there" "reads from .* freed"
	ok "$dma: freed page is the target" wrong freed-target 10 "not there" "writes to .* freed"
	ok "$dma: freed page is synced" wrong freed-sync 0 there "syncs .* freed"
	ok "$dma: freed page is unmapped" wrong freed-unmap 0 there "unmaps .* freed"
	ok "$dma: access beyond the mapping" \
		wrong beyond 4 "not there" "reads from .*, where nothing is mapped"
	ok "$dma: access beyond the region" wrong bounds 10 "not there" "writes 1000 bytes .* by key"
	ok "$dma: invalidated key" wrong dereg 10 "not there" "by key .* does not exist"
	explained "$dma: invalidated key"
	ok "$dma: key of another protection domain" \
		wrong domain 10 "not there" "writes .* by key .* which is of"
	ok "$dma: key without that access" \
		wrong access 10 "not there" "writes .* by key .* access 0x1,"
	ok "$dma: pages of a size that the device does not have" \
		wrong pages 0 there "with pages of 2048 bytes"
	ok "$dma: target is not mapped" wrong unregistered 10 "not there" "writes to .* nothing is mapped"
	ok "$dma: source is not synced" wrong unsynced 0 "$there"
	ok "$dma: target is not synced" wrong unread 0 "$there"
	ok "$dma: sync of what is not mapped" \
		wrong_use sync-none 0 there "syncs .* nothing is mapped"
	ok "$dma: sync for the other direction" \
		wrong_use sync-way 0 there "syncs .* for direction 2, but it is mapped for 1"
	ok "$dma: unmapped twice" wrong_use twice 0 there "unmaps .* nothing is mapped"
	ok "$dma: unmapped with another length" \
		wrong_use length 0 there "unmaps .* + 1000, .* mapped was"
	ok "$dma: unmapped with the other direction" \
		wrong_use other-way 0 there "unmaps .* direction 2, but mapped was .* direction 1"
	ok "$dma: overflow of a completion queue" \
		wrong overflow 0 there "completion queue of 1 entries is full"
	ok "$dma: mapping is leaked" wrong leak 0 there
	ok "$dma: a leaked mapping is reported when the device is removed" forgotten
	echo -n DMA-API >$params/report_as
}

reports_iwarp() {
	echo -n seeded >$params/report_as
	ok "siw: two devices" add_devices siw virt || return
	ok "siw: the end that has accepted sends first" \
		wrong accepted 0 "not there" "the end that has accepted sends first"
	ok "siw: the devices can be removed" del_devices
	echo -n DMA-API >$params/report_as
}

# ---- other scenarios ----

run_suite() {	# NAME
	VM_COUNT=2 ADDR4_0=10.77.0.1 ADDR4_1=10.77.0.2 ADDR6_0=fd77::1 ADDR6_1=fd77::2 \
		LAB_HOSTS=/run/netns/h host 0 timeout "${LIMIT:-300}" "$here/$1.sh"
}
# Mapping with an IOMMU is slow: with softirqs disabled, allowed only when a packet caused the send.
no_time_stolen() {
	awk '{ n[$2] += $3 } END {
		all = n["maps"] + n["unmaps"]
		off = n["maps-bh"] + n["unmaps-bh"]
		print all " mapped and unmapped, " off " with softirqs off"
		exit !(all > 500 && off < all / 10)
	}' $params/counts
}
# Are requests copied when they are posted, by the devices whose drivers do so?
copied_when_posted() {	# PROFILE
	awk -v profile="$1" '{ n[$2] += $3 } END {
		print n["inlines"] " requests"
		exit !n["inlines"] == (profile ~ /^(mlx5|ib|irdma|irdma-iwarp|qedr)$/)
	}' $params/counts
}
suites() {	# PROFILE DMA
	local name="$1, $2" suite i free keepers=()
	ok "$name: two devices" add_devices "$1" "$2" || return
	free=$(memory)
	ok "$name: the module loads" insmod "$MODULE"
	# the links of a namespace other than the initial one go soon after its last socket
	for i in 0 1; do
		nsenter --net="/run/netns/h$i" rs_stream -s -k inet -p 6999 -t "$((${LIMIT:-300} + 700))" &
		keepers+=($!)
	done
	for suite in $SUITE ${more[$1/$2]-}; do
		retell "$name, $suite" < <(run_suite "$suite" 2>&1)
	done
	diag "$(grep -v ' 0$' $params/counts)"
	[ "$2" = virt ] ||
		ok "$name: no DMA mapping with bottom halves disabled" no_time_stolen
	[ "$2" = virt ] ||
		ok "$name: small requests are inline, if the driver can" copied_when_posted "$1"
	kill "${keepers[@]}"
	wait "${keepers[@]}" 2>/dev/null
	ok "$name: the module can be unloaded" wait_for 30 rmmod rdmastream
	ok "$name: all memory is freed" wait_for 20 memory_is_back "$free"
	diag "$(memory_is_back "$free")"
	ok "$name: the devices can be removed" del_devices
}

load_hca || bail "cannot load $HCA/rs_hca.ko"
ok "two hosts" add_hosts || bail "no hosts"
# not every kernel supports dma_map_ops of a device
modes=virt
if [ "${REPORTS-}" = no ]; then
	[ "${DMA-virt}" = virt ] || modes="virt iommu bounce"
elif add_devices plain iommu 2>/dev/null; then
	modes="virt iommu bounce"
	del_devices
	reports iommu
	reports bounce
else
	skip "DMA" "this kernel has no dma_map_ops"
fi
[ "${REPORTS-}" = no ] || reports_iwarp
if [ -n "${PROFILES+set}${DMA+set}" ]; then
	pairs=''
	for profile in ${PROFILES-plain}; do
		for dma in ${DMA-virt}; do pairs+=" $profile/$dma"; done
	done
else
	pairs="plain/virt mlx5/iommu irdma/bounce bnxt_re/iommu hns/bounce qedr/iommu odd/bounce irdma-iwarp/bounce siw/iommu ib/virt"
fi
for pair in $pairs; do
	if [[ " $modes " == *" ${pair#*/} "* ]]; then
		suites "${pair%/*}" "${pair#*/}"
	else
		skip "${pair/\// }" "this kernel has no such addresses for one device"
	fi
done
ok "the namespaces can be removed" del_hosts
ok "no device remains" wait_for 20 no_devices
ok "rs_hca can be unloaded" wait_for 20 rmmod rs_hca
done_testing
