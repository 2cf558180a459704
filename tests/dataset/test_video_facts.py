"""Facts of a file without decoding it: what its container says, and whether that is true."""

import hashlib
import re
import shutil
import struct
from dataclasses import replace
from fractions import Fraction
from unittest.mock import Mock

import pytest

from actionspan.dataset.containers import stated_bytes, turned_sideways
from actionspan.dataset.settings import LimitSettings
from actionspan.dataset.video_facts import probe_video, timing
from actionspan.errors import InputError
from actionspan.video.decode import read_frames
from dataset.conftest import encode_video

RATE = Fraction(1, 25)


def test_a_plain_file(video_file):
    video = probe_video(video_file)
    assert (video.video_id, video.path, video.error) == ("whole", video_file, "")
    assert (video.fps, video.frames, video.duration_seconds) == (10.0, 20, 2.0)
    assert (video.width, video.height) == (64, 48)
    assert video.sha256 == hashlib.sha256(video_file.read_bytes()).hexdigest()
    assert probe_video(video_file, checksum=False) == replace(video, sha256="")


@pytest.mark.parametrize(
    ("name", "codec", "stated"),
    [
        *[("b.mkv", "libx264", 20), ("b.mov", "libx264", None), ("b.avi", "mpeg4", 20)],
        *[("b.mpg", "mpeg1video", None), ("b.ts", "libx264", None), ("b.webm", "libvpx", None)],
        *[("b.mp4", "libx265", None), ("b.wmv", "wmv2", 20), ("b.mxf", "mpeg2video", 20)],
    ],
)
def test_containers_agree_with_the_decoder(tmp_path, name, codec, stated):
    options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
    video = probe_video(encode_video(tmp_path / name, codec=codec, tick=RATE, options=options))
    assert (video.error, video.frames) == ("", 20)
    assert stated in (None, video.stated_frames)
    assert len(list(read_frames(video.path))) == 20
    assert video.fps == pytest.approx(25, rel=1e-3)
    assert video.duration_seconds == pytest.approx(0.8, rel=1e-3)


def test_ntsc_rate_is_exact(tmp_path):
    video = probe_video(encode_video(tmp_path / "n.mp4", tick=Fraction(1001, 30000)))
    assert video.fps == 30000 / 1001
    assert video.duration_seconds == pytest.approx(20 * 1001 / 30000, rel=1e-12)


def test_variable_frame_rate_goes_by_the_time_stamps(tmp_path):
    times = [0, 1, 2, 3, 10, 11, 12, 30, 31]
    video = probe_video(encode_video(tmp_path / "v.mkv", times=times, options={"bf": "0"}))
    assert video.frames == 9
    assert video.duration_seconds == pytest.approx(3.2)
    assert video.fps == pytest.approx(9 / 3.2)


def test_a_single_frame_is_no_video(tmp_path):
    video = probe_video(encode_video(tmp_path / "one.mp4", times=[0]))
    assert video.error == "the video stream has a single frame; two or more are needed"
    assert (video.frames, video.duration_seconds) == (0, 0.0)
    two = probe_video(encode_video(tmp_path / "two.mp4", times=[0, 1]))
    assert (two.error, two.frames, two.duration_seconds) == ("", 2, 0.2)


@pytest.mark.parametrize(("rotation", "size"), [(90, (48, 64)), (270, (48, 64)), (180, (64, 48))])
def test_size_is_as_displayed(tmp_path, rotation, size):
    video = probe_video(encode_video(tmp_path / "r.mp4", rotation=rotation))
    assert (video.width, video.height) == size
    assert next(iter(read_frames(video.path))).picture().shape[:2] == size[::-1]


def test_odd_names_work(tmp_path, video_file):
    for name in ["two words", "a.b", 'it\'s "q"', "größe", "100%d", "a:b", "-x", "*?"]:
        path = shutil.copy(video_file, tmp_path / f"{name}.mp4")
        video = probe_video(path)
        assert (video.video_id, video.frames, video.error) == (name, 20, "")


def test_bad_files_have_one_reason(tmp_path, video_file):
    content = video_file.read_bytes()
    place = content.index(b"mdat") + 4  # the length of the first unit
    half = len(content) * 6 // 10
    cases = {
        b"": "the file is empty",
        b"this is no video\n" * 50: "not a video that FFmpeg can read: Invalid data found when",
        content[:half]: f"truncated: {half} bytes of at least {len(content)}",
        # without a length of its data
        content[: place - 8]
        + bytes(4)
        + content[place - 4 : half]: "damaged or truncated at frame",
        content[:place] + b"\xff" * 200 + content[place + 200 :]: "its data do not fit its packet",
        content[:half] + bytes(len(content) - half): "do not fit",
        None: "cannot be read: No such file or directory",
    }
    path = tmp_path / "bad.mp4"
    for data, reason in cases.items():
        path.unlink() if data is None else path.write_bytes(data)
        video = probe_video(path)
        assert reason in video.error
        assert video.error.isprintable()
        assert (video.fps, video.frames, video.duration_seconds, video.sha256) == (0, 0, 0, "")


def test_an_error_that_nobody_foresaw_is_the_videos_reason(video_file, monkeypatch):
    fails = Mock(side_effect=ZeroDivisionError("a bug"))
    monkeypatch.setattr("actionspan.dataset.video_facts.timing", fails)
    assert probe_video(video_file).error.startswith("ZeroDivisionError: a bug (dataset/video_facts")


def write_gif_header(path, width, height):
    size = struct.pack("<HH", width, height)
    image = b"," + bytes(4) + size + b"\x00\x02\x02\x4c\x01\x00;"
    path.write_bytes(b"GIF89a" + size + b"\x80\x00\x00" + bytes(6) + image)
    return path


def test_a_header_may_not_claim_any_size(tmp_path):
    path = write_gif_header(tmp_path / "huge.gif", 15000, 15000)
    expected = "frames of 15000×15000 pixels are more than video.max_pixels, 36000000"
    assert probe_video(path).error.startswith(expected)
    large = probe_video(write_gif_header(tmp_path / "8k.gif", 7680, 4320))
    assert large.error == "the video stream has a single frame; two or more are needed"
    video = encode_video(tmp_path / "long.mp4")
    assert not probe_video(video, LimitSettings(max_frames=20)).error
    expected = "more frames than video.max_frames, 19; cut the video or raise it"
    assert probe_video(video, LimitSettings(max_frames=19)).error == expected


@pytest.mark.parametrize("lost", [3, 14])
def test_frames_lost_inside_are_told_by_the_duration_that_is_stated(tmp_path, lost):
    path = encode_video(tmp_path / "t.mxf", codec="mpeg2video", tick=RATE)
    content = bytearray(path.read_bytes())
    picture = bytes.fromhex("060e2b34010201010d01030115")  # the key of an essence element
    places = [found.start() for found in re.finditer(re.escape(picture), content)]
    assert len(places) == 20
    for place in places[5 : 5 + lost]:
        content[place + 4] ^= 0xFF  # no key that a demuxer knows
    path.write_bytes(content)
    video = probe_video(path)
    assert (video.error, video.frames, video.stated_frames) == ("", 20 - lost, 20)


PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")  # of an ASF file
DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")


def packets_of(content: bytes) -> tuple[int, int]:
    """Return where the packets of an ASF file begin, and the bytes of each."""
    size = struct.unpack_from("<I", content, content.index(PROPERTIES) + 92)[0]
    return content.index(DATA) + 50, size


@pytest.mark.parametrize("frames", [6, 8, 20, 100])
def test_a_gap_in_a_wmv_of_any_length_is_told(tmp_path, frames):
    path = encode_video(tmp_path / "t.wmv", codec="wmv2", tick=RATE, times=range(frames))
    content = bytearray(path.read_bytes())
    start, size = packets_of(content)
    lost = start + size * ((len(content) - start) // size // 2)
    content[lost : lost + size] = bytes(size)
    path.write_bytes(content)
    video = probe_video(path)
    assert video.error == ""
    assert video.frames < frames == video.stated_frames


def test_bytes_put_into_a_wmv_do_not_hide_the_frames_they_cost(tmp_path):
    """FFmpeg forgets the duration of a file whose size is not the stated one."""
    path = encode_video(tmp_path / "t.wmv", codec="wmv2", tick=RATE)
    content = path.read_bytes()
    start, size = packets_of(content)
    place = start + 3 * size
    path.write_bytes(content[:place] + bytes(len(content) // 4) + content[place:])
    video = probe_video(path)
    assert video.error or video.frames == 20 or video.stated_frames == 20
    assert video.frames < 20


def test_a_live_wmv_states_no_length(tmp_path):
    path = encode_video(tmp_path / "t.wmv", codec="wmv2")
    content = bytearray(path.read_bytes())
    properties = content.index(PROPERTIES)
    content[properties + 88] |= 1  # broadcast: the sizes mean nothing
    struct.pack_into("<Q", content, properties + 40, 10**9)
    path.write_bytes(content)
    assert stated_bytes(path) == 0
    assert (probe_video(path).error, probe_video(path).frames) == ("", 20)


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *[("t.mkv", "libx264"), ("t.avi", "mpeg4"), ("t.wmv", "wmv2"), ("t.flv", "libx264")],
        ("t.mxf", "mpeg2video"),  # up to the footer that its header names
    ],
)
def test_truncated_containers_are_told_by_the_length_they_state(tmp_path, name, codec):
    path = encode_video(tmp_path / name, codec=codec, tick=RATE)
    content, stated = path.read_bytes(), stated_bytes(path)
    footer = content.rfind(bytes.fromhex("060e2b34020501010d010201010404"))
    assert stated == len(content) or 0 < footer < stated < len(content)
    path.write_bytes(content[: len(content) // 2])
    expected = f"truncated: {len(content) // 2} bytes of at least {stated}"
    assert probe_video(path).error == expected


def test_bytes_after_the_end_do_no_harm(tmp_path, video_file):
    path = tmp_path / "longer.mp4"
    path.write_bytes(video_file.read_bytes() + b"\0" * 100)
    assert probe_video(path).frames == 20


def test_timing_by_hand():
    assert timing([0, 0.5, 1.0], 3, 2.0, 0.001, 0.5) == (2.0, 1.5)
    assert timing([1.0, 0, 0.5], 3, 0.0, 0.001, 0.5) == (2.0, 1.5)  # out of order, no rate stated
    assert timing([0, 0.5, 1.0], 3, 25.0, 0.001, 0.5) == (2.0, 1.5)  # the header's rate is wrong
    assert timing([], 3, 2.0, 0.001, 0.0) == (2.0, 1.5)  # no stamps
    assert timing([0, 1, 3], 3, 1.0, 0.001, 1.0) == (0.75, 4.0)
    with pytest.raises(InputError, match="no frame rate and no time stamps"):
        timing([], 3, 0.0, 0.001, 0.0)


def test_real_frame_counts_equal_the_annotation(shared_data):
    folder = shared_data / "activitynet" / "videos"
    frames = {path.stem: probe_video(path).frames for path in folder.iterdir()}
    assert frames == {"v_GGSY1Qvo990": 355, "v_ZNVhz7ctTq0": 420}


def test_every_real_clip_is_whole(shared_data):
    for path in sorted((shared_data / "clips").rglob("*.*")):
        if path.is_file():
            video = probe_video(path)
            assert (video.error, video.frames > 0) == ("", True), path


def test_rotation_is_read_from_the_track_that_plays(shared_data):
    folder = shared_data / "decode_cases"
    assert turned_sideways(folder / "decord_video_90.mov", 1)
    assert not turned_sideways(folder / "decord_video_90.mov", 7)  # no such track
    assert not turned_sideways(folder / "torchcodec_nasa_13013.mp4", 4)
    assert not turned_sideways(folder / "flipping_a_pancake.mkv", 1)
