"""Copies for browsers: which videos need one, and that a copy shows the same at the same times."""

from fractions import Fraction

import av
import numpy as np
import pytest

from actionspan.dataset.timeline import read_timeline
from actionspan.errors import InputError
from actionspan.video.decode import read_frames
from actionspan.video.playable import playback_fault, write_playable
from actionspan.video.settings import CopySettings
from video.numbered import encode, read_number
from video.test_decode import FILES, H265

IN_FOOTAGE = {"h265_open_gop.mkv", "mpeg4_b.mp4", "h264_groups.ts"}  # which copies such files too

VP9 = {"codec": "libvpx-vp9", "options": {"cpu-used": "8", "deadline": "realtime"}}
REASONS = {
    "h264.mp4": ({}, ""),
    "h264.mov": ({}, ""),
    "full_range.mp4": ({"pixels": "yuvj420p"}, ""),
    "vp9.webm": (VP9, ""),
    "vp9.mp4": (VP9, ""),
    "vp8.webm": ({"codec": "libvpx"}, ""),
    "h264.mkv": ({}, "H.264 in Matroska"),
    "h264.avi": ({}, "H.264 in AVI"),
    "h264.ts": ({}, "H.264 in MPEGTS"),
    "h265.mp4": (H265, "H.265 in MP4"),
    "mpeg4.mp4": ({"codec": "mpeg4"}, "MPEG-4 ASP in MP4"),
    "ten.mp4": ({"pixels": "yuv420p10le"}, "H.264 of 10 bits"),
    "colour.mp4": ({"pixels": "yuv444p"}, "H.264 in yuv444p"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_browser_plays_what_all_browsers_play(name, tmp_path):
    how, reason = REASONS[name]
    assert playback_fault(encode(tmp_path / name, 10, **how)) == reason


def test_real_files(shared_data):
    cases = shared_data / "decode_cases"
    said = {path.name: playback_fault(path) for path in sorted(cases.iterdir())}
    assert {name: reason for name, reason in said.items() if reason} == {
        "flipping_a_pancake.mkv": "H.264 in Matroska",
        "torchcodec_av1_video.mkv": "AV1 in Matroska",
        "torchcodec_h264_10bits.mp4": "H.264 of 10 bits",
        "torchcodec_h265_video.mp4": "H.265 in MP4",
        "torchcodec_nasa_13013.mp4": "a browser plays another of its 2 video streams",
    }


@pytest.mark.parametrize("name", sorted(FILES.keys() - IN_FOOTAGE))
def test_a_copy_plays_and_shows_each_frame_at_its_time(name, tmp_path):
    path, copy = encode(tmp_path / name, 60, **FILES[name]), tmp_path / "copy.mp4"
    assert write_playable(path, copy, CopySettings(quality=18)) == playback_fault(copy) == ""
    assert [read_number(frame.picture()) for frame in read_frames(copy)] == list(range(60))
    old, new = (read_timeline(each).seconds for each in (path, copy))
    np.testing.assert_allclose(new, old, atol=0.001)


def test_a_variable_rate_keeps_its_times_and_a_key_frame_begins_each_second(tmp_path):
    steps = np.random.default_rng(0).integers(20, 300, 40)
    stamps = np.cumsum(steps).tolist()  # milliseconds
    path = encode(tmp_path / "v.mkv", 40, stamps=stamps, tick=Fraction(1, 1000))
    write_playable(path, tmp_path / "copy.mp4", CopySettings(quality=18))
    frames = list(read_frames(tmp_path / "copy.mp4"))
    seconds = (np.array(stamps) - stamps[0]) / 1000
    np.testing.assert_allclose([frame.seconds for frame in frames], seconds, atol=0.0011)
    assert [read_number(frame.picture()) for frame in frames] == list(range(40))
    with av.open(str(tmp_path / "copy.mp4")) as file:
        keys = [one.pts * one.time_base for one in file.demux(video=0) if one.is_keyframe]
    first = [seconds[seconds >= whole].min() for whole in range(int(seconds[-1]) + 1)]
    np.testing.assert_allclose(np.array(keys, float), sorted(set(first)), atol=0.0011)


def test_a_copy_is_small_and_never_larger_than_the_video(tmp_path):
    path = encode(tmp_path / "v.mp4", 5, size=(300, 402))
    for side, shape in ((100, (100, 134)), (1000, (300, 402))):
        write_playable(path, tmp_path / "copy.mp4", CopySettings(short_side=side))
        assert next(iter(read_frames(tmp_path / "copy.mp4"))).picture().shape == (*shape, 3)


@pytest.mark.full
def test_real_files_are_upright_square_and_heard(shared_data, tmp_path):
    cases, out = shared_data / "decode_cases", tmp_path / "copy.mp4"
    shapes = {}
    for name in ("decord_video_90.mov", "decord_video_180.mov", "mma_demo.mp4"):
        write_playable(cases / name, out)
        shapes[name] = next(iter(read_frames(out))).picture().shape[:2]
    assert shapes == {
        "decord_video_90.mov": (568, 320),
        "decord_video_180.mov": (320, 568),
        "mma_demo.mp4": (256, 426),  # 340 wide, pixels of 64:51
    }
    for name in ("flipping_a_pancake.mkv", "torchcodec_nasa_13013.mp4"):
        write_playable(cases / name, out)
        with av.open(str(out)) as copy, av.open(str(cases / name)) as file:
            assert copy.streams.audio[0].codec.name == "aac"
            assert copy.duration / 1e6 == pytest.approx(file.duration / 1e6, abs=0.1)
            ends = [float(s.duration * s.time_base) for s in copy.streams]
            assert ends[0] == pytest.approx(ends[1], abs=0.15)


def test_colours_are_those_of_the_video(shared_data, tmp_path):
    path, copy = shared_data / "decode_cases/torchcodec_bt709_full_range.mp4", tmp_path / "copy.mp4"
    write_playable(path, copy, CopySettings(quality=10))
    old, new = (next(iter(read_frames(each))).picture().mean(axis=(0, 1)) for each in (path, copy))
    np.testing.assert_allclose(new, old, atol=2.0)


def test_a_damaged_video_is_copied_as_far_as_it_goes(tmp_path):
    path = encode(tmp_path / "v.mp4", 100, codec="mpeg4", key_every=100)
    (tmp_path / "cut.mp4").write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match="not a video that FFmpeg can read"):
        write_playable(tmp_path / "cut.mp4", tmp_path / "copy.mp4")
    with pytest.raises(InputError, match="no such file"):
        playback_fault(tmp_path / "none.mp4")
    assert not (tmp_path / "copy.mp4").exists()
    path = encode(tmp_path / "v.mp4", 100, container_options={"movflags": "faststart"})
    content = path.read_bytes()
    (tmp_path / "broken.mp4").write_bytes(content[: len(content) * 2 // 3])
    said = write_playable(tmp_path / "broken.mp4", tmp_path / "copy.mp4")
    assert "decoding stopped at frame" in said
    assert 10 < len(list(read_frames(tmp_path / "copy.mp4"))) < 90
