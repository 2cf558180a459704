"""Faults on ranks in every exchange and phase: the job ends, nobody is left, and it goes on.

A killed or stopped rank ends the job within the deadline, and so does a disk that is full when the
checkpoint is written, with one line; the next start gives the same bits. A slow rank costs time
alone. Updates of `ps_async` come in any order, so there the next start only has to finish.
"""

import shutil
from pathlib import Path
from random import Random

from actionspan.parallel.settings import ON_CPUS
from campaigns.cases import Result, wrong
from mpi.fault_runs import SERVED, Ended, Job, training
from temporal.conftest import write_toy
from temporal.test_training import same_files

EXCHANGES = [name for name in ON_CPUS if name != "auto"]  # of which `auto` takes one or the other
PLACES = ("start", "read", "step", "exchange", "validation", "checkpoint")
EPOCHS = 8  # of two steps
OFTEN = {"step": 2 * EPOCHS, "exchange": 2 * EPOCHS, "validation": EPOCHS, "checkpoint": EPOCHS}
SECONDS = 300.0  # of a job; the longest deadline, that of reading, is a tenth of it
_STALL = ("--stall-seconds", "3")


class Ranks:
    """A fault in a rank of a training, and the next start."""

    name = "ranks"
    count = 250

    def prepare(self, folder: Path) -> None:
        """Write the toy data set."""
        self._folder = folder
        self._toy = write_toy(folder, training=16, validation=6)

    def case(self, random: Random, folder: Path) -> Result:
        """Start a job with a fault, and the same job without it."""
        exchange, place = random.choice(EXCHANGES), random.choice(PLACES)
        ranks = 1 if exchange == "none" else random.choice([2, 2, 3])
        n = ranks + (exchange in SERVED)
        rank = 0 if place == "checkpoint" else random.randrange(n)
        deed = _deed(place, n, random)
        fault = f"{deed}@{place}:{rank}:{random.randint(1, OFTEN.get(place, 1))}"
        case = f"{exchange} {ranks} {fault}"
        (folder / "case").write_text(f"{case}\n")
        try:
            job = Job(n, self._words(folder / "out", exchange, ranks), folder / "log", fault)
            first = job.end(SECONDS)
            expected = self._undisturbed(exchange, ranks, n)
            again = first
            if deed != "slow":
                words = self._words(folder / "out", exchange, ranks)
                again = Job(n, words, folder / "again", "-").end(SECONDS)
        except AssertionError as error:
            return wrong("hang", f"{case}: {error}", faults=1)
        return _judge(case, deed, first, again, expected, folder / "out")

    def _words(self, out: Path, exchange: str, ranks: int) -> list[str]:
        return training(self._toy, out, exchange, ranks, *_STALL, epochs=EPOCHS)

    def _undisturbed(self, exchange: str, ranks: int, n: int) -> Path:
        """Return the folder of a run that nothing happened to."""
        place = self._folder / f"{exchange}-{ranks}"
        if not place.exists():
            partial = self._folder / f"{exchange}-{ranks}-{id(place)}"
            partial.mkdir()
            log = partial / "log"
            ended = Job(n, self._words(partial / "out", exchange, ranks), log, "-").end(SECONDS)
            if ended.status:
                raise SystemExit(f"{exchange} on {ranks} ranks: {ended.errors}")
            try:
                partial.rename(place)
            except OSError:  # a strand beside this one was faster
                shutil.rmtree(partial)
        return place / "out"


def _deed(place: str, n: int, random: Random) -> str:
    deeds = ["kill", "kill", "kill"]
    if n > 1 and place != "start":  # a process that is stopped alone, or before MPI, is not missed
        deeds.append("stop")
    if place in ("step", "exchange", "validation"):
        deeds.append("slow")
    if place == "checkpoint":
        deeds += ["full", "full"]
    return random.choice(deeds)


def _judge(case: str, deed: str, first: Ended, again: Ended, expected: Path, out: Path) -> Result:
    last = (first.errors.rstrip().splitlines() or [""])[-1]
    if first.left or again.left:
        return wrong("processes left", case, faults=1)
    if "Traceback" in first.errors + again.errors:
        return wrong("traceback", f"{case}: {last}", faults=1)
    if bool(first.status) == (deed == "slow"):
        return wrong(f"status {first.status} after {deed}", f"{case}: {last}", faults=1)
    if deed == "full" and (first.status != 2 or len(first.lines()) != 1):
        return wrong("a full disk is not one line", f"{case}: {first.lines()}", faults=1)
    if deed in ("stop", "kill") and not first.errors.strip():
        return wrong("no word", case, faults=1)
    if again.status:
        return wrong("the next start fails", f"{case}: {again.errors[-300:]}", faults=1)
    if case.startswith("ps_async"):
        return Result(f"finished after {deed}", faults=1)
    if not same_files(expected, out):
        return wrong("other bits", case, faults=1)
    return Result(f"same bits after {deed}", faults=1)


CAMPAIGN = Ranks()
