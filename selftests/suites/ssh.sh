# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# OpenSSH and rsync: commands, copies, forwarded ports.
needs="openssh-server openssh-client rsync socat"
limit=300

conf() {
	cat <<-END
		Port 2022
		ListenAddress $HOST
		HostKey $PWD/host
		AuthorizedKeysFile $PWD/key.pub
		PidFile $PWD/sshd.pid
		StrictModes no
		PermitRootLogin yes
		UsePAM no
		Subsystem sftp internal-sftp
	END
	cat >rsyncd.conf <<-END
		port = 2873
		address = $HOST
		use chroot = no
		uid = 0
		gid = 0
		pid file = $PWD/rsyncd.pid
		[all]
		path = $PWD/daemon
		read only = no
	END
}

options=(-F none -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=known -o BatchMode=yes)

ssh_to() { timeout 100 ssh -p 2022 "${options[@]}" "root@$HOST" "$@"; }
there_and_back() { ssh_to cat <large | cmp - large; }
status_of() { ssh_to 'exit 7'; [ $? = 7 ]; }
many() {
	local i
	for i in 1 2 3; do
		[ "$(ssh_to echo $i </dev/null)" = $i ] || return
	done
}
copied() { timeout 100 scp -q -P 2022 "${options[@]}" large "root@$HOST:$PWD/copy" && cmp large copy; }
fetched() {
	echo "get $PWD/large fetched" | timeout 100 sftp -q -P 2022 -b - "${options[@]}" "root@$HOST" &&
		cmp large fetched
}

forwarded() {	# through the tunnel, to what answers with its input
	local tunnel status=0
	socat -t 60 "TCP-LISTEN:2100,bind=$HOST,fork,reuseaddr" EXEC:cat &
	ssh_to -N -L "$HOST:2101:$HOST:2100" </dev/null &
	tunnel=$!
	wait_for 30 listens 0 2101 && wait_for 30 listens 0 2100 &&
		timeout 60 socat -t 60 - "TCP:$HOST:2101" <large | cmp - large || status=1
	kill $tunnel
	return $status
}

by_ssh() {
	rsync -a -e "ssh -p 2022 ${options[*]}" tree/ "root@$HOST:$PWD/by-ssh/" && diff -r tree by-ssh
}
to_daemon() { rsync -a tree/ "rsync://$HOST:2873/all/" && diff -r tree daemon; }
changed() {
	echo more >>tree/3
	rsync -ac --no-whole-file tree/ "rsync://$HOST:2873/all/" && diff -r tree daemon
}
from_daemon() { rsync -a "rsync://$HOST:2873/all/" back/ && diff -r tree back; }

run() {
	local i
	mkdir tree daemon
	for i in $(seq 12); do
		head -c $((i * 20000)) /dev/urandom >tree/"$i"
	done
	head -c 1000000 /dev/urandom >large
	ssh-keygen -q -t ed25519 -N '' -f host
	ssh-keygen -q -t ed25519 -N '' -f key
	mkdir -p /run/sshd
	conf >sshd.conf
	/usr/sbin/sshd -f "$PWD/sshd.conf" -E "$PWD/sshd.log" || return
	rsync --daemon --config=rsyncd.conf --no-detach &
	wait_for 30 listens 0 2022 && wait_for 30 listens 0 2873 || return
	try "ssh,status" status_of
	try "ssh,there and back" there_and_back
	try "ssh,many" many
	try scp copied
	try sftp fetched
	try forwarded forwarded
	try "rsync,ssh" by_ssh
	try "rsync,daemon" to_daemon
	try "rsync,changed" changed
	try "rsync,back" from_daemon
	true
}
