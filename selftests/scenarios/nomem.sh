#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=debug timeout=400 append=kmemleak=on
# Allocations fail: each one of loading, of a namespace and of a connection once; then many,
# also in softirq, while streams run.  Either a call fails or all bytes are correct; nothing is
# lost, nothing hangs, and everything works again afterwards.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/nomem-lib.sh
. "$(dirname "$0")/nomem-lib.sh"

# Only allocations below a given kernel function; reads no more of the long list of symbols
# than needed.
below() {	# FUNCTION, without what x86 puts before system calls
	local range
	mapfile -t range < <(grep -m1 -A1 -E " (__x64_)?$1$" /proc/kallsyms)
	[ ${#range[@]} = 2 ] || bail "no function $1"
	put "require-start=0x${range[0]%% *}" "require-end=0x${range[1]%% *}"
}
# Everywhere.
anywhere() { put require-start=0 require-end=0xffffffffffffffff; }

# Each EVERYth allocation below the module fails; or anywhere, but only those that may not
# sleep, because programs do not depend on them.
fail() {	# us|anywhere EVERY
	put probability=0
	if [ "$1" = us ]; then
		below_us
		put ignore-gfp-wait=N
	else
		anywhere
		put ignore-gfp-wait=Y
	fi
	# counts down, so that "have_failed" can tell
	put "interval=$2" times=1000000 probability=100
}
have_failed() { [ "$(<$inject/times)" -lt $((1000000 - $1)) ]; }
while_failing() {	# us|anywhere EVERY CMD...
	local status=0
	fail "$1" "$2"
	"${@:3}" || status=$?
	put probability=0 ignore-gfp-wait=N
	anywhere
	have_failed 3 || { diag "nothing has failed" >&3; status=9; }
	return $status
}

# ---- one at a time ----

# nth KIND: the first allocation fails, then the second, until there is none.
nth() {
	python3 - "$@" <<-'END'
		import ctypes, errno, os, select, socket, sys
		libc = ctypes.CDLL(None, use_errno=True)
		knob = os.open('/proc/thread-self/fail-nth', os.O_RDWR)
		log = os.open('/dev/kmsg', os.O_WRONLY)
		module, kind, family = os.environ['MODULE'], sys.argv[1], 22

		def syscall(*args):
		    if libc.syscall(*args) < 0:
		        raise OSError(ctypes.get_errno(), 'system call')

		def insmod():
		    fd = os.open(module, os.O_RDONLY | os.O_CLOEXEC)
		    try:
		        arm()
		        syscall(313, fd, b'', 0)        # finit_module
		    finally:
		        disarm()
		        os.close(fd)
		    syscall(176, b'rdmastream', os.O_NONBLOCK)      # delete_module

		def rmmod():
		    fd = os.open(module, os.O_RDONLY | os.O_CLOEXEC)
		    syscall(313, fd, b'', 0)
		    os.close(fd)
		    arm()
		    syscall(176, b'rdmastream', os.O_NONBLOCK)

		def namespace():
		    arm()
		    syscall(272, 0x40000000)    # unshare, CLONE_NEWNET

		# a listener, a client, what was accepted
		def connection(socks):
		    def ours():
		        socks.append(socket.socket(family, socket.SOCK_STREAM, 0))
		        socks[-1].settimeout(60)
		        return socks[-1]

		    def sure(result, what):
		        if result < 0 and ctypes.get_errno() != errno.EINPROGRESS:
		            raise OSError(ctypes.get_errno(), what)
		        return result

		    a, name = ours(), ctypes.create_string_buffer(16)
		    sure(libc.bind(a.fileno(), sockaddr(0), 16), 'bind')
		    a.listen()
		    libc.getsockname(a.fileno(), name, ctypes.byref(ctypes.c_int(16)))
		    b = ours()
		    sure(libc.connect(b.fileno(), sockaddr(int.from_bytes(name[2:4], 'big')), 16), 'connect')
		    select.select([a], [], [], 60)
		    socks.append(socket.socket(fileno=sure(libc.accept4(a.fileno(), None, None, 0), 'accept')))
		    socks[-1].settimeout(60)
		    return b, socks[-1]

		# all calls of a connection that run in this process; the rest runs in softirq
		def session():
		    data, socks = os.urandom(30000), []
		    arm()
		    try:
		        b, c = connection(socks)
		        for s, t in (b, c), (c, b):
		            s.sendall(data)
		            s.shutdown(socket.SHUT_WR)
		            got = b''
		            while more := t.recv(65536):
		                got += more
		            if got != data:
		                sys.exit(f'{len(got)} bytes, or not the right ones')
		    finally:
		        disarm()
		        for s in socks:
		            s.close()

		# after EAGAIN, the program waits for an edge, which must come
		def edge():
		    socks, todo = [], 100000
		    b, c = connection(socks)
		    poll = select.epoll()
		    b.setblocking(False)
		    poll.register(b, select.EPOLLOUT | select.EPOLLET)
		    poll.poll(60)
		    arm()
		    try:
		        while todo:
		            again = False
		            try:
		                todo -= b.send(bytes(min(todo, 20000)))
		            except BlockingIOError:
		                again = True
		            while select.select([c], [], [], 0)[0]:
		                c.recv(65536)
		            if again and not poll.poll(20):
		                raise TimeoutError
		    finally:
		        disarm()
		        for s in *socks, poll:
		            s.close()

		def sockaddr(port):
		    return (2).to_bytes(2, 'little') + port.to_bytes(2, 'big') + bytes((127, 0, 0, 1)) + bytes(8)

		def arm():
		    os.pwrite(knob, b'%d' % n, 0)

		def disarm():
		    global left
		    left = int(os.pread(knob, 20, 0))
		    os.pwrite(knob, b'0', 0)

		n, left, errors = 0, 0, {}
		while not left:
		    n += 1
		    # if the kernel complains, this is near it in the log
		    os.write(log, f'lab: {kind}, number {n} fails'.encode())
		    try:
		        globals()[kind]()
		    except OSError as e:
		        name = 'timeout' if e.errno is None else errno.errorcode[e.errno]
		        errors[name] = errors.get(name, 0) + 1
		        if name == 'timeout':
		            sys.exit(f'hangs when number {n} fails')
		        # the other two are what sockets say
		        if kind == 'rmmod' or kind != 'session' and name not in ('ENOMEM', 'ENOBUFS', 'ENFILE'):
		            sys.exit(f'{name} when number {n} fails')
		    if kind == 'rmmod' or kind == 'namespace':
		        disarm()
		print(f'# {kind}: {n - 1} allocations,', errors, file=sys.stderr)
		sys.exit(n < 3 and kind != 'rmmod')
	END
}

# The kernel itself leaks the name of a slab cache that cannot be added to sysfs.
leaked() {
	kmemleak_check | awk '
		/^unreferenced object/ { flush() }
		/ sysfs_slab_add\+/ { theirs = 1 }
		{ object = object $0 "\n" }
		function flush() {
			if (!theirs && object) {
				printf "%s", object
				bad = 1
			}
			object = ""
			theirs = 0
		}
		END { flush(); exit bad }' || return
	echo clear >/sys/kernel/debug/kmemleak
}

# ---- many, while streams run ----

# At first, other calls may fail, too.
run() {		# OPTION...
	local status
	rs_stream -b -k rds4 -l "$ADDR4_0" -C 2 -n 300K -t 150 "$@" >"$tmp/out" 2>&1
	status=$?
	[ $status = 0 ] && good=$((good + 1))
	[ $status = 1 ] && grep -qE '^(socket|bind|listen|connect|accept|epoll_ctl)' "$tmp/out" && return 0
	cat "$tmp/out"
	honest <"$tmp/out"
}
rounds() {
	local i good=0
	for i in "" "-e" "-w 3000" "-W splice -R splice" "-R waitall" "-W iov"; do
		# shellcheck disable=SC2086
		run $i || return
	done
	diag "$good of 6 without an error" >&3
}
# The server listens before allocations fail.  TCP does not repeat a reset for which it has no
# memory, so the server looks whether clients are still there.
storm() {	# us|anywhere EVERY MODE
	local pid status=0
	rs_storm -s -a -k inet -l "$ADDR4_0" -p 7300 -n 100000 -t 300 >/dev/null 2>&1 &
	pid=$!
	wait_for 20 listens 0 7300
	while_failing "$1" "$2" rs_storm -c "$ADDR4_0" -k inet -p 7300 -n 60 -t 200 -m "$3" >"$tmp/out" 2>&1 ||
		status=$?
	kill $pid
	wait $pid 2>/dev/null
	diag <"$tmp/out" >&3
	# 1: some connects were refused or reset
	[ $status -le 1 ] && grep -q '"timed_out":false' "$tmp/out"
}
well() { rs_stream -b -k rds4 -l "$ADDR4_0" -n 300K -t 60; }
usable() { rsctl -j devices | jq -e 'any(.[]; .usable)' >/dev/null; }
# Stays open until there is a link, however long the pauses are by now.  Without a prelude there
# are no spans either, in which a stream that sends nothing would stay.
by_ring() {
	local pid status=0
	wait_for 20 usable || status=1
	set_net prelude=0
	rs_stream -b -k rds4 -l "$ADDR4_0" -n 300K -t 150 --hold-at 100K --hold "$tmp/go" &
	pid=$!
	wait_for 120 on_ring || {
		status=1
		for what in devices links peers sockets memory; do
			rsctl -d $what
		done | diag
		rsctl -o -s stats | awk '/^reason:/ && $2' | diag
	}
	: >"$tmp/go"
	wait $pid || status=1
	rm "$tmp/go"
	set_net prelude=1
	return $status
}
# Only children are allocated from this cache in atomic context.
accepting() {
	local status=0
	echo 1 >/sys/kernel/slab/rstream/failslab
	echo Y >$inject/cache-filter
	mark 0
	for _ in 1 2 3; do
		while_failing anywhere 2 rs_stream -b -k inet -l "$ADDR4_0" -C 10 -n 10K -t 100 || status=1
	done
	echo N >$inject/cache-filter
	[ $status = 0 ] && [ "$(grown 0 reason:no-memory)" -gt 5 ]
}
# Memory is so fragmented that there are no eight pages in a row.
by_ring_of_small_chunks() {
	local status=0
	rsctl drain on && rsctl drain off || return	# a new link
	below_us
	put interval=1 times=1000000
	echo 3 >$pages/min-order
	echo 100 >$pages/probability
	by_ring || status=$?
	put probability=0
	echo 0 >$pages/min-order
	anywhere
	diag "$((1000000 - $(<$pages/times))) allocations of eight pages or more have failed" >&3
	[ "$(<$pages/times)" -lt 1000000 ] || status=1
	return $status
}
reload() {
	local i good=0
	for i in {1..5}; do
		if insmod "$MODULE" 2>/dev/null; then
			good=$((good + 1))
			rs_stream -b -k rds4 -l "$ADDR4_0" -n 20K -t 60 >/dev/null 2>&1
			wait_for 150 rmmod rdmastream || return
		fi
		[ ! -d /sys/module/rdmastream ] || return
	done
	diag "loaded $good of 5 times" >&3
}

exec 3>&1
export MODULE
modprobe -a rdma_cm
begin_failing

say "allocations fail from here on"
below do_one_initcall
ok "each allocation of loading fails once" nth insmod
below sys_delete_module
ok "each allocation of unloading fails once" nth rmmod
ok "no memory leaks so far" leaked
insmod "$MODULE" || bail "cannot load the module"
set_net ack_timeout=18 ring_mode=0 loopback=1 ring_idle_ms=600000
below_us
ok "each allocation of a new namespace fails once" nth namespace
ok "each allocation of a connection fails once" nth session
ok "each allocation of a non-blocking sender fails once" nth edge
anywhere

use tcp
ok "a server without memory for a stream: the client's TCP retries" accepting
for how in tcp ring; do
	use $how
	# some connections should still succeed
	mark 0
	for some in "us 61" "anywhere 151"; do
		[ $how = tcp ] || ok "ring: a ring carries" by_ring
		# shellcheck disable=SC2086
		ok "$how: streams while allocations fail, ${some% *}" while_failing $some rounds
		for mode in close byte rst; do
			# shellcheck disable=SC2086
			ok "$how: connects while allocations fail, ${some% *}, $mode" storm $some $mode
		done
		ok "$how: streams work again" well
		new_rxe
	done
	growth 0 | awk '/^reason:/ && $2' | diag
done
ok "a ring is used again" by_ring
ok "a ring of small chunks of memory is used" by_ring_of_small_chunks
ok "no socket remains" wait_for 200 none_left || rsctl -d sockets | diag
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
ok "loading and unloading while allocations fail" while_failing anywhere 29 reload
new_rxe
say "allocations fail no more"
insmod "$MODULE" || bail "cannot load the module"
set_net loopback=1 ack_timeout=18 ring_idle_ms=600000
ok "loaded again, a ring is used" by_ring
ok "the module can be unloaded again" wait_for 20 rmmod rdmastream
ok "no memory leaks" kmemleak_check
done_testing
