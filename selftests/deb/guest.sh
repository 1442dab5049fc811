#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In a VM, what the packages have put into the system below ROOT: what its services
# would load and set at boot, and when the module is loaded later; a stream over a
# ring; purging while the module is loaded.
#
# usage: guest.sh ROOT VERSION stay|purge
set -u
root=$1 version=$2 then=$3
# shellcheck source=/dev/null
. "$LAB"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
in_system() {
	# udev does nothing in a chroot, unless it is told to
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive SYSTEMD_IGNORE_CHROOT=1 "$@"
}
setting() { cat "/proc/sys/net/rdmastream/$1"; }
is() { [ "$("${@:2}")" = "$1" ]; }

loaded() { grep -q '^rdmastream ' /proc/modules; }
not_loaded() { ! loaded; }
# the version as the kernel has it, and as rsctl hears of it
versions() {
	[ "$(</sys/module/rdmastream/version)" = "$version" ] &&
		[ "$(in_system rsctl -V)" = "rsctl $version" ] &&
		in_system rsctl version | grep -x "module  *$version"
}
# the first one may be over before there is a link
rings_used() {
	"$BIN/rs_stream" -b -k inet -n 4M &&
		in_system rsctl -s -o stats | awk '$1 == "ring-tx-bytes" { exit !($2 > 1000000) }'
}
by_ring() {
	rdma link add rxe0 type rxe netdev eth0 && wait_for 120 rings_used
}
run_by_rsctl() {
	in_system rsctl run true
}

printf 'net.rdmastream.%s\n' ring_mode=1 loopback=1 >>"$root/etc/sysctl.d/rdmastream.conf"

# At boot, systemd runs these one after the other.
ok "the boot loads it" in_system /usr/lib/systemd/systemd-modules-load
ok "it is there" loaded
ok "the boot sets what sysctl.d says" in_system /usr/lib/systemd/systemd-sysctl
ok "it is set" is 1 setting loopback
ok "module and rsctl are of version $version" versions
ok "a stream goes by RDMA" by_ring
ok "rsctl runs a program" run_by_rsctl
if [ "$then" = purge ]; then
	ok "they are purged while it is loaded" \
		in_system apt-get -y purge rdmastream-dkms rdmastream-tools
	ok "it stays loaded" loaded
	ok "it can be unloaded" rmmod rdmastream
	ok "it cannot be loaded again" eval '! in_system modprobe rdmastream'
else
	ok "it can be unloaded" in_system modprobe -r rdmastream
	ok "it is gone" not_loaded
	in_system /usr/lib/systemd/systemd-udevd --daemon >/dev/null 2>&1
	ok "it is loaded later" in_system modprobe rdmastream
	ok "udev sets what sysctl.d says" wait_for 60 is 1 setting loopback
	in_system udevadm control --exit
	ok "it can be unloaded again" in_system modprobe -r rdmastream
fi
done_testing
