#!/usr/bin/env bash
# End what cluster_up.sh FOLDER started, by its own pid files; the caller removes FOLDER.
set -u
folder=$1
export SLURM_CONF=$folder/slurm.conf
timeout 10 scancel --user=root
for name in c1 c2 slurmctld munged; do
    pid=$(cat "$folder/run/$name.pid" 2>/dev/null) || continue
    kill "$pid"
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
done
