"""What jobs ask a cluster for, and the check before the first of them."""

import math
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.workflow import jobs
from actionspan.workflow.jobs import (
    GROUPS,
    SHORTEST,
    Asked,
    ClusterPlan,
    Partition,
    check_limits,
    partitions,
    read_partitions,
)

SHORT, OTHER = {"short": Partition(5, 1000, 8, True)}, {"a": Partition(60, 1000, 8, False)}
MAIN = {"main": Partition(60, 4000, 8, True), "long": Partition(math.inf, 2000, 8, False)}


def minutes(most, *words):
    return ClusterPlan({"cluster": {"max_runtime": most}}).minutes(*words)


def test_one_knob_limits_every_rule_and_without_it_rules_ask_for_what_they_need():
    assert minutes(None, 480) == 480
    assert minutes(None, 120, "scoring") == 120
    assert [minutes(60, asked) for asked in (5, 60, 61, 1440)] == [5, 60, 60, 60]


def test_containers_have_the_image_of_the_configuration():
    def image(given, wanted):
        plan = ClusterPlan({"cluster": {"max_runtime": None, "container": given}})
        return plan.container(wanted=wanted)

    assert image("my.sif", True) == image("my.sif", False) == "my.sif"
    assert image(None, False) is None
    with pytest.raises(InputError, match="cluster.container: null, but --sdm apptainer runs"):
        image(None, True)


@given(
    st.integers(SHORTEST, 2000),
    st.sampled_from(sorted(GROUPS)),
    st.lists(st.integers(5, 240), min_size=1, max_size=8),
)
def test_the_rules_of_a_group_share_the_limit(most, group, asked):
    """Its minutes add up, so a group within its own sum is within the limit too."""
    total = GROUPS[group]
    shares = [minutes(most, each, group) for each in asked]
    assert all(1 <= share <= each for share, each in zip(shares, asked, strict=True))
    if sum(asked) <= total:  # a share is rounded down, but at least a minute
        assert sum(share for share in shares if share > 1) <= most


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("1:00:00", 60),
        ("5:00", 5),
        ("2-12:30:00", 60 * 60 + 30),
        ("1-00:00:00", 24 * 60),
        ("infinite", math.inf),
        ("n/a", math.inf),
    ],
)
def test_time_limits_are_read_as_sinfo_writes_them(limit, expected):
    assert read_partitions(f"main*|{limit}|4000|8\n")["main"].minutes == expected


def test_a_partition_has_the_memory_of_its_largest_node():
    lines = "main*|1:00:00|4000|32\nmain*|1:00:00|64000+|8+\ngpu|infinite|8000|4\n"
    gpu = Partition(math.inf, 8000, 4, False)
    assert read_partitions(lines) == {"main": Partition(60, 64000, 32, True), "gpu": gpu}


def test_a_job_over_the_limit_is_named_with_the_limit_and_the_cure():
    jobs = [
        Asked("video_flow", None, 480, 2000, 1),
        Asked("group scoring", "main", 340, 2000, 1),
        Asked("video_flow", None, 480, 2000, 1),
        Asked("dataset_index", None, 60, 2000, 1),
    ]
    with pytest.raises(InputError) as error:
        check_limits(jobs, MAIN)
    assert str(error.value) == (
        "partition main: its limit is 60 minutes, but video_flow (480), group scoring (340) ask "
        "for more and would wait for ever: set cluster.max_runtime: 60 in your configuration "
        "(a job resumes where it was cut off), or give another slurm_partition"
    )


@pytest.mark.parametrize(
    ("partition", "wanted", "there", "line"),
    [
        # less than groups can keep within
        (None, (60, 1, 1), SHORT, "would wait for ever: give another slurm_partition"),
        ("long", (9999, 3000, 1), MAIN, r"has 2000 MB, but the_job \(3000\) ask"),
        ("main", (60, 3000, 16), MAIN, r"has 8 cores, but the_job \(16\) .* RULE=8, or"),
        ("mian", (1, 1, 1), MAIN, "slurm_partition: mian: .* has long, main"),
        (None, (1, 1, 1), OTHER, "no default partition; give one of a in"),
    ],
)
def test_what_no_partition_gives_is_one_line(partition, wanted, there, line):
    with pytest.raises(InputError, match=line):
        check_limits([Asked("the_job", partition, *wanted)], there)


def test_jobs_within_the_limits_and_clusters_without_answer_pass(monkeypatch, tmp_path):
    check_limits([Asked("a", None, 60, 4000, 1), Asked("b", "long", 9999, 2000, 1)], MAIN)
    check_limits([Asked("c", "main,long", 9999, 3000, 1)], MAIN)
    check_limits([Asked("a", "anything", 9999, 9999, 1)], {})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert partitions() == {}


def put_command(folder: Path, name: str, line: str) -> str:
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("echo 'main*|1:00:00|4000|8'", {"main": Partition(60, 4000, 8, True)}),
        ("echo 'cannot contact the controller' >&2; exit 1", {}),
        ("exec sleep 60", {}),  # is not waited for
    ],
)
def test_partitions_are_asked_for_by_sinfo(monkeypatch, tmp_path, answer, found):
    monkeypatch.setenv("PATH", put_command(tmp_path, "sinfo", answer))
    if "sleep" in answer:
        monkeypatch.setattr(jobs, "_QUERY_SECONDS", 0.2)
    assert partitions() == found


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("COMPLETED", "success"),
        ("PENDING", "running"),
        ("COMPLETING", "running"),
        ("TIMEOUT", "failed"),
        ("slurm_load_jobs error: Invalid job id specified", "failed"),
        ("slurm_load_jobs error: Unable to contact slurm controller", "running"),
    ],
)
def test_the_status_of_a_job_is_one_word(tmp_path, said, expected):
    status = Path(__file__).parents[2] / "workflow/profiles/cluster-generic/status.sh"
    path = put_command(tmp_path, "squeue", f"echo '{said}'")
    done = subprocess.run([status, "7"], env={"PATH": path}, capture_output=True, text=True)
    assert done.stdout == f"{expected}\n"
