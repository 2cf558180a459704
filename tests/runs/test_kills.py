"""Whatever is killed, the same command goes on and ends with the same bits."""

import sys
from pathlib import Path

import pytest

from runs.conftest import Project
from runs.killing import Outcome, begin_again, digests, kill_run

TARGET = "results/evaluation/origin.json"
COMMANDS = {
    "snakemake": (sys.executable, "-m", "snakemake"),
    "actionspan run": (sys.executable, "-m", "actionspan", "run"),
}
CASES = [  # a seed, ways, the command
    (1, ("snakemake", "any"), "snakemake"),
    (2, ("group",), "actionspan run"),
]

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes by /proc")


@pytest.fixture
def begun(project: Project, tmp_path: Path) -> Path:
    """A copy of the tiny project in which a shard and all that follows from it is to be made."""
    return begin_again(project.folder, tmp_path / "begun")


@pytest.mark.parametrize(("seed", "ways", "command"), CASES)
def test_killed_and_started_again_it_ends_with_the_same_bits(project, begun, seed, ways, command):
    words = [*COMMANDS[command], "--cores", "2", TARGET, "--configfile", "tiny.yaml"]
    outcome = kill_run(begun, words, seed, ways)
    assert outcome.status == 0, report(outcome)
    assert outcome.tried(), report(outcome)
    assert not outcome.left, report(outcome)
    # what needs the removed files but not for the target is not made again
    assert outcome.digests.items() <= digests(project.folder).items()


def report(outcome: Outcome) -> str:
    lines = [f"{kill.way}: {kill.victim}\n{kill.run.said()}" for kill in outcome.kills]
    return "\n".join([*lines, f"left: {outcome.left}", outcome.said])
