# SPDX-License-Identifier: GPL-2.0-only
# From the lines of instr.sh, and those of instr.txt:
#	jq -nRr -L DIR 'include "instr"; table' counts instr.txt
# "tracked" makes a new instr.txt, "worse" tells what has grown too much, "dear" what
# costs too much where the other end, or the setting, makes it plain TCP.
include "report";

def ways: [
	["tcp", "TCP"], ["tcp-again", "TCP, again"], ["to-tcp", "ours to TCP"],
	["from-tcp", "TCP to ours"], ["raw", "ours: raw"], ["ours-tcp", "ours: tcp"],
	["ours-ring", "ours: ring"], ["smc", "SMC-R"], ["floor", "floor"]
];

# Over rs_hca, and over a veth pair.
def free_ways: [
	["free-tcp", "TCP, veth"], ["free-ours-tcp", "ours: tcp"], ["free-ours-ring", "ours: ring"],
	["free-smc", "SMC-R"], ["free-floor", "floor"]
];

# With devices that take their time.
def late_ways: [["late-ours-ring", "ours: ring"], ["late-smc", "SMC-R"], ["late-floor", "floor"]];

def costs: [
	["connect", "connection"], ["rtt-64", "RTT 64 B"], ["rtt-4K", "RTT 4 KiB"],
	["stream-4K", "MiB by 4 KiB"], ["stream-64K", "MiB by 64 KiB"], ["stream-64", "MiB by 64 B"]
];

def ours: IN("to-tcp", "from-tcp", "raw", "ours-tcp", "ours-ring", "free-ours-tcp", "free-ours-ring",
	"late-ours-ring");
def limit: 1.05;

# Where a connection becomes plain TCP its rate shall be that much of TCP's.
def fallback: "to-tcp", "from-tcp", "raw";
def least: 0.97;

# Counts as [PATH, NAME, VALUE], and what else was said.
def read: [inputs | select(startswith("#") | not) | split(" ")] | {
	counts: [.[] | select(.[0] == "count") | [.[1], .[2], (.[3] | tonumber)]],
	before: [.[] | select(length == 3 and (.[0] | IN((ways + free_ways + late_ways)[][0]))) | [.[0], .[1], (.[2] | tonumber)]],
	proof: [.[] | select(.[0] == "proof") | [.[1], (.[2:] | join(" "))]],
	missing: [.[] | select(.[0] == "missing") | .[1:] | join(" ")],
	setting: [.[] | select(.[0] == "setting") | .[1:] | join(" ")]
};

def lookup($path; $name): first(.[] | select(.[0] == $path and .[1] == $name) | .[2]) // null;

def decimals($n): tostring | split(".") | .[0] + "." + ((.[1] // "") + "000" | .[:$n]);

def count_cell($counts; $path; $name; $to):
	($counts | lookup($path; $name)) as $count
	| ($counts | lookup($to; $name)) as $base
	| if $count == null then "-"
	  else "\($count / 1000 | round_to(10) | decimals(1)) (\(
		if $base == null then "-" else $count / $base | round_to(1000) | decimals(3) end))"
	  end;

def row($counts; $title; $path; $to): [
	($title | pad(13)), (costs[] | count_cell($counts; $path; .[0]; $to) | lpad(16))
] | join(" ");

# How fast, TCP = 1: numbers of instructions, turned round.
def rates($counts; $names): [
	fallback as $path | $names[] as $name
	| ($counts | lookup("tcp"; $name)) as $tcp
	| ($counts | lookup($path; $name)) as $count
	| select($tcp != null and $count != null) | $tcp / $count
];

# What PATH costs besides its device and the verbs.  A device moves bytes with the fewest
# instructions in large messages, whatever the writes were.
def floor_of($name): if $name | startswith("stream-") then "stream-64K" else $name end;
def above($counts; $path; $floor): [
	costs[] | .[0] as $name
	| ($counts | lookup($path; $name)) as $count
	| ($counts | lookup($floor; floor_of($name))) as $base
	| select($count != null and $base != null) | ["above-" + $path, $name, $count - $base]
];

def above_floor($counts): [
	["above-ours-ring", "ours: ring", above($counts; "ours-ring"; "floor")],
	["above-smc", "SMC-R", above($counts; "smc"; "floor")],
	["above-free-ours-ring", "ours, free", above($counts; "free-ours-ring"; "free-floor")],
	["above-free-smc", "SMC-R, free", above($counts; "free-smc"; "free-floor")],
	["above-late-ours-ring", "ours, late", above($counts; "late-ours-ring"; "late-floor")],
	["above-late-smc", "SMC-R, late", above($counts; "late-smc"; "late-floor")]
];

def from_to: "\(min | round_to(1000)) to \(max | round_to(1000))";

# Of streams the mean: single ones differ as two of TCP's do.
def fallback_rates($counts): {
	connections: rates($counts; ["connect"]),
	"round trips": rates($counts; ["rtt-64", "rtt-4K"]),
	streams: [rates($counts; ["stream-4K", "stream-64K"]) | select(length > 0) | add / length]
};

def dear:
	read
	| fallback_rates(.counts) | to_entries[]
	| if .value == [] then "fallback, \(.key): not counted"
	  elif .value | min < least then
		"fallback, \(.key): \(.value | min | round_to(1000)) of TCP's rate"
	  else empty end;

def table:
	read
	| .counts as $counts
	| "Thousands of instructions, both ends; \(.setting | join(", ")).  In brackets: TCP = 1",
	"",
	([("" | pad(13)), (costs[] | .[1] | lpad(16))] | join(" ")),
	(ways[] | row($counts; .[1]; .[0]; "tcp")),
	"",
	"In brackets: SMC-R = 1",
	row($counts; "ours: ring"; "ours-ring"; "smc"),
	"",
	"In brackets: floor (RDMA writes alone) = 1",
	row($counts; "ours: ring"; "ours-ring"; "floor"),
	row($counts; "SMC-R"; "smc"; "floor"),
	"",
	"Between two namespaces, with devices that only copy.  In brackets: TCP over veth = 1",
	(free_ways[] | row($counts; .[1]; .[0]; "free-tcp")),
	"",
	"With devices that take 1 to 2 us for each request.  In brackets: TCP over veth = 1",
	(late_ways[] | row($counts; .[1]; .[0]; "free-tcp")),
	"",
	"Above the floor, which is that of 64 KiB writes for all streams.  In brackets: TCP in full, over veth = 1",
	(above_floor($counts)[] | row($counts + .[2]; .[1]; .[0]; "free-tcp")),
	"",
	"What falls back, TCP's rate = 1 (at least \(least)):",
	(fallback_rates($counts) | to_entries[] | select(.value != [])
		| "  \(.key | pad(11))  \(.value | from_to)"),
	"",
	"Proof:",
	(.proof[] | "  \(.[0] | pad(14))  \(.[1])"),
	(.missing[] | "Not counted: \(.)");

def tracked:
	read
	| "# Instructions as counted by \"make bench-instr\", the reference for its next runs.",
	"# Written by scripts/bench instr --update: \(.setting | join(", "))",
	(.counts[] | "\(.[0]) \(.[1]) \(.[2])");

def worse:
	read
	| .counts as $counts
	| .before[]
	| . as [$path, $name, $before]
	| select($path | ours)
	# how many segments, messages and ACKs: that falls differently from host to host
	| select($name != "stream-64" and
		([$path, $name] | IN(["ours-tcp", "stream-4K"], ["late-ours-ring", "stream-4K"]) | not))
	| ($counts | lookup($path; $name)) as $count
	| if $count == null then "\($path) \($name): not counted"
	  elif $count > $before * limit then
		"\($path) \($name): \($count) instructions, \($before) before"
	  else empty end;
