"""The loudness of a stream: of a file, a file on a web server, and a live source."""

import functools
import http.server
import math
import socket
import threading
import time

import av
import numpy as np
import pytest

from actionspan.live.sink import ACTIONNESS
from actionspan.storage.writing import read_tsv
from live.fakes import assert_same, events, run_stream, run_until, streaming
from worlds.sounds import write_tone
from worlds.waiting import eventually

LEVELS = (0.5, 0.05, 0.25, 0.02)  # amplitudes, a second each


def decibels(amplitude):
    return 20 * math.log10(amplitude / math.sqrt(2))


@pytest.fixture(scope="module")
def tone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tone")
    return write_tone(folder / "tone.mp4", LEVELS, seconds=4.0)


def rows(out):
    return read_tsv(out / ACTIONNESS)


def check_levels(found, near=0.5):
    """Each (seconds, level), away from steps, is the level of the tone."""
    inside = [(at, level) for at, level in found if 0.3 < at % 1.0 < 0.9 and at < 4.0]
    assert len(inside) > 8
    for at, level in inside:
        assert level == pytest.approx(decibels(LEVELS[int(at)]), abs=near), at


def check_goes_with_the_picture(out):
    """The picture is as bright as the tone is loud, whatever is lost before the first frame."""
    found = [event for event in events(out, "actionness") if event["loudness"] is not None]
    bright, loud = np.array([(event["action"], event["loudness"]) for event in found]).T
    expected = 20 * np.log10(np.maximum(bright * 255 / 200, 1e-3) / math.sqrt(2))
    assert len(found) > 12
    assert np.mean(np.abs(expected - loud) < 3.0) > 0.75  # not at steps; dark has few levels
    assert np.ptp(loud) > 18


def test_a_file_has_the_levels_of_its_sound(tone, tmp_path):
    run_stream(tone, tmp_path / "on", sound=True)
    run_stream(tone, tmp_path / "off")
    found = rows(tmp_path / "on")
    check_levels([(float(row["seconds"]), float(row["loudness"])) for row in found])
    told = [event["loudness"] for event in events(tmp_path / "on", "actionness")]
    assert told == [float(row["loudness"]) for row in found]
    assert [{k: v for k, v in row.items() if k != "loudness"} for row in found] == rows(
        tmp_path / "off"
    )
    assert not any("loudness" in event for event in events(tmp_path / "off"))


def test_a_file_without_sound_has_empty_cells(video, tmp_path):
    run_stream(video, tmp_path, sound=True)
    assert {row["loudness"] for row in rows(tmp_path)} == {""}
    assert {event["loudness"] for event in events(tmp_path, "actionness")} == {None}


def test_a_resumed_stream_has_the_same_levels(tone, tmp_path):
    run_stream(tone, tmp_path / "whole", sound=True)
    for number, limit in enumerate((0.8, 2.4)):
        run_until(tone, tmp_path / "out", limit, seconds=0.01, resume=number > 0, sound=True)
    assert run_stream(tone, tmp_path / "out", resume=True, sound=True).reason == "finished"
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_a_file_on_a_web_server_has_them_too(tone, tmp_path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=tone.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run_stream(f"http://127.0.0.1:{server.server_port}/tone.mp4", tmp_path, sound=True)
        server.shutdown()
    check_goes_with_the_picture(tmp_path)


def test_a_live_source_has_the_levels_of_what_it_shows(tmp_path):
    path = write_tone(tmp_path / "tone.mp4", LEVELS * 2, seconds=8.0)
    stream = tmp_path / "tone.ts"
    with av.open(str(path)) as source, av.open(str(stream), "w", format="mpegts") as file:
        copies = {one: file.add_stream_from_template(one) for one in source.streams}
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = copies[packet.stream]
                file.mux(packet)
    content = stream.read_bytes()
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        viewer, _ = server.accept()
        with viewer:
            for start in range(0, len(content), 4096):  # at about twice the real pace
                viewer.sendall(content[start : start + 4096])
                time.sleep(4.0 * 4096 / len(content))

    threading.Thread(target=serve, daemon=True).start()
    url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    out = tmp_path / "out"
    with streaming(url, out, sound=True, policy="block", reconnect_seconds=0) as ended:
        eventually(lambda: ended)
    server.close()
    check_goes_with_the_picture(out)
