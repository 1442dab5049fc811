# SPDX-License-Identifier: GPL-2.0-only
# gnuplot's input for streams.json; it draws three files in DIR:
#	jq -r --arg dir DIR --arg type svg -L HERE 'include "plot"; plots' streams.json
include "report";

# Where a measure stands on the x axis.
def sizes: [["64", 64, "64 B"], ["4K", 4096, "4 KiB"], ["64K", 65536, "64 KiB"], ["1M", 1048576, "1 MiB"]];
def at_sizes($what): [sizes[] | [.[1], "\($what)-\(.[0])"]];
def at_crowds($what): [crowds[] | [., "\($what)-\(.)"]];

# Of each way that has any of the points: x, median, least, most.
def series($names; $points): .paths as $paths
	| [$names | to_entries[] | .key as $i | .value as $name
		| $paths[] | select(.name == $name)
		| .results as $results
		| {
			id: "$way\($i)",
			title: .title,
			style: (carriers | index($name) + 1),
			rows: [$points[] as [$x, $point] | $results[$point] | values
				| [$x, .median, (.samples | min), (.samples | max)]]
		} | select(.rows != [])];

def draw($names; $points):
	series($names; $points) as $series
	| if $series == [] then
		"set label 1 \"not measured\" at graph 0.5, 0.5 center",
		"set yrange [1:2]",
		"plot NaN notitle",
		"unset label 1"
	  else
		($series[] | "\(.id) << EOD", (.rows[] | map(tostring) | join(" ")), "EOD"),
		"plot " + ([$series[] | "\(.id) using 1:2:3:4 with yerrorlines lt \(.style) title \"\(.title)\""]
			| join(", \\\n\t"))
	  end;

def output($name): "set output \"\($dir)/\($name).\($type)\"";

def axes($title; $x; $y):
	"set title \"\($title)\"", "set xlabel \"\($x)\"", "set ylabel \"\($y)\"";

def plots:
	"\(heading); bars: least and most" as $what
	| ({svg: "svg size 800,500 dynamic background \"white\" font \"sans,12\"",
	    png: "pngcairo size 800,500 font \"sans,10\""}[$type] // error("svg or png"))
		as $terminal
	| "set terminal \($terminal)",
	# one look for each way, in all plots
	(["#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#808080", "#cc79a7"]
		| to_entries[]
		| "set linetype \(.key + 1) lc rgb \"\(.value)\" lw 2 pt \(.key + 4) dt \(if .key < 5 then 1 else 2 end)"),
	"set grid",
	"set key outside right",
	"set logscale x 2",
	"set xtics (\([sizes[] | "\"\(.[2])\" \(.[1])"] | join(", ")))",
	"set xrange [32:131072]",
	"set logscale y 10",

	output("latency"),
	axes("Round trip\\n{/*0.8 \($what)}"; "message"; "us"),
	draw(carriers; at_sizes("rtt")),

	output("throughput"),
	"set xrange [32:2097152]",
	axes("Streaming\\n{/*0.8 \($what)}"; "each write"; "MB/s"),
	"set yrange [*:*]",
	draw(carriers; at_sizes("stream")),

	output("connections"),
	"unset logscale y",
	"unset key",
	"set xtics (\([crowds[] | "\"\(.)\" \(.)"] | join(", ")))",
	"set xrange [0.7:730]",
	"set multiplot layout 1,2",
	axes("All connections together"; "streaming at once"; "MB/s"),
	"set yrange [0:*]",
	draw(streams; at_crowds("busy")),
	"set key outside right",
	axes("Slowest, mean = 1"; "streaming at once"; ""),
	"set yrange [0:1.05]",
	draw(streams; at_crowds("fair")),
	"unset multiplot";
