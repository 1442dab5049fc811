# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Completion of rsctl(8) for bash.  What there is to choose from is asked of rsctl
# itself: the words are those of its help.

_rsctl_commands() { "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }
_rsctl_options() { "$1" help 2>/dev/null | sed -n 's/^  \(-.\), \(--[a-z]*\).*/\1 \2/p'; }

# The names of what a command tells: the value of KEY, by lines.
_rsctl_names() {	# RSCTL COMMAND KEY
	"$1" -jp "$2" 2>/dev/null | sed -n "s/^ *\"$3\": \"\([^\"]*\)\",*$/\1/p" | sort -u
}

_rsctl_filter() {	# RSCTL COMMAND WORD-BEFORE
	case $3 in
	device)	_rsctl_names "$1" devices device ;;
	peer)	_rsctl_names "$1" peers peer ;;
	reason)	_rsctl_names "$1" explain name ;;
	carrier) echo tcp ring ;;
	state | mode)
		case $2 in
		links)	echo connecting up broken dead ;;
		*)	echo unconnected listen connecting prelude hello framed fallback closed \
				established connected synchronized syn-sent fin-wait-1 fin-wait-2 \
				close-wait last-ack closing all ;;
		esac ;;
	port | sport | dport | src | dst | link) ;;
	*)	case $2 in
		links)	 echo peer device port state ;;
		sockets) echo port sport dport src dst peer device state carrier reason ;;
		memory)	 echo link device ;;
		esac ;;
	esac
}

_rsctl() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' at i words=''

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-N | --netns)	i=$((i + 1)) ;;
		-*)		;;
		*)		command=${COMP_WORDS[i]} at=$i
				break ;;
		esac
	done
	if [ "$before" = -N ] || [ "$before" = --netns ]; then
		words=$(ls /run/netns 2>/dev/null)
	elif [[ $word == -* && $command != run ]]; then
		words=$(_rsctl_options "$1")
	elif [ -z "$command" ]; then
		words=$(_rsctl_commands "$1")
	else
		case $command in
		links | sockets | memory) words=$(_rsctl_filter "$1" "$command" "$before") ;;
		explain)	words=$(_rsctl_names "$1" explain name) ;;
		show | set)	[ "$COMP_CWORD" != $((at + 1)) ] || words=$(_rsctl_names "$1" show name) ;;
		peers)		words=$(_rsctl_names "$1" peers peer) ;;
		devices)	words=$(_rsctl_names "$1" devices device) ;;
		drain)		words="on off" ;;
		check)		case $((COMP_CWORD - at)) in
				1)	mapfile -t COMPREPLY < <(compgen -A hostname -W listen -- "$word")
					return ;;
				3)	words=probe ;;
				esac ;;
		run)		if [[ $word != -* ]]; then
					mapfile -t COMPREPLY < <(compgen -c -- "$word")
					return
				fi
				words="-i --include -x --exclude -P --preload -S --supervise -v --verbose" ;;
		cgroup)		case $((COMP_CWORD - at)) in
				1)	words="on off" ;;
				2)	words=$(cd /sys/fs/cgroup 2>/dev/null && find . -type d | sed 's/^\.\///') ;;
				esac ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _rsctl rsctl
