#!/usr/bin/env bash
# Say whether SLURM's job $1 is running, or ended in success or failed, for Snakemake's executor.
# SLURM remembers an ended job for MinJobAge (300 s by default), far longer than it takes to ask again.
state=$(squeue --noheader --states=all --format=%T --jobs="$1" 2>&1)
case "$state" in
    COMPLETED) echo success ;;
    BOOT_FAIL | CANCELLED | DEADLINE | FAILED | NODE_FAIL | OUT_OF_MEMORY | TIMEOUT) echo failed ;;
    *"Invalid job id"* | "") echo failed ;;
    *) echo running ;; # pending, running, ending; or SLURM does not answer now
esac
