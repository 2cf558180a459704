"""Videos whose work fails: each is rejected with its reason, and no other pays for it."""

import errno
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import h5py
import pytest

from actionspan.errors import InputError, JobError
from actionspan.jobs import apart
from actionspan.jobs.apart import still_working
from actionspan.jobs.parts import rejected_videos
from actionspan.jobs.shards import FaultSettings
from jobs.test_parts import double, noted, run
from tiers import first_tier

ERRORS = {
    "exception": ZeroDivisionError("float division by zero\nand more"),
    "memory": MemoryError(),
    "torch": RuntimeError("CUDA out of memory. Tried to allocate 2.00 MiB"),
    "full disk": OSError(errno.ENOSPC, "No space left on device"),
    "full disk in HDF5": OSError(
        "Can't synchronously write data (write failed: errno = 28, error)"
    ),
}
SIGNALS = {"crash": signal.SIGSEGV, "abort": signal.SIGABRT, "killed": signal.SIGKILL}


def fail(source, group) -> None:
    """Fail in the way that the source names, in the middle of writing."""
    group["half"] = [1, 2]
    if source in ERRORS:
        raise ERRORS[source]
    if source in SIGNALS:
        os.kill(os.getpid(), SIGNALS[source])
    match source:
        case "exit":
            sys.exit(3)
        case "quit":
            os._exit(4)
        case "stall":
            time.sleep(600)
        case "slow":
            for _ in range(6):
                time.sleep(1)
                still_working()
    group["value"] = [3]


FAILURES = {
    "exception": "ZeroDivisionError: float division by zero",
    "memory": "too little memory to work on it",
    "torch": "too little memory to work on it",
    "crash": "the work on it crashed: killed by SIGSEGV",
    "abort": "the work on it crashed: killed by SIGABRT",
    "killed": "the work on it crashed: killed by SIGKILL, perhaps as memory ran out",
    "exit": "SystemExit: 3",
    "quit": "the work on it crashed: ended with status 4",
    "stall": "no progress in 4 s",
}


@pytest.mark.parametrize("processes", first_tier([1, 2], 2))
def test_no_failure_reaches_another_video(tmp_path, capfd, processes):
    """All failures in one shard, each between two good videos."""
    names = [name for pair in ((f"before {way}", way) for way in FAILURES) for name in pair]
    names += ["slow", "last"]
    out = tmp_path / "shard.h5"
    faults = FaultSettings(stall_seconds=4)
    found = run(out, names, names, work=fail, processes=processes, faults=faults)
    assert found == FAILURES
    said = capfd.readouterr().err
    assert "Traceback" not in said
    for name, reason in FAILURES.items():
        assert f"rejected {name}: {reason}\n" in said
    with h5py.File(out) as file:
        assert set(file) == set(names) - set(FAILURES)
        assert rejected_videos(file) == FAILURES
        assert all(list(group) == ["half", "value"] for group in file.values())
    assert list(tmp_path.iterdir()) == [out]


def test_a_worker_that_nobody_waits_for_ends_in_silence(capfd, tmp_path):
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=apart._serve, args=(theirs, len, None, tmp_path))
    worker.start()
    theirs.close()
    assert ours.poll(60)
    ours.close()  # its message is not read, so it meets a reset rather than an end
    worker.join(60)
    assert (worker.exitcode, capfd.readouterr().err) == (0, "")


def crash_once(source, group) -> None:
    """Crash where other work went before in this process, as after a leak."""
    state = Path(os.environ["CALLS"])
    with state.open("a") as file:
        file.write(f"{source} {os.getpid()}\n")
    if source == 2 and state.read_text().count(f" {os.getpid()}\n") > 1:
        os.abort()
    double(source, group)


def killed_once(source, group) -> None:
    noted(source, group)
    if Path(os.environ["CALLS"]).read_text().split().count(str(source)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def test_no_video_pays_for_an_earlier_one_or_a_kill_from_outside(tmp_path, called):
    names, sources = ["a", "b", "c"], [1, 2, 3]
    assert run(tmp_path / "1.h5", names, sources, work=crash_once) == {}
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert [line.split()[0] for line in calls] == ["1", "2", "2", "3"]
    (tmp_path / "calls.txt").unlink()
    for processes in (1, 2):
        out = tmp_path / "2.h5"
        assert run(out, names, sources, work=killed_once, processes=processes) == {}
        assert sorted(called()) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("way", ["full disk", "full disk in HDF5"])
def test_a_full_disk_is_no_videos_fault(tmp_path, way):
    with pytest.raises(JobError, match="disk is full|errno = 28"):
        run(tmp_path / "shard.h5", ["a", way, "c"], ["a", way, "c"], work=fail)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.h5"]


def refuse() -> None:
    raise InputError("weights.pt: no such file")


@pytest.mark.parametrize(
    ("prepare", "line"),
    [(refuse, "weights.pt: no such file"), (os.abort, "cannot start: it was killed by SIGABRT")],
)
def test_what_all_videos_need_is_no_videos_fault(tmp_path, prepare, line):
    with pytest.raises(JobError, match=line):
        run(tmp_path / "shard.h5", ["a", "b"], [1, 2], prepare=prepare)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.full
def test_with_fail_the_others_are_kept_and_the_machines_faults_tried_again(tmp_path, called):
    out, names = tmp_path / "shard.h5", ["a", "bad", "crash", "c"]
    fails = FaultSettings(on_bad_input="fail")
    for source in (98, 98, 3):  # a crash, the same again, and none
        with pytest.raises(InputError, match=r"shard.h5: [12] rejected \(above\)"):
            run(out, names, [1, -1, source, 4], names, crashing, faults=fails)
        assert not out.exists()
    assert called() == [1, -1, 98, 98, 4, 98, 98, 3]
    assert list(run(out, names, [1, -1, 98, 4], names, crashing)) == ["bad"]
    assert called() == []


def crashing(source, group) -> None:
    if source == 98:
        with Path(os.environ["CALLS"]).open("a") as file:
            file.write("98\n")
        os.abort()
    noted(source, group)


def test_a_crash_is_not_met_again_at_the_next_start(tmp_path, called):
    out, names = tmp_path / "shard.h5", ["crash", "a", "last"]
    with pytest.raises(JobError):
        run(out, names, [98, 1, 99], names, crashing)
    assert called() == [98, 1, 99]
    found = run(out, names, [98, 1, 3], names, crashing)
    assert found == {"crash": "the work on it crashed: killed by SIGABRT"}
    assert called() == [3]


def test_any_number_of_reasons_has_room(tmp_path):
    names = [f"video {number:04d} " + "é" * 60 for number in range(300)]
    found = run(tmp_path / "shard.h5", names, [-1] * 300, before={"first": "x" * 1000})
    with h5py.File(tmp_path / "shard.h5") as file:
        assert rejected_videos(file) == {"first": "x" * 1000, **found}
    assert len(found) == 300
