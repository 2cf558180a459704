"""What campaigns share: cases by seed and number, outcomes, and what is kept of wrong ones."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from campaigns.children import Ended, adopt_orphans

_COMPLAINT = re.compile(r"^actionspan( [\w-]+)*: ", re.MULTILINE)
_SHOWN = 300  # characters of a reason


@dataclass(frozen=True)
class Result:
    """The outcome of a case: a few words that are counted, and a text whose last line is shown."""

    outcome: str
    detail: str = ""
    wrong: bool = False
    faults: int = 0
    """How many kills, full disks and the like were injected."""


class Campaign(Protocol):
    """A campaign: what its cases share, and a case."""

    name: str
    count: int
    """The cases of `make campaign`."""

    def prepare(self, folder: Path) -> None:
        """Make what all cases share; called once."""

    def case(self, random: Random, folder: Path) -> Result:
        """Run a case in an empty folder; `random` alone decides about it."""


def wrong(outcome: str, detail: str = "", faults: int = 0) -> Result:
    """Return the result of a case that went wrong."""
    return Result(outcome, detail, wrong=True, faults=faults)


def fault(ended: Ended) -> Result | None:
    """Return what no command may do, whatever it is given; None: it did none of it.

    It ends by itself with status 0, or with status 2 and one line that says why; that line holds no
    control characters; no traceback; no process is left.
    """
    said = ended.errors
    if ended.late:
        return wrong("hang", said)
    if ended.left:
        return wrong("processes left", f"{ended.left}")
    if ended.status < 0:
        return wrong(f"signal {-ended.status}", said)
    if "Traceback (most recent call last)" in ended.errors:
        return wrong("traceback", said)
    if any(not one.isprintable() for one in re.split(r"[\n\r\t]", ended.errors)):
        return wrong("control characters", said)
    if ended.status not in (0, 2):
        return wrong(f"status {ended.status}", said)
    if ended.status == 2 and (len(_COMPLAINT.findall(ended.errors)) != 1 or not complaint(ended)):
        return wrong("more than one line", said)
    return None


def complaint(ended: Ended) -> str:
    """Return the line that says why a command failed: the last one."""
    lines = ended.errors.splitlines()
    return lines[-1] if lines and _COMPLAINT.match(lines[-1]) else ""


def chance(campaign: str, seed: int, number: int) -> Random:
    """Return what decides about a case."""
    return Random(f"{campaign} {seed} {number}")


def run_campaign(
    campaign: Campaign, seed: int, numbers: Sequence[int], kept: Path, jobs: int = 1
) -> list[Result]:
    """Run cases, so many at once; return their results without the details.

    Args:
        campaign: Which.
        seed: Of the campaign.
        numbers: The cases.
        kept: A folder for the files of cases that went wrong, NAME-SEED-NUMBER each.
        jobs: Cases at once.
    """
    with tempfile.TemporaryDirectory(prefix=f"{campaign.name}-") as name:
        folder = Path(name)
        (folder / "shared").mkdir()
        adopt_orphans()
        campaign.prepare(folder / "shared")
        strands = []
        for job in range(jobs):
            pid = os.fork()
            if not pid:
                _be_strand(campaign, seed, numbers[job::jobs], folder / f"{job}", kept)
            strands.append(pid)
        ended = [os.waitpid(pid, 0)[1] for pid in strands]
        results = [
            json.loads(line)
            for job in range(jobs)
            for line in (folder / f"{job}.jsonl").read_text().splitlines()
        ]
    if any(ended) or len(results) != len(numbers):
        raise SystemExit(f"{campaign.name}: {len(results)} of {len(numbers)} cases; it broke off")
    return [Result(outcome, "", bad, faults) for outcome, bad, faults in results]


def _be_strand(
    campaign: Campaign, seed: int, numbers: Sequence[int], folder: Path, kept: Path
) -> None:
    """Run cases one after another in a fork, and note each outcome."""
    status = 1
    try:
        adopt_orphans()
        with folder.with_suffix(".jsonl").open("a") as file:
            for number in numbers:
                folder.mkdir()
                result = campaign.case(chance(campaign.name, seed, number), folder)
                if result.wrong:
                    _keep(campaign.name, seed, number, result, folder, kept)
                shutil.rmtree(folder)
                noted = [result.outcome, result.wrong, result.faults]
                print(json.dumps(noted), file=file, flush=True)
        status = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _keep(name: str, seed: int, number: int, result: Result, folder: Path, kept: Path) -> None:
    """Say which case went wrong, and keep its files."""
    place = kept / f"{name}-{seed}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place, symlinks=True)
    again = f"python benchmarks/campaign.py {name} --seed {seed} --only {number}"
    (place / "case.txt").write_text(f"{again}\n{result.outcome}\n{result.detail}\n")
    lines = result.detail.split("\n")
    detail = ascii(next(filter(None, reversed(lines)), "")[-_SHOWN:])[1:-1]
    print(f"{name}: seed {seed} case {number}: {result.outcome}: {detail}", flush=True)


def summary(name: str, seed: int, results: Sequence[Result]) -> str:
    """Return the line of counts."""
    counts = Counter((one.outcome, one.wrong) for one in results).most_common()
    right = [f"{outcome} {count:,}" for (outcome, bad), count in counts if not bad]
    bad = [f"{outcome} {count:,}" for (outcome, bad), count in counts if bad]
    faults = sum(one.faults for one in results)
    return (
        f"{name}: {len(results):,} cases of seed {seed}"
        + (f", {faults:,} faults" if faults else "")
        + f": {', '.join(right) or 'nothing right'}; wrong {sum(one.wrong for one in results):,}"
        + (f": {', '.join(bad)}" if bad else "")
    )
