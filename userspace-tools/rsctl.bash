# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Completion of rsctl(8) for bash.  What there is to choose from is asked of rsctl
# itself: the words are those of its help.  Words are told one a line, because names of
# cgroups are anybody's, with spaces and all.

_rsctl_words() { printf '%s\n' "$@"; }
_rsctl_commands() { "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }
_rsctl_options() { "$@" 2>/dev/null | sed -n 's/^  \(-.\), \(--[a-z]*\).*/\1\n\2/p'; }

# The names of what a command tells: the value of KEY, by lines.
_rsctl_names() {	# RSCTL COMMAND KEY
	"$1" -jp "$2" 2>/dev/null | sed -n "s/^ *\"$3\": \"\([^\"]*\)\",*$/\1/p" | sort -u
}

_rsctl_filter() {	# RSCTL COMMAND WORD-BEFORE
	case $3 in
	device)	_rsctl_names "$1" devices device ;;
	peer)	_rsctl_names "$1" peers peer ;;
	reason)	_rsctl_names "$1" explain name ;;
	carrier) _rsctl_words tcp ring ;;
	mode)	_rsctl_words unconnected listen connecting prelude hello framed fallback closed ;;
	state)
		case $2 in
		links)	_rsctl_words connecting up broken dead ;;
		*)	_rsctl_words unconnected listen connecting prelude hello framed fallback \
				closed established connected synchronized syn-sent fin-wait-1 \
				fin-wait-2 close-wait last-ack closing all ;;
		esac ;;
	port | sport | dport | src | dst | link) ;;
	*)	case $2 in
		links)	 _rsctl_words peer device port state ;;
		sockets) _rsctl_words port sport dport src dst peer device state mode carrier reason ;;
		memory)	 _rsctl_words link device ;;
		esac ;;
	esac
}

# As rsctl has it: names are relative to this.
_rsctl_cgroup_root() { awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts; }
_rsctl_cgroups() { find "$(_rsctl_cgroup_root)" -mindepth 1 -type d -printf '%P\n' 2>/dev/null; }

# What begins with the word, of the lines read.  Not "compgen -W", which expands them.
_rsctl_offer() {	# WORD
	local line quoted
	COMPREPLY=()
	while IFS= read -r line; do
		printf -v quoted %q "$line"
		[ -z "$line" ] || [[ $line != "$1"* && $quoted != "$1"* ]] || COMPREPLY+=("$quoted")
	done
}

# Where the program of "run" is, or may be, which is at COMP_WORDS[I].  Readline has
# made several words of a rule with colons.
_rsctl_program() {	# I
	local i
	for ((i = $1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)	i=$((i + 1))
			break ;;
		-i | -x | --include | --exclude)
			i=$((i + 1))
			[[ ${COMP_WORDS[i]} =~ ^[:=]+$ ]] && i=$((i + 1))
			while [[ ${COMP_WORDS[i + 1]} =~ ^[:=]+$ ]]; do i=$((i + 2)); done ;;
		-*)	;;
		*)	break ;;
		esac
	done
	echo "$i"
}

_rsctl_run() {	# RSCTL I: behind "run"
	local at word=${COMP_WORDS[COMP_CWORD]}
	at=$(_rsctl_program "$2")
	if ((at > COMP_CWORD)); then
		COMPREPLY=()	# a rule
	elif ((at == COMP_CWORD)) && [[ $word == -* ]]; then
		_rsctl_offer "$word" < <(_rsctl_options "$1" run --help)
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$at"
	elif ((at == COMP_CWORD)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	else
		compopt -o default
		COMPREPLY=()
	fi
}

# The words that a command may have where the cursor is.
_rsctl_arguments() {	# RSCTL COMMAND WHICH WORD-BEFORE
	case $2.$3 in
	links.* | sockets.* | memory.*) _rsctl_filter "$1" "$2" "$4" ;;
	explain.*)	_rsctl_names "$1" explain name ;;
	show.1 | set.1)	_rsctl_names "$1" show name ;;
	peers.*)	_rsctl_names "$1" peers peer ;;
	devices.*)	_rsctl_names "$1" devices device ;;
	drain.*)	_rsctl_words on off ;;
	check.1)	_rsctl_words listen
			compgen -A hostname ;;
	check.3)	_rsctl_words probe ;;
	cgroup.1)	_rsctl_words on off ;;
	cgroup.2)	_rsctl_words self
			_rsctl_cgroups ;;
	esac
}

_rsctl() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' at i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-N | --netns)	i=$((i + 1)) ;;
		-*)		;;
		*)		command=${COMP_WORDS[i]} at=$i
				break ;;
		esac
	done
	if [ "$command" = run ]; then
		_rsctl_run "$1" $((at + 1))
	elif [ "$before" = -N ] || [ "$before" = --netns ]; then
		_rsctl_offer "$word" < <(ls /run/netns 2>/dev/null)
	elif [[ $word == -* ]]; then
		_rsctl_offer "$word" < <(_rsctl_options "$1" help)
	elif [ -z "$command" ]; then
		_rsctl_offer "$word" < <(_rsctl_commands "$1")
	else
		_rsctl_offer "$word" < <(_rsctl_arguments "$1" "$command" $((COMP_CWORD - at)) "$before")
	fi
}

complete -F _rsctl rsctl
