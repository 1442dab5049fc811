#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of rsctl and the preload library that do not need the module.
# usage: test.sh [DIR with rsctl and the library]		TAP on stdout

dir=$(cd "${1:-.}" && pwd)
rsctl=$dir/rsctl
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/tap.sh
. "$here/../selftests/tap.sh"

# result STATUS NAME: of the last command, whose output is shown if it failed
result() {
	tap_result "$1" "$2" || sed 's/^/# /' "$tmp/out" "$tmp/err"
}

# exits STATUS NAME COMMAND...: it does, and tells why on stderr if not 0
exits() {
	want=$1 name=$2
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ "$got" = "$want" ] && { [ "$want" = 0 ] || [ -s "$tmp/err" ]; }
	result $? "$name"
}

# says WORDS NAME: the last command did
says() {
	cat "$tmp/out" "$tmp/err" | grep -q -- "$1"
	result $? "$2"
}

exits 2 "no command" "$rsctl"
exits 2 "unknown command" "$rsctl" frobnicate
exits 2 "empty command" "$rsctl" ""
exits 2 "unknown option" "$rsctl" --frobnicate links
exits 2 "unknown colour" "$rsctl" --color=mauve help
exits 2 "too many arguments" "$rsctl" links all
exits 1 "network namespace that does not exist" "$rsctl" -N no-such-netns help
exits 0 "help" "$rsctl" help
says "rsctl \[OPTIONS\]" "help tells the usage"
exits 0 "abbreviation" "$rsctl" he
exits 0 "version of the tool" "$rsctl" -V

exits 0 "explain one reason" "$rsctl" explain NO_OPTION
says "^no-option: " "explain shows the name as in the spec"
exits 0 "explain all" "$rsctl" explain
exits 0 "explain in JSON" "$rsctl" -j explain
jq -e 'length > 20 and all(.[]; .name and .text and .cause and .remedy)' \
	"$tmp/out" >/dev/null 2>&1
result $? "explain's JSON is complete"
exits 0 "options after the command" "$rsctl" explain -j no-option-space --pretty
jq -e '.[0].name == "no-option-space"' "$tmp/out" >/dev/null 2>&1
result $? "... take effect"
exits 2 "unknown option after the command" "$rsctl" links -x
exits 0 "explain in pretty JSON" "$rsctl" -jp explain no-option-space
jq -e '.[0].name == "no-option-space"' "$tmp/out" >/dev/null 2>&1
result $? "pretty JSON is JSON"
exits 2 "explain an unknown reason" "$rsctl" explain frobnication
exits 2 "explain two reasons" "$rsctl" explain none off

exits 0 "explain a reason of a switch" "$rsctl" -j explain DRAINED
jq -e '.[0] | .name == "drained" and (.remedy | test("drain off"))' \
	"$tmp/out" >/dev/null 2>&1
result $? "... with the command that ends a drain"

exits 2 "drain: neither on nor off" "$rsctl" drain half
says '"on" or "off"' "drain says what it takes"
exits 2 "drain on: timeout that is not a number" "$rsctl" drain on soon
exits 2 "drain on: negative timeout" "$rsctl" drain on -1
exits 2 "drain on: timeout above its maximum" "$rsctl" drain on 86401
exits 2 "drain on: too many arguments" "$rsctl" drain on 5 6
exits 2 "drain off: a timeout" "$rsctl" drain off 5
exits 2 "drain: an abbreviation of off" "$rsctl" drain of
exits 2 "unknown filter" "$rsctl" sockets frob 1
says "there are port" "... says which filters there are"
exits 2 "filter without a value" "$rsctl" sockets dport =
exits 2 "filter by an invalid port" "$rsctl" sockets dport :99999
exits 2 "filter by an unknown state" "$rsctl" links state broke-n
says "is one of: connecting" "... says which states there are"
exits 2 "filter by an unknown reason" "$rsctl" sockets reason frob
exits 2 "filter by an invalid address" "$rsctl" sockets dst 10.77.0
exits 2 "filter by a prefix that is too long" "$rsctl" sockets dst 10.77.0.1/33
exits 2 "filter without an address" "$rsctl" sockets state framed src
exits 2 "filter by an empty address" "$rsctl" sockets src ""
exits 2 "filter by an address without a closing bracket" "$rsctl" sockets src "[fd77::1:80"
exits 2 "filter by an address and an invalid port" "$rsctl" sockets src 10.0.0.1:0x
exits 2 "filter by an unknown service" "$rsctl" sockets dport frobnicate
exits 2 "filters separated by or" "$rsctl" sockets dport 80 or dport 443
exits 2 "!= with a filter that does not support it" "$rsctl" sockets carrier != ring
exits 2 "two values of a filter" "$rsctl" sockets dport 80 and dport 443
says "dport.* is given twice" "... says which"
exits 2 "a mode and a state that is one" "$rsctl" sockets mode framed state closed
exits 2 "two devices" "$rsctl" links device rxe0 device siw0
exits 2 "a setting without a value" "$rsctl" set ring_mode
exits 2 "a value that is not a number" "$rsctl" set ring_mode 1x
exits 2 "a value with a space behind it" "$rsctl" set ring_mode "1 "
exits 2 "a value with two units" "$rsctl" set rmb_max 1KK
exits 2 "a value that is too large" "$rsctl" set rmb_max 99999999999999999999G
exits 2 "show two settings" "$rsctl" show ring_mode ring_size
exits 2 "check without a host" "$rsctl" check
exits 2 "check with something other than probe" "$rsctl" check host 1 hard
exits 1 "check listen: port that does not exist" "$rsctl" check listen nowhere
for port in 99999 65536 0 "" 99999999999999999999; do
	exits 2 "check listen: invalid port \"$port\"" timeout 5 "$rsctl" check listen "$port"
	exits 2 "check: invalid port \"$port\"" "$rsctl" check 127.0.0.1 "$port"
done
exits 2 "watch with a command that does not support it" "$rsctl" -w links
exits 2 "watch: interval of 0" "$rsctl" --watch=0 stats

exits 2 "cgroup on without a cgroup" "$rsctl" cgroup on
exits 2 "cgroup: neither on nor off" "$rsctl" cgroup half /sys/fs/cgroup
exits 1 "cgroup on: not a cgroup" "$rsctl" cgroup on /tmp
exits 1 "cgroup off: a cgroup that does not exist" "$rsctl" cgroup off /sys/fs/cgroup/no-such-cgroup
exits 2 "cgroup on: an empty name is not the root" "$rsctl" cgroup on ""
exits 2 "cgroup off: an empty name" "$rsctl" cgroup off ""
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)/rsctl-test-$$
if mkdir "$group" "$group/.control" 2>/dev/null; then
	# within CGROUP COMMAND...
	within() {
		sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$@"
	}
	exits 1 "cgroup: a path as systemd tells it" "$rsctl" cgroup off "/${group##*/}"
	says "$group: not switched on" "... is below the root"
	exits 1 "cgroup: self" within "$group" "$rsctl" cgroup off self
	says "$group: not switched on" "... is the caller's"
	exits 1 "cgroup: self in systemd's subgroup" within "$group/.control" "$rsctl" cgroup off self
	says "$group: not switched on" "... is the service's"
	if within "$group" unshare -C true 2>/dev/null; then
		exits 1 "cgroup: self in the root" within "$group" unshare -C "$rsctl" cgroup off self
		says "is in the root" "... is refused"
		exits 1 "cgroup: self outside of the root" within "$group" unshare -C sh -c \
			"echo \$\$ >'${group%/*}/cgroup.procs' && exec '$rsctl' cgroup off self"
		says "outside" "... is refused"
	fi
	rmdir "$group/.control" "$group"
else
	skip "cgroup: self" "no cgroup can be created"
fi
exits 0 "cgroups in JSON" "$rsctl" -j cgroup
jq -e 'type == "array"' "$tmp/out" >/dev/null 2>&1
result $? "cgroups: JSON is an array"

# How rsctl shows what the module answers; test_genl.c makes up the answers.
made=$dir/rsctl-test
make -s -C "$here" O="$dir" "$made" >"$tmp/make" 2>&1
if [ -x "$made" ]; then
	# shown COMMAND PATTERN NAME
	shown() {
		# shellcheck disable=SC2086
		"$made" $1 >"$tmp/out" 2>"$tmp/err" && grep -Eq -- "$2" "$tmp/out"
		result $? "$3"
	}
	shown "-o sockets" '^10.77.0.1:5000 +10.77.0.2:6379 +framed +ring +tcp +120.6K +120.6K +none' \
		"sockets"
	shown "-o sockets" '^\[fd77::1\]:6379 +- +listen +- +- +- +- +-$' "a missing value is a dash"
	shown "-do sockets" 'stall-ring 7x 7.654321s  stall-slot 1x 0.000021s  now stall-ring for 1.234567s' \
		"sockets: what the sender waited for"
	shown "-d sockets" '^ +64  #{30} 100$' "sockets: histogram"
	shown "-d sockets" '^ +4194304[+] # +1$' "sockets: the end of a histogram is open"
	shown "-d sockets" '^ +[.]{3}$' "sockets: a histogram has gaps"
	shown "sockets dst 10.0.0.0/8" '^10.77.0.1:5000' "sockets to a network"
	shown "-j sockets src fd77::/16 state listen" '^\[[^}]*"local":"\[fd77::1\]:6379"' \
		"sockets from a network"
	shown "-j sockets dst 10.77.0.0/31" '^\[\]$' "sockets to another network"
	# chooses FILTER WANTED NAME: the sockets with these local addresses
	chooses() {
		# shellcheck disable=SC2086
		"$made" -j sockets $1 >"$tmp/out" 2>"$tmp/err" &&
			[ "$(jq -r '[.[].local] | join(" ")' "$tmp/out")" = "$2" ]
		result $? "$3"
	}
	first=10.77.0.1:5000 listener='[fd77::1]:6379' mapped='[::ffff:10.77.0.3]:80'
	chooses "src 10.77.0.3" "$mapped" "sockets of an IPv4 address in IPv6"
	chooses "dst 10.77.0.4/31 and src != 10.77.0.1" "$mapped" "sockets to an IPv4 network in IPv6"
	chooses "src ::ffff:10.77.0.0/120" "$first $mapped" "sockets of an IPv4 network written as IPv6"
	for s in "$first" "$listener" "$mapped"; do
		chooses "src $s" "$s" "sockets by an address as shown: $s"
	done
	chooses "src [fd77::]/16:6379" "$listener" "sockets of a network and a port"
	chooses "src 10.77.0.1:80" "" "sockets of an address and another port"
	chooses "src :http" "$mapped" "sockets of a service"
	chooses "src = *:5000 && dst == 10.77.0.2:*" "$first" "sockets by wildcards"
	chooses "sport != http" "$first $listener" "sockets without a service"
	chooses "port != 5000 and dport != :40000" "$listener" "sockets without ports"
	chooses "src != 10.77.0.0/24" "$listener" "sockets without a network"
	chooses "dst != 10.77.0.2" "$listener $mapped" "sockets that are not connected there"
	chooses "state established" "$first" "sockets of a state of TCP"
	chooses "state connected" "$first $mapped" "sockets that are connected"
	chooses "state != established" "$listener $mapped" "sockets without a state of TCP"
	chooses "state all mode != fallback" "$first $listener" "sockets without a mode"
	chooses "reason != none" "$listener $mapped" "sockets without a reason"
	chooses "peer != 7b9a" "$listener $mapped" "sockets without a peer"
	chooses "reason != none reason != no-option" "$listener" "sockets without two reasons"
	chooses "src 10.0.0.0/8 src != 10.77.0.3 state all state established" "$first" \
		"sockets by several addresses and states of TCP"
	shown "-j links device = rxe0 and port 1" '"id":5' "links of a port"
	shown "-j links state != up" '^\[\]$' "links without a state"
	shown "-j memory link != 5" '^\[\]$' "memory without a link"
	shown "-c -o sockets" "$(printf '\033')" "colour, if asked for"
	# folds OPTIONS COMMAND: no line is wider than 80, but for a single word
	folds() {
		# shellcheck disable=SC2086
		COLUMNS=80 "$made" $1 >"$tmp/all" 2>"$tmp/err"
		! grep -E '^.{81}' "$tmp/all" | grep -E '[^ ] +[^ ]' >"$tmp/out" && [ -s "$tmp/all" ]
		result $? "$1 is folded"
	}
	for c in explain "-d devices" "-d links" "-d sockets" "-d peers" "-s stats" memory show \
		"drain" "version"; do
		folds "$c"
	done
	COLUMNS=80 "$made" -d devices | tr -s ' \n' ' ' >"$tmp/out"
	says "10.77.0.1 fd77::1 2001[^ ]*:1 2001[^ ]*1111 2001[^ ]*2222 siw0" "... and nothing is lost"
	shown "-do peers" 'path [*] > 10.77.2.2:4793  advertised  failed 2  refused 0  flaps 1  retry-ms -' \
		"peers: paths"
	shown "peers 7b9a" 'unreachable, 12.345s ago' "peers by the beginning of an id"
	shown "-j links peer 7b state up" '"rtt_us":123' "links of a peer"
	shown "-no devices" '^rxe0/1 +yes +- +2 +1 +10.77.0.1 fd77::1 2001' "devices"
	shown "-d devices" '^siw0/1 +no +small-queues' "devices that cannot be used"
	shown memory '^rings: 4.0M of 64.0M .*#.*short$' "memory in all"
	shown memory '^ +5 +rxe0 +rings +4.0M +1.0M +#####[.]+$' "memory of a link"
	shown "show ring_s" '^ring_size +65536 +262144 +16384 to 4194304, powers of 2$' "a setting"
	shown "show" '^family +22 +- +read-only$' "a setting that is read-only"
	exits 0 "set a setting" "$made" set ring-size=64K
	exits 0 "set a setting with a unit in lower case" "$made" set ring-size 64k
	exits 2 "set a setting that does not exist" "$made" set rings 1
	exits 2 "links of a peer that does not exist" "$made" links peer 7c
	exits 0 "links of a peer with several pairs of addresses" "$made" links peer \
		7b9ad415000000000000000000000000
	exits 2 "links of several peers" "$made" links peer 7
	says "several peers" "... says so"
	timeout 4 "$made" stats -w >"$tmp/out" 2>"$tmp/err"
	grep -Eq '^active-opens +3000 +[0-9.]+k?' "$tmp/out"
	result $? "rates"
	# with_server COMMAND...: its port is the last argument, what it was sent is counted in $tmp/got
	with_server() {
		rm -f "$tmp/port"
		python3 - "$tmp/port" "$tmp/got" <<-'PY' &
			import socket, sys
			server = socket.create_server(("127.0.0.1", 0))
			server.settimeout(20)
			with open(sys.argv[1], "w") as f:
			    print(server.getsockname()[1], file=f)
			with open(sys.argv[2], "w") as f:
			    print(len(server.accept()[0].recv(1000)), file=f)
		PY
		server=$!
		while ! [ -s "$tmp/port" ] && kill -0 $server 2>/dev/null; do sleep 0.1; done
		"$@" "$(cat "$tmp/port")"
		set -- $?
		wait $server
		return "$1"
	}
	# The server must be sent nothing, even though check cannot write its output.
	with_server "$made" check 127.0.0.1 >&- 2>"$tmp/err"
	[ $? = 1 ]
	result $? "check without stdout fails"
	cp "$tmp/got" "$tmp/out"
	says "^0$" "... and sends the server nothing"
	# says_step STEP TEXT NAME: the last check did
	says_step() {
		jq -e --arg step "$1" --arg text "$2" \
			'.[] | select(.step == $step) | "\(.ok) \(.reason) \(.text)" | test($text)' \
			"$tmp/out" >/dev/null
		result $? "$3"
	}
	# checks CASE TEXT NAME: of test_genl.c, what the step "link" says
	checks() {
		with_server env RSCTL_TEST="$1" "$made" -j check 127.0.0.1 >"$tmp/out" 2>"$tmp/err"
		says_step link "$2" "$3"
	}
	checks "" "^true .* 10.77.0.1 > 10.77.0.2, established by this host" \
		"check counts no links of other addresses"
	checks passive "^true .* 10.77.0.1 > 10.77.0.2, established by the peer" \
		"... if the peer establishes them, too"
	checks unnamed "^true .* 10.77.1.1 > 10.77.1.2, established by the peer" \
		"a link that the peer has established between other addresses"
	checks limit "^false no-device" "no peer for these addresses"
	RSCTL_TEST=least "$made" -j check 127.0.0.1 1 >"$tmp/out" 2>"$tmp/err"
	says_step memory "^true" "check with room for one ring"
	RSCTL_TEST=less "$made" -j check 127.0.0.1 1 >"$tmp/out" 2>"$tmp/err"
	says_step memory "^false rmb-limit" "check without room for a ring"
	"$made" check "[127.0.0.1]" 1 >"$tmp/out" 2>"$tmp/err"
	says "refused" "check an address in brackets"
	if python3 -c 'import jsonschema' 2>/dev/null; then
		# as one array
		{ jq '{ "$defs": (."$defs" + { events: { type: "array", minItems: 8,
			items: { "$ref": "#/$defs/monitor" } } }) }' "$here/rsctl.schema.json" >"$tmp/schema" &&
			"$made" -j monitor | jq -s . >"$tmp/json" &&
			python3 - "$tmp/schema" "$tmp/json" <<-'PY'
				import json, sys, jsonschema
				schema = json.load(open(sys.argv[1]))
				schema["$ref"] = "#/$defs/events"
				events = json.load(open(sys.argv[2]))
				jsonschema.validate(events, schema)
				check = jsonschema.validators.validator_for(schema)(schema)
				for event in events:
				    for key in event:
				        less = dict(event)
				        del less[key]
				        assert not check.is_valid([less] * 8), (event["event"], key)
				        assert not check.is_valid([dict(event, **{key: {}})] * 8), (event["event"], key)
				assert not check.is_valid([{"time_ms": 1, "event": "frob"}] * 8)
				print(sorted({event["event"] for event in events}))
			PY
		} >"$tmp/out" 2>"$tmp/err"
		result $? "monitor: JSON as the schema says, and each key is needed"
		for c in sockets links peers devices memory show stats version drain explain; do
			"$made" -j $c >"$tmp/json" 2>"$tmp/err" &&
				python3 - "$here/rsctl.schema.json" $c "$tmp/json" >"$tmp/out" 2>&1 <<-'PY'
					import json, sys, jsonschema
					schema = json.load(open(sys.argv[1]))
					schema["$ref"] = "#/$defs/" + sys.argv[2]
					jsonschema.validate(json.load(open(sys.argv[3])), schema)
				PY
			result $? "$c: JSON as the schema says"
		done
	else
		skip "JSON as the schema says" "no python3-jsonschema"
	fi
else
	skip "answers from test_genl.c" "no rsctl-test, see make check"
fi

# completes "WORDS" WANTED NAME: the last of the words may become what is wanted
completes() {
	bash -c '
		. "$1/rsctl.bash"
		read -ra COMP_WORDS <<<"$3"
		[ "${3% }" = "$3" ] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		cd "$5" || exit
		_rsctl_cgroup_root() { echo cgroups; }
		compgen() { case $* in -c*) echo "programs ${@: -1}" ;; *) builtin compgen "$@" ;; esac; }
		_command_offset() { COMPREPLY=("command at $1"); }
		_rsctl "$2"
		echo "${COMPREPLY[*]}"
		[ "${COMPREPLY[*]}" = "$4" ]' - "$here" "$made" "$1" "$2" "$tmp" >"$tmp/out" 2>"$tmp/err"
	result $? "$3"
}
if [ -x "$made" ]; then
	completes "rsctl so" sockets "completion of a command"
	completes "rsctl -j -N x dr" drain "completion behind options"
	completes "rsctl sockets d" "dport dst device" "completion of a filter"
	completes "rsctl sockets state fr" framed "completion of a filter's value"
	completes "rsctl links device " "rxe0 siw0" "completion of a device"
	completes "rsctl links device rxe0 and p" "peer port" "completion of another filter"
	completes "rsctl sockets state conn" "connecting connected" "completion of a state of TCP"
	completes "rsctl sockets m" mode "completion of the filter mode"
	completes "rsctl sockets mode conn" connecting "completion of a mode"
	completes "rsctl set ri" "ring_mode ring_size" "completion of a setting"
	completes "rsctl set ring_size " "" "no completion of a value"
	completes "rsctl explain rmb" rmb-limit "completion of a reason"
	completes "rsctl stats --wa" --watch "completion of an option"
	completes "rsctl check a 1 " probe "completion of check"
	completes "rsctl run --s" --supervise "completion of an option of run"
	completes "rsctl run -v prog" "command at 3" "completion of run's program"
	completes "rsctl -j run prog --s" "command at 3" "completion of the program's options"
	completes "rsctl run -x : 22 --include = [fd77 :: 1] : 80 -- prog --s" "command at 13" \
		"completion behind rules"
	completes "rsctl run -x 10." "" "no completion of a rule"
	completes "rsctl cgroup o" "on off" "completion of cgroup"
	# names that anybody may have chosen
	mkdir -p "$tmp/cgroups/system.slice/\$(touch was-run)" "$tmp/cgroups/a\\x2db c"
	completes "rsctl cgroup on sys" 'system.slice system.slice/\$\(touch\ was-run\)' \
		"completion of a cgroup does not expand its name"
	[ ! -e "$tmp/was-run" ]
	result $? "... and runs nothing"
	completes "rsctl cgroup on a" 'a\\x2db\ c' "completion of a cgroup quotes its name"
	completes 'rsctl cgroup on a\\x' 'a\\x2db\ c' "completion of a name that is quoted already"
fi

# Each command that help tells has a page, which calls it the same; each option is in
# the manual, and so is each setting of the module.
man=$here/man
"$rsctl" help | awk '
	/^Options/ { exit }
	/^  [a-z]/ { command = $1; text[command] = substr($0, 34) }
	substr($0, 1, 33) ~ /^ +$/ { text[command] = substr($0, 34) }
	END { delete text["help"]; for (c in text) print c, text[c] }' >"$tmp/commands"
(missing=0
while read -r c text; do
	sed -n 's/\\-/-/g; s/^rsctl-[a-z]* - //p' "$man/rsctl-$c.8" | grep -qxF -- "$text" ||
		{ echo "rsctl-$c.8 does not say \"$text\""; missing=1; }
	grep -qx ".BR rsctl-$c (8)" "$man/rsctl.8" || { echo "rsctl.8 has no $c"; missing=1; }
done <"$tmp/commands"
[ $missing = 0 ] && [ "$(wc -l <"$tmp/commands")" -gt 10 ]) >"$tmp/out" 2>"$tmp/err"
result $? "each command has a page"
sed -n 's/.*SETTING_[A-Z]*(\([a-z_]*\).*/\1/p; s/.*procname = "\(.*\)".*/\1/p; s/.*NUMBER("\(.*\)",.*/\1/p' \
	"$here/../kmod/control/sysctl.c" | grep -vx name >"$tmp/settings"
(missing=0
while read -r s; do
	grep -Eq "^\.BR .*\<$s \"" "$man/rdmastream.7" || { echo "no $s in rdmastream.7"; missing=1; }
done <"$tmp/settings"
[ $missing = 0 ] && [ "$(wc -l <"$tmp/settings")" -gt 15 ]) >"$tmp/out" 2>"$tmp/err"
result $? "the manual has each setting"
"$rsctl" help | sed -n 's/^  -., --\([a-z]*\).*/\1/p' >"$tmp/options"
(missing=0
while read -r o; do
	grep -q -- "\\\\-\\\\-$o" "$man/rsctl.8" || { echo "no --$o in rsctl.8"; missing=1; }
done <"$tmp/options"
exit $missing) >"$tmp/out" 2>"$tmp/err"
result $? "the manual has each option"
for o in -h --help; do
	exits 0 "run $o" "$rsctl" run $o
done
says "rsctl run \[OPTIONS\] \[--\] PROGRAM" "... tells the usage"
sed -n 's/^  \(-.\), --\([a-z]*\).*/\1 \2/p' "$tmp/out" >"$tmp/options"
"$rsctl" help >"$tmp/help"
(missing=0
while read -r short long; do
	grep -q -- "^\.BR .*\\\\$short .*\\\\-\\\\-$long" "$man/rsctl-run.8" ||
		{ echo "no --$long in rsctl-run.8"; missing=1; }
	[ "$short" = -h ] || grep -q -- "^  run .*$short\>" "$tmp/help" ||
		{ echo "no $short in help"; missing=1; }
done <"$tmp/options"
[ $missing = 0 ] && [ "$(wc -l <"$tmp/options")" = 6 ]) >"$tmp/out" 2>"$tmp/err"
result $? "help and the page of run have its options"
grep -A 2 '^  check ' "$tmp/help" >"$tmp/out"
says "listen PORT" "help has check listen"
exits 0 "JSON schema" "$rsctl" -jp help
diff -u "$here/rsctl.schema.json" "$tmp/out" >"$tmp/diff" 2>&1
s=$?
mv "$tmp/diff" "$tmp/out"
result $s "rsctl.schema.json is up to date (else: make generate)"
jq -e '."$defs" | has("links") and has("check")' "$here/rsctl.schema.json" >"$tmp/out" 2>"$tmp/err"
result $? "... and is JSON"

exits 2 "monitor with an argument" "$rsctl" monitor links

if [ -d /sys/module/rdmastream ]; then
	for c in links sockets stats version drain peers devices memory show; do
		exits 0 "$c in JSON" "$rsctl" -j "$c"
		jq -e 'type == "array"' "$tmp/out" >/dev/null 2>&1
		result $? "$c: JSON is an array"
	done
else
	for c in links sockets stats version drain "drain on" "drain off" monitor \
		peers devices memory show "set ring_mode 1" "check 127.0.0.1 1" \
		"links peer 01" "stats -w"; do
		# shellcheck disable=SC2086
		exits 3 "$c without the module" "$rsctl" $c
		[ "$(wc -l <"$tmp/err")" = 1 ] && [ ! -s "$tmp/out" ]
		result $? "$c without the module: one line"
	done
fi

exits 2 "run without a program" "$rsctl" run
exits 2 "run with an unknown option" "$rsctl" run --frobnicate
for rule in 10.0.0.0/33 "" 10.0.0.1: :90-80 :65536 1.2.3.4,5.6.7.8 fd77::1 "[fd77::1" "[::]/129" x; do
	exits 2 "run with an invalid rule: \"$rule\"" "$rsctl" run -x "$rule" true
done
exits 0 "run with rules" "$rsctl" run -x 10.0.0.0/8:80-90 -i "[fd77::]/16" --exclude :1 \
	sh -c 'echo "$RDMASTREAM_RULES"'
says "^x10.0.0.0/8:80-90,i\[fd77::\]/16,x:1$" "children inherit rules"
RDMASTREAM_RULES=frob exits 0 "run with rules of the environment that are not understood" "$rsctl" run true
says "RDMASTREAM_RULES.*using TCP" "... says so"
RDMASTREAM_RULES='' exits 0 "run with empty rules in the environment" "$rsctl" run true
! grep -q RULES "$tmp/err"
result $? "... is run without rules"
exits 127 "run a program that does not exist" "$rsctl" run no-such-program
exits 127 "run a path that does not exist" "$rsctl" run /no/such/program
exits 126 "run a file that is not executable" "$rsctl" run /etc/passwd
exits 126 "... and is found in PATH" env PATH=/etc:/nowhere "$rsctl" run passwd
exits 7 "run returns the exit status of the program" sh -c "
	'$rsctl' run sh -c 'exit 7'; s=\$?; echo \$s >&2; exit \$s"
exits 3 "run without stdout does not open another one" sh -c "
	'$rsctl' run sh -c '[ -e /proc/self/fd/1 ] || exit 3' >&-; s=\$?; echo \$s >&2; exit \$s"
exits 0 "run --verbose" "$rsctl" run --verbose sh -c :
says "dynamically linked: using the preload library" "a dynamic program gets the preload library"
printf 'echo "this is $0 $1"' >"$tmp/plain" && chmod 755 "$tmp/plain"
exits 0 "run a script without #!" "$rsctl" run "$tmp/plain" arg
says "this is $tmp/plain arg" "... by the shell"
printf '#!/usr/bin/env -S sh -e\nexit 0\n' >"$tmp/byenv" && chmod 755 "$tmp/byenv"
exits 0 "run a script by env" "$rsctl" run -v "$tmp/byenv"
says "/sh is dynamically linked" "... examines its interpreter"
exits 0 "run sets LD_PRELOAD" "$rsctl" run sh -c 'echo $LD_PRELOAD'
says "librdmastream-preload.so" "run names the library"
LD_PRELOAD=libc.so.6 exits 0 "run with another library in LD_PRELOAD" \
	"$rsctl" run sh -c 'echo $LD_PRELOAD'
says "librdmastream-preload.so:libc.so.6" "run keeps the other library"

# Built for another PREFIX before, which is not to be noticed.
cp -a "$dir" "$tmp/build"
exits 0 "install" env -u MAKEFLAGS make -s -C "$here" O="$tmp/build" DESTDIR= \
	PREFIX="$tmp/usr" LIBDIR="$tmp/usr/lib/rdmastream" MANDIR="$tmp/usr/share/man" install
exits 0 "run as installed" "$tmp/usr/bin/rsctl" run sh -c 'echo $LD_PRELOAD'
says "^$tmp/usr/lib/rdmastream/librdmastream-preload.so" "... finds the library"

cp "$(command -v env)" "$tmp/setuid" && chmod 4755 "$tmp/setuid"
exits 126 "run a setuid program" "$rsctl" run "$tmp/setuid"
says setuid "run says that it is setuid"
printf '#!%s\n' "$tmp/setuid" >"$tmp/script" && chmod 755 "$tmp/script"
exits 126 "run a script whose interpreter is setuid" "$rsctl" run "$tmp/script"

# A program that knows only TCP, and a protocol that is not TCP, as ours would be.
static=$tmp/static mptcp=262
if ${CC:-cc} -static -pthread -D_GNU_SOURCE -o "$static" \
	"$here/../selftests/programs/rs_echo.c" 2>/dev/null; then
	exits 126 "preload into a static program" "$rsctl" run --preload "$static" look
	says "statically linked" "run says that it is statically linked"
	exits 2 "exit status of a static program" sh -c "'$rsctl' run '$static' || exit \$?"
	exits 0 "run a static program" "$rsctl" run -v "$static" look
	says "statically linked: using the supervisor" "-v shows the method"
	says "fd=1 domain=0 protocol=[0-9]* cloexec=1 nonblock=1 uid=0 here" \
		"its sockets are as requested"
	exits 0 "supervised by root" "$rsctl" run -S grep NoNewPrivs /proc/self/status
	[ "$(id -u)" != 0 ] || says "NoNewPrivs:.0" "programs of root can gain privileges"
	exits 0 "a supervisor in a supervisor, with rules" "$rsctl" run -S "$rsctl" run -S -x :1 true
	says "rules of the outer" "run says that the inner rules have no effect"
	mkdir "$tmp/bin" && cp "$rsctl" "$tmp/bin" && chmod 755 "$tmp" "$tmp/bin"
	user='setpriv --reuid 1000 --regid 1000 --clear-groups'
	if [ "$(id -u)" = 0 ]; then
		exits 0 "supervised without privileges" $user "$tmp/bin/rsctl" run -S \
			grep NoNewPrivs /proc/self/status
		says "NoNewPrivs:.1" "a program without privileges cannot gain any"
		exits 0 "supervised already, without privileges" "$rsctl" run -S $user \
			"$tmp/bin/rsctl" run -S grep NoNewPrivs /proc/self/status
		says "NoNewPrivs:.0" "... can gain them as before"
		exits 0 "supervised without privileges, SIGCHLD ignored" $user sh -c \
			"trap '' CHLD; exec '$tmp/bin/rsctl' run -S grep NoNewPrivs /proc/self/status"
		says "NoNewPrivs:.1" "... is supervised, too"
	fi
	exits 0 "a supervised program at its limit of descriptors" "$rsctl" run "$static" full
	says "fd=-1 EMFILE" "socket() fails with EMFILE"
	if unshare -pf true 2>/dev/null; then
		exits 0 "no supervisor with the /proc of another PID namespace" unshare -pf "$rsctl" run "$static" look
		says "cannot supervise.*/proc" "... and says why"
		says "fd=1 .* here tcp" "it gets TCP sockets"
		exits 0 "a PID namespace with its own /proc" unshare -pf --mount-proc "$rsctl" run "$static" look
		! grep -q "cannot supervise" "$tmp/err"
		result $? "it is supervised"
	fi
	if [ ! -d /sys/module/rdmastream ]; then
		exits 0 "children without the module" "$rsctl" run -S sh -c "'$static' look; '$static' look"
		[ "$(grep -c 'using TCP' "$tmp/err")" = 1 ]
		result $? "... cause one warning in all"
	fi
else
	skip "run a static program" "no static libc"
fi

# A listener of Go 1.24 or later is one of MPTCP by itself.
go=$tmp/go
if (cd "$tmp" && GOCACHE="$tmp/cache" GO111MODULE=off CGO_ENABLED=0 \
	go build -o "$go" "$here/../selftests/programs/rs_echo.go") 2>/dev/null; then
	exits 0 "run a Go program" env -u GODEBUG "$rsctl" run "$go" look
	says "^protocol=" "... which listens"
	! grep -q "^protocol=$mptcp$" "$tmp/out"
	result $? "... with TCP, not MPTCP"
else
	skip "run a Go program" "no go"
fi
# godebug NAME WANTED COMMAND...: a shell that it runs sees this
godebug() {
	name=$1 wanted=$2
	shift 2
	exits 0 "$name" "$@" sh -c 'echo "<$GODEBUG>"'
	says "^<$wanted>$" "... is \"$wanted\""
}
godebug "GODEBUG of a supervised program" multipathtcp=0 env -u GODEBUG "$rsctl" run -S
godebug "GODEBUG if it was set" netdns=go,multipathtcp=0 env GODEBUG=netdns=go "$rsctl" run -S
godebug "GODEBUG if it has a wish" multipathtcp=1 env GODEBUG=multipathtcp=1 "$rsctl" run -S
godebug "GODEBUG in a supervisor in a supervisor" multipathtcp=0 env -u GODEBUG \
	"$rsctl" run -S "$rsctl" run -S
godebug "GODEBUG with the preload library" "" env -u GODEBUG "$rsctl" run

if [ -x "$static" ] && [ "$(cat /proc/sys/net/mptcp/enabled 2>/dev/null)" = 1 ]; then
	export RDMASTREAM_PROTO=$mptcp
	# given NUMBER NAME COMMAND...: that many sockets were
	given() {
		want=$1 name=$2
		shift 2
		"$rsctl" run "$@" >"$tmp/out" 2>"$tmp/err"
		[ "$(grep -c "protocol=$mptcp .* here ours" "$tmp/out")" = "$want" ]
		result $? "$name"
	}
	given 8 "a supervised program's sockets" "$static" look
	RDMASTREAM_RULES='' given 8 "... with empty rules" "$static" look
	exits 0 "run with rules that the kernel does not accept" "$rsctl" run -x :1 "$static" look
	says "rules.*using TCP" "... says so"
	given 16 "sockets of children" -S sh -c "'$static' look; '$static' look"
	given 8 "a supervisor in a supervisor" -S "$rsctl" run "$static" look
	exits 0 "a program that empties its environment" "$rsctl" run python3 -c "if 1:
		import os, socket
		for name in os.environ: os.unsetenv(name)
		print(socket.socket().getsockopt(socket.SOL_SOCKET, 38))"
	says "^$mptcp$" "... keeps its sockets"
	if unshare -rn true 2>/dev/null; then
		exits 0 "sockets in another network namespace, then in this one" unshare -r "$rsctl" run -S \
			sh -c "unshare -n '$static' look; '$static' look"
		[ "$(grep -c "protocol=$mptcp .* here ours" "$tmp/out")" = 16 ]
		result $? "... are those of the supervisor"
	fi
	given 0 "a dynamic program's static child" sh -c "'$static' look"
	exits 0 "signals" "$rsctl" run "$static" signals
	says "restarted: .* eintr=0 ours=500 moved=0" "signals with SA_RESTART lose no socket"
	says "interrupted: .* moved=0" "signals without SA_RESTART lose no socket"
	exits 0 "threads" "$rsctl" run "$static" threads
	says "ours=800" "each thread gets its sockets"
	# of the supervisor below, not of others
	cat >"$tmp/kill" <<-'END'
		for pid in $(pgrep -x "rsctl-$1"); do
			grep -qz "RDMASTREAM_TEST=$2" "/proc/$pid/environ" && kill -KILL "$pid"
		done
		sleep 0.2
	END
	export RDMASTREAM_TEST=$$
	given 8 "after the worker was killed" -S sh -c "sh '$tmp/kill' worker $$; '$static' look"
	given 8 "after the guard was killed" -S sh -c "sh '$tmp/kill' guard $$; '$static' look"
	unset RDMASTREAM_PROTO RDMASTREAM_TEST
else
	skip "supervised sockets" "no MPTCP, which takes the place of rdmastream here"
fi

cat >"$tmp/sock.py" <<'PY'
import errno, socket
a = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
b = socket.socket(socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
x = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
print(a.family.name, u.getsockopt(socket.SOL_SOCKET, 38))
PY
if command -v python3 >/dev/null; then
	exits 0 "run with sockets" "$rsctl" run python3 "$tmp/sock.py"
	says "^AF_INET 17$" "datagram sockets are left alone"
	if [ ! -d /sys/module/rdmastream ]; then
		[ "$(grep -c 'using TCP' "$tmp/err")" = 1 ]
		result $? "one warning without the module"
	fi
else
	skip "run with sockets" "no python3"
fi

done_testing
