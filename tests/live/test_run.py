"""Whole streams of files: everything is seen, in any executor, after any interruption."""

import io
import json
import threading
import time
from collections import deque
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from actionspan.errors import InputError
from actionspan.live import frames, play
from actionspan.live.outputs import ACTIONNESS, EVENTS, PROPOSALS
from actionspan.live.progress import STATE_FILE, Progress, read_state, write_state
from actionspan.live.reading import Arrived
from actionspan.live.run import Stream
from actionspan.storage.checksums import fingerprint
from actionspan.video.decode import read_frames
from actionspan.video.snippets import Snippet, snippets
from live.fakes import CUTTING, EVERY, Brightness, FakeProposer, Passing, player, run_stream
from live.vtt import cues
from tiers import first_tier
from video.numbered import encode, mostly_still

FILES = (ACTIONNESS, *PROPOSALS, "live.vtt")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 250)


@pytest.fixture(scope="module")
def whole(video, tmp_path_factory):
    """The results of a stream that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_stream(video, folder).reason == "finished"
    return folder


def events(folder, kind=None):
    found = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]
    return [event for event in found if kind in (None, event["event"])]


def without_latencies(folder):
    return [{k: v for k, v in event.items() if k != "latency_ms"} for event in events(folder)]


def assert_same(folder, whole):
    for name in FILES:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert without_latencies(folder) == without_latencies(whole)


def test_a_file_is_seen_whole(video, whole):
    expected = [snippet.seconds for snippet in snippets(video, CUTTING)]
    seen = events(whole, "actionness")
    assert [event["seconds"] for event in seen] == pytest.approx(expected, abs=1e-6)
    assert [event["snippet"] for event in seen] == list(range(len(expected)))
    assert len(events(whole, "proposal")) == len(expected) // EVERY + 1
    assert events(whole)[0]["event"] == "start"
    end = events(whole)[-1]
    assert end["event"] == "end"
    assert end["reason"] == "finished"
    assert end["seconds"] == 10.0
    assert end["snippets"] == len(expected)
    assert end["dropped"] == 0
    assert not events(whole, "gap")
    for event in seen:
        parts = event["latency_ms"]
        assert parts["total"] == pytest.approx(
            parts["look_ahead"] + parts["compute"] + parts["queueing"], abs=0.01
        )


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_the_executor_changes_no_byte(video, whole, tmp_path, executor):
    run_stream(video, tmp_path, executor=executor)
    assert_same(tmp_path, whole)


def test_an_interrupted_stream_has_valid_files_and_goes_on_to_the_same_bytes(
    video, whole, tmp_path
):
    reason, rounds = "interrupted", 0
    while reason == "interrupted":
        stopping = threading.Event()
        threading.Timer(0.1 * (1 + rounds), stopping.set).start()
        reason = run_stream(
            video, tmp_path, seconds=0.02, resume=rounds > 0, stopping=stopping, executor="thread"
        ).reason
        assert events(tmp_path)[-1]["reason"] == reason
        cues((tmp_path / "live.vtt").read_text())
        results = json.loads((tmp_path / PROPOSALS[0]).read_text())["results"]["v"]
        assert len(results) == len(events(tmp_path, "proposal"))
        rounds += 1
    assert rounds > 2
    assert_same(tmp_path, whole)


class Counting(Brightness):
    """Counts what it is given."""

    count = 0

    def forward(self, message):
        self.count += 1
        return super().forward(message)


def test_a_still_snippet_is_not_computed_again(tmp_path):
    path = mostly_still(tmp_path / "v.mp4")
    flags = [snippet.still for snippet in snippets(path, replace(CUTTING, mover_side=0))]
    assert 0.2 < sum(flags) / len(flags) < 0.9
    counting = Counting()
    made = replace(player(), chain=nn.Sequential(counting, Passing()))
    run_stream(path, tmp_path / "out", made=made)
    assert counting.count == flags.count(False)
    seen = [event["action"] for event in events(tmp_path / "out", "actionness")]
    assert len(seen) == len(flags)
    assert all(
        own == before
        for before, own, still in zip(seen, seen[1:], flags[1:], strict=False)
        if still
    )


def test_a_still_snippet_is_computed_where_its_like_was_dropped():
    """As a camera's are that is too fast: then the last that was computed shows something else."""
    first, dropped, last = (np.full((8, 8, 3), value, np.uint8) for value in (0, 100, 200))
    given = [(first, False), (first, True), (dropped, True), (dropped, True), (last, False)]
    submitted = []
    stream = SimpleNamespace(_missed=None, _shown=None, _in_flight=deque(), _submitted=0)
    for number, (rgb, still) in enumerate(given):
        snippet = Snippet(rgb, np.zeros((2, 8, 8), np.uint8), number / 5, still=still)
        arrived = Arrived(
            number=number, snippet=snippet, after=None, centre_arrived=0.0, arrived=0.0
        )
        pipeline = SimpleNamespace(submit=lambda _, number=number: submitted.append(number))
        Stream._submit(stream, pipeline, arrived)
    assert submitted == [0, 2, 4]
    assert [again for _, again in stream._in_flight] == [False, True, False, True, False]
    assert stream._submitted == 3


class Stopper(io.StringIO):
    """Stops a stream at its first event after a time."""

    def __init__(self, stopping, seconds):
        super().__init__()
        self.stopping, self.seconds = stopping, seconds

    def write(self, line):
        if line.startswith("{") and json.loads(line).get("seconds", 0) > self.seconds:
            self.stopping.set()
        return super().write(line)


def test_a_stream_that_stops_in_still_footage_goes_on_to_the_same_bytes(tmp_path):
    path = mostly_still(tmp_path / "v.mp4")
    run_stream(path, tmp_path / "whole")
    for number, limit in enumerate((1.6, 2.4, 3.2)):
        stopping = threading.Event()
        given = {"stopping": stopping, "echo": Stopper(stopping, limit), "resume": number > 0}
        assert run_stream(path, tmp_path / "out", **given).reason == "interrupted"
    assert run_stream(path, tmp_path / "out", resume=True).reason == "finished"
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_going_on_after_the_end_does_nothing(video, tmp_path):
    run_stream(video, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run_stream(video, tmp_path, resume=True).reason == "finished"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_state_that_lacks_what_the_model_keeps_is_one_line(video, tmp_path):
    """As one that was sealed by another version, or by hand."""
    run_stream(video, tmp_path)
    state = vars(read_state(tmp_path, torch.load(tmp_path / STATE_FILE)["made_of"]))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for kept in ({}, {"waiting": 3, "count": 0}, {"waiting": [], "counts": 0}):
        write_state(tmp_path, Progress(**state | {"ended": False, "proposer": kept}))
        with pytest.raises(InputError, match=f"{STATE_FILE}: damaged; delete it and run again"):
            run_stream(video, tmp_path, resume=True)
        (tmp_path / STATE_FILE).write_bytes(before[STATE_FILE])
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def damage(path, how):
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
        return
    middle = len(content) // 2
    changed = bytes([content[middle] ^ 1])
    path.write_bytes(
        {"empty": b"", "cut": content[:middle], "longer": content + b"x"}.get(
            how, content[:middle] + changed + content[middle + 1 :]
        )
    )


@pytest.mark.parametrize(
    "how", first_tier(["empty", "cut", "changed", "longer", "gone"], "changed", "gone")
)
@pytest.mark.parametrize("name", [*FILES, EVENTS])
def test_a_finished_file_that_was_damaged_is_made_again(video, whole, tmp_path, name, how):
    run_stream(video, tmp_path)
    damage(tmp_path / name, how)
    assert run_stream(video, tmp_path, resume=True).reason == "finished"
    assert_same(tmp_path, whole)


def test_what_was_learned_is_made_again(video, tmp_path, monkeypatch):
    def learned(_, out):
        (out / "model.safetensors").write_bytes(b"learned")
        return {"model.safetensors": fingerprint(out / "model.safetensors")}

    monkeypatch.setattr(play, "_keep_learned", learned)
    run_stream(video, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    run_stream(video, tmp_path, resume=True)
    assert (tmp_path / "model.safetensors").read_bytes() == b"learned"


@pytest.mark.parametrize("name", [ACTIONNESS, EVENTS])
def test_a_stream_whose_files_were_damaged_begins_again(video, whole, tmp_path, name, capfd):
    stopping = threading.Event()
    threading.Timer(0.5, stopping.set).start()
    run_stream(video, tmp_path, seconds=0.02, stopping=stopping, executor="thread")
    damage(tmp_path / name, "changed")
    assert run_stream(video, tmp_path, resume=True).reason == "finished"
    assert (
        f"{name}: changed since it was written; the stream is made again" in capfd.readouterr().err
    )
    assert_same(tmp_path, whole)


def test_going_on_with_nothing_begins(video, whole, tmp_path):
    run_stream(video, tmp_path, resume=True)
    assert_same(tmp_path, whole)


def test_another_file_does_not_go_on(video, tmp_path):
    stopping = threading.Event()
    threading.Timer(0.2, stopping.set).start()
    assert run_stream(video, tmp_path, seconds=0.02, stopping=stopping).reason == "interrupted"
    other = encode(tmp_path / "other.mp4", 100)
    with pytest.raises(InputError, match="of another stream"):
        run_stream(other, tmp_path, resume=True)
    assert (tmp_path / STATE_FILE).is_file()


@pytest.mark.full
def test_too_slow_for_a_camera_drops_and_says_so(video, tmp_path):
    """62 snippets in 10 seconds, 0.4 s of work each."""
    ended = run_stream(
        video, tmp_path, seconds=0.4, policy="newest", rate="real", queue=3, executor="thread"
    )
    assert ended.reason == "finished"
    seen, gaps, end = events(tmp_path, "actionness"), events(tmp_path, "gap"), events(tmp_path)[-1]
    assert gaps
    assert end["dropped"] == sum(gap["dropped"] for gap in gaps)
    assert end["dropped"] + end["snippets"] == 62
    assert len(seen) == end["snippets"]
    times = [event["seconds"] for event in seen]
    assert times == sorted(set(times))
    for gap in gaps:  # nothing is said of what was dropped
        assert not [at for at in times if gap["from"] + 1e-6 < at < gap["to"] - 1e-6]
        assert gap["reason"] == "slow"
    # a bounded wait: what is in the queue and in the pipeline
    assert max(event["latency_ms"]["queueing"] for event in seen) < 1000 * 0.4 * (3 + 2 + 2)


def test_newest_at_full_speed_is_refused(video, tmp_path):
    with pytest.raises(InputError, match="--rate real"):
        run_stream(video, tmp_path, policy="newest")


def test_a_gap_resets_the_proposer(video, tmp_path):
    made = player(0.4)
    run_stream(
        video, tmp_path, made=made, policy="newest", rate="real", queue=2, executor="thread",
        duration=3.0,
    )  # fmt: skip
    assert isinstance(made.proposer, FakeProposer)
    assert made.proposer.gaps == len(events(tmp_path, "gap")) > 0


def test_the_duration_is_a_limit(video, tmp_path):
    ended = run_stream(video, tmp_path, duration=4.0)
    assert ended[:2] == ("limit", 4.0)
    assert events(tmp_path)[-1]["seconds"] == 4.0
    assert run_stream(video, tmp_path, duration=40.0)[:2] == ("finished", 10.0)


def test_a_variable_rate_is_followed_by_time_stamps(tmp_path):
    milliseconds = [*range(0, 500, 20), *range(500, 2500, 200), *range(2500, 3500, 40)]
    path = encode(
        tmp_path / "v.mkv", len(milliseconds), rate=50, stamps=milliseconds,
        tick=Fraction(1, 1000), b_frames=0,
    )  # fmt: skip
    begun = time.monotonic()
    run_stream(path, tmp_path / "out", rate="real")
    assert time.monotonic() - begun > 3.4
    seen = events(tmp_path / "out", "actionness")
    assert [round(1000 * event["seconds"]) for event in seen] == milliseconds[2::4]


def test_a_file_that_breaks_off_gives_what_came_before(video, whole, tmp_path, monkeypatch):
    def broken(path):
        for number, frame in enumerate(read_frames(path)):
            if number == 100:
                raise InputError(f"{path}: decoding stopped at frame 100")
            yield frame

    monkeypatch.setattr(frames, "read_frames", broken)
    with pytest.raises(InputError, match="stopped at frame 100"):
        run_stream(video, tmp_path)
    assert events(tmp_path)[-1]["reason"] == "broken"
    assert len(events(tmp_path, "actionness")) == 25
    cues((tmp_path / "live.vtt").read_text())
    monkeypatch.undo()
    run_stream(video, tmp_path, resume=True)  # the file is whole now
    assert_same(tmp_path, whole)


def test_events_are_echoed_as_they_come(video, tmp_path):
    echo = io.StringIO()
    run_stream(video, tmp_path, echo=echo)
    assert echo.getvalue() == (tmp_path / EVENTS).read_text()


@pytest.mark.parametrize("fault", ["none.mp4", "empty.mp4", "text.mp4", "folder"])
def test_what_is_no_video_is_one_line_and_leaves_nothing(tmp_path, fault):
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as error:
        run_stream(tmp_path / fault, tmp_path / "out")
    assert fault in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "out").exists()
