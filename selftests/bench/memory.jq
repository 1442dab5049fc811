# SPDX-License-Identifier: GPL-2.0-only
# From the lines of memory.sh to memory.json, and from that to the table:
#	jq -nR -L DIR 'include "memory"; collect' results
#	jq -r -L DIR 'include "memory"; table' memory.json
include "report";

def ways: [["rsockets", "rsockets"], ["smc", "SMC-R"], ["ours", "ours"]];
def stages: [["open", "open"], ["moved", "28 KiB sent"], ["streamed", "just streamed"], ["rested", "seconds after that"]];

def collect:
	[inputs | split(" ")] as $lines
	| def result($way; $name):
		[$lines[] | select(.[:3] == ["result", $way, $name]) | .[3] | tonumber][0];
	{
		settings: [$lines[] | select(.[0] == "setting") | {key: .[1], value: .[2]}] | from_entries,
		ways: [ways[] | . as [$way, $title]
			| ([$lines[] | select(.[:2] == ["connections", $way]) | .[2] | tonumber][0] // 2) as $n | {
			name: $way,
			title: $title,
			connections: $n,
			bytes: [stages[][0] as $stage | (1, $n) as $n
				| {key: "\($stage)-\($n)", value: (result($way; "\($stage)-\($n)") | values
					| . - result($way; "before"))}] | from_entries,
			missing: [$lines[] | select(.[:2] == ["missing", $way]) | .[2:] | join(" ")]
		}]
	};

# KiB at each of the two ends
def kib: if . == null then "-" else . / 2048 | number end;
def row($title; f): [($title | pad(48)), (.ways[] | f | kib | lpad(10))] | join(" ");

def table:
	"Linux \(.settings.kernel), KiB registered at each end",
	"",
	([("" | pad(48)), (.ways[].title | lpad(10))] | join(" ")),
	(stages[] as [$stage, $is]
		| row("link and first connection, \($is)"; .bytes["\($stage)-1"])),
	(stages[] as [$stage, $is]
		| row("each one more, \($is)"; .bytes["\($stage)-\(.connections)"] as $all
			| .bytes["\($stage)-1"] as $one
			| if $all == null or $one == null then null
			  else ($all - $one) / (.connections - 1) end)),
	([("connections that this is from" | pad(48)), (.ways[].connections | lpad(10))] | join(" ")),
	(if any(.ways[].missing[]; true) then "", "Not measured:" else empty end),
	(.ways[] | .title as $title | .missing[] | "  \($title | pad(9)) \(.)");
