"""Clips of events: which frames they hold, copied or encoded again, and the lists of them."""

from fractions import Fraction

import av
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.events.clips import cut, edl
from actionspan.events.cutting import Clip, copy_clip, encode_clip, frames_of, write_reel
from dataset.conftest import encode_video
from video.numbered import encode, read_number, write_film
from worlds.command import actionspan
from worlds.sounds import add_tone

RATE, SECONDS = 10, 8
OPTIONS = {"g": "12", "sc_threshold": "0"}  # a key frame in 1.2 seconds


@pytest.fixture(scope="module")
def film(request, tmp_path_factory):
    """A film of numbered frames, B-frames too, with sound."""
    path = tmp_path_factory.mktemp("film") / f"film.{getattr(request, 'param', 'mp4')}"
    encode(path, RATE * SECONDS, rate=RATE, options=OPTIONS)
    add_tone(path, (0.5,))
    return path


def numbers(path):
    """Return the times of a film's frames and which of the original they are."""
    with av.open(str(path)) as file:
        frames = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in file.decode(video=0)]
    return [time for time, _ in frames], [read_number(picture) for _, picture in frames]


def clip(film, start, end):
    return Clip(film, start, end, "jump", "one")


def test_a_clip_encoded_again_has_the_frames_of_the_event(film, tmp_path):
    path = encode_clip(clip(film, 3.1, 4.4), tmp_path)
    times, found = numbers(path)
    assert found == list(range(31, 44))
    assert times == pytest.approx([k / RATE for k in range(13)], abs=0.002)


@pytest.mark.parametrize("film", ["mp4", "mkv"], indirect=True)
def test_a_copied_clip_begins_at_the_key_frame_before_and_has_all_of_the_event(film, tmp_path):
    path = copy_clip(clip(film, 4.1, 5.4), tmp_path)  # 3.6 as a float is above 18/5
    assert path.suffix == film.suffix
    times, found = numbers(path)
    assert found[0] == 36
    assert set(found) >= set(range(36, 54))
    assert max(found) < 60  # the group of pictures may be longer by some
    assert times[0] == pytest.approx(0, abs=0.05)
    with av.open(str(path)) as file:
        assert file.streams.audio


def test_a_reel_is_one_event_after_the_other(film, tmp_path):
    write_reel([clip(film, 1.0, 1.5), clip(film, 6.0, 6.3)], tmp_path / "reel.mp4")
    times, found = numbers(tmp_path / "reel.mp4")
    assert found == [10, 11, 12, 13, 14, 60, 61, 62]
    assert (np.diff(times) > 0).all()
    assert times[5] == pytest.approx(0.5, abs=0.01)


def test_an_event_behind_the_end_is_one_line(film):
    with pytest.raises(InputError, match=r"no frame from 20\.000 to 21\.000 s"):
        list(frames_of(clip(film, 20.0, 21.0)))


def test_the_command_cuts_what_it_can_and_reports_the_rest(film, tmp_path, capsys):
    events = tmp_path / "events.csv"
    events.write_text("video,start,end,label\nfilm,1,2,jump up\nfilm,3,4,fall\ngone,1,2,fall\n")
    words = ("clips", events, "--videos", film.parent, "--out", tmp_path / "out")
    assert actionspan(*words, "--label", "fall") == 1  # something was left out
    assert [path.stem for path in (tmp_path / "out").iterdir()] == ["film-001-fall"]
    assert "gone: no such video" in capsys.readouterr().err
    events.write_text("video,start,end,label\nfilm,1,2,jump up\nfilm,3,4,fall\n")
    assert actionspan(*words, "--exact", "--around", "0.5") == 0
    assert numbers(tmp_path / "out/film-001-jump_up.mp4")[1] == list(range(5, 25))
    assert actionspan(*words, "--lists") == 0
    listed = (tmp_path / "out/film.csv").read_text()
    assert listed == "1.000,2.000,jump up\n3.000,4.000,fall\n"


def test_an_edit_decision_list_counts_frames(film):
    lines = edl([clip(film, 1.0, 2.5), clip(film, 3661.04, 3662.0)], 25.0).splitlines()
    assert lines[2].split()[-4:] == ["00:00:01:00", "00:00:02:13", "00:00:00:00", "00:00:01:13"]
    assert lines[5].split()[-4:] == ["01:01:01:01", "01:01:02:00", "00:00:01:13", "00:00:02:12"]


def test_what_no_container_takes_is_encoded(tmp_path):
    flat = (np.full((48, 64, 3), 20 * number, np.uint8) for number in range(10))
    path = write_film(tmp_path / "old.avi", flat, rate=RATE, codec="cinepak", pixels="rgb24")
    cut(Clip(path, 0.2, 0.6, "", "one"), tmp_path / "out", exact=False)
    assert [made.name for made in (tmp_path / "out").iterdir()] == ["one.mp4"]
    assert len(numbers(tmp_path / "out/one.mp4")[0]) == 4


def test_a_film_of_a_phone_stays_upright(tmp_path):
    path = tmp_path / "phone.mp4"
    encode_video(path, times=range(50), tick=Fraction(1, 25), rotation=90)
    copied = copy_clip(Clip(path, 0.4, 1.0, "", "copied"), tmp_path)
    with av.open(str(path)) as before, av.open(str(copied)) as after:
        frames = [next(file.decode(video=0)) for file in (before, after)]
    assert frames[1].rotation == frames[0].rotation != 0
    with av.open(str(encode_clip(Clip(path, 0.4, 1.0, "", "exact"), tmp_path))) as file:
        frame = next(file.decode(video=0))
    assert (frame.width, frame.height, frame.rotation) == (48, 64, 0)


@pytest.fixture
def videos(tmp_path):
    """A function that makes films of the names in a folder, and returns it."""

    def videos(*names):
        for name in names:
            encode_video(tmp_path / "videos" / name, times=range(50), tick=Fraction(1, 25))
        return tmp_path / "videos"

    (tmp_path / "videos").mkdir()
    return videos


@pytest.fixture
def clips(tmp_path, capsys):
    """A function that runs `clips` on rows; it returns status, lines and what is in `out`."""

    def clips(rows, *words):
        events = tmp_path / "events.csv"
        events.write_text("\n".join(["video,start,end,label", *rows]) + "\n")
        status = actionspan("clips", events, "--videos", tmp_path / "videos", *words)
        shown, out = capsys.readouterr(), tmp_path / "out"
        made = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
        return status, shown.out.splitlines() + shown.err.splitlines(), made

    return clips


def test_a_reel_alone_and_beside_clips(videos, clips, tmp_path, monkeypatch):
    videos("a.mp4")
    monkeypatch.chdir(tmp_path)
    reel, row = tmp_path / "reel.mp4", ["a,0.4,1,x"]
    status, said, _ = clips(row, "--reel", reel)
    assert (status, said) == (0, [f"{reel}: 1 event"])
    assert not (tmp_path / "clips").exists()
    for more, made in (([], ["a-001-x.mp4"]), (["--lists"], ["a-001-x.mp4", "a.csv", "a.edl"])):
        reel.unlink()
        status, said, found = clips(row, "--reel", reel, "-o", tmp_path / "out", *more)
        assert (status, found, len(said)) == (0, made, 2)
        assert reel.is_file()


def test_names_with_dots_and_two_names_of_a_video_keep_their_own_files(videos, clips, tmp_path):
    videos("cam.mp4", "cam.1.mp4", "cam.2.mp4")
    rows = ["cam,0,1,x", "cam.1,0,1,x", "cam.2,0,1,x", "cam.2.mp4,1,2,x"]
    status, said, made = clips(rows, "--lists", "-o", tmp_path / "out")
    assert (status, said[0].rpartition(": ")[2]) == (0, "lists of 3 videos")
    assert made == sorted(f"cam{n}.{form}" for n in ("", ".1", ".2") for form in ("csv", "edl"))
    assert (tmp_path / "out/cam.2.csv").read_text() == "0.000,1.000,x\n1.000,2.000,x\n"
    clips(rows, "-o", tmp_path / "out2")
    made = sorted(path.name for path in (tmp_path / "out2").iterdir())
    names = ("cam-001", "cam.1-001", "cam.2-001", "cam.2-002")
    assert made == [f"{name}-x.mp4" for name in names]


def test_names_that_differ_in_a_space_keep_their_own_clips(videos, clips, tmp_path):
    videos("a b.mp4", "a_b.mp4")
    _, said, made = clips(["a b,0,1,x", "a_b,0,1,x"], "-o", tmp_path / "out")
    assert (said, len(made)) == ([f"{tmp_path / 'out'}: 2 clips"], 2)


def test_no_clip_and_no_reel_replaces_a_video(videos, clips, tmp_path):
    folder = videos("a.mp4", "a-001-x.mp4")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "link.mp4").symlink_to(folder / "a.mp4")
    (tmp_path / "hard.mp4").hardlink_to(folder / "a.mp4")
    outputs = [
        *(("--reel", path) for path in (folder / "a.mp4", folder / ".." / "videos" / "a.mp4")),
        *(("--reel", tmp_path / name) for name in ("link.mp4", "hard.mp4")),
        *(("-o", folder, *more) for more in ([], ["--exact"])),
        ("--reel", tmp_path / "events.csv"),
    ]
    for words in outputs:
        status, said, _ = clips(["a,0.4,1,x"], *words)
        assert (status, len(said)) == (2, 1)
        assert said[0].endswith(": is an input of this command; name another output")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert (tmp_path / "link.mp4").is_symlink()
    # an earlier clip of the same name is replaced
    for _ in range(2):
        assert clips(["a,0.4,1,x"], "-o", tmp_path / "out")[0] == 0


def test_a_place_of_another_kind_is_one_line(videos, clips, tmp_path):
    videos("a.mp4")
    (tmp_path / "file").touch()
    for words, line in (
        (("-o", tmp_path / "file"), f"{tmp_path / 'file'}: is a file; name a folder"),
        (("--reel", tmp_path), f"{tmp_path}: is a folder; name a file"),
    ):
        status, said, _ = clips(["a,0,1,x", "a,1,2,x"], *words)
        assert (status, said) == (2, [f"actionspan clips: {line}"])
