"""Which files are one recording, by names, clocks and gaps; one time axis for their frames."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats.records import RawInstance, Record
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.cli import main
from actionspan.dataset import recordings
from actionspan.dataset.playlists import Part, is_playlist, playlist_text, read_parts
from actionspan.dataset.recording_annotations import by_file, by_recording
from actionspan.dataset.recordings import (
    Places,
    Recording,
    find_recordings,
    stamp_of,
    write_recordings,
)
from actionspan.dataset.sharding import find_videos
from actionspan.dataset.timeline import read_timeline
from actionspan.dataset.video_facts import bad_video, probe_video
from actionspan.errors import InputError
from actionspan.events.cutting import Clip, copy_clip, encode_clip
from actionspan.video.decode import read_frames
from actionspan.video.playable import playback_fault, write_playable
from actionspan.video.thumbnails import read_thumbnails
from video.numbered import read_number, write_film
from worlds.recordings import numbered_parts

MIDNIGHT = datetime(2024, 1, 31, 23, 59, 58)


STAMPS = ["20240131_235958", "2024-01-31T23-59-58", "20240131235958", "2024-01-31 23.59.58"]
NO_STAMPS = ["cam_20241331_235958", "cam_0001", "120240131235958", "20240131"]  # no month 13


@pytest.mark.parametrize(
    ("name", "at", "rest"),
    [
        *((name, MIDNIGHT, ("", "")) for name in (*STAMPS, "2024.01.31_23h59m58s")),
        ("VID_20240131_235958", MIDNIGHT, ("VID_", "")),
        ("PXL_20240131_235958123", MIDNIGHT.replace(microsecond=123000), ("PXL_", "")),
        ("ch01_20240131235958_20240201000958", MIDNIGHT, ("ch01_", "_")),
        ("cam-20240131-235958-007", MIDNIGHT, ("cam-", "-")),
        *((name, None, ()) for name in NO_STAMPS),
    ],
)
def test_the_time_in_a_name(name, at, rest):
    assert stamp_of(name) == (at, rest)


@pytest.fixture
def probed(monkeypatch):
    """Files that exist by name alone, with lengths in seconds; 0: damaged."""

    def probed(lengths, clock=None, *, join=True, sizes=None):
        def probe(path, **_):
            seconds, width = lengths[path.name], (sizes or {}).get(path.name, 320)
            facts = {"fps": 25.0, "frames": 25, "duration_seconds": seconds, "width": width}
            error = "" if seconds else "damaged"
            return replace(bad_video(path, error), height=240, **facts)

        monkeypatch.setattr(recordings, "probe_video", probe)
        monkeypatch.setattr(recordings, "_streams", lambda path: [])
        videos = {Path(name).stem: Path(name) for name in lengths}
        found, broken = find_recordings(videos, clock, join=join, quiet=True)
        return {one.video_id: [part.path.name for part in one.parts] for one in found}, broken

    return probed


def stamped(*seconds):
    return [f"cam_{MIDNIGHT + timedelta(seconds=each):%Y%m%d_%H%M%S}.mp4" for each in seconds]


@pytest.mark.parametrize(
    "recordings",  # of files of a minute
    [
        [["a_9.mp4", "a_10.mp4", "a_11.mp4"], ["a_13.mp4"], ["b_10.mp4"], ["hall.mp4"]],
        [["GX010007.mp4", "GX020007.mp4"], ["GX010008.mp4"]],  # chapters of a GoPro
        [stamped(0, 60, 121), stamped(183, 243)],  # gaps of 0, 1, 2 and 0 seconds
    ],
)
def test_consecutive_files_are_one_recording(probed, recordings):
    names = [f"{Path(files[0]).stem}{'-joined' * (len(files) > 1)}" for files in recordings]
    found = probed(dict.fromkeys(sum(recordings, []), 60.0))
    assert found == (dict(zip(names, recordings, strict=True)), 0)


def test_a_damaged_file_is_a_gap(probed, capsys):
    names = stamped(0, 60, 120)
    found, broken = probed({names[0]: 60.0, names[1]: 0.0, names[2]: 60.0})
    assert (list(found.values()), broken) == ([names[:1], names[2:]], 1)
    assert capsys.readouterr().err == f"{names[1]}: damaged\n"


def test_without_joining_each_file_is_a_video(probed):
    names = stamped(0, 60)
    found, _ = probed(dict.fromkeys(names, 60.0), "name", join=False)
    assert list(found.values()) == [names[:1], names[1:]]


@pytest.mark.parametrize(
    ("lengths", "clock", "sizes", "line"),
    [
        (["a_1.mp4", "a_01.mp4"], None, {}, "a_1.mp4: the same number as a_01.mp4"),
        (
            ["a 20240131_235958.mp4", "a 2024-01-31 23-59-58.mp4"],
            None,
            {},
            "begins at 2024-01-31 23:59:58, as a 2024-01-31 23-59-58.mp4 does; leave out one",
        ),
        (stamped(0, 30), None, {}, "but cam_20240131_235958.mp4 lasts until 2024-02-01 00:00:58"),
        (["a_1.mp4", "a_2.mp4"], None, {"a_2.mp4": 640}, "640×240 pixels, and a_1.mp4 before it"),
        (["a_1.mp4"], "name", {}, "no date and time in its name, such as 20240131_235958"),
        (["a_1.mp4"], "noon", {}, "--clock noon: name, metadata, or a start such as"),
        (["a_1.mp4", "b_1.mp4"], "2024-01-31 23:59", {}, "one recording, and there are 2; use"),
    ],
)
def test_wrong_input_is_one_line(probed, lengths, clock, sizes, line):
    with pytest.raises(InputError) as caught:
        probed(dict.fromkeys(lengths, 60.0), clock, sizes=sizes)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def joined(folder, paths, clock=None):
    found, _ = find_recordings({p.stem: p for p in paths}, clock, join=True, quiet=True)
    return write_recordings(found, folder), found


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Three files of a second, in a folder with a quotation mark."""
    folder = tmp_path_factory.mktemp("camera") / "Anna's"
    return numbered_parts(folder, [f"cam_{n}.mp4" for n in (1, 2, 3)], b_frames=2, key_every=10)


@pytest.fixture(scope="module")
def recording(parts, tmp_path_factory):
    videos, _ = joined(tmp_path_factory.mktemp("out") / "recordings", parts)
    assert list(videos) == ["cam_1-joined"]
    return videos["cam_1-joined"]


def test_frames_of_all_files_are_on_one_axis(recording):
    seen = [(frame.seconds, read_number(frame.picture())) for frame in read_frames(recording)]
    np.testing.assert_allclose([seconds for seconds, _ in seen], np.arange(75) / 25, atol=1e-6)
    assert [number for _, number in seen] == list(range(75))
    video = probe_video(recording)
    assert (video.error, video.frames, video.duration_seconds, video.fps) == ("", 75, 3.0, 25.0)
    assert not read_timeline(recording).continuous


@pytest.mark.parametrize("suffix", ["mkv", "ts", "mov", "avi"])
def test_other_containers_are_joined_too(tmp_path, suffix):
    names = [f"a_{number}.{suffix}" for number in (1, 2)]
    paths = numbered_parts(tmp_path / "a", names, b_frames=0)
    videos, _ = joined(tmp_path / "recordings", paths)
    seen = [(one.seconds, read_number(one.picture())) for one in read_frames(videos["a_1-joined"])]
    assert [number for _, number in seen] == list(range(50))
    np.testing.assert_allclose([at for at, _ in seen], np.arange(50) / 25, atol=2e-3)


def test_pictures_are_found_in_each_file(recording):
    found = read_thumbnails(recording, [0.5, 1.02, 1.98, 2.5], 64)
    assert [read_number(one.rgb) for one in found] == [12, 25, 49, 62]


@pytest.mark.parametrize("cut", [copy_clip, encode_clip])
def test_a_clip_runs_over_the_border(recording, tmp_path, cut):
    path = cut(Clip(recording, 0.8, 2.2, "fall", "one"), tmp_path)
    numbers = [read_number(frame.picture()) for frame in read_frames(path)]
    first = 20  # of the event, and a key frame
    assert numbers[0] == first
    assert numbers[:30] == list(range(first, first + 30))


def test_the_copy_for_browsers_has_all_frames(recording, tmp_path):
    assert playback_fault(recording) == "3 files, one after the other"
    out = tmp_path / "copy.mp4"
    assert write_playable(recording, out) == ""
    seen = [(frame.seconds, read_number(frame.picture())) for frame in read_frames(out)]
    assert [number for _, number in seen] == list(range(75))
    np.testing.assert_allclose([seconds for seconds, _ in seen], np.arange(75) / 25, atol=1e-4)
    assert playback_fault(out) == ""


def test_files_that_browsers_do_not_play_are_encoded(tmp_path):
    paths = numbered_parts(tmp_path / "a", ["a_1.avi", "a_2.avi"], codec="mpeg4", bit_rate=10**6)
    videos, _ = joined(tmp_path, paths)
    assert write_playable(videos["a_1-joined"], tmp_path / "copy.mp4") == ""
    numbers = [read_number(frame.picture()) for frame in read_frames(tmp_path / "copy.mp4")]
    assert numbers == list(range(50))
    assert playback_fault(tmp_path / "copy.mp4") == ""


def test_files_of_other_codecs_are_not_joined(tmp_path):
    numbered_parts(tmp_path, ["a_1.mp4"])
    numbered_parts(tmp_path, ["a_2.mp4"], codec="mpeg4", bit_rate=10**6)
    with pytest.raises(InputError, match=r"a_2.mp4: other codecs or streams than .*a_1.mp4 before"):
        joined(tmp_path / "out", [tmp_path / "a_1.mp4", tmp_path / "a_2.mp4"])


def test_a_list_that_has_not_changed_stays(parts, tmp_path):
    path = joined(tmp_path, parts)[0]["cam_1-joined"]
    before = path.stat().st_mtime_ns
    joined(tmp_path, parts)
    assert path.stat().st_mtime_ns == before
    assert list(find_videos(tmp_path)) == ["cam_1-joined"], "the list is a video"
    text = path.read_text()
    joined(tmp_path, parts[:2])
    assert path.read_text() != text


def test_metadata_give_the_clock(tmp_path):
    paths = []
    for number, second in ((1, 0), (2, 1)):
        path = tmp_path / f"a_{number}.mp4"
        plain = numbered_parts(tmp_path / "plain", [path.name])[0]
        with av.open(str(plain)) as source, av.open(str(path), "w") as file:
            file.metadata["creation_time"] = f"2024-01-31T23:59:{58 + second}.000000Z"
            copy = file.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(source.streams.video[0]):
                if packet.dts is not None:
                    packet.stream = copy
                    file.mux(packet)
        paths.append(path)
    (one,) = joined(tmp_path / "out", paths, "metadata")[1]
    assert one.clocks == [MIDNIGHT, MIDNIGHT + timedelta(seconds=1)]
    with pytest.raises(InputError, match="plain.*no creation_time in its metadata; use"):
        joined(tmp_path / "out", [tmp_path / "plain/a_1.mp4"], "metadata")


def recorded(folder, clock=MIDNIGHT):
    clocks = [clock and clock + timedelta(seconds=at) for at in (0, 10, 21)]
    parts = [Part(Path(f"a_{number}.mp4"), 10.0) for number in (1, 2, 3)]
    places = Places(folder)
    places.add([Recording(parts, clocks), Recording([Part(Path("b.mp4"), 5.0)], [None])])
    return Places(folder)  # as it is read again


def test_places_name_the_file_and_the_clock_of_a_time(tmp_path):
    places = recorded(tmp_path)
    assert places.columns[:4] == ("start_file", "start_in_file", "end_file", "end_in_file")
    assert places.columns[4:] == ("start_clock", "end_clock")
    times = "2024-02-01T00:00:07.500", "2024-02-01T00:00:10.250"
    cells = ["a_1.mp4", "9.500", "a_2.mp4", "2.250", *times]
    assert places.cells("a_1-joined", [9.5, 12.25]) == cells
    # a border is the end of one file and the start of the next, whose clock may be a second later
    times = "2024-02-01T00:00:08.000", "2024-02-01T00:00:18.000"
    cells = ["a_2.mp4", "0.000", "a_2.mp4", "10.000", *times]
    assert places.cells("a_1-joined", [10.0, 20.0]) == cells
    assert places.cells("a_1-joined", [20.0, 20.5])[4] == "2024-02-01T00:00:19.000"
    assert places.cells("b", [1.0, 2.0]) == [""] * 6
    assert places.files("a_1-joined")[1] == (10.0, "a_2.mp4", "2024-02-01T00:00:08")
    assert places.files("b") == []


def test_places_without_a_clock_have_files_alone(tmp_path):
    assert len(recorded(tmp_path, clock=None).columns) == 4
    assert Places(tmp_path / "none").columns == ()


def test_events_are_divided_at_borders(recording):
    times = [(0.2, 0.6), (0.8, 2.2), (1.0, 2.0), (2.5, 3.0)]
    raw = [RawInstance(start=start, end=end, label="x") for start, end in times]
    whole = Record(video_id="cam_1-joined", path=recording, seconds=3.0, instances=raw)
    other = Record(video_id="b", path=Path("b.mp4"), instances=raw)
    found = by_file([whole, other])
    assert [record.video_id for record in found] == ["cam_1", "cam_2", "cam_3", "b"]
    assert found[3] is other
    segments = [[each[:2] for each in record.parsed()] for record in found[:3]]
    expected = [[(0.2, 0.6), (0.8, 1.0)], [(0.0, 1.0), (0.0, 1.0)], [(0.0, 0.2), (0.5, 1.0)]]
    np.testing.assert_allclose(segments, expected)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("file 'a.mp4'\n", "its first line is not 'ffconcat version 1.0'"),
        ("ffconcat version 1.0\nfile 'a.mp4'\n", "the last without a duration"),
        ("ffconcat version 1.0\n", "no file in it"),
        ("ffconcat version 1.0\nduration 1\n", "row 2: each file needs a duration"),
        ("ffconcat version 1.0\nfile a.mp4\nduration 1\n", "row 2: neither file"),
        ("ffconcat version 1.0\nfile 'a.mp4'\nduration -1\n", "row 3: neither file"),
        ("ffconcat version 1.0\nfile 'a.ffconcat'\nduration 1\n", "row 2: a list of files too"),
        ("ffconcat version 1.0\nfile 'a.mp4'\ninpoint 1\n", "row 3: neither file"),
        ("ffconcat version 1.0\noption x 1\n", "row 2: neither file"),
    ],
)
def test_a_list_of_another_kind_is_one_line(tmp_path, text, line):
    path = tmp_path / "a.ffconcat"
    path.write_text(text)
    assert line in probe_video(path).error


@pytest.mark.parametrize("inner", ["a.mp4", "http://127.0.0.1:1/a.mp4", "concat:a.mp4|b.mp4"])
def test_no_address_and_no_list_inside_a_list_is_opened(tmp_path, inner):
    inside = tmp_path / "a.mp4"
    inside.write_text(f"ffconcat version 1.0\nfile '{tmp_path}/b.mp4'\n")
    numbered_parts(tmp_path, ["b.mp4"])
    path = tmp_path / "a.ffconcat"
    path.write_text(f"ffconcat version 1.0\nfile '{inner}'\nduration 1\n")
    assert probe_video(path).error


NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


@given(st.lists(st.tuples(NAMES, st.floats(0.04, 1e6)), min_size=1, max_size=5))
def test_lists_say_what_was_written(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("lists")
    parts = [Part(folder / f"{name.replace('/', '')}.mp4", seconds) for name, seconds in files]
    path = folder / "a.ffconcat"
    path.write_text(playlist_text(parts, lambda file: file.name, ["for people"]), encoding="utf-8")
    back = read_parts(path)
    assert [part.path for part in back] == [part.path for part in parts]
    np.testing.assert_allclose([p.seconds for p in back], [p.seconds for p in parts], atol=1e-6)
    assert is_playlist(path)


def test_rotation_and_size_of_files_are_kept(tmp_path):
    pictures = [np.full((48, 64, 3), value, np.uint8) for value in range(20)]
    paths = [write_film(tmp_path / f"a_{n}.mp4", pictures, rotation=90) for n in (1, 2)]
    videos, _ = joined(tmp_path, paths)
    video, single = probe_video(videos["a_1-joined"]), probe_video(paths[0])
    assert (video.width, video.height) == (single.width, single.height) == (48, 64)
    shapes = {frame.picture().shape for frame in read_frames(videos["a_1-joined"])}
    assert shapes == {(64, 48, 3)}


@pytest.fixture(scope="module")
def lists(tmp_path_factory) -> Path:
    """Two recordings of three files of a second each, by name alone."""
    folder = tmp_path_factory.mktemp("lists")
    for camera in "ab":
        parts = [Part(folder / f"{camera}_{number}.mp4", 1.0) for number in (1, 2, 3)]
        text = playlist_text(parts, lambda file: file.name)
        (folder / f"{camera}_1-joined.ffconcat").write_text(text)
    return folder


def events_of(records) -> dict:
    return {
        record.video_id: [
            (round(start, 3), round(end, 3), label, raw.subject)
            for raw, (start, end, label) in zip(record.instances, record.parsed(), strict=True)
        ]
        for record in records
    }


# quarters of a second: equal events further apart than what counts as at a border
TIMES = st.lists(st.integers(0, 12), unique=True).map(sorted)


@given(st.dictionaries(st.tuples(st.sampled_from("xy"), st.sampled_from(["", "lamb"])), TIMES))
def test_divided_annotations_are_joined_to_what_they_were(lists, drawn):
    expected = sorted(
        (start / 4, end / 4, label, subject)
        for (label, subject), times in drawn.items()
        for start, end in zip(times[::2], times[1::2], strict=False)
    )
    raw = [
        RawInstance(start=start, end=end, label=label, subject=subject)
        for start, end, label, subject in expected
    ]
    path = lists / "a_1-joined.ffconcat"
    whole = Record(video_id=path.stem, path=path, seconds=3.0, instances=raw)
    other = Record(video_id="c", path=lists / "c.mp4")
    joined_again = by_recording(by_file([whole, other]), lists)
    assert [record.seconds for record in joined_again] == [3.0, 0.0]
    back = events_of(joined_again)
    assert {name: sorted(each) for name, each in back.items()} == {path.stem: expected, "c": []}


def test_annotations_of_files_become_those_of_recordings(tmp_path):
    paths = numbered_parts(tmp_path / "camera", ["cam_1.mp4", "cam_2.mp4", "other.mp4"])
    joined(tmp_path / "recordings", paths)
    ends = [probe_video(path).duration_seconds for path in paths]
    table, whole = tmp_path / "files.csv", tmp_path / "whole.csv"
    rows = f"cam_1,0.1,{ends[0] - 0.04},x", "cam_2,0.02,0.3,x", "cam_2,0.4,0.5,x", "other,0.1,0.2,y"
    table.write_text("\n".join(["video_id,start,end,label", *rows, ""]))
    convert = ["dataset", "convert", str(table), str(whole), "--by-recording"]
    assert main([*convert, "--videos", str(tmp_path / "recordings")]) == 0
    found = events_of(read_annotation_file(whole).records)
    at = round(ends[0], 3)
    assert found["cam_1-joined"] == [(0.1, at + 0.3, "x", ""), (at + 0.4, at + 0.5, "x", "")]
    assert found["other"] == [(0.1, 0.2, "y", "")]
    assert main(convert) == 2
