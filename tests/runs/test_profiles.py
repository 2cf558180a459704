"""The profile of this machine, and what a person reads when a job fails."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runs.conftest import EXTERNAL, ROOT, copy_program, snakemake, write_external

pytestmark = pytest.mark.workflow


SMALL = {"demo": {"videos": 2, "shortest_seconds": 5.0, "longest_seconds": 5.5}}


def log_of(folder: Path) -> Path:
    (log,) = folder.glob(".snakemake/log/*.log")
    return log


def test_a_failure_is_one_block_with_the_last_lines_and_the_log(tmp_path):
    own = copy_program(tmp_path)
    write_external(tmp_path, {"v": "training"})
    (tmp_path / "truth.csv").write_text("no,header\n")
    config = {**EXTERNAL, "dataset": {"videos": None, "annotations": "truth.csv"}}
    profile = ("--workflow-profile", "workflow/profiles/default")
    done = own.snakemake("results/dataset/videos.tsv", *profile, config=config)
    assert done.returncode == 1
    assert "Using workflow specific profile workflow/profiles/default" in done.stderr
    head, reason, *_ = done.stderr[done.stderr.index("dataset_index failed;") :].splitlines()
    assert head == "dataset_index failed; its log is results/logs/dataset_index.log"
    assert "truth.csv: row 1: no column video" in reason
    assert done.stderr.count("its log is") == 1
    assert "\ndataset_index failed: results/logs/dataset_index.log\n" in done.stderr
    assert "Error in rule" not in done.stderr
    assert "CalledProcessError" not in done.stderr


def test_a_run_prints_a_line_a_job_and_its_log_has_the_rest(tmp_path):
    done = copy_program(tmp_path).snakemake("results/dataset/videos.tsv", config=SMALL)
    assert done.returncode == 0, done.stderr
    _, _, jobs = done.stderr.partition("\ntotal ")
    first, *lines = jobs.split("\n")
    count = int(first)
    lines = lines[1 : lines.index(f"{count} of {count} steps (100%) done")]
    numbers = [line.partition(" ")[0] for line in lines]
    assert numbers == [f"[{number}/{count}]" for number in range(1, count + 1)]
    reason = "Missing output files: results/dataset/videos.tsv"
    assert lines[-1] == f"[{count}/{count}] dataset_index: {reason}"
    for noise in ("Select jobs", "Execute", "Finished", "Removing", "input:", "ignored"):
        assert noise not in done.stderr
    assert log_of(tmp_path).read_text().count("    output: ") == count


def test_make_demo_prints_a_line_a_stage_and_where_the_log_is(tmp_path):
    (flags,) = re.findall(
        r"actionspan run --cores \$\(CORES\) (--quiet [a-z ]+)", (ROOT / "Makefile").read_text()
    )
    target = "results/proposals/random/proposals.json"
    done = copy_program(tmp_path).snakemake(target, *flags.split(), config=SMALL)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    numbered = [line.split("] ") for line in lines if line.startswith("[")]
    assert [name.partition(":")[0] for _, name in numbered] == ["dataset", "evaluation"]
    assert "rule dataset_index" in log_of(tmp_path).read_text()
    assert len(lines) < 12
    assert f"Complete log(s): {log_of(tmp_path)}" in lines


def test_a_dry_run_of_the_demo_is_read_on_one_screen_or_two(tmp_path):
    copy_program(tmp_path)
    done = snakemake(tmp_path, "-n")
    assert done.returncode == 0, done.stderr
    assert len((done.stdout + done.stderr).encode()) < 20_000
    assert max(map(len, re.findall(r"^\[.*", done.stdout, re.MULTILINE))) <= 110
    (total,) = re.findall(r"^total +(\d+)$", done.stdout, re.MULTILINE)  # once
    assert len(re.findall(rf"^\[\d+/{total}\] \w+", done.stdout, re.MULTILINE)) == int(total)


def test_who_interrupts_a_run_is_told_how_it_goes_on(tmp_path):
    own = copy_program(tmp_path)
    long = tmp_path / "long.yaml"
    long.write_text("demo: {videos: 60, shortest_seconds: 300.0, longest_seconds: 310.0}\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "-c1", "results/dataset/videos.tsv"]
        + ["--configfile", str(long)],
        cwd=own.folder,
        env={**os.environ, "PYTHONPATH": str(own.folder / "src")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "results/logs/dataset_demo.log").exists():
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C in a terminal
    _, said = running.communicate(timeout=300)
    assert running.returncode != 0
    assert "\ninterrupted; run it again to resume\n" in said
    assert "failed" not in said
    assert "Traceback" not in said
