"""Faults: one line with stage and sample, everything ended, nothing left behind."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch import nn

from actionspan.streaming import Pipeline, StageError, StallError
from streaming.conftest import every_executor, learning_or_not, with_workers
from streaming.networks import Failing, Slow, chain, sgd, squared, stream
from tiers import first_tier
from worlds.waiting import eventually, gone

ENDLESS = Path(__file__).with_name("endless.py")
LEARNING = {"loss": squared, "optimiser": sgd}
every_stage = pytest.mark.parametrize("stage", first_tier(range(3), 1))


def listed(folder):
    """Return the names in a folder, without those of MPI: tests beside these make them."""
    return {path.name for path in Path(folder).iterdir() if not path.name.startswith("mpich_")}


def samples_of(count, learning):
    return stream(count) if learning else [x for x, _ in stream(count)]


@every_executor
@every_stage
@learning_or_not
def test_an_exception_names_stage_and_sample(executor, stage, learning):
    network = chain(3)
    network[stage] = nn.Sequential(Failing(5), network[stage])
    message = f"^stage {stage + 1} of 3, sample 5: ValueError: the stage broke"
    how = LEARNING if learning else {}
    with Pipeline(network, executor, stall_seconds=60.0, **how) as pipeline:
        ids = pipeline.processes()
        assert len(ids) == (3 if executor == "process" else 0)
        with pytest.raises(StageError, match=message):
            list(pipeline.run(samples_of(12, learning)))
    assert all(map(gone, ids))  # when the error is there, all have ended
    with pytest.raises(StageError, match=message):  # it is remembered
        pipeline.submit(stream(1)[0][0])


@pytest.mark.parametrize(
    ("number", "learning", "error", "what", "seconds"),
    [
        (signal.SIGKILL, False, StageError, "SIGKILL", 60.0),
        (signal.SIGKILL, True, StageError, "SIGKILL", 60.0),
        (signal.SIGSTOP, True, StallError, "no sign of life for 2 s", 2.0),
    ],
)
@every_stage
def test_a_killed_or_stopped_stage_is_named(stage, number, learning, error, what, seconds):
    network = [nn.Sequential(Slow(h), part) for h, part in enumerate(chain(3))]
    how = LEARNING if learning else {}
    with Pipeline(network, "process", stall_seconds=seconds, **how) as pipeline:
        ids = pipeline.processes()
        with pytest.raises(error, match=f"^stage {stage + 1} of 3, sample .*{what}"):  # noqa: PT012
            for answer in pipeline.run(samples_of(200, learning)):
                if answer.index == 4:
                    os.kill(ids[stage], number)
    assert all(map(gone, ids))


@with_workers
@pytest.mark.parametrize("polls", [False, True])
def test_a_stage_that_hangs_meets_the_deadline_and_an_idle_one_does_not(executor, polls):
    network, (sample, *_) = [chain(1)[0], Slow(1, most=1000.0)], samples_of(1, False)
    with Pipeline(network, executor, stall_seconds=1.0) as pipeline:
        time.sleep(1.2)
        pipeline.submit(sample)
        with pytest.raises(StallError, match="^stage 2 of 2, sample 0: no sign of life for 1 s"):
            eventually(lambda: pipeline.answer(timeout=0.1 if polls else None))


@pytest.fixture
def endless():
    path = os.pathsep.join([str(ENDLESS.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, str(ENDLESS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    ids = [int(word) for word in process.stdout.readline().split()]
    assert len(ids) == 3
    yield process, ids
    process.kill()
    process.communicate()


@pytest.mark.full
def test_ctrl_c_ends_everything(endless):
    process, ids = endless
    for one in (*ids, process.pid):  # as a terminal does
        os.kill(one, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == ""
    eventually(lambda: all(map(gone, ids)))


@pytest.mark.full
def test_stages_end_with_a_killed_parent(endless):
    process, ids = endless
    shared = listed("/dev/shm")
    process.kill()
    process.wait()
    eventually(lambda: all(map(gone, ids)))
    assert listed("/dev/shm") <= shared
    assert process.stderr.read() == ""  # no complaint of a resource tracker either


@pytest.mark.full
def test_a_hundred_pipelines_leave_nothing():
    def one():
        with Pipeline(chain(2), "process", **LEARNING) as pipeline:
            list(pipeline.run(stream(3)))

    one()  # starts the server that processes are forked from
    gc.collect()  # what tests before have left
    descriptors, shared = len(listed("/proc/self/fd")), listed("/dev/shm")
    for _ in range(100):
        one()
    gc.collect()
    assert len(listed("/proc/self/fd")) <= descriptors
    assert listed("/dev/shm") <= shared
    assert multiprocessing.active_children() == []


def test_what_cannot_be_sent_to_a_process_is_said():
    class Local(nn.Module):
        pass

    with pytest.raises(ValueError, match="stage 1 of 1 cannot be sent to a process: .*Local"):
        Pipeline([Local()], "process")
    with pytest.raises(ValueError, match="cannot be sent to a process"):
        Pipeline(chain(1), "process", loss=lambda output, _: output.sum(), optimiser=sgd)


@pytest.mark.full
def test_a_program_without_a_guard_is_told_of_it_in_one_line(tmp_path):
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
