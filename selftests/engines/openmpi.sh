# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh
# SPDX-License-Identifier: GPL-2.0-only
# Open MPI: its TCP transport; a ring, all-to-all and all-reduce of mpi4py with checked contents.
needs="openmpi-bin python3-mpi4py"
limit=900
least=1000000

# mpirun starts its daemons by ssh elsewhere.
mpi() {		# ARGUMENT of mpi.py...
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 600 mpirun --host vm0:1,vm1:1,vm2:1 \
		--mca plm_rsh_agent "$engines/openmpi-rsh" --mca oob_tcp_if_include eth0 \
		--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 \
		"${by[@]}" python3 "$engines/openmpi.py" "$@"
}

engine_start() { mpi load 1 >/dev/null; }
engine_load() { mpi load "${seconds:-3}"; }
engine_work() { mpi work "$1" "$2"; }
