"""Cameras that speak RTSP: a picture has the time at which it was taken, whatever the line does.

The pictures are numbered by the clock of the camera's process, 25 a second: that is the truth.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.live.connection import connect
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.live.source import LiveFrames
from live.fakes import CUTTING, events, run_stream, see_more, streaming
from live.rtsp import RtspCamera, line_to, needs_rtsp
from video.numbered import read_number
from worlds.waiting import eventually

RATE, NUMBERS = 25, 1 << 12
EXACT = 0.3  # seconds: a picture is taken, and its number and its stamp are made
LONG = 1.0  # of a hole: more than a snippet, however busy the machine is
TIED = 10.0  # between the first frames of two connections: how long opening took, on a busy machine


@pytest.fixture(scope="module", autouse=True)
def _server():
    needs_rtsp()


class Watched:
    """What was seen: the number of each picture, its time, and which stretch it is of."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.seconds: list[float] = []
        self.stretch: list[int] = []
        self.failure: InputError | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def wait(self, more: int) -> None:
        wanted = len(self) + more
        eventually(lambda: len(self) >= wanted or self.failure is not None)
        assert self.failure is None

    def errors(self) -> np.ndarray:
        """Return how far each time is from the picture's, the first one right."""
        taken = np.unwrap(self.numbers, period=NUMBERS) / RATE
        return np.array(self.seconds) - self.seconds[0] - (taken - taken[0])

    def holes(self) -> list[tuple[float, float]]:
        """Return where a stretch ends and the next begins."""
        pairs = zip(self.stretch, self.stretch[1:], strict=False)
        ends = [place for place, (a, b) in enumerate(pairs) if a != b]
        return [(self.seconds[place], self.seconds[place + 1]) for place in ends]


@contextmanager
def watching(url: str, **settings: float) -> Iterator[Watched]:
    source = parse_source(url)
    chosen = StreamSettings(**{"open_seconds": 60.0, "read_seconds": 60.0} | settings)
    frames = LiveFrames(source, connect(source, chosen), chosen, CUTTING.snippet_frames)
    found, stopped = Watched(), threading.Event()

    def watch() -> None:
        try:
            for number, stretch in enumerate(frames.stretches(stopped)):
                for frame in stretch:
                    found.stretch.append(number)
                    found.seconds.append(frame.seconds)
                    found.numbers.append(read_number(frame.picture()))
                    if stopped.is_set():
                        return
        except InputError as error:
            found.failure = error

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        found.wait(20)
        yield found
    finally:
        stopped.set()
        thread.join(60)
    steps = np.diff(found.seconds)
    assert (steps > 0).all()
    inside = steps[np.diff(found.stretch) == 0]
    assert inside.max() < LONG, "a hole that nobody says"


@pytest.mark.parametrize(
    "words",
    [
        "--codec h264",
        "--codec h265",
        "--codec jpeg",
        "--sound",
        "--transport UDP",
        "--transport TCP",
    ],
)
def test_times_are_those_of_the_camera(words):
    with RtspCamera(*words.split()) as camera, watching(camera.url()) as found:
        found.wait(20)
    assert np.abs(found.errors()).max() < EXACT


def test_what_is_held_back_keeps_its_times():
    with (
        RtspCamera() as camera,
        line_to(camera.port) as line,
        watching(camera.url(line.port)) as found,
    ):
        line.hold()
        threading.Event().wait(2.0)
        line.deliver()
        found.wait(3 * RATE)
        assert line.connections == 1
    assert np.abs(found.errors()).max() < EXACT
    assert all(end - begin < LONG for begin, end in found.holes())


def test_what_is_held_back_for_too_long_is_a_gap_as_long_as_it_was():
    with (
        RtspCamera() as camera,
        line_to(camera.port) as line,
        watching(camera.url(line.port), read_seconds=2.0) as found,
    ):
        line.hold()
        threading.Event().wait(3.0)  # longer than it waits, and shorter than twice that
        line.deliver()
        found.wait(3 * RATE)
        assert line.connections >= 2
    assert np.abs(found.errors()).max() < TIED
    assert found.holes()
    assert max(end - begin for begin, end in found.holes()) > 2.0
    first = np.array(found.stretch) == 0
    assert np.abs(found.errors()[first]).max() < EXACT


def test_a_pause_is_a_gap_as_long_as_it_was():
    with RtspCamera() as camera, watching(camera.url()) as found:
        camera.say("pause")
        threading.Event().wait(1.5)
        camera.say("go on")
        found.wait(RATE)
    assert np.abs(found.errors()).max() < EXACT
    assert max(end - begin for begin, end in found.holes()) > 1.0


def test_sound_does_not_hide_that_there_is_no_picture():
    with (
        RtspCamera("--sound") as camera,
        line_to(camera.port) as line,
        watching(camera.url(line.port), read_seconds=1.0, open_seconds=5.0) as found,
    ):
        camera.say("pause")
        eventually(lambda: line.connections >= 2)
        camera.say("go on")
        found.wait(RATE)
    assert found.holes()


def test_the_loudness_of_a_camera_is_that_of_its_sine(tmp_path):
    with RtspCamera("--sound") as camera, streaming(camera.url(), tmp_path, sound=True):
        see_more(tmp_path, 20)
    found = [event["loudness"] for event in events(tmp_path, "actionness")]
    heard = [level for level in found if level is not None]
    assert len(heard) > 0.7 * len(found)
    np.testing.assert_allclose(heard, 20 * np.log10(0.5 / np.sqrt(2)), atol=1.0)


def test_a_camera_that_is_killed_comes_back():
    with RtspCamera() as camera, watching(camera.url(), open_seconds=5.0) as found:
        camera.kill()
        camera.start()
        found.wait(2 * RATE)
    assert found.holes()


@pytest.mark.parametrize("user", ["viewer:secret@", ""])
def test_a_wrong_password_is_one_line(tmp_path, user, capfd):
    with RtspCamera(password="geheim") as camera:
        url = camera.url().replace("viewer:geheim@", user)
        with pytest.raises(InputError) as error:
            run_stream(url, tmp_path / "out")
    (line,) = str(error.value).splitlines()
    assert "401" in line
    assert "secret" not in line + "".join(capfd.readouterr())
    assert not (tmp_path / "out").exists()
