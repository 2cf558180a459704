"""Shards: parts survive a kill, count by digest, and give the same file whatever the processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.running.parts import map_videos

JOB = """
import os, sys, time
from pathlib import Path
from actionspan.running.parts import map_videos

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
               title="test", processes=int(sys.argv[3]), settings_digest="s")
"""


def double(source, group) -> None:
    if source < 0:
        raise InputError(f"{source}: a negative source")
    group["value"] = np.arange(source) * 2.0
    group.attrs["source"] = source


def run(out: Path, names, sources, digests=None, work=double, **more) -> dict[str, str]:
    digests = digests or [f"digest of {source}" for source in sources]
    return map_videos(out, names, sources, digests, work, title="doubling", **more)


def content(path: Path) -> dict:
    """Return all that a file holds: attributes and the bytes of every dataset."""
    held = {}
    with h5py.File(path) as file:
        held["/"] = dict(file.attrs)

        def note(name, item):
            held[name] = dict(item.attrs)
            if isinstance(item, h5py.Dataset):
                held[name] |= {"bytes": item[()].tobytes(), "type": item.dtype, "shape": item.shape}

        file.visititems(note)
    return held


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


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


def test_a_shard_of_no_videos_is_an_empty_file(tmp_path):
    assert run(tmp_path / "shard.h5", [], [], processes=4) == {}
    with h5py.File(tmp_path / "shard.h5") as file:
        assert list(file) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("processes", "slow", "done"), [(1, "c", "ab"), (2, "c,d", "ab")])
def test_a_killed_job_goes_on_where_it_was(tmp_path, processes, slow, done):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    command = [sys.executable, str(script), str(tmp_path), slow, str(processes)]
    waiting = [tmp_path / f"waiting {name}" for name in slow.split(",")]
    (tmp_path / "slow").touch()
    job = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    workers = set()
    try:
        deadline = time.monotonic() + 30
        while not all(path.exists() for path in waiting) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert all(path.exists() for path in waiting)
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
        calls = [line.split() for line in (tmp_path / "calls.txt").read_text().splitlines()]
        workers = {int(pid) for _, pid in calls}
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not [pid for pid in workers if alive(pid)], "workers outlive a killed job"
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


def break_off(tmp_path: Path, names, sources) -> list:
    """Stop at the last video, as Ctrl-C does; return what later starts call."""
    called = []

    def work(source, group):
        called.append(source)
        if source == 99:
            raise KeyboardInterrupt
        double(source, group)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "shard.h5", [*names, "last"], [*sources, 99], work=work)
    assert not (tmp_path / "shard.h5").exists()
    assert not list(tmp_path.glob("**/*partial*"))
    called.clear()
    return called


def remember(called: list):
    def work(source, group):
        called.append(source)
        double(source, group)

    return work


def test_a_changed_digest_makes_a_part_anew(tmp_path):
    called = break_off(tmp_path, ["a", "b"], [1, 2])
    digests = ["digest of 1", "another", "digest of 3"]
    run(tmp_path / "shard.h5", ["a", "b", "last"], [1, 4, 3], digests, remember(called))
    assert called == [4, 3]
    with h5py.File(tmp_path / "shard.h5") as file:
        assert len(file["b/value"]) == 4


def test_parts_of_videos_that_left_the_shard_are_dropped(tmp_path):
    called = break_off(tmp_path, ["a", "b"], [1, 2])
    run(tmp_path / "shard.h5", ["b"], [2], work=remember(called))
    assert called == []
    with h5py.File(tmp_path / "shard.h5") as file:
        assert list(file) == ["b"]
    assert [path.name for path in tmp_path.iterdir()] == ["shard.h5"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bad_video_is_recorded_and_the_rest_go_on(tmp_path, capsys, processes):
    out = tmp_path / "shard.h5"
    errors = run(out, ["a", "bad", "c"], [1, -1, 2], processes=processes)
    assert errors == {"bad": "-1: a negative source"}
    assert "rejected bad: -1: a negative source\n" in capsys.readouterr().err
    with h5py.File(out) as file:
        assert list(file) == ["a", "c"]
        assert json.loads(file.attrs["rejected"]) == errors


def test_a_rejection_is_remembered_until_its_digest_changes(tmp_path):
    called = break_off(tmp_path, ["a", "bad"], [1, -1])
    out, names = tmp_path / "shard.h5", ["a", "bad", "last"]
    assert run(out, names, [1, -1, 3], work=remember(called)) == {"bad": "-1: a negative source"}
    assert called == [3]
    called = break_off(tmp_path / "again", ["a", "bad"], [1, -1])
    assert run(tmp_path / "again/shard.h5", names, [1, 2, 3], work=remember(called)) == {}
    assert called == [2, 3]


def test_all_videos_bad_is_still_a_file(tmp_path):
    errors = run(tmp_path / "shard.h5", ["a", "b"], [-1, -2])
    assert list(errors) == ["a", "b"]
    with h5py.File(tmp_path / "shard.h5") as file:
        assert list(file) == []
        assert json.loads(file.attrs["rejected"]) == errors


def test_two_processes_give_the_content_of_one(tmp_path):
    names, sources = ["v3", "v1", "v2", "v0"], [5, 2, -1, 900]
    for processes in (1, 2):
        out = tmp_path / f"{processes}.h5"
        run(out, names, sources, processes=processes, settings_digest="s")
    assert content(tmp_path / "1.h5") == content(tmp_path / "2.h5")


@pytest.mark.parametrize("name", ["rejected", "a.b", "with space", "ünï視", "%d", "[x]"])
def test_any_file_name_is_a_video_name(tmp_path, name):
    run(tmp_path / "shard.h5", [name, "bad"], [2, -1])
    with h5py.File(tmp_path / "shard.h5") as file:
        assert list(file) == [name]
        assert file[name]["value"][:].tolist() == [0, 2]
        assert json.loads(file.attrs["rejected"]) == {"bad": "-1: a negative source"}


def test_another_error_ends_the_job_and_keeps_the_parts(tmp_path):
    def work(source, group):
        if source == 2:
            raise ZeroDivisionError
        double(source, group)

    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "shard.h5", ["a", "b"], [1, 2], work=work)
    held = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert held == ["a.h5"]
