"""Videos to correct next: in a random order that stays, of `propose` or a run."""

import json
from dataclasses import replace

import pytest

from actionspan.annotations.tables import VIDEO_COLUMNS, write_videos
from actionspan.dataset.video_facts import bad_video
from worlds.command import actionspan

NAMES = [f"video{number}" for number in range(12)]


@pytest.fixture
def proposed(tmp_path):
    """What `actionspan propose` leaves of twelve videos."""
    folder = tmp_path / "proposals"
    (folder / "videos").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        found = {"duration_seconds": 60 + 6 * number, "events": []}
        (folder / "videos" / f"{name}.json").write_text(json.dumps(found))
    return folder


def following(capsys, *words):
    assert actionspan("dataset", "next", *words, "--json") == 0
    return [row["video"] for row in json.loads(capsys.readouterr().out)]


def refusal(capsys, *words):
    assert actionspan("dataset", "next", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_the_order_is_random_and_stays_as_videos_are_annotated(proposed, capsys):
    order = following(capsys, proposed, "--top", 12)
    assert sorted(order) == sorted(NAMES)
    assert order != NAMES
    assert order != sorted(NAMES)
    assert following(capsys, proposed) == order[:10]
    known = proposed / "known.csv"
    known.write_text(f"video,start,end,label\nv_{order[0]},1,2,run\n{order[3]}.mp4,,,\n")
    rest = [*order[1:3], *order[4:]]
    assert following(capsys, proposed, "--annotations", known) == rest
    known.write_text(f"video,start,end,label\n{order[0]},2,1,run\n")  # no row that is one
    assert following(capsys, proposed, "--top", 12, "--annotations", known) == order
    assert actionspan("dataset", "next", proposed, "--top", 1) == 0
    minutes = 1 + NAMES.index(order[0]) / 10
    assert capsys.readouterr().out == (
        f"minutes  video (in a random order, as no other was better)\n{minutes:7.1f}  {order[0]}\n"
    )


def test_a_run_leaves_out_what_it_learned_from(tmp_path, capsys):
    subsets = {"a": "training", "b": "validation", "c": "testing", "d": "testing"}
    videos = [
        replace(bad_video(tmp_path / f"{name}.mp4", ""), subset=subset, duration_seconds=60.0)
        for name, subset in subsets.items()
    ]
    write_videos(tmp_path / "dataset" / "videos.tsv", videos, VIDEO_COLUMNS)
    assert set(following(capsys, tmp_path)) == {"c", "d"}
    known = tmp_path / "known.csv"
    known.write_text("video,start,end,label\nc,,,\n")
    assert set(following(capsys, tmp_path, "--annotations", known)) == {"a", "b", "d"}


@pytest.mark.parametrize("content", [[3], {"events": []}, {"duration_seconds": "x"}])
def test_another_file_is_a_line(proposed, capsys, content):
    path = proposed / "videos" / "video3.json"
    path.write_text(json.dumps(content))
    assert f"{path}: not what `actionspan propose` writes" in refusal(capsys, proposed)


def test_other_folders_and_a_finished_set_are_lines(proposed, capsys):
    line = "neither a run (dataset/videos.tsv) nor what"
    assert line in refusal(capsys, proposed / "none")
    known = proposed / "known.csv"
    known.write_text("video,start,end,label\n" + "".join(f"{name},,,\n" for name in NAMES))
    line = "all of 12 videos are annotated"
    assert line in refusal(capsys, proposed, "--annotations", known)
    assert "top" in refusal(capsys, proposed, "--top", "0")
