# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# libuv's own tests of TCP, streams and polling, with Debian's library.
needs="libuv1 libuv1-dev gcc libc6-dev dpkg-dev"
limit=900

build() {
	source_of libuv1 || return
	cd "$BUILT"/libuv1-*/ || return
	local files=(test/test-*.c test/runner.c test/runner-unix.c test/run-tests.c
		test/blackhole-server.c test/echo-servers.c test/echo-server.c)
	mapfile -t files < <(ls "${files[@]}" 2>/dev/null)
	gcc -w -D_GNU_SOURCE -Iinclude -Isrc -o "$BUILT/uv_run_tests" "${files[@]}" -luv -lpthread -lutil -ldl -lm
}

# it refuses to be root
export UV_TEST_TIMEOUT_MULTIPLIER=12	# RDMA by software is slow
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

run() {
	local name how
	cp -r "$BUILT"/libuv1-*/test .	# some look for files there
	cp "$BUILT/uv_run_tests" .
	chown -R nobody .
	as_nobody ./uv_run_tests --list | grep -E 'tcp|poll|sock|shutdown|stream|connect|write|read|listen|accept|ipc|close|active|emfile|getpeer' |
		sed 's, .*,,' | grep -vE 'udp|tty|fs_|thread|barrier|mutex|rwlock|pipe' >names
	while read -r name; do
		wanted "$name" || continue
		echo "=== $name"
		how=failed
		as_nobody timeout 120 ./uv_run_tests "$name" >log 2>&1 && how=ok
		cat log
		! grep -q '# SKIP' log || how=skipped
		result "$name" $how
	done <names
}
