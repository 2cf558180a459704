"""The rule that knows cuts and lengths: what it takes for a cut, and what it proposes."""

from pathlib import Path

import av
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.dataset.tables import (
    VIDEO_COLUMNS,
    Annotation,
    Instance,
    Video,
    write_annotations,
    write_videos,
)
from actionspan.errors import InputError
from actionspan.evaluation.cuts import Changes, cut_proposals, find_cuts, frame_changes
from actionspan.proposals.segments import read_proposals

RATE = 25
SIZE = (72, 96)


def scene(colour, number) -> np.ndarray:
    """A picture of a square that moves to and fro over a background of one colour."""
    picture = np.full((*SIZE, 3), colour, np.uint8)
    left = abs(number % 100 - 50)
    picture[20:36, left : left + 16] = (230, 230, 230)
    return picture


def write_video(path: Path, pictures) -> Path:
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=RATE)
        stream.height, stream.width = SIZE
        stream.pix_fmt = "yuv420p"
        for picture in pictures:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode())
    return path


def shots(*colours, frames=50):
    return [scene(colour, n) for colour in colours for n in range(frames)]


@pytest.fixture(scope="module")
def spliced(tmp_path_factory) -> Path:
    """Four shots of two seconds each."""
    folder = tmp_path_factory.mktemp("spliced")
    red, green, blue = (150, 30, 30), (30, 120, 30), (20, 40, 160)
    return write_video(folder / "spliced.mp4", shots(red, green, blue, red))


def test_cuts_are_found_to_the_frame(spliced):
    cuts, colours = find_cuts(frame_changes(spliced))
    np.testing.assert_allclose(cuts, [2, 4, 6], atol=1e-6)
    assert (colours > 0.5).all()


def test_motion_fades_and_noise_are_no_cuts(tmp_path, rng):
    fade = [scene((30 + n, 60, 60), n) for n in range(150)]
    noise = [np.clip(p + rng.normal(0, 6, p.shape), 0, 255).astype(np.uint8) for p in fade]
    for name, pictures in (("fade", fade), ("noise", noise)):
        changes = frame_changes(write_video(tmp_path / f"{name}.mp4", pictures))
        assert find_cuts(changes)[0].size == 0
        assert changes.difference[0] == changes.colours[0] == 0


def test_a_still_video_and_none_at_all_have_no_cut():
    for count in (0, 1, 40):
        zeros = np.zeros(count)
        assert find_cuts(Changes(np.arange(count) / RATE, zeros, zeros))[0].size == 0


def test_runs_of_shots_are_ordered_by_length_and_by_their_cuts():
    # shots of 2, 2, 3 and 1 seconds; training instances are of about 2 and of 4
    cuts, colours = np.array([2.0, 4.0, 7.0]), np.array([0.9, 0.1, 0.6])
    segments, worth = cut_proposals(cuts, colours, 8.0, [1.9, 2.0, 2.1, 4.0], 100)
    assert len(segments) == 4 + 3 + 2 + 1
    assert (np.diff(worth) <= 0).all()
    # of the two shots of 2 seconds the first has the stronger of the weaker ends
    assert segments[0].tolist() == [0, 2]
    assert worth[0] / worth[segments.tolist().index([2, 4])] == pytest.approx(np.exp(0.9 - 0.1))
    # whatever holds the strong cut at 2 is worth exp(-4 · 0.9) of its density
    joined = segments.tolist().index([0, 4]), segments.tolist().index([4, 8])
    assert worth[joined[0]] / worth[joined[1]] == pytest.approx(np.exp(0.1 - 3.6 - (0.1 - 2.4)))
    few, best = cut_proposals(cuts, colours, 8.0, [1.9, 2.0, 2.1, 4.0], 3)
    np.testing.assert_array_equal(few, segments[:3])
    np.testing.assert_array_equal(best, worth[:3])


@pytest.mark.parametrize("lengths", [[], [2.0], [2.0, 2.0]])
def test_lengths_that_do_not_differ_prefer_none(lengths):
    segments, worth = cut_proposals(np.zeros(0), np.zeros(0), 5.0, lengths, 10)
    assert segments.tolist() == [[0, 5]]
    assert worth == [pytest.approx(np.e)]


def test_at_most_six_shots_are_joined():
    cuts = np.arange(1.0, 12)
    segments, _ = cut_proposals(cuts, np.full(11, 0.5), 12.0, [1.0, 2.0], 1000)
    assert np.diff(segments).max() == 6
    assert len(segments) == sum(range(7, 13))


def baseline(folder: Path, *more) -> int:
    return main(
        [
            *("evaluation", "baseline", "--method", "cuts"),
            *("--annotations", str(folder / "annotations.json"), *map(str, more)),
            *("--out-json", str(folder / "out.json"), "--out-csv", str(folder / "out.csv")),
        ]
    )


def test_the_command_decodes_the_videos_that_are_scored(spliced, tmp_path, capsys):
    """One that cannot be read is a line, and gets no proposals."""
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    known = {"a": ("training", Path("nowhere.mp4")), "b": ("validation", spliced)}
    known["c"] = ("validation", tmp_path / "broken.mp4")
    instances = (Instance(start=0, end=2, label="x"), Instance(start=1, end=3.5, label="x"))
    annotations = [
        Annotation(video_id=name, subset=subset, duration_seconds=8, instances=instances)
        for name, (subset, _) in known.items()
    ]
    write_annotations(tmp_path / "annotations.json", annotations)
    videos = [
        Video(
            video_id=name,
            path=path,
            fps=RATE,
            frames=200,
            duration_seconds=8,
            width=SIZE[1],
            height=SIZE[0],
            sha256="",
            subset=subset,
        )
        for name, (subset, path) in known.items()
    ]
    write_videos(tmp_path / "videos.tsv", videos, VIDEO_COLUMNS)
    assert baseline(tmp_path, "--videos", tmp_path / "videos.tsv") == 0
    said = capsys.readouterr().err
    assert "broken.mp4: not a video" in said
    assert "cuts proposes nothing there" in said
    assert "nowhere" not in said
    made = read_proposals(tmp_path / "out.json")
    assert made["c"] == []
    assert len(made["b"]) == 10
    assert made["b"][0]["segment"] == pytest.approx((0, 2))


def test_the_command_needs_the_videos(tmp_path, capsys):
    known = [Annotation(video_id="a", subset="validation", duration_seconds=8)]
    write_annotations(tmp_path / "annotations.json", known)
    assert baseline(tmp_path) != 0
    assert "--method cuts needs --videos videos.tsv" in capsys.readouterr().err


def test_a_video_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.mp4: no such file"):
        frame_changes(tmp_path / "none.mp4")
