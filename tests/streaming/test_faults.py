"""Faults: one line with stage and sample, everything ended, nothing left behind."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from actionspan.streaming import Pipeline, StageError, StallError
from streaming.networks import EXECUTORS, Failing, Slow, chain, sgd, squared, stream
from tiers import first_tier

ENDLESS = Path(__file__).with_name("endless.py")


def gone(process: int) -> bool:
    """Return whether a process has ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def listed(folder: str) -> set[str]:
    """Return the names in a folder, without those of MPI: tests beside these make them."""
    return {path.name for path in Path(folder).iterdir() if not path.name.startswith("mpich_")}


def all_gone(processes: list[int], seconds: float = 60.0) -> bool:
    """Wait until all have ended; a busy machine takes its time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if all(map(gone, processes)):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("stage", first_tier(range(3), 1))
@pytest.mark.parametrize("learning", [False, True])
def test_an_exception_names_stage_and_sample(executor: str, stage: int, learning: bool) -> None:
    network: list[nn.Module] = chain(3)
    network[stage] = nn.Sequential(Failing(5), network[stage])
    how = {"loss": squared, "optimiser": sgd} if learning else {}
    samples = stream(12) if learning else [x for x, _ in stream(12)]
    message = f"^stage {stage + 1} of 3, sample 5: ValueError: the stage broke"
    with Pipeline(network, executor, stall_seconds=60.0, **how) as pipeline:
        ids = pipeline.processes()
        assert len(ids) == (3 if executor == "process" else 0)
        with pytest.raises(StageError, match=message):
            list(pipeline.run(samples))
    assert all(map(gone, ids))  # when the error is there, all have ended
    with pytest.raises(StageError, match=message):  # it is remembered
        pipeline.submit(stream(1)[0][0])


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("stage", first_tier(range(3), 1))
def test_a_killed_stage_is_named(stage: int, learning: bool) -> None:
    how = {"loss": squared, "optimiser": sgd} if learning else {}
    samples = stream(200) if learning else [x for x, _ in stream(200)]
    network = [nn.Sequential(Slow(h), part) for h, part in enumerate(chain(3))]
    with Pipeline(network, "process", stall_seconds=60.0, **how) as pipeline:
        ids = pipeline.processes()
        with pytest.raises(StageError, match=f"^stage {stage + 1} of 3, sample .*SIGKILL"):
            _run_and_send(pipeline, samples, ids[stage], signal.SIGKILL)
    assert all(map(gone, ids))


@pytest.mark.parametrize("stage", first_tier(range(3), 1))
def test_a_stopped_stage_meets_the_deadline(stage: int) -> None:
    with Pipeline(chain(3), "process", loss=squared, optimiser=sgd, stall_seconds=2.0) as pipeline:
        ids = pipeline.processes()
        with pytest.raises(StallError, match=f"^stage {stage + 1} of 3, .*no sign of life for 2 s"):
            _run_and_send(pipeline, stream(200), ids[stage], signal.SIGSTOP)
    assert all(map(gone, ids))


def _run_and_send(pipeline: Pipeline, samples: list[Any], process: int, number: int) -> None:
    for answer in pipeline.run(samples):
        if answer.index == 4:
            os.kill(process, number)


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_stage_that_hangs_meets_the_deadline(executor: str) -> None:
    network = [chain(1)[0], Slow(1, most=1000.0)]
    with (
        pytest.raises(StallError, match="^stage 2 of 2, sample 0: no sign of life for 1 s"),
        Pipeline(network, executor, stall_seconds=1.0) as pipeline,
    ):
        list(pipeline.run(x for x, _ in stream(4)))


@pytest.fixture
def endless() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    path = os.pathsep.join([str(ENDLESS.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, str(ENDLESS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    ids = [int(word) for word in process.stdout.readline().split()]
    assert len(ids) == 3
    yield process, ids
    process.kill()
    process.communicate()


@pytest.mark.full
def test_ctrl_c_ends_everything(endless: tuple[subprocess.Popen[str], list[int]]) -> None:
    process, ids = endless
    for one in (*ids, process.pid):  # as a terminal does
        os.kill(one, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == ""
    assert all_gone(ids)


@pytest.mark.full
def test_stages_end_with_a_killed_parent(endless: tuple[subprocess.Popen[str], list[int]]) -> None:
    process, ids = endless
    shared = listed("/dev/shm")
    process.kill()
    process.wait()
    assert all_gone(ids)
    assert listed("/dev/shm") <= shared
    assert process.stderr is not None
    assert process.stderr.read() == ""  # no complaint of a resource tracker either


@pytest.mark.full
def test_a_hundred_pipelines_leave_nothing() -> None:
    samples = stream(3)

    def one() -> None:
        with Pipeline(chain(2), "process", loss=squared, optimiser=sgd) as pipeline:
            list(pipeline.run(samples))

    one()  # starts the server that processes are forked from
    gc.collect()  # what tests before have left
    descriptors, shared = len(listed("/proc/self/fd")), listed("/dev/shm")
    for _ in range(100):
        one()
    gc.collect()
    assert len(listed("/proc/self/fd")) <= descriptors
    assert listed("/dev/shm") <= shared
    assert multiprocessing.active_children() == []


def test_what_cannot_be_sent_to_a_process_is_said() -> None:
    class Local(nn.Module):
        pass

    with pytest.raises(ValueError, match="stage 1 of 1 cannot be sent to a process: .*Local"):
        Pipeline([Local()], "process")
    with pytest.raises(ValueError, match="cannot be sent to a process"):
        Pipeline(chain(1), "process", loss=lambda output, _: output.sum(), optimiser=sgd)


@pytest.mark.full
def test_a_program_without_a_guard_is_told_of_it_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "unguarded.py"
    program.write_text(
        "import torch\n"
        "from actionspan.streaming import Pipeline, StageError\n"
        "try:\n"
        "    Pipeline([torch.nn.Tanh(), torch.nn.Tanh()], 'process')\n"
        "except StageError as error:\n"
        "    assert error.__suppress_context__  # no news of the pipe above it\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert line.startswith("stage ")
    assert 'if __name__ == "__main__":' in line
