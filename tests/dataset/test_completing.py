"""Times that only the video gives: read from its file where it is needed, and nowhere else."""

import pytest

from actionspan.cli import main
from actionspan.dataset.completing import read_instances
from actionspan.dataset.tables import Instance
from actionspan.errors import InputError
from dataset.conftest import encode_video

CHAPTERS = "0:00 Stand\n0:01 Walk\n"


def test_the_end_of_the_last_chapter_is_that_of_the_video(tmp_path):
    walk = encode_video(tmp_path / "walk.mp4")  # 2 s at 10 frames a second
    (tmp_path / "walk.txt").write_text(CHAPTERS)
    assert read_instances(tmp_path / "walk.txt", {"walk": walk}) == {
        "walk": (
            Instance(start=0, end=1, label="Stand"),
            Instance(start=1, end=2, label="Walk"),
        )
    }
    assert read_instances(tmp_path / "walk.txt", {}) == {}, "nobody asks for it"
    walk.write_bytes(b"no video")
    with pytest.raises(InputError, match="whose duration is not known here"):
        read_instances(tmp_path / "walk.txt", {"walk": walk})


def test_a_video_that_is_not_needed_is_not_opened(tmp_path):
    (tmp_path / "a.csv").write_text("video,start,end,label\na,1,2,run\n")
    found = read_instances(tmp_path / "a.csv", {"a": tmp_path / "none.mp4"})
    assert found == {"a": (Instance(start=1, end=2, label="run"),)}


def test_propose_draws_chapters_as_truth(tmp_path, capsys):
    walk = encode_video(tmp_path / "walk.mp4", times=range(60))
    (tmp_path / "walk.txt").write_text(CHAPTERS)
    words = ["propose", str(walk), "--model", "none", "--out", str(tmp_path / "out")]
    assert main([*words, "--annotations", str(tmp_path / "walk.txt")]) == 0, capsys.readouterr().err
    assert "Walk" in (tmp_path / "out" / "walk.svg").read_text()
