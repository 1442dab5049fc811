# SPDX-License-Identifier: GPL-2.0-only
# From the lines of streams.sh to streams.json, and from that to the table:
#	jq -nR -L DIR 'include "report"; collect' results
#	jq -r -L DIR 'include "report"; table' streams.json

def paths: [
	["tcp", "TCP"], ["rsockets", "rsockets"], ["smc", "SMC-R"],
	["ours-tcp", "ours: tcp"], ["ours-ring", "ours: ring"], ["floor", "floor"],
	["verbs", "perftest"],
	["to-tcp", "ours to TCP"], ["from-tcp", "TCP to ours"]
];

# Columns of the tables.
def carriers: ["tcp", "rsockets", "smc", "ours-tcp", "ours-ring", "floor", "verbs"];
def streams: ["tcp", "rsockets", "smc", "ours-tcp", "ours-ring"];
def fallback: ["tcp", "to-tcp", "from-tcp"];

def measures: [
	["rtt-64", "RTT 64 B", "us"], ["rtt-4K", "RTT 4 KiB", "us"], ["rtt-64K", "RTT 64 KiB", "us"],
	["stream-64", "write 64 B", "MB/s"],
	["stream-4K", "write 4 KiB", "MB/s"], ["stream-64K", "write 64 KiB", "MB/s"],
	["stream-1M", "write 1 MiB", "MB/s"],
	["cpu-4K", "CPU, 4 KiB", "ms/MiB"], ["cpu-64K", "CPU, 64 KiB", "ms/MiB"],
	["cpu-1M", "CPU, 1 MiB", "ms/MiB"],
	["connects", "connections", "1/s"]
];

# So many connections at once; what they carry together, the slowest beside the mean.
def crowds: [1, 8, 64, 512];
def crowd_measures: [crowds[] | ["busy-\(.)", "\(.) at once", "MB/s"], ["fair-\(.)", "slowest of \(.)", ""]];

def median: sort | if length == 0 then null
	elif length % 2 == 1 then .[(length - 1) / 2]
	else (.[length / 2 - 1] + .[length / 2]) / 2 end;

def round_to(n): . * n | round / n;

def collect:
	[inputs | split(" ")] as $lines
	| def texts(what; $path): [$lines[] | select(.[0] == what and .[1] == $path) | .[2:] | join(" ")];
	def samples($path; $name):
		[$lines[] | select(.[:3] == ["result", $path, $name]) | .[3] | tonumber];
	{
		settings: [$lines[] | select(.[0] == "setting") | {key: .[1], value: .[2]}] | from_entries,
		missing: texts("missing"; "wire"),
		paths: [paths[] | . as [$path, $title] | {
			name: $path,
			title: $title,
			results: [(measures + crowd_measures)[] | . as [$name, $_, $unit]
				| samples($path; $name) | select(length > 0)
				| (samples("tcp"; $name) | median) as $tcp
				| median as $median
				| {key: $name, value: {
					unit: $unit,
					median: $median,
					ratio_to_tcp: (if ($tcp // 0) > 0 then $median / $tcp | round_to(1000) else null end),
					samples: .
				}}] | from_entries,
			missing: texts("missing"; $path),
			proof: texts("proof"; $path),
			proof_at_once: texts("proof"; "\($path)-at-once")
		}]
	};

def pad($n): tostring | . + " " * ([$n - length, 0] | max);
def lpad($n): tostring | " " * ([$n - length, 0] | max) + .;
# Three digits are more than such a measurement is worth.
def number: if . >= 100 then round elif . >= 10 then round_to(10) else round_to(100) end;

def cell: if . == null then "-" else
	"\(.median | number) (\(.ratio_to_tcp | if . == null then "-" else round_to(100) end))" end;

def columns($names): .paths
	| [$names[] as $name | .[] | select(.name == $name)] as $paths
	| ([("" | pad(20)), ($paths[] | .title | lpad(15))] | join(" ")),
	(measures[] | . as [$name, $title, $unit]
		| [("\($title), \($unit)" | pad(20)),
		   ($paths[] | .results[$name] | cell | lpad(15))] | join(" "));

# Together, one connection = 1; in brackets the slowest, the mean = 1.
def crowd_cell($results; $n):
	($results["busy-1"].median) as $one
	| ($results["busy-\($n)"].median) as $all
	| if ($one // 0) == 0 or $all == null then "-"
	  elif $n == 1 then "\($one | number) MB/s"
	  else "\($all / $one | round_to(100)) (\($results["fair-\($n)"].median | round_to(100)))" end;

def crowd_columns: .paths
	| [streams[] as $name | .[] | select(.name == $name)] as $paths
	| ([("" | pad(20)), ($paths[] | .title | lpad(15))] | join(" ")),
	(crowds[] as $n
		| [("\($n) at once" | pad(20)),
		   ($paths[] | crowd_cell(.results; $n) | lpad(15))] | join(" "));

# What the figures are of.
def heading: "Linux \(.settings.kernel), MTU \(.settings.mtu), median of \([.paths[].results["rtt-64"] | values | .samples | length] | min // 0)";

def table:
	. as $all
	| "\(heading) rounds; in brackets: TCP = 1",
	"",
	columns(carriers),
	"",
	"Connections that stream at once, all together; one = 1; in brackets the slowest, mean = 1:",
	"",
	crowd_columns,
	"",
	"One end ours, the other one plain TCP:",
	"",
	columns(fallback),
	"",
	"Proof, from the last round:",
	($all.paths[] | select(.proof != []) | "  \(.title | pad(11))  \(.proof[-1])"),
	($all.paths[] | select(.proof_at_once != []) | "  \(.title | pad(11))  \(.proof_at_once[-1])"),
	"",
	"Not measured:",
	($all.missing[] | "  all          \(.)"),
	($all.paths[] | .title as $title | .missing[] | "  \($title | pad(11))  \(.)");
