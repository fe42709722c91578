#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Slurm cluster for tests: two nodes, n1 and n2, on this machine, for root, with free ports. LINK will point to the folder
# that holds all of its files, which has a short path, since sockets lie in it.
#   cluster.sh up LINK        then: export SLURM_CONF=LINK/slurm.conf; exits with 77 and a reason where it cannot be
#   cluster.sh node LINK n2   starts that node's slurmd again
#   cluster.sh down LINK      cancels all jobs, ends what `up` started, removes the folder
# REQUIRE_SLURM=1: what would be 77 is a failure.
set -euo pipefail

main() {
  local action=$1 link=$2
  S=$(readlink -f "$link" || true)
  case $action in
    up) refuse_where_it_cannot_be; down; up ;;
    node) start_node "$3" ;;
    down) down ;;
    *) echo "cluster.sh: up, node or down, not $action" >&2; exit 2 ;;
  esac
}

refuse_where_it_cannot_be() {
  local program
  [ "$(id -u)" = 0 ] || cannot "needs root"
  for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || cannot "$program is not installed"
  done
}

cannot() {
  echo "no Slurm cluster here: $1" >&2
  [ -z "${REQUIRE_SLURM:-}" ] || exit 1
  exit 77
}

up() {
  S=$(mktemp -d "${TMPDIR:-/tmp}/plateau-slurm-XXXXXX")
  ln -sfn "$S" "$link"
  configure
  start
}

configure() {
  local host ports node
  host=$(hostname -s)
  read -r -a ports < <(free_ports)
  mkdir -p "$S"/{log,state,munge}
  chmod 700 "$S/munge"
  (umask 077; head -c 256 /dev/urandom >"$S/munge/key")
  # JobRequeue: what the template asks for decides. SlurmdTimeout: a busy machine loses no node. SchedulerParameters: a job
  # that waits for its time starts soon after it.
  cat >"$S/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
AuthInfo=socket=$S/munge/socket
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
JobRequeue=0
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
SchedulerParameters=bf_interval=1,sched_interval=1
SlurmdTimeout=600
MessageTimeout=60
SlurmdParameters=config_overrides
StateSaveLocation=$S/state
SlurmctldPidFile=$S/slurmctld.pid
SlurmctldLogFile=$S/log/slurmctld.log
SlurmdSpoolDir=$S/spool.%n
SlurmdPidFile=$S/slurmd.%n.pid
SlurmdLogFile=$S/log/slurmd.%n.log
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[${ports[1]},${ports[2]}] CPUs=16 RealMemory=4000 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES PriorityTier=1 GraceTime=120 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF MaxTime=INFINITE State=UP
CONF
  # any character device will do for a GPU
  printf 'AutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n' >"$S/gres.conf"
  for node in n1 n2; do
    # The nodes share a machine: what PMIx names after the host would collide, and Open MPI's shared memory does. What it has
    # for fast networks need not be tried.
    mkdir -p "$S"/{etc,tmp,spool}.$node
    cp "$S"/{slurm,gres}.conf "$S/etc.$node/"
    printf 'PMIxCliTmpDirBase=%s\nPMIxEnv=OMPI_MCA_btl=tcp,self;OMPI_MCA_pml=ob1\n' "$S/tmp.$node" >"$S/etc.$node/mpi.conf"
  done
}

# Held together, so that they differ.
free_ports() {
  python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*sorted(s.getsockname()[1] for s in held))'
}

start() {
  munged --force --key-file="$S/munge/key" --socket="$S/munge/socket" --pid-file="$S/munge/pid" \
    --log-file="$S/munge/log" --seed-file="$S/munge/seed"
  export SLURM_CONF=$S/slurm.conf
  slurmctld -c -f "$S/slurm.conf"
  start_node n1
  start_node n2
  for _ in $(seq 240); do
    ! both_are_up || return 0
    sleep 0.5
  done
  echo "the nodes do not come up:" >&2
  tail -n 20 "$S"/log/*.log >&2
  exit 1
}

start_node() { slurmd -N "$1" -f "$S/etc.$1/slurm.conf"; }

# The nodes are idle once both are there.
both_are_up() { [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" = 2 ]; }

down() {
  [ -f "$S/slurm.conf" ] || return 0
  export SLURM_CONF=$S/slurm.conf
  if sinfo >/dev/null 2>&1; then
    scancel --user=root 2>/dev/null || true
    for _ in $(seq 60); do
      [ -n "$(squeue -h 2>/dev/null)" ] || break
      sleep 0.5
    done
  fi
  local file
  for file in "$S"/slurmd.n1.pid "$S"/slurmd.n2.pid "$S"/slurmctld.pid "$S"/munge/pid; do
    end_process_in "$file"
  done
  rm -rf "$S" "$link"
}

# Only if it is still ours: a number in a file that outlived its process may be another's by now.
end_process_in() {
  local pid
  [ -f "$1" ] || return 0
  pid=$(cat "$1")
  grep -qsaF "$S" "/proc/$pid/cmdline" || return 0
  kill "$pid" 2>/dev/null || return 0
  for _ in $(seq 100); do
    lives "$pid" || return 0
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null || true
}

# Where nobody waits for what has ended, its entry stays: as a zombie.
lives() { [ -e "/proc/$1" ] && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"; }

PATH=$PATH:/usr/sbin
main "$@"
