# SPDX-License-Identifier: GPL-2.0-only
# Of "objdump -dr --no-show-raw-insn MODULE": the return address of each call that leaves a
# function, as "SECTION OFFSET CALLER CALLEE".  Where the kernel is far away from modules, as
# in User-Mode Linux, calls go through registers, which are loaded before.

/^Disassembly of section/ {
	section = $4
	sub(/:$/, "", section)
}
/^[0-9a-f]+ <.*>:$/ {
	caller = substr($2, 2, length($2) - 3)
	split("", in_register)
	called = ""
}
called != "" && /^ *[0-9a-f]+:\t/ {
	print section, substr($1, 1, length($1) - 1), caller, called
	called = ""
}
/\tmovabs \$0x0,%/ {
	register = substr($0, index($0, ",%") + 2)
	next
}
register != "" && /R_X86_64_64\t/ {
	in_register[register] = $3
}
{
	register = ""
}
/\tcall +\*%/ {
	called = in_register[substr($0, index($0, "*%") + 2)]
	next
}
/\tcall / {
	direct = 1
	next
}
direct && /R_X86_64_P(LT|C)32\t/ {
	called = $3
	sub(/-0x4$/, "", called)
}
{
	direct = 0
}
