"""The workflow on a SLURM of two nodes: the same bits as on one machine, whatever ends its jobs."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
import yaml

from actionspan.parallel.launch import SHARED_MEMORY
from actionspan.storage.model_files import read_model
from runs.conftest import copy_program
from slurm.conftest import run_locally, wait_for

MODEL = "results/temporal/mtn/ring-2/model.safetensors"
TEXTS = (
    "results/evaluation/summary.json",
    "results/evaluation/summary.md",
    "results/evaluation/mtn.json",
    "results/proposals/mtn/proposals.json",
    "results/proposals/random/proposals.json",
    "results/dataset/videos.tsv",
)


def weights(folder: Path, name: str = MODEL) -> dict[str, torch.Tensor]:
    return read_model(folder / name).value["state_dict"]


def same_weights(one: Path, two: Path, name: str = MODEL) -> bool:
    first, second = weights(one, name), weights(two, name)
    return first.keys() == second.keys() and all(
        torch.equal(first[key], second[key]) for key in first
    )


def hosts(folder: Path, run: str) -> list[str]:
    timing = json.loads((folder / f"results/temporal/mtn/{run}/timing.json").read_text())
    return [rank["host"] for rank in timing["per_rank"]]


def assert_same_bits(one: Path, two: Path) -> None:
    for name in TEXTS:
        assert (two / name).read_text() == (one / name).read_text(), name
    features = "results/features/features.h5"
    with h5py.File(one / features) as first, h5py.File(two / features) as second:
        np.testing.assert_array_equal(first["features"][:], second["features"][:])
    assert same_weights(one, two)


def test_two_nodes_give_the_bits_of_one_machine(local, remote):
    folder, printed = remote
    assert_same_bits(local, folder)
    # the ring went over both nodes
    assert sorted(hosts(folder, "ring-2")) == ["c1", "c2"]
    assert "Error" not in printed


def test_short_rules_share_a_job(remote):
    _, printed = remote
    submitted = re.findall(r"with SLURM jobid \d+ \(log: \S+/slurm_logs/([^/]+)/", printed)
    groups = [name for name in submitted if name.startswith("group_")]
    total = int(re.search(r" of (\d+) steps ", printed)[1])
    # demo, 2 × (frames, flow, features), rescale, losses, classifier, training, page; the groups:
    # both shards probed, index and subsets, mtn from probabilities to scores, the baseline
    assert len(submitted) == 16
    assert sum("scoring" in name for name in groups) == 2
    assert sum("probing" in name for name in groups) == 1
    assert sum("indexing" in name for name in groups) == 1
    assert total > 20


LONG = {"temporal": {"training": {"epochs": 1500, "hidden": 64}}}


def with_features(of: Path, folder: Path) -> Path:
    """Copy a project with its data set and features, before any training."""
    folder.mkdir(exist_ok=True)
    copy_program(folder)
    for name in ("dataset", "features"):
        shutil.copytree(of / "results" / name, folder / "results" / name)
    (folder / "long.yaml").write_text(yaml.safe_dump(LONG))
    return folder


WORDS = (MODEL, "--allowed-rules", "temporal_train", "--configfile", "tiny.yaml", "long.yaml")


@pytest.fixture(scope="module")
def undisturbed(local, tmp_path_factory) -> Path:
    """The long training, on this machine."""
    folder = with_features(local, tmp_path_factory.mktemp("undisturbed"))
    run_locally(folder, *WORDS)
    return folder


def at_work(cluster, run, folder: Path, starts: int) -> str:
    """Wait until a job has trained an epoch; return its number."""
    checkpoint = folder / Path(MODEL).parent / ".checkpoint.pt"
    job = wait_for(cluster.running, lambda: f"no start {starts}: {run.text()[-3000:]}")
    since = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0

    def written() -> str:
        assert run.process.poll() is None, run.text()[-3000:]
        return "yes" if checkpoint.exists() and checkpoint.stat().st_mtime_ns > since else ""

    wait_for(written, lambda: f"no checkpoint of start {starts}: {run.text()[-3000:]}")
    assert cluster.running() == job
    return job


def shared_memory(step: str) -> Path:
    """Return the file that the ranks of a step share on its first node, as MPICH names it."""
    value = 0x811C9DC5  # the hash FNV-1a
    for byte in step.encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return SHARED_MEMORY / f"mpich_shm_{value:x}_0"


def gone(cluster) -> None:
    """Wait until no job runs."""
    wait_for(lambda: "" if cluster.running() else "gone", lambda: cluster("squeue"))


def test_cancelled_drained_lost_and_out_of_time_it_ends_with_the_same_bits(
    cluster, local, undisturbed, tmp_path
):
    folder = with_features(local, tmp_path)
    run = cluster.snakemake(folder, *WORDS, "--set-resources", "temporal_train:nodes=2")
    cluster("scancel", at_work(cluster, run, folder, 1))
    gone(cluster)
    job = at_work(cluster, run, folder, 2)
    # a drained node ends its work, a lost one does not: SLURM queues the job again
    cluster("scontrol", "update", "node=c2", "state=drain", "reason=test")
    time.sleep(1)
    assert cluster.running() == job
    cluster("scontrol", "update", "node=c2", "state=down", "reason=test")
    gone(cluster)
    cluster("scontrol", "update", "node=c2", "state=resume")
    cluster("scontrol", "update", f"job={at_work(cluster, run, folder, 3)}", "EndTime=now+1")
    assert run.end() == 0, run.text()[-4000:]
    log = (folder / "results/logs/temporal_train/mtn/ring-2.log").read_text()
    assert "resuming after epoch" in log
    # SLURM itself started the job of the lost node again
    assert run.text().count("Trying to restart job") == 2
    assert same_weights(undisturbed, folder)
    assert sorted(hosts(folder, "ring-2")) == ["c1", "c2"]


def test_a_job_of_the_same_number_is_not_held_up_by_what_its_killed_ranks_left(
    cluster, local, undisturbed, tmp_path
):
    folder = with_features(local, tmp_path)
    run = cluster.snakemake(folder, *WORDS)
    job = at_work(cluster, run, folder, 1)
    shared = shared_memory(f"{job}.0")
    state = shared.read_bytes()
    cluster("scontrol", "requeue", job)
    gone(cluster)
    if not shared.exists():  # killed ranks do not remove it
        shared.write_bytes(state)
        os.utime(shared, (0, 0))
    assert at_work(cluster, run, folder, 2) == job
    assert run.end() == 0, run.text()[-4000:]
    assert same_weights(undisturbed, folder)
    assert len(set(hosts(folder, "ring-2"))) == 1


def test_what_a_partition_does_not_grant_is_said_before_the_first_job(cluster, local, tmp_path):
    folder = with_features(local, tmp_path)
    resources = ("--default-resources", "slurm_partition=short", "mem_mb=2000", "lane=1")
    run = cluster.snakemake(folder, *WORDS, *resources)
    assert run.end() == 1
    assert run.text().splitlines()[-1] == (
        "partition short: its limit is 5 minutes, but temporal_train (60) ask for more and would "
        "wait for ever: give another slurm_partition"
    )
    assert "submitted" not in run.text()
    assert not list((folder / ".snakemake").glob("locks/*"))


def test_a_failure_is_one_block_with_the_last_lines_and_the_log(cluster, local, tmp_path):
    folder = with_features(local, tmp_path)
    (folder / "results/features/features.h5").write_text("no features")
    run = cluster.snakemake(folder, *WORDS, "--retries", "0")
    assert run.end() == 1
    text = run.text()
    log = "results/logs/temporal_train/mtn/ring-2.log"
    assert text.count(f"temporal_train mtn ring-2 failed; its log is {log}") == 1
    assert "features.h5" in text.partition("failed; its log is")[2]
    assert "python -m" not in text
    assert len(text.partition("failed; its log is")[2]) < 3000


def test_the_generic_executor_gives_the_bits_of_one_machine(cluster, local, tmp_path):
    folder = copy_program(tmp_path).folder
    run = cluster.snakemake(folder, profile="cluster-generic")
    assert run.end() == 0, run.text()
    assert_same_bits(local, folder)


def test_servers_train_over_both_nodes_by_the_generic_profile(cluster, local, tmp_path):
    """Three processes of ps-2 do not fit on one node of two cores; other nodes hold them all."""
    folder = with_features(local, tmp_path)
    model = "results/temporal/mtn/ps-2/model.safetensors"
    words = (model, "--allowed-rules", "temporal_train")
    run = cluster.snakemake(folder, *words, profile="cluster-generic")
    assert run.end() == 0, run.text()
    if cluster.cores == 2:
        assert set(hosts(folder, "ps-2")) == {"c1", "c2"}
    run_locally(undisturbed := with_features(local, tmp_path / "local"), *words)
    assert same_weights(undisturbed, folder, model)
