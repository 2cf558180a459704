"""Whole runs of the workflow, killed again and again: the same command ends with the same bits.

The victim is Snakemake, all its processes, or any one of them; nobody unlocks anything by hand.
"""

import sys
from pathlib import Path
from random import Random

import yaml

from campaigns.cases import Result, wrong
from runs.conftest import copy_program
from runs.killing import WAYS, Run, begin_again, digests, kill_run

KILLS = 6  # a case
_SECONDS = 1800.0  # of the whole run
SMALL = {
    "demo": {"videos": 4, "shortest_seconds": 5.0, "longest_seconds": 6.0},
    "dataset": {"videos_per_shard": 2},
    "features": {"rescale": {"components": 8}},
    "temporal": {"models": ["origin"], "training": {"epochs": 2, "hidden": 16}},
    "proposals": {"evaluator": {"epochs": 2}},
    "evaluation": {"timelines": 0, "baselines": ["random"]},
}
COMMAND = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "small.yaml"]


class Runs:
    """A run is killed six times, each time in a way of its own, and then left to end."""

    name = "runs"
    count = 32

    def prepare(self, folder: Path) -> None:
        """Make a whole run."""
        self._whole = folder / "whole"
        self._whole.mkdir()
        copy_program(self._whole)
        (self._whole / "small.yaml").write_text(yaml.safe_dump(SMALL))
        run = Run(self._whole, COMMAND)
        if run.end(_SECONDS):
            raise SystemExit(f"runs: the whole run fails: {run.said()[-2000:]}")
        self._digests = digests(self._whole)

    def case(self, random: Random, folder: Path) -> Result:
        """Kill a run and start it again."""
        begin_again(self._whole, folder / "run")
        ways = random.choices(WAYS, (4, 4, 6, 1, 1), k=KILLS)
        try:
            outcome = kill_run(folder / "run", COMMAND, random.randrange(2**31), ways)
        except AssertionError as error:
            return wrong("hang", str(error))
        faults = outcome.tried()
        if outcome.left:
            return wrong("processes left", "; ".join(outcome.left), faults)
        if "--unlock" in outcome.said or "--rerun-incomplete" in outcome.said:
            return wrong("a manual step", outcome.said[-300:], faults)
        if outcome.status:
            return wrong("the next start fails", outcome.said[-300:], faults)
        if outcome.digests != self._digests:
            different = self._digests.items() ^ outcome.digests.items()
            return wrong("other bits", str(sorted(path for path, _ in different)), faults)
        return Result("same bits", faults=faults)


CAMPAIGN = Runs()
