# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh
# SPDX-License-Identifier: GPL-2.0-only
# GlusterFS: a volume with three replicas, used by libgfapi; each block is compared.
needs="glusterfs-server fio"
limit=900
least=5000000
# its management has one port for all
alone=yes

volume=lab

# the client writes to all bricks; they have something to say to each other only to heal
wanted_pair() { [ "$1" = 0 ] || [ "$2" = 0 ]; }

gluster() { timeout 120 "${by[@]}" gluster --mode=script "$@"; }
connected() { [ "$(gluster peer status | grep -c 'Peer in Cluster (Connected)')" = 2 ]; }
bricks_online() {	# and so are the daemons that heal
	[ "$(gluster volume status $volume | awk '/^Brick|^Self-heal/ { line = "" } { line = line $0 } line ~ / Y +[0-9]+ *$/ { n++; line = "" } END { print n }')" = 6 ]
}

engine_start() {
	local vm
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		on $vm "rm -rf /var/lib/glusterd /var/log/glusterfs && mkdir -p /var/lib/glusterd /var/log/glusterfs $home/disk &&
			mount -t tmpfs -o size=400M brick $home/disk && mkdir $home/disk/brick" || return
		start_in $vm glusterd "glusterd -N -L INFO -l $log/$way.glusterd-log.$vm"
	done
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		wait_for 60 listens $vm 24007 || return
	done
	gluster peer probe "$(addr inet 1)" && gluster peer probe "$(addr inet 2)" && wait_for 30 connected || return
	gluster volume create $volume replica 3 "$ADDR4_0:$home/disk/brick" "$ADDR4_1:$home/disk/brick" \
		"$ADDR4_2:$home/disk/brick" force || return
	# a member that does not answer for so long is given up
	gluster volume set $volume network.ping-timeout 5 && gluster volume start $volume && wait_for 60 bricks_online
}

engine_load() {
	local how
	for how in write read; do
		timeout 100 "${by[@]}" fio --name=load --ioengine=gfapi --volume=$volume --brick="$ADDR4_1" --rw=$how --bs=128k \
			--size=64m --filename=load --thread --output-format=json 2>"$log/$way.fio" |
			sed -n '/^{/,$p' | jq -r --arg how $how '"\($how)-128K-MB/s \(.jobs[0][$how].bw_bytes / 1e6)"' || return
	done
}

engine_work() { timeout 600 "${by[@]}" python3 "$engines/gluster.py" "$1" "$2" $volume "$ADDR4_1"; }

# All bricks have the same file, and none has anything to heal.
engine_verify() {
	local vm
	gluster volume heal $volume info | tee "$log/heal"
	[ "$(grep -c '^Number of entries: 0' "$log/heal")" = 3 ] || return
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		on $vm sha256sum "$home/disk/brick/work"
	done | awk '{ sums[$1] } END { exit length(sums) != 1 }'
}

engine_state() {
	gluster peer status | grep -E '^Uuid|^State'
	# which brick and daemon, and its process; in no particular order
	gluster volume status $volume | awk '/^Brick|^Self-heal/ || / Y / { print $NF, $(NF - 1) }' | sort
	connections | grep -v ':24007'
}

engine_stop() {
	local vm
	gluster volume stop $volume force
	stop_members
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		on $vm "pkill -x glusterfsd; pkill -x glusterfs; sleep 0.2; umount -l $home/disk"
	done
}
