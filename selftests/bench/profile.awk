# SPDX-License-Identifier: GPL-2.0-only
# Tables from what profile.c writes:
#	awk -v name=WHAT -v value=INSTRUCTIONS -v percent=P -f profile.awk FILE
# value: of one operation, to which everything is scaled.  Left out is what has less than P
# percent.
{
	n = split($1, names, ";")
	all += $2
	own[$1] += $2
	calls[$1] += $3
	own_all[names[n]] += $2
	calls_all[names[n]] += $3
	part = names[n] ~ /\]$/ ? names[n] : "[kernel]"
	sub(/.*\[/, "", part)
	sub(/\]$/, "", part)
	parts[part] += $2
	path = ""
	for (i = 1; i <= n; i++) {
		caller = path
		path = path ";" names[i]
		if (!(path in with))
			callees[caller] = callees[caller] " " names[i]
		with[path] += $2
	}
}
# The costliest first.
function tree(path, depth, kids, n, i, best) {
	if (depth) {
		name_of = path
		sub(/.*;/, "", name_of)
		printf "%9d %8d %7.2f  %*s%s\n", with[path] * scale, own[substr(path, 2)] * scale,
			calls[substr(path, 2)] * scale, 2 * (depth - 1), "", name_of
	}
	n = split(callees[path], kids, " ")
	for (;;) {
		best = 0
		for (i = 1; i <= n; i++)
			if (kids[i] != "" && with[path ";" kids[i]] >= all * percent / 100 &&
			    (!best || with[path ";" kids[i]] > with[path ";" kids[best]]))
				best = i
		if (!best)
			return
		tree(path ";" kids[best], depth + 1)
		kids[best] = ""
	}
}
END {
	scale = value / all
	printf "\n%s: %d instructions\n\n      own        %%\n", name, value
	fflush()
	for (part in parts)
		printf "%9d %8.1f  %s\n", parts[part] * scale, 100 * parts[part] / all, part | "sort -rn"
	close("sort -rn")
	print "\n      own    calls  function, however called"
	for (f in own_all)
		if (own_all[f] >= all * percent / 200)
			printf "%9d %8.2f  %s\n", own_all[f] * scale, calls_all[f] * scale, f | "sort -rn"
	close("sort -rn")
	print "\n   in all      own   calls  function"
	tree("", 0)
}
