"""Whatever happens to a rank, the job ends with the cause named, and the next start goes on."""

import os
import random
import re
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch

from actionspan.parallel.watchdog import STALLED
from actionspan.training.trainer import CHECKPOINT
from mpi.fault_runs import MPIRUN, SERVED, Ended, Job, ranks_of, training, wait_for_writes
from temporal.conftest import Toy, write_toy
from temporal.test_training import read_log, same_files
from tiers import first_tier

AT_ONCE = 3  # jobs; most wait for a deadline most of their time
AVERAGING = ("aavg", "aavg --no-average-state --averaging-steps 1")
# of runs that are killed in the middle and started again
EPOCHS = {"ring": 200, "ps": 80, **dict.fromkeys(AVERAGING, 80)}

pytestmark = pytest.mark.skipif(not MPIRUN.exists(), reason=f"no {MPIRUN}; pip install mpich")


@dataclass(frozen=True)
class Case:
    """A job with a fault, and the exchange it happens in."""

    fault: str
    exchange: str
    workers: int = 2
    flags: str = ""
    more: int = 0  # processes beyond those that are needed

    def __str__(self) -> str:
        """Return its name as a test."""
        words = self.fault, self.exchange, str(self.workers), self.flags
        return " ".join(filter(None, words))

    @property
    def guilty(self) -> int:
        return int(self.fault.split(":")[1])

    @property
    def ranks(self) -> int:
        return self.workers + (self.exchange in SERVED)


RAISES = [
    Case("raise@step:1:7", "ring"),
    Case("raise@step:1:7", "ring", flags="--overlap"),
    Case("raise@step:1:7", "mpi"),
    Case("raise@step:1:7", "gloo"),
    Case("raise@step:1:7", "ps", 1),
    Case("raise@step:0:7", "ps_async", 1),
    Case("raise@data:1:7", "ring"),
    Case("raise@step:1:7", "aavg"),
]
KILLS = [
    Case("kill@step:1:7", "ring"),
    Case("kill@step:1:7", "gloo"),
    Case("kill@step:0:7", "ps", 1),
    Case("kill@step:0:7", "ps_async", 1),
]
STALL = "--stall-seconds 3"
STALLS = {  # and what the others wait for
    Case("stop@step:2:7", "ring", 4, STALL): r"bucket 1 of [2-9] in step 7",
    Case("stop@step:2:7", "mpi", 4, f"{STALL} --overlap"): r"bucket 1 of [2-9] in step 7",
    Case("sleep@step:2:7", "ps", 2, f"{STALL} --overlap"): r"bucket 1 of [2-9] in step 7",
    Case("stop@step:0:7", "ps_async", 1, STALL): r"the gradients of step 7",
    Case("sleep@step:1:7", "mpi", 2, STALL): r"bucket 1 of [2-9] in step 7",
    Case("stop@step:1:7", "gloo", 2, STALL): r"bucket 1 of [2-9] in step 7",
    Case("sleep@data:1:7", "ring", 2, f"{STALL} --overlap"): r"bucket 1 of [2-9] in step 7",
    Case("sleep@step:1:8", "aavg", 2, STALL): "the models after step 8",
    Case("sleep@validation:0:3", "ring", 2, STALL): "the validation losses",
    # the deadline is tenfold before training
    Case("stop@read:0:1", "ring", 2, "--stall-seconds 0.4"): "the data",
}
ENDED_BY_WATCHDOG = (STALLED, 9)  # 9: mpirun reports how it killed the others
MISTAKES = {
    Case("-", "ring", flags="--features none.h5"): "none.h5: no such file",
    Case("-", "ring", flags="--learning-rate 1e30"): "the training loss is nan in epoch 1; lower",
    Case("-", "ring", flags="--dropout 1"): "dropout 1.0: from 0 to below 1",
    Case("-", "mpi", flags="--wire float16"): "wire float16 with exchange mpi: it sends float32",
    Case("-", "ring", more=1): "--exchange ring --ranks 2: 2 processes are needed, 3 started",
    Case("-", "none", 1, more=1): "--exchange none --ranks 1: 1 process is needed, 2 started",
}
FIRST_MISTAKES = [*MISTAKES][1], [*MISTAKES][-2]  # while it trains, and before it starts
WRONG_FLAG = Case("-", "ring", flags="--nonsense 1")
FIRST_TIER = [RAISES[0], KILLS[0], next(iter(STALLS)), *FIRST_MISTAKES]


def every(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Make a test of each case; most are of the second tier."""
    cases = list(cases)
    kept = [case for case in cases if case in FIRST_TIER]
    return pytest.mark.parametrize("case", first_tier(cases, *kept), ids=str)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return write_toy(tmp_path_factory.mktemp("toy"), training=16, validation=6)


@pytest.fixture(scope="module")
def ended(
    request: pytest.FixtureRequest, toy: Toy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Case], Ended]]:
    """What came of a case. All cases of the tests at hand are run, some at a time."""

    def run(case: Case) -> Ended:
        folder = tmp_path_factory.mktemp("case")
        words = training(toy, folder / "out", case.exchange, case.workers, *case.flags.split())
        return Job(case.ranks + case.more, words, folder / "log", case.fault).end()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs: dict[Case, Future[Ended]] = {}
        for item in request.session.items:
            values = item.callspec.params.values() if hasattr(item, "callspec") else ()
            for case in (one for one in values if isinstance(one, Case) and one not in jobs):
                jobs[case] = pool.submit(run, case)
        yield lambda case: jobs[case].result()
        for job in jobs.values():
            job.cancel()


@every(RAISES)
def test_an_exception_ends_the_job_with_its_traceback_and_rank(ended, case):
    job = ended(case)
    assert job.status == 1, job.errors
    assert "RuntimeError: a bug of this rank" in job.errors
    assert f"rank {case.guilty} of {case.ranks} failed:" in job.errors
    assert not job.left


@every(KILLS)
def test_a_killed_rank_ends_the_job_and_is_named_with_what_it_did(ended, case):
    job = ended(case)
    assert job.status
    (line,) = job.lines()
    place = rf"rank {case.guilty} \(pid {job.processes[case.guilty]} on \S+\)"
    how = r"was killed by signal 9 \(Killed\) while training, epoch 4; run the same"
    assert re.match(f"actionspan temporal: {place} {how}", line), line
    if case.exchange in SERVED:  # a line says which process is which rank
        (line,) = re.findall("^ranks: (.*)$", job.errors, re.M)
        assert re.sub(r" \(pid [^)]*\)", "", line) == "0 server, 1 worker"
    assert not job.left


@every(STALLS)
def test_a_rank_that_stalls_is_named_with_what_is_missing(ended, case):
    job = ended(case)
    assert job.status in ENDED_BY_WATCHDOG, job.errors
    (line,) = job.lines()
    start = f"actionspan: stalled: rank {case.guilty} did not come to the exchange of "
    assert re.match(rf"{start}{STALLS[case]}; waited \d+ s", line), line
    assert not job.left


@every(MISTAKES)
def test_a_mistake_is_one_line_whatever_the_number_of_ranks(ended, case):
    job = ended(case)
    assert job.status == 2, job.errors
    (complaint,) = job.lines()
    assert complaint.startswith("actionspan temporal: ")
    assert MISTAKES[case] in complaint
    assert "Traceback" not in job.errors
    assert not job.left


@every([WRONG_FLAG])
def test_a_wrong_flag_is_told_by_one_rank(ended, case):
    job = ended(case)
    assert job.status == 2, job.errors
    assert job.lines() == ["actionspan temporal train: error: unrecognized arguments: --nonsense 1"]
    assert job.errors.count("usage:") == 1


def finish(n: int, words: list[str], log: Path) -> None:
    done = Job(n, words, log).end(120)
    assert done.status == 0, done.errors
    assert "resuming after epoch" in done.errors


@pytest.mark.full
def test_a_job_that_was_stopped_as_a_whole_goes_on(toy, tmp_path):
    """As by Ctrl-Z and fg, or where SLURM suspends a job, for longer than the deadline."""
    out = tmp_path / "out"
    job = Job(2, training(toy, out, "mpi", 2, *STALL.split(), epochs=150), tmp_path / "log")
    assert wait_for_writes(job, out / CHECKPOINT, 2)
    for number, seconds in ((signal.SIGSTOP, 3.5), (signal.SIGCONT, 0)):
        for rank in (0, 1):
            job.signal(f"rank {rank}", number)
        time.sleep(seconds)
    assert (done := job.end()).status == 0, done.errors


@pytest.mark.full
@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.2])
def test_a_rank_killed_at_the_start_is_named(toy, tmp_path, seconds):
    job = Job(2, training(toy, tmp_path / "out", "ring", 2), tmp_path / "log", None)
    assert job.wait_until(lambda: len(ranks_of(job)) == 2)
    time.sleep(seconds)
    rank, pid = random.Random(seconds).choice(sorted(ranks_of(job).items()))
    os.kill(pid, signal.SIGKILL)
    done = job.end()
    assert done.status
    (line,) = done.lines()
    assert line.startswith(f"actionspan temporal: rank {rank} (pid {pid} on ")
    assert not done.left


@pytest.mark.full
@pytest.mark.parametrize("exchange", ["gloo", "periodic"])
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_rank_gives_no_traceback_of_the_others(toy, tmp_path, exchange, killed):
    """gloo tells the survivors of the lost connection before anyone ends them."""
    words = training(toy, tmp_path / "out", exchange, 2)
    done = Job(2, words, tmp_path / "log", f"kill@step:{killed}:9").end()
    assert done.status
    assert "Traceback" not in done.errors
    named = [line for line in done.lines() if f"rank {killed} (pid" in line]
    others = [line for line in done.lines() if line not in named]
    assert len(named) == 1
    assert all(f"rank {1 - killed}: another rank is gone" in line for line in others)
    assert not done.left


# Killed, and started again


@pytest.fixture(scope="module")
def undisturbed(toy: Toy, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a run that nothing happened to, by exchange and flags; of the plain command."""

    @cache
    def run(exchange: str) -> Path:
        folder = tmp_path_factory.mktemp("undisturbed")
        name, *flags = exchange.split()
        words = training(toy, folder / "out", name, 2, *flags, epochs=EPOCHS[exchange])
        done = Job(2 + (name in SERVED), words, folder / "log", None).end(120)
        assert done.status == 0, done.errors
        return folder / "out"

    return run


@pytest.mark.full
@pytest.mark.parametrize(
    ("exchange", "kills"), [("ring", 10), ("ps", 3), *((one, 3) for one in AVERAGING)]
)
def test_killed_at_random_moments_it_ends_with_the_same_bits(
    toy, tmp_path, undisturbed, exchange, kills
):
    out, log, chance = tmp_path / "out", tmp_path / "log", random.Random(11)
    name, *flags = exchange.split()
    words = training(toy, out, name, 2, *flags, epochs=EPOCHS[exchange])
    n = 2 + (name in SERVED)
    victims = ["mpirun", "proxy", *["rank 0", "rank 1"] * kills][:kills]
    chance.shuffle(victims)
    for number, victim in enumerate(victims):
        job = Job(n, words, log, None)
        if number % 5 == 1:  # while it starts, or soon after
            time.sleep(chance.uniform(0, 1.5))
            victim = victim if job.processes() else "mpirun"
        else:
            assert wait_for_writes(job, out / CHECKPOINT, chance.randint(1, 4)), job.end().errors
            time.sleep(chance.uniform(0, 0.03))
        assert not job.kill(victim).left, f"{victim} was killed; its ranks live on"
        assert not (out / "timing.json").exists(), f"it was ready before kill {number + 1}"
    finish(n, words, log)
    assert len(read_log(out)) == EPOCHS[exchange]
    assert same_files(undisturbed(exchange), out)


@pytest.mark.full
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit on this system")
def test_no_room_for_a_checkpoint_is_one_line_and_costs_no_epoch(toy, tmp_path, undisturbed):
    out, log = tmp_path / "out", tmp_path / "log"
    words = training(toy, out, "ring", 2, epochs=EPOCHS["ring"])
    job = Job(2, words, log)
    assert wait_for_writes(job, out / CHECKPOINT, 2)
    resource.prlimit(job.processes()[0], resource.RLIMIT_FSIZE, (100, 100))
    failed = job.end()
    assert failed.status == 2
    (line,) = failed.lines()
    assert line.startswith(f"actionspan temporal: {out / CHECKPOINT}: the file is larger than")
    assert "Traceback" not in failed.errors
    assert not failed.left
    assert {path.name for path in out.iterdir()} == {CHECKPOINT}
    assert torch.load(out / CHECKPOINT, weights_only=True)["epoch"] >= 2
    finish(2, words, log)
    assert same_files(undisturbed("ring"), out)


@pytest.mark.full
def test_interrupted_or_stalled_it_goes_on_where_it_was(toy, tmp_path, undisturbed):
    out, log = tmp_path / "out", tmp_path / "log"
    words = training(toy, out, "ring", 2, epochs=EPOCHS["ring"])
    job = Job(2, words, log, None)
    assert wait_for_writes(job, out / CHECKPOINT, 2)
    job.signal("group", signal.SIGINT)  # Ctrl-C
    done = job.end()
    assert done.status
    assert done.lines() == ["actionspan temporal: interrupted; run it again to resume"]
    assert not done.left

    # with another deadline, which changes no result
    job = Job(2, [*words, "--stall-seconds", "1"], log, None)
    assert wait_for_writes(job, out / CHECKPOINT, 2)
    job.signal("rank 1", signal.SIGSTOP)
    done = job.end()
    assert done.status in ENDED_BY_WATCHDOG, done.errors
    assert "resuming after epoch" in done.errors
    finish(2, words, log)
    assert same_files(undisturbed("ring"), out)
