"""Times that only the video gives: read from its file where it is needed, and nowhere else."""

from pathlib import Path

from actionspan.annotations.tables import Instance
from actionspan.dataset.completing import Truth
from dataset.conftest import encode_video


def test_the_end_of_the_last_chapter_is_that_of_the_video(tmp_path, capsys):
    walk = encode_video(tmp_path / "walk.mp4")  # 2 s at 10 frames a second
    (tmp_path / "walk.txt").write_text("0:00 Stand\n0:01 Walk\n")
    stand, last = Instance(start=0, end=1, label="Stand"), Instance(start=1, end=2, label="Walk")
    truth = Truth(tmp_path / "walk.txt", {"walk": walk})
    assert truth.instances == {"walk": (stand, last)}
    assert truth.within("walk", 2.0) == (stand, last)
    assert capsys.readouterr().err == ""
    assert Truth(tmp_path / "walk.txt", {}).instances == {"walk": (stand,)}
    assert capsys.readouterr().err == f"{tmp_path / 'walk.txt'}: names no video of these\n"
    walk.write_bytes(b"no video")
    assert Truth(tmp_path / "walk.txt", {"walk": walk}).instances == {"walk": (stand,)}
    assert "its duration is not known here" in capsys.readouterr().err


def test_a_video_that_is_not_needed_is_not_opened(tmp_path):
    (tmp_path / "a.csv").write_text("video,start,end,label\na,1,2,run\n")
    found = Truth(tmp_path / "a.csv", {"a": tmp_path / "none.mp4"}).instances
    assert found == {"a": (Instance(start=1, end=2, label="run"),)}


def test_wrong_times_are_a_line_each_and_the_rest_is_kept(tmp_path, capsys):
    table = tmp_path / "t.csv"
    rows = "a,-1,2,run\na,3,2,run\na,,2,run\na,1,99,run\na,1,2,Walk\na,6,7.5,late\n"
    table.write_text(f"video,start,end,label\n{rows}other,-1,2,run\n")
    found = Truth(table, {"a": Path("a.mp4")}).within("a", 6.6)
    events = [(each.start, each.end, each.label) for each in found]
    assert events == [(1, 2, "Walk"), (6, 6.6, "late")]
    place = f"left out {table}: row"
    assert capsys.readouterr().err.splitlines() == [
        f"{place} 2: start -1 is before the video, which begins at 0",
        f"{place} 3: start 3 is not before end 2",
        f"{place} 4: start '' is not a time: seconds, m:ss or h:mm:ss",
        f"{place} 5: segment 1…99 s is outside the video, 0…6.6 s",
    ]
