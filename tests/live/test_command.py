"""`actionspan stream` as people call it: a process that is killed, interrupted, watched."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from actionspan.cli import main
from actionspan.live.sink import ACTIONNESS, EVENTS
from live.fakes import assert_same, assert_valid, seen
from tiers import first_tier
from worlds.waiting import eventually
from worlds.warm import python

TESTS = Path(__file__).parents[1]


def started(source, out, *words, seconds=0.05, group=False):
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    command = [python(), "-m", "live.fakes", "stream", source, "--model", seconds]
    more = ["--out", out, "--state-seconds", "0.3", *words]
    return subprocess.Popen(
        [*map(str, command), *map(str, more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=group,
    )


def ended(process, status=0):
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == status, stderr
    return stdout, stderr


def wait_for(process, holds):
    eventually(lambda: holds() or process.poll() is not None)
    assert process.poll() is None, process.communicate()


@pytest.mark.parametrize("executor", first_tier(["thread", "process"], "thread"))
def test_a_killed_stream_goes_on_to_the_same_bytes(video, whole, tmp_path, executor):
    process = started(video, tmp_path, "--executor", executor)
    wait_for(process, lambda: seen(tmp_path) > 15)
    process.kill()
    ended(process, -signal.SIGKILL)
    assert 15 < seen(tmp_path) < 62
    _, stderr = ended(started(video, tmp_path, "--resume", seconds=0.0))
    assert stderr.splitlines() == [f"{tmp_path}: 13 proposals in 10.0 s, finished"]
    assert_same(tmp_path, whole)


@pytest.mark.parametrize(
    ("number", "status"),
    first_tier([(signal.SIGINT, 130), (signal.SIGTERM, 143)], (signal.SIGINT, 130)),
    ids=["SIGINT", "SIGTERM"],
)
def test_a_signal_ends_with_valid_files(video, tmp_path, number, status):
    process = started(video, tmp_path, seconds=0.1)
    wait_for(process, lambda: seen(tmp_path) > 5)
    process.send_signal(number)
    stdout, stderr = ended(process, status)
    assert_valid(tmp_path)
    assert stdout == (tmp_path / EVENTS).read_text()
    assert json.loads(stdout.splitlines()[-1])["reason"] == "interrupted"
    (line,) = stderr.splitlines()
    assert "interrupted; --resume continues" in line


@pytest.mark.full
def test_a_signal_to_the_whole_group_is_no_fault_of_a_stage(video, tmp_path):
    """A service manager ends all processes of a service at once."""
    process = started(video, tmp_path, "--executor", "process", seconds=0.2, group=True)
    wait_for(process, lambda: seen(tmp_path) > 5)
    os.killpg(process.pid, signal.SIGTERM)
    ended(process, 143)
    assert_valid(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("name", first_tier([EVENTS, ACTIONNESS], EVENTS))
def test_a_full_disk_is_one_line(video, tmp_path, name):
    (tmp_path / name).symlink_to("/dev/full")
    _, stderr = ended(started(video, tmp_path, seconds=0.0), 2)
    (line,) = stderr.splitlines()
    assert line.endswith(f"{tmp_path / name}: No space left on device")


@pytest.mark.full
def test_a_reader_of_events_may_leave(video, tmp_path):
    process = started(video, tmp_path)
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    assert_valid(tmp_path)
    process.stderr.close()


def test_a_stage_that_fails_is_one_line(video, tmp_path):
    _, stderr = ended(started(video, tmp_path, "--stages", 1, seconds=-1.0), 2)
    (line,) = stderr.splitlines()
    assert line.startswith("actionspan stream: stage 1 of 1, sample 0: ValueError: ")
    assert "sleep length must be non-negative" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["v.mp4", "--model", "none.pt"], "none.pt: no such file"),
        (["v.mp4", "--model", "x", "--queue", "0"], "queue 0: at least 1"),
        (["v.mp4", "--model", "x", "--delay", "-1"], "delay -1.0: at least 0"),
        (["ftp://me:secret@host", "--model", "x"], "rtsp"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["stream", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("actionspan stream: ")
    assert message in line
    assert "secret" not in line
    assert list(tmp_path.iterdir()) == []
