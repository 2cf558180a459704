"""Every command writes the right frames of every file of the table in `footage`.

A container has its own idea of time: where the first frame begins, to what times are rounded,
where a seek ends, and which rate it states. Each picture shows its number.
"""

import csv
import json

import av
import numpy as np
import pytest

from actionspan.dataset.timeline import frames_in, read_timeline
from actionspan.dataset.video_facts import probe_video
from actionspan.propose.proposed import Proposed
from actionspan.propose.result_folder import write_tables
from actionspan.propose.results import Shown, result_of, source_of
from actionspan.video.decode import read_frames
from actionspan.video.playable import playback_fault, write_playable
from actionspan.video.settings import CopySettings
from footage import FILES, Footage, events_of
from tiers import first_tier
from video.numbered import copy_packets, read_number
from worlds.command import actionspan

ROUNDING = 1.1e-3  # seconds: containers in milliseconds


def shown(path):
    """Return the times and the numbers of a file's pictures, read by PyAV alone."""
    with av.open(str(path)) as file:
        frames = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in file.decode(video=0)]
    return [time for time, _ in frames], [read_number(picture) for _, picture in frames]


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_copy_for_browsers_shows_each_frame_at_its_time(made, tmp_path):
    path, row = made
    copy = tmp_path / "copies" / "copy.mp4"
    assert write_playable(path, copy, CopySettings(quality=18)) == ""
    assert playback_fault(copy) == ""
    assert [read_number(frame.picture()) for frame in read_frames(copy)] == [
        *range(len(row.seconds))
    ]
    np.testing.assert_allclose(read_timeline(copy).seconds, read_timeline(path).seconds, atol=0.001)
    assert [each.name for each in copy.parent.iterdir()] == ["copy.mp4"]


def test_exact_clips_have_the_frames_of_their_events(made, clips):
    _, row = made
    for clip, (start, _, first, last) in clips("--exact"):
        times, numbers = shown(clip)
        assert numbers == list(range(first, last + 1))
        after = np.maximum(np.array(row.seconds[first : last + 1]) - start, 0)
        np.testing.assert_allclose(times, after, atol=ROUNDING)


def test_copied_clips_hold_their_events_whole(made, clips):
    _, row = made
    for clip, (*_, first, last) in clips():
        times, numbers = shown(clip)
        end = numbers.index(last)
        assert numbers[numbers.index(first) : end + 1] == list(range(first, last + 1))
        second = min(first + 1, last)  # an event that is encoded may begin inside the first
        apart = row.seconds[last] - row.seconds[second]
        assert times[end] - times[numbers.index(second)] == pytest.approx(apart, abs=2 * ROUNDING)


def test_a_reel_has_all_events(made, table, tmp_path):
    path, row = made
    reel = tmp_path / "reel.mp4"
    assert actionspan("clips", table, "--videos", path.parent, "--reel", reel) == 0
    times, numbers = shown(reel)
    wanted = sorted(events_of(row.seconds))
    assert numbers == [n for *_, first, last in wanted for n in range(first, last + 1)]
    assert (np.diff(times) > 0).all()


def test_tables_by_frame(made, table, tmp_path):
    path, row = made
    assert actionspan("frames", table, "--videos", path.parent, "--out", tmp_path / "out") == 0
    lines = rows_of(tmp_path / "out" / f"{path.stem}.csv")
    np.testing.assert_allclose([float(one["seconds"]) for one in lines], row.seconds, atol=ROUNDING)
    inside = {n for *_, first, last in events_of(row.seconds) for n in range(first, last + 1)}
    assert {int(one["frame"]) for one in lines if one["jump"] == "1"} == inside


def test_events_name_their_frames(made, tmp_path):
    path, row = made
    events = events_of(row.seconds)
    video = probe_video(path, checksum=False)
    wanted = [(first, last) for *_, first, last in events]
    segments = np.array([event[:2] for event in events])
    # the file of `propose` and `review`
    proposed = Proposed(
        duration_seconds=video.duration_seconds,
        segments=segments,
        scores=np.linspace(0.9, 0.6, len(events)),
        motion=np.zeros(100),
        events=segments,
    )
    first = result_of(proposed, path, "model", source_of(path))
    again = result_of(proposed, path, "model", source_of(path), first)
    write_tables(tmp_path, lambda: [again], Shown())
    for name in ("proposals.csv", "events.csv"):
        lines = rows_of(tmp_path / name)
        assert [(int(one["first_frame"]), int(one["last_frame"])) for one in lines] == wanted
    # that of a run
    assert [frames_in({"a": video}, "a", segment) for segment in segments.tolist()] == wanted
    assert row.rate != "30" or not first.frame_seconds, "nothing is kept that the rate says"


def test_ranges_of_label_studio_are_whole_frames_of_their_rate(made, table, tmp_path):
    path, row = made
    out = tmp_path / "tasks.json"
    words = ("dataset", "convert", table, out, "--to", "label_studio", "--videos", path.parent)
    assert actionspan(*words) == 0
    (task,) = json.loads(out.read_text())
    step = 1 / task["data"]["fps"]
    ranges = [one["value"]["ranges"][0] for one in task["annotations"][0]["result"]]
    for each, (start, end, *_) in zip(ranges, events_of(row.seconds), strict=True):
        assert type(each["start"]) is type(each["end"]) is int
        # the first is shown at the start, the last before the end
        assert (each["start"] - 1) * step - 2e-3 <= start <= each["start"] * step + 1e-9
        assert (each["end"] - 1) * step - 2e-3 < end <= each["end"] * step + 2e-3


@pytest.mark.parametrize("name", first_tier(("h264_falling.ts", "h264.ts"), "h264_falling.ts"))
def test_what_is_proposed_names_its_frames(name, folder, tmp_path):
    path = FILES[name].write(folder / name)
    out = tmp_path / "out"
    assert actionspan("propose", path, "--model", "none", "--no-copies", "--out", out) == 0
    seconds = np.array(FILES[name].seconds)
    assert (lines := rows_of(out / "events.csv"))
    for line in lines:
        start, end = float(line["start_seconds"]), float(line["end_seconds"])
        assert int(line["first_frame"]) == np.flatnonzero(seconds <= start + 2e-3)[-1]
        assert int(line["last_frame"]) == np.flatnonzero(seconds < end - 2e-3)[-1]


def test_lists_for_editors_count_frames_of_the_rate_of_the_file(made, table, tmp_path):
    path, row = made
    words = ("clips", table, "--videos", path.parent, "--lists", "--out", tmp_path)
    assert actionspan(*words) == 0
    lines = (tmp_path / f"{path.stem}.edl").read_text().splitlines()
    codes = [line.split()[-4:-2] for line in lines if " V " in line]
    step = 1 / read_timeline(path).rate
    for pair, (start, end, *_) in zip(codes, sorted(events_of(row.seconds)), strict=True):
        parts = [[int(part) for part in code.split(":")] for code in pair]
        first, after = ((60 * m + s) * round(1 / step) + frames for _, m, s, frames in parts)
        assert first * step - 2e-3 <= start <= (first + 1) * step + 1e-9
        assert (after - 1) * step - 2e-3 < end <= after * step + 2e-3


@pytest.mark.parametrize("exact", [True, False])
def test_a_recording_of_a_set_top_box(exact, tmp_path):
    """Key frames each 8.3 s: seeking to 8 s ends behind it, and to 20 s behind 23 s."""
    row = Footage(start=7200.07, key_every=250, options={"sc_threshold": "0"}, rate="half a minute")
    row.write(tmp_path / "tv.ts")
    (tmp_path / "events.csv").write_text("video,start,end,label\ntv,8,12,box\ntv,20,23,box\n")
    words = ("clips", tmp_path / "events.csv", "--videos", tmp_path, "--out", tmp_path / "out")
    assert actionspan(*words, *["--exact"] * exact) == 0
    found = [shown(path)[1] for path in sorted((tmp_path / "out").iterdir())]
    for numbers, wanted in zip(found, [range(240, 360), range(600, 690)], strict=True):
        assert set(numbers) >= set(wanted)
        assert not exact or numbers == list(wanted)


@pytest.mark.parametrize("begins", [30, 37], ids=["with a key frame", "between two"])
def test_a_recording_that_begins_in_the_middle_has_what_can_be_decoded(begins, tmp_path):
    """The first pictures refer to what was not recorded."""
    whole = FILES["mpeg2.ts"].write(tmp_path / "whole.ts")
    (tmp_path / "cut").mkdir()
    path = copy_packets(whole, tmp_path / "cut/cut.ts", range(begins, 200))
    known = [read_number(frame.picture()) for frame in read_frames(path)]
    (tmp_path / "events.csv").write_text("video,start,end,label\ncut,0,2,box\n")
    words = ("clips", tmp_path / "events.csv", "--videos", tmp_path / "cut", "--exact")
    assert actionspan(*words, "--out", tmp_path / "out") == 0
    (clip,) = (tmp_path / "out").iterdir()
    numbers = shown(clip)[1]
    assert numbers == known[: len(numbers)]
    assert len(numbers) > 40
