# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# TAP from shell scripts, of sh and of bash.  Source it.
#
#	ok "links come up" on 1 rsctl links
#	skip "Go" "no go here"
#	done_testing

tap_number=0 tap_failed=0 tap_skipped=0 tap_time=${SECONDS:-0}

# tap_result STATUS NAME: one line, in bash with the time since the last one, if it is
# long.  Return: STATUS is 0.
tap_result() {
	local took=$((${SECONDS:-0} - tap_time))
	tap_time=${SECONDS:-0}
	[ $took -lt 5 ] && took='' || took=" # $took s"
	tap_number=$((tap_number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_number - $2$took"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_number - $2$took"
		return 1
	fi
}

# ok NAME CMD...: CMD, which runs in a subshell, succeeds; otherwise its output is shown.
ok() {
	local name=$1 output status=0
	shift
	output=$("$@" 2>&1) || status=$?
	tap_result $status "$name" && return
	printf 'status %d of: %s\n%s\n' $status "$*" "$output" | tail -n 40 | diag
	return 1
}

# skip NAME WHY
skip() {
	tap_skipped=$((tap_skipped + 1))
	tap_result 0 "$1 # SKIP $2"
}

# Comment lines, of arguments or of standard input.
# shellcheck disable=SC2120	# scripts pass arguments
diag() {
	if [ $# != 0 ]; then
		echo "$*"
	else
		cat
	fi | sed 's/^/# /'
}

# tap_end [summary]: the plan, and in words how many passed.  Return: none failed.
# shellcheck disable=SC2120	# scripts pass one
tap_end() {
	echo "1..$tap_number"
	[ $# = 0 ] ||
		echo "$((tap_number - tap_failed - tap_skipped)) passed, $tap_failed failed$(
			[ $tap_skipped = 0 ] || echo ", $tap_skipped skipped")"
	[ $tap_failed = 0 ]
}

done_testing() {
	tap_end
	exit
}
