"""`actionspan propose --join`, `--clock` and `--sound`: what a user gets of files of one camera."""

import json
import shutil
from datetime import datetime, timedelta

import av
import numpy as np
import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.dataset.video_facts import probe_video
from actionspan.demo.data_set import plan_demo
from actionspan.demo.rendering import frames
from actionspan.demo.scenario import DemoSettings
from actionspan.video.decode import resized
from propose.conftest import data, propose, propose_here, results
from worlds.command import actionspan
from worlds.recordings import write_parts
from worlds.sounds import write_tone
from worlds.tables import rows_of

RATE = 24
BEGAN = datetime(2024, 1, 31, 23, 59, 50)


def segments(out, table="events"):
    (rows,) = results(out, table).values()
    return sorted(tuple(row["segment"]) for row in rows)


@pytest.fixture(scope="module")
def pictures():
    """The frames, made small, of a rendered video in which a person acts now and then."""
    settings = DemoSettings(videos=3, shortest_seconds=16, longest_seconds=17)
    return [resized(picture, (128, 170)) for picture in frames(plan_demo(settings)[2])]


def write_camera(folder, pictures, borders, late=0.0):
    """Write files with the times of their starts in their names, after the first `late` seconds."""
    starts = [border / RATE + late * (border > 0) for border in (0, *borders)]
    names = [f"cam_{BEGAN + timedelta(seconds=at):%Y%m%d_%H%M%S}.mp4" for at in starts]
    return write_parts(folder, names, pictures, borders, rate=RATE, options={"crf": "12"})


@pytest.fixture(scope="module")
def whole(pictures, tmp_path_factory):
    """The video as one file."""
    (path,) = write_camera(tmp_path_factory.mktemp("whole"), pictures, [])
    return path


def middles(found):
    """Return the frames in the middle of the two longest of events that do not overlap."""
    longest = sorted(found, key=lambda each: each[0] - each[1])[:2]
    return sorted(round(RATE * (start + end) / 2) for start, end in longest)


def compared(run, whole, pictures, tmp_path, model):
    """Propose for the video, and for three files of it that end in the middle of events."""
    run(tmp_path / "one", whole, "--model", model, "--no-copies")
    expected = segments(tmp_path / "one")
    borders = middles(expected)
    folder = tmp_path / "camera"
    write_camera(folder, pictures, borders)
    out, how = tmp_path / "out", ("--join", "--clock", "name", "--no-copies")
    assert run(out, folder, "--model", model, *how).status == 0
    found = segments(out)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, atol=0.5)
    across = [
        (start, end)
        for start, end in found
        if any(start + 0.2 < border / RATE < end - 0.2 for border in borders)
    ]
    assert len(across) >= 2, "events run over both borders"
    return out, folder, borders, across


@pytest.fixture(scope="module")
def joined(whole, pictures, tmp_path_factory):
    with propose_here():
        return compared(propose, whole, pictures, tmp_path_factory.mktemp("joined"), "none")


def test_an_event_at_a_border_is_one_event(joined, here, tmp_path):
    _, folder, borders, across = joined
    here(tmp_path / "apart", folder, "--model", "none", "--no-copies")
    apart = results(tmp_path / "apart", "events")
    assert len(apart) == 3
    longest = max(b - a for rows in apart.values() for a, b in (row["segment"] for row in rows))
    assert longest < max(end - start for start, end in across) - 0.4


@pytest.mark.full
def test_a_model_that_looks_across_the_border_finds_it_too(here, whole, pictures, tmp_path):
    compared(here, whole, pictures, tmp_path, "demo")


def test_tables_and_the_page_name_files_and_clock_times(joined):
    out, folder, borders, _ = joined
    files = sorted(path.name for path in folder.iterdir())
    starts = dict(zip(files, [0, *(border / RATE for border in borders)], strict=True))
    (video,) = {row["video_id"] for row in rows_of(out / "events.csv")}
    assert video == files[0].removesuffix(".mp4") + "-joined"
    for row in rows_of(out / "events.csv") + rows_of(out / "proposals.csv"):
        for edge in ("start", "end"):
            seconds, name = float(row[f"{edge}_seconds"]), row[f"{edge}_file"]
            inside = float(row[f"{edge}_in_file"])
            assert seconds == pytest.approx(starts[name] + inside, abs=2e-3)
            began = datetime.strptime(name, "cam_%Y%m%d_%H%M%S.mp4")
            at = datetime.fromisoformat(row[f"{edge}_clock"])
            assert (at - began).total_seconds() == pytest.approx(inside, abs=2e-3)
    (entry,) = data(out, "index-data")["videos"]
    assert [file[1] for file in entry["files"]] == files
    assert entry["files"][0] == [0.0, files[0], "2024-01-31T23:59:50"]


def test_events_become_clips_and_files_of_other_tools(joined, tmp_path):
    out, folder, borders, across = joined
    lists, events = out / "recordings", out / "events.csv"
    words = ("clips", events, "--videos", lists, "-o", tmp_path / "clips", "--exact")
    assert actionspan(*words) == 0
    made = sorted((tmp_path / "clips").iterdir())
    assert len(made) == len(segments(out))
    lengths = sorted(probe_video(path).duration_seconds for path in made)
    expected = sorted(end - start for start, end in segments(out))
    np.testing.assert_allclose(lengths, expected, atol=2.5 / RATE)
    table = tmp_path / "by_file.csv"
    convert = ("dataset", "convert", events, table, "--by-file")
    assert actionspan(*convert, "--videos", lists) == 0
    records = read_annotation_file(table).records
    assert sorted(one.video_id for one in records) == sorted(path.stem for path in folder.iterdir())
    rows = [row for one in records for row in one.parsed()]
    assert sum(end - start for start, end, *_ in rows) == pytest.approx(sum(expected), abs=0.01)
    assert len(rows) == len(expected) + len(across)
    assert actionspan(*convert) != 0


def test_no_event_runs_over_a_gap(joined, here, pictures, tmp_path):
    borders, folder = joined[2], tmp_path / "camera"
    paths = write_camera(folder, pictures, borders, late=3.0)
    out = tmp_path / "out"
    here(out, folder, "--model", "none", "--join", "--no-copies")
    second = f"{paths[1].stem}-joined"
    assert sorted(results(out)) == sorted([paths[0].stem, second])
    assert all(row["segment"][1] <= borders[0] / RATE for row in results(out)[paths[0].stem])


def test_a_second_call_continues_and_a_new_file_is_seen(here, pictures, tmp_path):
    parts = write_camera(tmp_path / "all", pictures, [100, 200])
    folder, out = tmp_path / "camera", tmp_path / "out"
    folder.mkdir()
    for path in parts[:2]:
        shutil.copy2(path, folder)
    how = ("--model", "none", "--join", "--no-copies")
    assert "done before" not in here(out, folder, *how).said[0]
    assert "1 done before" in here(out, folder, *how).said[0]
    shutil.copy2(parts[2], folder)
    assert "done before" not in here(out, folder, *how).said[0]
    record = json.loads((out / f"videos/{parts[0].stem}-joined.json").read_text())
    assert record["duration_seconds"] == pytest.approx(len(pictures) / RATE, abs=0.01)


def test_without_the_flags_nothing_is_added(joined, whole):
    out = joined[0].with_name("one")
    names = "video_id rank start_seconds end_seconds score first_frame last_frame"
    assert list(rows_of(out / "events.csv")[0]) == names.split()
    assert not (out / "recordings.json").exists()
    assert '"files"' not in (out / "index.html").read_text().partition('id="index-data"')[2]
    record = json.loads((out / f"videos/{whole.stem}.json").read_text())
    assert list(record["curves"]) == ["motion"]


@pytest.mark.full
def test_the_page_has_the_loudness_of_videos_with_sound(here, whole, tmp_path):
    tone = write_tone(tmp_path / "tone.mp4", (0.5, 0.05), seconds=4.0, late=1.0)
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(tone.read_bytes())
    with av.open(str(tone)) as file:
        places = [(one.pos, one.size) for one in file.demux(file.streams.audio[0]) if one.size]
    with damaged.open("r+b") as file:
        for place, size in places:
            file.seek(place)
            file.write(bytes(size))
    out = tmp_path / "out"
    call = here(out, tone, damaged, whole, "--model", "none", "--sound", "--no-copies")
    assert call.status == 0

    def curves(path):
        return json.loads((out / f"videos/{path.stem}.json").read_text())["curves"]

    loud = curves(tone)["loudness"]
    assert len(loud) == len(curves(tone)["change"]) == 100
    assert loud[:20] == [None] * 20
    assert (np.median(loud[30:70]), np.median(loud[80:95])) == pytest.approx((-9, -29), abs=0.3)
    assert set(curves(whole)) == {"motion"}
    assert "motion" in curves(damaged)
    assert '"loudness":' in (out / "index.html").read_text()
