# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# Python's own tests of sockets and of what stands on them.
needs="python3.11 libpython3.11-testsuite"
limit=1500
modules="test_socket test_selectors test_socketserver test_ftplib test_httplib test_xmlrpc
	test_smtplib test_telnetlib test_poplib test_imaplib"

run() {
	local module match status
	for module in ${MODULES:-$modules}; do
		match=()
		if [ $# != 0 ]; then
			# of a subtest, the test
			printf '%s\n' "$@" | sed -n "s/^\(test\.$module\.[^(]*\).*/\1/p" |
				sed 's/_*$//' | sort -u >"$module.match"
			[ -s "$module.match" ] || continue
			match=(--matchfile "$module.match")
		fi
		echo "=== $module"
		python3.11 -m test -u network "${match[@]}" -v --junit-xml "$module.xml" "$module"
		status=$?
		if [ -s "$module.xml" ]; then
			cases "$module.xml" >>"$output"
		else
			result "$module" "ended:$status"
		fi
	done
}

cases() {	# XML: what regrtest says in it
	python3.11 - "$1" <<-'END'
		import sys, xml.etree.ElementTree as tree
		for case in tree.parse(sys.argv[1]).iter('testcase'):
		    found = {part.tag for part in case} & {'error', 'failure', 'skipped'}
		    print('_'.join(case.get('name').split()), '+'.join(sorted(found)) or 'ok')
	END
}
