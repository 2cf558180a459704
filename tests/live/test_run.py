"""Whole streams of files: everything is seen, in any executor, after any interruption."""

import shutil
from collections import deque
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from actionspan.errors import InputError
from actionspan.live import source
from actionspan.live.clock import STATE_FILE, Progress, read_state, write_state
from actionspan.live.hand_over import Arrived
from actionspan.live.play import Player
from actionspan.live.run import Stream
from actionspan.live.sink import ACTIONNESS, EVENTS
from actionspan.storage.checksums import fingerprint
from actionspan.video.decode import read_frames
from actionspan.video.snippets import Snippet, snippets
from live.fakes import (
    CUTTING,
    EVERY,
    FILES,
    Brightness,
    Passing,
    assert_same,
    assert_valid,
    events,
    player,
    run_stream,
    run_until,
)
from tiers import first_tier
from video.numbered import mostly_still


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_is_seen_whole(video, whole):
    expected = [snippet.seconds for snippet in snippets(video, CUTTING)]
    start, *_, end = events(whole)
    assert start == {"event": "start", "source": str(video), "video": "v", "policy": "block"}
    seen = events(whole, "actionness")
    assert [event["seconds"] for event in seen] == pytest.approx(expected, abs=1e-6)
    assert [event["snippet"] for event in seen] == list(range(len(expected)))
    assert len(events(whole, "proposal")) == len(expected) // EVERY + 1 == end["proposals"]
    wanted = {"event": "end", "reason": "finished", "seconds": 10.0, "dropped": 0}
    assert end.items() >= (wanted | {"snippets": len(expected)}).items()
    assert not events(whole, "gap")
    for parts in (event["latency_ms"] for event in seen):
        total = parts["look_ahead"] + parts["compute"] + parts["queueing"]
        assert parts["total"] == pytest.approx(total, abs=0.01)


def test_a_state_of_an_earlier_stream_is_not_gone_on_from(video, whole, tmp_path):
    """It ended there; the one that is killed did not."""

    def killed(message):
        raise KeyboardInterrupt

    out = shutil.copytree(whole, tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        run_stream(video, out, on_proposal=killed)
    assert run_stream(video, out, resume=True).proposals == 13
    assert_same(out, whole)


def test_processes_change_no_byte(video, whole, tmp_path):
    run_stream(video, tmp_path, executor="process")
    assert_same(tmp_path, whole)


@pytest.mark.parametrize(
    ("make", "limits"), [(None, (1.0, 4.0, 7.5)), (mostly_still, (1.6, 2.4, 3.2))]
)
def test_a_stream_that_stops_goes_on_to_the_same_bytes(video, whole, tmp_path, make, limits):
    out = tmp_path / "out"
    if make is not None:
        video, whole = make(tmp_path / "v.mp4"), tmp_path / "whole"
        run_stream(video, whole)
    for number, limit in enumerate(limits):
        run_until(video, out, limit, seconds=0.01, resume=number > 0, executor="thread")
        assert_valid(out)
    assert run_stream(video, out, resume=True).reason == "finished"
    assert_same(out, whole)
    before = contents(out)
    assert run_stream(video, out, resume=True)[0::2] == ("finished", None), "nothing is left to do"
    assert contents(out) == before


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
    run_stream(path, tmp_path / "out", made=player(chain=nn.Sequential(counting, Passing())))
    assert counting.count == flags.count(False)
    seen = [event["action"] for event in events(tmp_path / "out", "actionness")]
    assert len(seen) == len(flags)
    pairs = zip(seen, seen[1:], flags[1:], strict=False)
    assert all(own == before for before, own, still in pairs if still)


def test_a_still_snippet_is_computed_where_its_like_was_dropped():
    """As a camera's are that is too fast: then the last that was computed shows something else."""
    first, dropped, last = (np.full((8, 8, 3), value, np.uint8) for value in (0, 100, 200))
    given = [(first, False), (first, True), (dropped, True), (dropped, True), (last, False)]
    submitted = []
    stream = SimpleNamespace(_missed=None, _shown=None, _in_flight=deque(), _submitted=0)
    for number, (rgb, still) in enumerate(given):
        snippet = Snippet(rgb, np.zeros((2, 8, 8), np.uint8), number / 5, still=still)
        times = {"after": None, "centre_arrived": 0.0, "arrived": 0.0}
        pipeline = SimpleNamespace(submit=lambda _, number=number: submitted.append(number))
        Stream._submit(stream, pipeline, Arrived(number=number, snippet=snippet, **times))
    assert submitted == [0, 2, 4]
    assert [again for _, again in stream._in_flight] == [False, True, False, True, False]
    assert stream._submitted == 3


def test_a_state_that_lacks_what_the_model_keeps_is_one_line(video, whole, tmp_path):
    """As one that was sealed by another version, or by hand."""
    out = shutil.copytree(whole, tmp_path / "out")
    state = vars(read_state(out, torch.load(out / STATE_FILE)["made_of"]))
    before = contents(out)
    for kept in ({}, {"waiting": 3, "count": 0}, {"waiting": [], "counts": 0}):
        write_state(out, Progress(**state | {"ended": False, "proposer": kept}))
        with pytest.raises(InputError, match=f"{STATE_FILE}: damaged; delete it and run again"):
            run_stream(video, out, resume=True)
        (out / STATE_FILE).write_bytes(before[STATE_FILE])
        assert contents(out) == before


def damage(path, how):
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
        return
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    damaged = {"empty": b"", "cut": content[:middle], "longer": content + b"x", "changed": changed}
    path.write_bytes(damaged[how])


@pytest.mark.parametrize(
    "how", first_tier(["empty", "cut", "changed", "longer", "gone"], "changed")
)
def test_what_was_damaged_is_made_again(video, whole, tmp_path, how, capfd):
    """Tables of the events; a stream whose events or curves were damaged begins again."""
    run_until(video, tmp_path / "stopped", 4.0)
    for before, name in product((tmp_path / "stopped", whole), (EVENTS, *FILES)):
        out = shutil.copytree(before, tmp_path / f"{before.name}-{name}")
        damage(out / name, how)
        assert run_stream(video, out, resume=True).reason == "finished"
        anew = name in (EVENTS, ACTIONNESS) and how != "longer"
        assert ("; the stream is made again" in capfd.readouterr().err) == anew
        assert_same(out, whole)


def test_what_was_learned_is_made_again(video, tmp_path, monkeypatch):
    def learned(_, out):
        (out / "model.safetensors").write_bytes(b"learned")
        return {"model.safetensors": fingerprint(out / "model.safetensors")}

    monkeypatch.setattr(Player, "keep_learned", learned)
    run_stream(video, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    run_stream(video, tmp_path, resume=True)
    assert (tmp_path / "model.safetensors").read_bytes() == b"learned"


def test_only_the_same_stream_is_resumed(video, short, whole, tmp_path):
    with pytest.raises(InputError, match="of another stream"):
        run_stream(short, shutil.copytree(whole, tmp_path / "out"), resume=True)
    assert (tmp_path / "out" / STATE_FILE).is_file()
    run_stream(video, tmp_path / "new", resume=True)  # there is nothing to go on from
    assert_same(tmp_path / "new", whole)


def test_too_slow_for_a_camera_drops_and_says_so(video, tmp_path):
    """12 snippets in 2 seconds, 0.4 s of work each."""
    made, words = player(0.4), {"policy": "newest", "rate": "real", "executor": "thread"}
    ended = run_stream(video, tmp_path, made=made, queue=2, duration=2.0, **words)
    assert ended.reason == "limit"
    seen, gaps, end = events(tmp_path, "actionness"), events(tmp_path, "gap"), events(tmp_path)[-1]
    assert made.proposer.gaps == len(gaps) > 0
    assert end["dropped"] == sum(gap["dropped"] for gap in gaps)
    assert end["dropped"] + end["snippets"] == 12
    assert len(seen) == end["snippets"]
    times = [event["seconds"] for event in seen]
    assert times == sorted(set(times))
    for gap in gaps:  # nothing is said of what was dropped
        assert not [at for at in times if gap["from"] + 1e-6 < at < gap["to"] - 1e-6]
        assert gap["reason"] == "slow"
    # a bounded wait: what is in the queue and in the pipeline
    assert max(event["latency_ms"]["queueing"] for event in seen) < 1000 * 0.4 * (2 + 2 + 2)


def test_newest_at_full_speed_is_refused(video, tmp_path):
    with pytest.raises(InputError, match="--rate real"):
        run_stream(video, tmp_path, policy="newest")


def test_the_duration_is_a_limit(video, short, tmp_path):
    assert run_stream(video, tmp_path, duration=4.0)[:2] == ("limit", 4.0)
    assert events(tmp_path)[-1]["seconds"] == 4.0
    assert (tmp_path / "status.tsv").read_text().splitlines()[-1].split("\t")[1] == "100", "frames"
    assert run_stream(short, tmp_path, duration=40.0)[:2] == ("finished", 2.0)


def test_a_file_that_breaks_off_gives_what_came_before(video, whole, tmp_path, monkeypatch):
    def broken(path):
        for number, frame in enumerate(read_frames(path)):
            if number == 100:
                raise InputError(f"{path}: decoding stopped at frame 100")
            yield frame

    with monkeypatch.context() as patch:
        patch.setattr(source, "read_frames", broken)
        with pytest.raises(InputError, match="stopped at frame 100"):
            run_stream(video, tmp_path)
    assert events(tmp_path)[-1]["reason"] == "broken"
    assert len(events(tmp_path, "actionness")) == 25
    assert_valid(tmp_path)
    run_stream(video, tmp_path, resume=True)  # the file is whole now
    assert_same(tmp_path, whole)


def test_what_is_no_video_is_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "folder").mkdir()
    for fault in ("none.mp4", "empty.mp4", "text.mp4", "folder"):
        with pytest.raises(InputError) as error:
            run_stream(tmp_path / fault, tmp_path / "out")
        assert fault in str(error.value)
        assert len(str(error.value).splitlines()) == 1
        assert not (tmp_path / "out").exists()
