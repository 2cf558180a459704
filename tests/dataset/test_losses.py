"""What a run lost: rejected videos of all steps, rows, frames; in two tables and a line."""

from dataclasses import replace
from pathlib import Path

from actionspan.annotations.formats.rejections import Rejection, read_rejections, write_rejections
from actionspan.annotations.tables import VIDEO_COLUMNS, write_videos
from actionspan.dataset.losses import losses_line
from actionspan.dataset.video_facts import bad_video
from actionspan.errors import InputError
from actionspan.jobs.parts import map_videos
from actionspan.storage.writing import read_tsv
from worlds.command import actionspan


def write_part(frames, group) -> None:
    if frames is None:
        raise InputError("videos/bad.mp4: decoding stopped")
    group.attrs.update(stated_frames=frames[0], frame_count=frames[1])


def run(folder: Path, frames: dict, rejections: list[Rejection]) -> int:
    """Write what the earlier steps would have written, and put it together."""
    names = [*frames, "early"]
    videos = [replace(bad_video(Path(f"videos/{n}.mp4"), ""), subset="training") for n in names]
    write_videos(folder / "videos.tsv", videos, VIDEO_COLUMNS)
    write_rejections(folder / "input.tsv", rejections)
    early = {"early": "videos/early.mp4: no frame can be decoded"} if "bad" in frames else {}
    shard, digests = folder / "shard.h5", ["d"] * len(frames)
    how = {"title": "", "before": early}
    map_videos(shard, list(frames), list(frames.values()), digests, write_part, **how)
    words = ("--rejected", folder / "input.tsv", "--videos", folder / "videos.tsv")
    return actionspan("dataset", "losses", *words, "--shards", shard, "--out", folder / "out")


def test_all_that_was_lost_is_in_two_tables_and_a_line(tmp_path, capfd):
    empty = Rejection("videos/x.mp4", "", "the file is empty")
    first = [empty, Rejection("a.csv", "3", "no label")]
    frames = {"bad": None, "short": (50, 39), "whole": (50, 50), "unstated": (0, 7)}
    assert run(tmp_path, frames, first) == 0
    later = [Rejection("videos/early.mp4", "", "no frame can be decoded")]
    later.append(Rejection("videos/bad.mp4", "", "decoding stopped"))
    assert read_rejections(tmp_path / "out/rejected.tsv") == [*first, *later]
    (short,) = read_tsv(tmp_path / "out/losses.tsv")
    assert short == {"video_id": "short", "stated_frames": "50", "read_frames": "39"}
    out = tmp_path / "out"
    line = (
        f"lost of the input: 3 files and 1 annotation row left out ({out}/rejected.tsv); "
        f"11 of 50 frames of 1 video could not be read ({out}/losses.tsv)"
    )
    assert losses_line(out) == line
    assert line in capfd.readouterr().err


def test_where_nothing_was_lost_the_line_is_empty(tmp_path):
    assert losses_line(tmp_path) == ""
    assert run(tmp_path, {"whole": (50, 50)}, []) == 0
    assert losses_line(tmp_path / "out") == ""
