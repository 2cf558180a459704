"""Shards: parts survive a kill, count by digest, and give the same file whatever the processes."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.errors import InputError, JobError
from actionspan.jobs import apart
from actionspan.jobs.apart import still_working
from actionspan.jobs.parts import map_videos, rejected_videos, take_over
from actionspan.jobs.shards import ShardWork
from actionspan.storage.writing import create_h5
from tiers import first_tier
from worlds.h5_content import content
from worlds.waiting import eventually, gone

JOB = """
import os, sys, time
from pathlib import Path
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork

def work(source, group):
    name, folder = source
    with open(Path(folder) / "calls.txt", "a") as file:
        file.write(f"{name} {os.getpid()}\\n")
    group["half"] = [1, 2]
    if name in sys.argv[2].split(",") and Path(folder, "slow").exists():
        Path(folder, f"waiting {name}").touch()
        time.sleep(60)
    group["value"] = [ord(name)]

if __name__ == "__main__":
    names = list("abcd")
    folder = Path(sys.argv[1])
    map_videos(folder / "out.h5", names, [(n, str(folder)) for n in names], names, work,
               title="test", how=ShardWork(processes=int(sys.argv[3])), settings_digest="s")
"""


def double(source, group) -> None:
    if source < 0:
        raise InputError(f"{source}: a negative source")
    group["value"] = np.arange(source) * 2.0
    group.attrs["source"] = source


def run(out: Path, names, sources, digests=None, work=double, **more) -> dict[str, str]:
    digests = digests or [f"digest of {source}" for source in sources]
    how = ShardWork(**{key: more.pop(key) for key in ("processes", "faults") if key in more})
    return map_videos(out, names, sources, digests, work, title="doubling", how=how, **more)


def kept(path: Path) -> set[str]:
    with h5py.File(path) as file:
        return set(file)


def test_each_video_gets_its_group(tmp_path):
    out = tmp_path / "deep" / "shard.h5"
    assert run(out, ["b", "a"], [1, 3], settings_digest="all") == {}
    with h5py.File(out) as file:
        assert list(file) == ["a", "b"]
        assert file["a/value"][:].tolist() == [0, 2, 4]
        assert file["b"].attrs["source"] == 1
        assert file.attrs["digest"] == "all"
        assert json.loads(file.attrs["rejected"]) == {}
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("processes", "slow", "done"), first_tier([(1, "c", "ab"), (2, "c,d", "ab")], (2, "c,d", "ab"))
)
def test_a_killed_job_goes_on_where_it_was(tmp_path, processes, slow, done):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    command = [sys.executable, str(script), str(tmp_path), slow, str(processes)]
    waiting = [tmp_path / f"waiting {name}" for name in slow.split(",")]
    (tmp_path / "slow").touch()
    job = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    workers = set()
    try:
        eventually(lambda: all(path.exists() for path in waiting))
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
        calls = [line.split() for line in (tmp_path / "calls.txt").read_text().splitlines()]
        workers = {int(pid) for _, pid in calls}
        eventually(lambda: all(map(gone, workers)), 30, lambda: "workers outlive a killed job")
    finally:
        job.kill()
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert not (tmp_path / "out.h5").exists()
    parts = {path.name for path in (tmp_path / "out.h5.parts").glob("[!.]*")}
    assert parts == {f"{name}.h5" for name in done}

    (tmp_path / "slow").unlink()
    (tmp_path / "calls.txt").unlink()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=60)
    again = {line.split()[0] for line in (tmp_path / "calls.txt").read_text().splitlines()}
    assert again == set("abcd") - set(done)
    with h5py.File(tmp_path / "out.h5") as file:
        assert {name: file[name]["value"][0] for name in file} == {n: ord(n) for n in "abcd"}
    assert not list(tmp_path.glob("**/*partial*"))
    assert not (tmp_path / "out.h5.parts").exists()


def noted(source, group) -> None:
    with Path(os.environ["CALLS"]).open("a") as file:
        file.write(f"{source}\n")
    if source == 99:  # as a scheduler ends a job
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    double(source, group)


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory) -> Path:
    """A folder of parts, left by a job that was ended at its last video."""
    folder = tmp_path_factory.mktemp("broken off")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALLS", str(folder / "calls.txt"))
        with pytest.raises(JobError, match="killed by SIGTERM; run it again to resume"):
            run(folder / "shard.h5", ["a", "bad", "value", "last"], [1, -1, 2, 99], work=noted)
    assert (folder / "calls.txt").read_text() == "1\n-1\n2\n99\n"
    (folder / "calls.txt").unlink()
    assert [path.name for path in folder.iterdir()] == ["shard.h5.parts"]
    return folder


@pytest.fixture
def begun(broken_off, tmp_path) -> Path:
    """The file that is to be made of such parts."""
    return Path(shutil.copytree(broken_off, tmp_path / "out")) / "shard.h5"


def test_a_changed_digest_makes_a_part_anew(begun, called):
    digests = ["digest of 1", "another", "digest of 3"]
    run(begun, ["a", "value", "last"], [1, 4, 3], digests, noted)
    assert called() == [4, 3]
    with h5py.File(begun) as file:
        assert len(file["value/value"]) == 4


def test_parts_of_videos_that_left_the_shard_are_dropped(begun, called):
    run(begun, ["value"], [2], work=noted)
    assert called() == []
    assert kept(begun) == {"value"}
    assert list(begun.parent.iterdir()) == [begun]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda whole: b"", marks=pytest.mark.full),
        pytest.param(lambda whole: b"not HDF5", marks=pytest.mark.full),
        lambda whole: whole[: len(whole) // 2],
        pytest.param(lambda whole: whole[:-100], marks=pytest.mark.full),
        pytest.param(lambda whole: whole.replace(b"digest", b"tsegid"), marks=pytest.mark.full),
        lambda whole: whole.replace(b"value", b"eulav"),
    ],
    ids=["empty", "garbage", "half", "end", "no digest", "no group"],
)
def test_a_damaged_part_is_not_there(begun, tmp_path, called, damage):
    part = begun.parent / "shard.h5.parts/value.h5"
    part.write_bytes(damage(part.read_bytes()))
    assert run(begun, ["a", "value", "last"], [1, 2, 3], work=noted) == {}
    assert called() == [2, 3]
    run(tmp_path / "other.h5", ["a", "value", "last"], [1, 2, 3])
    assert content(begun) == content(tmp_path / "other.h5")
    assert list(begun.parent.iterdir()) == [begun]


@pytest.mark.parametrize(
    ("source", "rejected", "made"), [(-1, {"bad": "-1: a negative source"}, [3]), (2, {}, [2, 3])]
)
def test_a_rejection_is_remembered_until_its_digest_changes(begun, called, source, rejected, made):
    assert run(begun, ["a", "bad", "last"], [1, source, 3], work=noted) == rejected
    assert called() == made


@pytest.mark.parametrize("names", [["a", "bad", "c"], []])
def test_a_bad_video_is_recorded_and_the_rest_go_on(tmp_path, capsys, names):
    """The same whatever the processes."""
    sources = [{"a": 1, "bad": -1, "c": 900}[name] for name in names]
    wanted = {"bad": "-1: a negative source"} if names else {}
    for processes in (1, 2):
        out = tmp_path / f"{processes}.h5"
        found = run(out, names, sources, processes=processes, settings_digest="s")
        assert found == wanted
        assert ("rejected bad: -1: a negative source\n" in capsys.readouterr().err) == bool(names)
        assert kept(out) == set(names) - {"bad"}
        with h5py.File(out) as file:
            assert rejected_videos(file) == wanted
    assert content(tmp_path / "1.h5") == content(tmp_path / "2.h5")


def test_any_file_name_is_a_video_name(tmp_path):
    names = [*"rejected a.b ünï視 %d [x] -x ..".split(), "with space", "v" * 251, "視" * 83]
    run(tmp_path / "shard.h5", [*names, "bad"], [*range(1, len(names) + 1), -1])
    with h5py.File(tmp_path / "shard.h5") as file:
        assert set(file) == set(names)
        found = {name: len(file[name]["value"]) for name in names}
        assert found == {name: length for length, name in enumerate(names, start=1)}
        assert rejected_videos(file) == {"bad": "-1: a negative source"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "other.h5"
    run(path, ["a", "bad", "c"], [20_000, -1, 3])
    return path


@pytest.fixture
def other(whole, tmp_path) -> Path:
    return Path(shutil.copy(whole, tmp_path))


def test_a_group_is_taken_over_in_place_of_what_is_there(other, tmp_path):
    with create_h5(tmp_path / "out.h5", "digest") as file:
        file.create_group("c")["half"] = [1]
        for name in ("a", "c"):
            assert take_over(other, name, file, name)
    found, expected = content(tmp_path / "out.h5"), content(other)
    assert found | {"/": None} == expected | {"/": None}


def flipped(whole: bytes) -> bytes:
    """Flip a bit in the middle of the numbers of the video a."""
    place = whole.index((np.arange(10_000, 10_010) * 2.0).tobytes())
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


def changed(whole: bytes) -> bytes:
    """Write another number, as somebody may who opens the file."""
    path = Path(os.environ["CHANGED"])
    path.write_bytes(whole)
    with h5py.File(path, "r+") as file:
        file["a/value"][0] = 7.0
    return path.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [lambda whole: b"", lambda whole: whole[: len(whole) // 2], flipped, changed],
    ids=["empty", "half", "a bit", "changed by somebody"],
)
def test_what_is_not_whole_is_not_taken_over(other, tmp_path, monkeypatch, damage):
    monkeypatch.setenv("CHANGED", str(tmp_path / "changed.h5"))
    other.write_bytes(damage(other.read_bytes()))
    with create_h5(tmp_path / "out.h5", "digest") as file:
        file.create_group("a")["half"] = [1]
        assert not take_over(other, "a", file, "a")
        assert not take_over(tmp_path / "none.h5", "a", file, "a")
        assert not take_over(other, "bad", file, "bad")  # it was rejected
        assert (list(file), list(file["a"])) == (["a"], ["half"])


def test_two_threads_of_a_worker_do_not_speak_at_once(monkeypatch):
    """A pipe would mix their messages."""
    speaking, mixed = threading.Event(), []

    class Pipe:
        def send(self, _):
            mixed.append(speaking.is_set())
            speaking.set()
            time.sleep(0.01)
            speaking.clear()

    monkeypatch.setattr(apart, "_pipe", Pipe())

    def speak():
        for far in range(5):
            still_working(far)

    threads = [threading.Thread(target=speak) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mixed == 15 * [False]
