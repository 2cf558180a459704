"""`actionspan stream` as people call it: a process that is killed, interrupted, watched."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actionspan.cli import main
from actionspan.live.outputs import ACTIONNESS, EVENTS, PROPOSALS
from live.camera import HttpCamera
from live.vtt import cues
from tiers import first_tier
from video.numbered import encode
from worlds.warm import python

TESTS = Path(__file__).parents[1]
FILES = (ACTIONNESS, *PROPOSALS, "live.vtt")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 250)


def started(source, out, *words, seconds=0.05, group=False):
    """Start the command with a model that takes `seconds` for a snippet."""
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


def wait_for(process, holds, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def seen(out):
    path = out / EVENTS
    return path.read_text().count('"actionness"') if path.exists() else 0


def without_latencies(out):
    found = [json.loads(line) for line in (out / EVENTS).read_text().splitlines()]
    return [{k: v for k, v in event.items() if k != "latency_ms"} for event in found]


def assert_valid(out):
    """Everything there can be read, at any instant."""
    for line in (out / EVENTS).read_text().splitlines(keepends=True):
        assert line.endswith("\n")
        json.loads(line)
    cues((out / "live.vtt").read_text())
    json.loads((out / PROPOSALS[0]).read_text())


@pytest.fixture(scope="module")
def whole(video, tmp_path_factory):
    """What an undisturbed run writes."""
    out = tmp_path_factory.mktemp("whole")
    process = started(video, out, seconds=0.0)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert stdout == (out / EVENTS).read_text()
    assert stderr.splitlines() == [f"{out}: 13 proposals in 10.0 s, finished"]
    return out


@pytest.mark.parametrize(
    ("executor", "kills"), first_tier([("thread", 2), ("process", 1)], ("process", 1))
)
def test_a_killed_stream_goes_on_to_the_same_bytes(video, whole, tmp_path, executor, kills):
    for number in range(kills):
        before = seen(tmp_path)
        words = ["--executor", executor, *["--resume"] * (number > 0)]
        process = started(video, tmp_path, *words)
        wait_for(process, lambda before=before: seen(tmp_path) > before + 15)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert 15 < seen(tmp_path) < 62
    process = started(video, tmp_path, "--resume", seconds=0.0)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name
    assert without_latencies(tmp_path) == without_latencies(whole)


@pytest.mark.parametrize(
    ("number", "status"),
    first_tier([(signal.SIGINT, 130), (signal.SIGTERM, 143)], (signal.SIGINT, 130)),
    ids=["SIGINT", "SIGTERM"],
)
def test_a_signal_ends_with_valid_files(video, tmp_path, number, status):
    process = started(video, tmp_path, seconds=0.2)
    wait_for(process, lambda: seen(tmp_path) > 5)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == status, stderr
    assert_valid(tmp_path)
    assert json.loads(stdout.splitlines()[-1])["reason"] == "interrupted"
    (line,) = stderr.splitlines()
    assert "interrupted; --resume goes on" in line


@pytest.mark.full
def test_a_signal_to_the_whole_group_is_no_fault_of_a_stage(video, tmp_path):
    """A service manager ends all processes of a service at once."""
    process = started(video, tmp_path, "--executor", "process", seconds=0.2, group=True)
    wait_for(process, lambda: seen(tmp_path) > 5)
    os.killpg(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143, stderr
    assert_valid(tmp_path)


@pytest.mark.full
def test_a_state_of_an_earlier_stream_is_not_gone_on_from(video, whole, tmp_path):
    """It ended there; the one that is killed did not."""
    first = started(video, tmp_path, seconds=0.0)
    first.communicate(timeout=60)
    assert first.returncode == 0
    killed = started(video, tmp_path, "--state-seconds", "1000")
    wait_for(killed, lambda: 5 < seen(tmp_path) < 60)
    killed.kill()
    killed.communicate()
    process = started(video, tmp_path, "--resume", seconds=0.0)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "nothing is left to do" not in stderr
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("name", first_tier([EVENTS, ACTIONNESS], EVENTS))
def test_a_full_disk_is_one_line(video, tmp_path, name):
    (tmp_path / name).symlink_to("/dev/full")
    process = started(video, tmp_path, seconds=0.0)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    (line,) = stderr.splitlines()
    assert line.endswith(f"{tmp_path / name}: No space left on device")


@pytest.mark.full
def test_files_are_valid_at_any_instant(video, tmp_path):
    process = started(video, tmp_path, "--rate", "real", seconds=0.01)
    wait_for(process, lambda: (tmp_path / PROPOSALS[0]).exists())
    looks, chapters = 0, set()
    while process.poll() is None:
        cues((tmp_path / "live.vtt").read_text())
        json.loads((tmp_path / PROPOSALS[0]).read_text())
        chapters.add((tmp_path / "live.vtt").read_text())
        looks += 1
    process.communicate()
    assert process.returncode == 0
    assert looks > 50
    assert len(chapters) > 5, "it grows while the video plays"


@pytest.mark.full
def test_a_camera_until_it_is_interrupted(video, tmp_path):
    with HttpCamera(video, 50.0, password="geheim") as camera:
        process = started(camera.url, tmp_path, seconds=0.01)
        wait_for(process, lambda: seen(tmp_path) > 10)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "geheim" not in stdout + stderr
    assert_valid(tmp_path)


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
    process = started(video, tmp_path, "--stages", 1, seconds=-1.0)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    (line,) = stderr.splitlines()
    assert line.startswith("actionspan stream: stage 1 of 1, sample 0: ValueError: ")
    assert "sleep length must be non-negative" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["v.mp4", "--model", "none.pt"], "none.pt: no such file"),
        (["v.mp4", "--model", "x", "--queue", "0"], "queue 0: at least 1"),
        (["v.mp4", "--model", "x", "--delay", "-1"], "delay -1.0: at least 0"),
        (["camera:one", "--model", "x"], "camera:0"),
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


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom actionspan.cli import main\n"
        "try: main(['stream', '--help'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'torchvision', 'cv2', 'decord', 'av'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "[seconds]" in run.stdout
