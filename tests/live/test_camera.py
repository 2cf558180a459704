"""Live sources: a camera that stalls, hangs up, goes away and comes back, and one that is dead."""

import time

import numpy as np
import pytest
from torch import nn

from actionspan.errors import InputError
from live.camera import HttpCamera, jpegs
from live.fakes import Brightness, cues, events, player, run_stream, see_more, seen, streaming
from live.rtsp import line_to
from tiers import first_tier
from worlds.waiting import eventually

RATE = 50.0


def lost(out):
    """Return the lengths of the gaps in which nothing came."""
    gaps = events(out, "gap")
    return [gap["to"] - gap["from"] for gap in gaps if gap["reason"] == "lost"]


def test_a_camera_is_called_when_networks_are_ready_and_seen_in_wall_clock_time(film, tmp_path):
    connections = []

    class Noted(Brightness):
        def forward(self, message):
            connections.append(camera.connections)
            return super().forward(message)

    began, made = time.time(), player(chain=nn.Sequential(Noted()))
    with HttpCamera(film, RATE) as camera, streaming(camera.url, tmp_path, made=made):
        see_more(tmp_path, 14)
    assert connections[0] == 0 < connections[-1]
    (first, *_, end), known = events(tmp_path), events(tmp_path, "actionness")
    assert (first["policy"], end["reason"]) == ("newest", "interrupted")
    assert first["began"].startswith("20")
    assert 0.7 < end["seconds"] < time.time() - began
    steps = np.diff([event["seconds"] for event in known])
    assert np.median(steps) == pytest.approx(4 / RATE, rel=0.2)
    looks = [event["latency_ms"]["look_ahead"] for event in known[:-2]]
    assert np.median(looks) == pytest.approx(1000 * 2 * 4 / RATE, rel=0.5)


class SlowToStart(Brightness):
    """A network that takes its time for the second snippet, the first of a camera's."""

    count = 0

    def forward(self, message):
        self.count += 1
        time.sleep(1.0 if self.count == 2 else 0.0)
        return super().forward(message)


@pytest.mark.parametrize("executor", first_tier(["thread", "process"], "thread"))
def test_what_comes_before_the_networks_are_ready_is_a_gap(film, tmp_path, executor):
    words = {"made": player(chain=nn.Sequential(SlowToStart())), "executor": executor}
    with HttpCamera(film, RATE) as camera, streaming(camera.url, tmp_path, **words):
        see_more(tmp_path)
    start, gap, first = events(tmp_path)[:3]
    assert [start["event"], gap["event"], first["event"]] == ["start", "gap", "actionness"]
    assert gap["from"] < 1.0
    assert (gap["to"], gap["dropped"]) == (first["seconds"], first["snippet"])
    assert gap["dropped"] > 1
    # on a busy machine it may have to be called again before
    assert gap["reason"] == ("slow" if camera.connections == 1 else "lost")


def test_a_stream_that_ends_before_the_networks_are_ready_says_so(film, tmp_path):
    made = player(chain=nn.Sequential(SlowToStart()))
    words = {"made": made, "executor": "thread", "duration": 0.5}
    with HttpCamera(film, RATE) as camera:
        assert run_stream(camera.url, tmp_path, **words).reason == "limit"
    start, gap, end = events(tmp_path)
    assert (start["event"], end["snippets"]) == ("start", 0)
    assert gap["dropped"] == end["dropped"] >= 1


def test_a_camera_that_is_made_to_wait_loses_nothing(film, tmp_path):
    with HttpCamera(film, RATE) as camera, streaming(camera.url, tmp_path, policy="block"):
        see_more(tmp_path)
    assert events(tmp_path, "actionness")[0]["snippet"] == 0
    assert events(tmp_path)[-1]["dropped"] == 0


def test_a_camera_that_is_lost_is_called_again_and_its_stream_goes_on(film, tmp_path, capfd):
    with HttpCamera(film, RATE, password="geheim") as camera:
        with streaming(camera.url, tmp_path, read_seconds=1.0):
            see_more(tmp_path)
            camera.hang_up()
            see_more(tmp_path)
            assert max(lost(tmp_path)) > 0.4
            before = len(lost(tmp_path))
            camera.go_away()
            time.sleep(0.6)
            camera.come_back()
            see_more(tmp_path)
            assert max(lost(tmp_path)[before:]) > 0.5
            before, calls, known = len(lost(tmp_path)), camera.connections, seen(tmp_path)
            camera.stalled.set()
            # what is known of the time before comes at once, not when the camera is back
            eventually(lambda: seen(tmp_path) > known and camera.connections > calls)
            camera.stalled.clear()
            see_more(tmp_path)
            assert 1.0 < max(lost(tmp_path)[before:]) < 10
        time.sleep(0.3)
        with streaming(camera.url, tmp_path, resume=True):
            see_more(tmp_path)
    (gap,) = [gap for gap in events(tmp_path, "gap") if gap["reason"] == "restart"]
    assert gap["to"] - gap["from"] > 0.3
    assert len(events(tmp_path, "start")) == len(events(tmp_path, "end")) == 1
    for path in tmp_path.iterdir():
        assert b"geheim" not in path.read_bytes(), path
    assert "geheim" not in "".join(capfd.readouterr())
    assert events(tmp_path)[0]["source"].startswith("http://***@127.0.0.1:")


@pytest.mark.full
def test_pictures_without_stamps_that_are_held_back_leave_a_gap(film, tmp_path):
    with HttpCamera(film, RATE) as camera, line_to(camera.port) as line:
        url = camera.url.replace(str(camera.port), str(line.port))
        with streaming(url, tmp_path, read_seconds=60.0):
            see_more(tmp_path, 10)
            line.hold()
            time.sleep(2.0)
            line.deliver()
            see_more(tmp_path, 10)
        assert line.connections == 1
    assert max(lost(tmp_path)) > 1.5


def test_a_camera_that_stays_away_ends_the_stream(film, tmp_path):
    with (
        HttpCamera(film, RATE, password="geheim") as camera,
        streaming(camera.url, tmp_path, reconnect_seconds=1.0) as ended,
    ):
        camera.go_away()
        eventually(lambda: bool(ended))
    (error,) = map(str, ended)
    assert "tried again for" in error
    assert "geheim" not in error
    assert events(tmp_path)[-1]["reason"] == "broken"
    cues(tmp_path)


def test_what_cheap_cameras_send_is_seen_on_one_connection(tmp_path, rng):
    """Pictures of another size, anything between two parts, and wrong lengths of parts."""
    sizes = [(64, 96)] * 20 + [(48, 48)] * 20
    pictures = [rng.integers(0, 255, (*size, 3), np.uint8) for size in sizes]
    with HttpCamera(jpegs(pictures), 2 * RATE) as camera:
        with streaming(camera.url, tmp_path):
            for between in (b"", 300 * b"x", b"\r\n\r\n", rng.bytes(3000)):
                camera.between = between
                see_more(tmp_path)
            camera.between = b""
            for more in (-1000, 7, 10**6, 2 * 10**9, 1 << 32):
                camera.more = more
                see_more(tmp_path, 3)
        assert camera.connections == 1
        frames = int((tmp_path / "status.tsv").read_text().splitlines()[-1].split("\t")[1])
        assert frames <= camera.sent


def test_of_a_live_stream_only_what_was_seen_can_be_made_again(film, tmp_path):
    with HttpCamera(film, RATE) as camera:
        assert run_stream(camera.url, tmp_path, duration=1.0).reason == "limit"
        tables = tmp_path / "proposals.json"
        before = tables.read_bytes()
        tables.write_text("")
        assert run_stream(camera.url, tmp_path, duration=1.0, resume=True).proposals is None
        assert tables.read_bytes() == before
        (tmp_path / "events.jsonl").write_text("")
        with pytest.raises(InputError, match=r"events\.jsonl: changed since .*without --resume"):
            run_stream(camera.url, tmp_path, duration=1.0, resume=True)


DEAD = {
    "Connection refused": HttpCamera.go_away,
    "no answer within 0.5 s": lambda camera: camera.stalled.set(),
    "401": lambda camera: setattr(camera, "password", "another"),
    "no video comes": lambda camera: setattr(camera, "instead", b"<html>no video</html>"),
    "no such host": None,
}


@pytest.mark.parametrize("message", DEAD)
def test_a_dead_address_is_one_line_and_leaves_nothing(film, tmp_path, message, capfd):
    with HttpCamera(film, RATE, password="geheim") as camera:
        url = camera.url
        if (fault := DEAD[message]) is not None:
            fault(camera)
        else:
            url = "http://me:geheim@no-such-host.invalid/x"
        seconds = 0.5 if "no answer" in message else 60.0
        with pytest.raises(InputError) as error:
            run_stream(url, tmp_path / "out", open_seconds=seconds, read_seconds=seconds)
    (line,) = str(error.value).splitlines()
    text = line + "".join(capfd.readouterr())
    assert message in text
    assert "geheim" not in text
    assert "***@" in line
    assert not (tmp_path / "out").exists()


def test_a_camera_of_this_machine_that_is_not_there_is_one_line(tmp_path, capfd):
    with pytest.raises(InputError, match="camera:97: the camera is missing"):
        run_stream("camera:97", tmp_path / "out")
    assert capfd.readouterr().err == ""
