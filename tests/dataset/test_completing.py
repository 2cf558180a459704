"""Times that only the video gives: read from its file where it is needed, and nowhere else."""

from actionspan.cli import main
from actionspan.dataset.completing import Truth
from actionspan.dataset.tables import Instance
from dataset.conftest import encode_video

CHAPTERS = "0:00 Stand\n0:01 Walk\n"


def test_the_end_of_the_last_chapter_is_that_of_the_video(tmp_path, capsys):
    walk = encode_video(tmp_path / "walk.mp4")  # 2 s at 10 frames a second
    (tmp_path / "walk.txt").write_text(CHAPTERS)
    stand, last = Instance(start=0, end=1, label="Stand"), Instance(start=1, end=2, label="Walk")
    truth = Truth(tmp_path / "walk.txt", {"walk": walk})
    assert truth.instances == {"walk": (stand, last)}
    assert truth.within("walk", 2.0) == (stand, last)
    assert capsys.readouterr().err == ""
    assert Truth(tmp_path / "walk.txt", {}).instances == {"walk": (stand,)}
    assert capsys.readouterr().err == f"{tmp_path / 'walk.txt'}: names no video of these\n"
    walk.write_bytes(b"no video")
    assert Truth(tmp_path / "walk.txt", {"walk": walk}).instances == {"walk": (stand,)}
    assert "whose duration is not known here" in capsys.readouterr().err


def test_a_video_that_is_not_needed_is_not_opened(tmp_path):
    (tmp_path / "a.csv").write_text("video,start,end,label\na,1,2,run\n")
    found = Truth(tmp_path / "a.csv", {"a": tmp_path / "none.mp4"}).instances
    assert found == {"a": (Instance(start=1, end=2, label="run"),)}


def test_wrong_times_are_a_line_each_and_the_rest_is_drawn(tmp_path, capsys):
    video = encode_video(tmp_path / "a.mp4", times=range(66))  # 6.6 s
    (tmp_path / "t.csv").write_text(
        "video,start,end,label\na,-1,2,run\na,3,2,run\na,,2,run\na,1,99,run\na,1,2,Walk\n"
        "a,6,7.5,late\nother,-1,2,run\n"
    )
    words = ["propose", str(video), "--model", "none", "--out", str(tmp_path / "out"), "--quiet"]
    assert main([*words, "--annotations", str(tmp_path / "t.csv")]) == 0
    place = f"left out {tmp_path / 't.csv'}: row"
    assert capsys.readouterr().err.splitlines() == [
        f"{place} 2: start -1 is before the video, which begins at 0",
        f"{place} 3: start 3 is not before end 2",
        f"{place} 4: start '' is not a time: seconds, m:ss or h:mm:ss",
        f"{place} 5: segment 1…99 s is outside the video, 0…6.6 s",
    ]
    picture = (tmp_path / "out" / "a.svg").read_text()
    assert "Walk" in picture
    assert "late" in picture
    assert "run" not in picture


def test_propose_draws_chapters_as_truth(tmp_path, capsys):
    walk = encode_video(tmp_path / "walk.mp4", times=range(60))
    (tmp_path / "walk.txt").write_text(CHAPTERS)
    words = ["propose", str(walk), "--model", "none", "--out", str(tmp_path / "out")]
    assert main([*words, "--annotations", str(tmp_path / "walk.txt")]) == 0, capsys.readouterr().err
    assert "Walk" in (tmp_path / "out" / "walk.svg").read_text()
