#!/usr/bin/env bash
# Start a SLURM cluster of two nodes on this machine: cluster_up.sh FOLDER.
# Needs root and slurm-wlm, munge and libpmix-dev of Debian. All its files lie in FOLDER, its ports are on loopback,
# and it uses neither systemd nor a SLURM or munge that the machine may have. Commands find it by
# SLURM_CONF=FOLDER/slurm.conf; cluster_down.sh FOLDER ends it.
set -euo pipefail
folder=$1
cpus=$(nproc --all)
memory=$(($(awk '/MemTotal/ {print $2}' /proc/meminfo) / 1024 / 2))
mkdir -p "$folder"/{state,run,log,munge,spool/c1,spool/c2}
chmod 755 "$folder" "$folder/munge"

cat >"$folder/slurm.conf" <<CONF
ClusterName=throwaway
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=16817
# loopback only
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# a job of a lost node starts again after cred_expire seconds, 120 by default
AuthInfo=socket=$folder/munge/socket,cred_expire=20
# numbers that no cluster here has had: by them MPICH names shared memory, which killed ranks leave
FirstJobId=$(( $(date +%s) % 60000000 + 1 ))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/%n.log
# no cgroups: a container may not make any
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# jobs start and end at once, and stay visible to squeue
SchedulerParameters=sched_interval=1,bf_interval=1
MinJobAge=600
KillWait=5
# a node that was down comes back
ReturnToService=2
SlurmdTimeout=30
NodeName=c[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[16818-16819] CPUs=$cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=$memory
PartitionName=main Nodes=c[1-2] Default=YES MaxTime=60 State=UP
PartitionName=short Nodes=c[1-2] MaxTime=5 State=UP
CONF
echo 'CgroupPlugin=cgroup/v1' >"$folder/cgroup.conf"
export SLURM_CONF=$folder/slurm.conf

# Its own key and socket. munged wants to own its folder and wants it closed to others' writing.
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chmod 400 "$folder/munge/key"
munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" \
    --seed-file="$folder/munge/seed"

slurmctld
{ cat /etc/hosts; echo "127.0.0.1 c1 c2"; } >"$folder/hosts"
for node in c1 c2; do
    # In namespaces of its own each node has a host name, which jobs see, and knows both names. The
    # executor clears SLURM_CONF, so its srun must find the configuration where SLURM looks for it.
    unshare --uts --mount bash -c "mount --bind '$folder/hosts' /etc/hosts
        mount --bind '$folder' /etc/slurm; hostname $node; exec slurmd -N $node"
done
for _ in $(seq 200); do
    [ "$(timeout 5 sinfo --noheader --Node --partition=main --states=idle | wc -l)" -eq 2 ] && exit
    sleep 0.1
done
echo "the nodes did not come up:" >&2
tail -n 20 "$folder"/log/*.log >&2
exit 1
