"""Live sources: a camera that stalls, hangs up, goes away and comes back, and one that is dead."""

import multiprocessing
import time
from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from actionspan.errors import InputError
from live.camera import HttpCamera, jpegs
from live.fakes import Brightness, player, run_stream
from live.vtt import cues
from live.watching import events, eventually, seen, streaming
from video.numbered import encode

RATE = 50.0


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 100)


def lost(out):
    return [gap for gap in events(out, "gap") if gap["reason"] == "lost"]


def length(gap):
    return gap["to"] - gap["from"]


def random_bytes(count):
    return np.random.default_rng(7).bytes(count)


def test_a_camera_is_seen_in_wall_clock_time(video, tmp_path):
    began = time.time()
    with HttpCamera(video, RATE) as camera, streaming(camera.url, tmp_path):
        eventually(lambda: seen(tmp_path) > 20)
    first, *_, end = events(tmp_path)
    assert first["policy"] == "newest"
    assert first["began"].startswith("20")
    assert end["reason"] == "interrupted"
    assert 1.0 < end["seconds"] < time.time() - began
    steps = np.diff([event["seconds"] for event in events(tmp_path, "actionness")])
    assert np.median(steps) == pytest.approx(4 / RATE, rel=0.2)
    looks = [e["latency_ms"]["look_ahead"] for e in events(tmp_path, "actionness")[:-2]]
    assert np.median(looks) == pytest.approx(1000 * 2 * 4 / RATE, rel=0.5)


def test_what_comes_before_the_networks_are_ready_is_a_gap(video, tmp_path):
    """Processes take seconds to begin."""
    with (
        HttpCamera(video, RATE) as camera,
        streaming(camera.url, tmp_path, executor="process"),
    ):
        eventually(lambda: seen(tmp_path) > 5)
    start, gap, first = events(tmp_path)[:3]
    assert [start["event"], gap["event"], first["event"]] == ["start", "gap", "actionness"]
    assert gap["from"] < 1.0
    assert gap["to"] == first["seconds"]
    assert gap["dropped"] == first["snippet"] > 1
    # on a busy machine it may have to be called again before
    assert gap["reason"] == ("slow" if camera.connections == 1 else "lost")


def test_networks_do_their_first_work_before_a_camera_is_called(video, tmp_path):
    connections = []

    class Noted(Brightness):
        def forward(self, message):
            connections.append(camera.connections)
            return super().forward(message)

    made = replace(player(), chain=nn.Sequential(Noted()))
    with HttpCamera(video, RATE) as camera:
        run_stream(camera.url, tmp_path, made=made, duration=1.0)
    assert connections[0] == 0
    assert connections[-1] == 1


def test_a_camera_that_is_made_to_wait_loses_nothing(video, tmp_path):
    with HttpCamera(video, RATE) as camera, streaming(camera.url, tmp_path, policy="block"):
        eventually(lambda: seen(tmp_path) > 5)
    assert events(tmp_path, "actionness")[0]["snippet"] == 0
    assert events(tmp_path)[-1]["dropped"] == 0


class SlowToStart(Brightness):
    """A network whose process takes its time, as on a busy machine."""

    def __setstate__(self, state):
        if multiprocessing.parent_process():
            time.sleep(2)
        super().__setstate__(state)


def test_a_stream_that_ends_before_the_networks_are_ready_says_so(video, tmp_path):
    made = replace(player(), chain=nn.Sequential(SlowToStart()))
    with HttpCamera(video, RATE) as camera:
        ended = run_stream(camera.url, tmp_path, made=made, executor="process", duration=0.5)
    assert ended.reason == "limit"
    start, gap, end = events(tmp_path)
    assert start["event"] == "start"
    assert gap["dropped"] == end["dropped"] >= 1
    assert end["snippets"] == 0


def test_a_stalled_camera_is_opened_again(video, tmp_path):
    with (
        HttpCamera(video, RATE) as camera,
        streaming(camera.url, tmp_path, read_seconds=1.5),
    ):
        eventually(lambda: seen(tmp_path) > 5)
        camera.stalled.set()
        before = seen(tmp_path)
        # what is known of the time before comes at once, not when the camera is back
        eventually(lambda: seen(tmp_path) >= before + 1 and camera.connections >= 2)
        camera.stalled.clear()
        after = seen(tmp_path)
        eventually(lambda: seen(tmp_path) > after + 5)
    gap = max(lost(tmp_path), key=length)
    assert 1.5 < gap["to"] - gap["from"] < 10
    times = [event["seconds"] for event in events(tmp_path, "actionness")]
    assert not [at for at in times if gap["from"] + 1e-6 < at < gap["to"] - 1e-6]


def test_a_camera_that_hangs_up_is_called_again(video, tmp_path):
    with HttpCamera(video, RATE) as camera, streaming(camera.url, tmp_path):
        for _ in range(2):
            before = seen(tmp_path)
            eventually(lambda before=before: seen(tmp_path) > before + 5)
            camera.hang_up()
        before = seen(tmp_path)
        eventually(lambda: seen(tmp_path) > before + 5)
        assert camera.connections >= 3
    assert len([gap for gap in lost(tmp_path) if length(gap) > 0.4]) >= 2


def test_a_camera_that_goes_away_may_come_back(video, tmp_path):
    with HttpCamera(video, RATE) as camera, streaming(camera.url, tmp_path):
        camera.go_away()
        time.sleep(1.0)
        before = seen(tmp_path)
        camera.come_back()
        eventually(lambda: seen(tmp_path) > before + 5)
    assert max(map(length, lost(tmp_path))) > 0.9


def test_a_camera_that_stays_away_ends_the_stream(video, tmp_path):
    with (
        HttpCamera(video, RATE, password="geheim") as camera,
        streaming(camera.url, tmp_path, reconnect_seconds=1.0) as ended,
    ):
        camera.go_away()
        eventually(lambda: bool(ended))
    (error,) = ended
    assert "tried again for" in str(error)
    assert "geheim" not in str(error)
    assert events(tmp_path)[-1]["reason"] == "broken"
    cues((tmp_path / "live.vtt").read_text())


def test_a_slow_consumer_drops_the_oldest_and_counts(video, tmp_path):
    with (
        HttpCamera(video, RATE) as camera,
        streaming(camera.url, tmp_path, seconds=0.3, queue=3, executor="thread"),
    ):
        eventually(lambda: len(events(tmp_path, "gap")) >= 3)
    assert events(tmp_path)[-1]["dropped"] > 0


def test_a_camera_whose_picture_changes_its_size(tmp_path, rng):
    sizes = [(64, 96)] * 20 + [(48, 48)] * 20
    pictures = [rng.integers(0, 255, (*size, 3), np.uint8) for size in sizes]
    with HttpCamera(jpegs(pictures), RATE) as camera, streaming(camera.url, tmp_path):
        eventually(lambda: seen(tmp_path) > 25)
        assert camera.connections == 1


@pytest.mark.parametrize("between", [300 * b"x", b"\r\n\r\n", random_bytes(3000)])
def test_what_is_between_parts_is_passed_over(video, tmp_path, between):
    with HttpCamera(video, RATE) as camera:
        camera.between = between
        with streaming(camera.url, tmp_path):
            eventually(lambda: seen(tmp_path) > 25)
        assert camera.connections == 1
        frames = int((tmp_path / "status.tsv").read_text().splitlines()[-1].split("\t")[1])
        assert frames <= camera.sent


@pytest.mark.parametrize("more", [-1000, 7, 10**6, 2 * 10**9, 1 << 32])
def test_a_wrong_length_of_a_part_does_no_harm(video, tmp_path, more):
    with HttpCamera(video, RATE) as camera:
        camera.more = more
        with streaming(camera.url, tmp_path):
            eventually(lambda: seen(tmp_path) > 10)
        assert camera.connections == 1


def test_no_password_is_written_anywhere(video, tmp_path, capfd):
    with HttpCamera(video, RATE, password="geheim") as camera, streaming(camera.url, tmp_path):
        camera.hang_up()
        before = seen(tmp_path)
        eventually(lambda: seen(tmp_path) > before + 5)
    for path in tmp_path.iterdir():
        assert b"geheim" not in path.read_bytes(), path
    assert "geheim" not in "".join(capfd.readouterr())
    assert events(tmp_path)[0]["source"].startswith("http://***@127.0.0.1:")


def test_of_a_live_stream_only_what_was_seen_can_be_made_again(video, tmp_path):
    with HttpCamera(video, RATE) as camera:
        assert run_stream(camera.url, tmp_path, duration=4.0).reason == "limit"
        tables = tmp_path / "proposals.json"
        before = tables.read_bytes()
        tables.write_text("")
        assert run_stream(camera.url, tmp_path, duration=4.0, resume=True).proposals is None
        assert tables.read_bytes() == before
        (tmp_path / "events.jsonl").write_text("")
        with pytest.raises(InputError, match=r"events\.jsonl: changed since .*without --resume"):
            run_stream(camera.url, tmp_path, duration=4.0, resume=True)


def test_a_live_stream_goes_on_after_a_gap(video, tmp_path):
    with HttpCamera(video, RATE) as camera:
        with streaming(camera.url, tmp_path):
            eventually(lambda: seen(tmp_path) > 5)
        count = seen(tmp_path)
        time.sleep(0.5)
        with streaming(camera.url, tmp_path, resume=True):
            eventually(lambda: seen(tmp_path) > count + 5)
    (gap,) = [gap for gap in events(tmp_path, "gap") if gap["reason"] == "restart"]
    assert gap["to"] - gap["from"] > 0.5
    assert len(events(tmp_path, "start")) == 1
    assert len(events(tmp_path, "end")) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("refused", "Connection refused"),
        ("silent", "no answer within 0.5 s"),
        ("wrong password", "401"),
        ("no video", "no video comes"),
        ("no host", "no such host"),
    ],
)
def test_a_dead_address_is_one_line_and_leaves_nothing(video, tmp_path, words, message, capfd):
    with HttpCamera(video, RATE, password="geheim") as camera:
        url = camera.url
        if words == "wrong password":
            url = url.replace("geheim", "secret")
        elif words == "no host":
            url = "http://me:secret@no-such-host.invalid/x"
        elif words == "silent":
            camera.stalled.set()
        elif words == "no video":
            camera.come_back_with(b"<html>no video</html>")
        if words == "refused":
            camera.go_away()
        with pytest.raises(InputError) as error:
            run_stream(url, tmp_path / "out", open_seconds=0.5, read_seconds=0.5)
    text = str(error.value) + "".join(capfd.readouterr())
    assert message in text
    assert "geheim" not in text
    assert "secret" not in text
    assert len(str(error.value).splitlines()) == 1
    assert "***@" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_camera_of_this_machine_that_is_not_there_is_one_line(tmp_path, capfd):
    with pytest.raises(InputError, match="camera:97: there is no such camera"):
        run_stream("camera:97", tmp_path / "out")
    assert capfd.readouterr().err == ""
