# SPDX-License-Identifier: GPL-2.0-only
# From the lines of programs.sh to programs.json, and from that to the table:
#	jq -nR -L DIR 'include "programs"; collect' results
#	jq -r -L DIR 'include "programs"; table' programs.json
include "report";

def ways: [["tcp", "TCP"], ["smc", "SMC-R"], ["ours", "ours"]];

def loads: [
	([64, 4096] | .[] as $size | [1, 16][] as $pipe | [1, 50][] as $clients
		| ["redis-\($clients)-\($pipe)-\($size)",
		   "redis SET \($size) B, \($clients) conn., pipeline \($pipe)", "1/s"]),
	["nginx-keep", "nginx 4 KiB, wrk, 8 conn.", "1/s"],
	["nginx-short", "nginx 4 KiB, wrk, a conn. each", "1/s"],
	["memcached", "memcached get, memcslap, 4 threads", "1/s"],
	["pgbench", "PostgreSQL, pgbench -S, 4 conn.", "1/s"],
	["pgbench-short", "PostgreSQL, pgbench -S -C, 4 conn.", "1/s"],
	["iperf3", "iperf3, 128 KiB writes", "MB/s"],
	["rs_bench-stream", "rs_bench, 64 KiB writes", "MB/s"],
	["sockperf", "sockperf, 64 B round trips", "1/s"],
	["rs_bench-rtt", "rs_bench, 64 B round trips", "1/s"]
];

def collect:
	[inputs | split(" ")] as $lines
	| def samples($way; $name):
		[$lines[] | select(.[:3] == ["result", $way, $name]) | .[3] | tonumber];
	def texts($what; $way): [$lines[] | select(.[0] == $what and .[1] == $way) | .[2:] | join(" ")];
	{
		settings: [$lines[] | select(.[0] == "setting") | {key: .[1], value: .[2]}] | from_entries,
		ways: [ways[] | . as [$way, $title] | {
			name: $way,
			title: $title,
			results: [loads[] | . as [$name, $_, $unit] | samples($way; $name)
				| select(length > 0)
				| {key: $name, value: {unit: $unit, median: median, samples: .}}] | from_entries,
			missing: texts("missing"; $way),
			proof: texts("proof"; $way)
		}]
	};

def ratio($a; $b): if ($a // 0) == 0 or ($b // 0) == 0 then "-" else $a / $b | round_to(100) end;
def figure: if . == null then "-" else number end;

def table:
	(.ways | map({key: .name, value: .results}) | from_entries) as $results
	| "Linux \(.settings.kernel), MTU \(.settings.mtu), median of \([.ways[].results[].samples | length] | max // 0) rounds; more is better",
	"",
	([("" | pad(46)), (ways[] | .[1] | lpad(8)), ("ours/SMC-R" | lpad(11)), ("ours/TCP" | lpad(9))] | join(" ")),
	(loads[] | . as [$name, $title, $unit]
		| [ways[] | $results[.[0]][$name].median] as [$tcp, $smc, $ours]
		| select([$tcp, $smc, $ours] | any)
		| [("\($title), \($unit)" | pad(46)), ($tcp, $smc, $ours | figure | lpad(8)),
		   (ratio($ours; $smc) | lpad(11)), (ratio($ours; $tcp) | lpad(9))] | join(" ")),
	"",
	"Proof, from the last rounds:",
	(.ways[] | .title as $title | .proof | group_by(split(":")[0])[] | "  \($title | pad(6)) \(.[-1])"),
	(if any(.ways[].missing[]; true) then "", "Not measured:" else empty end),
	(.ways[] | .title as $title | .missing[] | "  \($title | pad(6)) \(.)");
