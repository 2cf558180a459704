"""Decoding: the right frames at the right times from every kind of file, or one clear line."""

import subprocess
import sys
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from actionspan.dataset.timeline import read_timeline
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.video import decode
from actionspan.video.decode import read_frames
from actionspan.video.decord_reader import decord, decord_pictures
from actionspan.video.settings import Decoder
from tiers import first_tier
from video.numbered import copy_packets, encode, numbered_picture, read_number, write_film
from worlds.command import actionspan

FRAMES = 75
H265 = {"codec": "libx265", "options": {"x265-params": "log-level=none:bframes=4"}}
OPEN = {"codec": "libx265", "options": {"x265-params": "log-level=none:open-gop=1:keyint=24"}}
MPEG4 = {"codec": "mpeg4", "b_frames": 2, "key_every": 30}
FILES = {  # `footage` has more
    "h264_10bit.mp4": {"pixels": "yuv420p10le"},
    "h264_full_range.mp4": {"pixels": "yuvj420p"},
    "h265_open_gop.mkv": OPEN,
    "mpeg4_b.mp4": MPEG4,
    "h264_groups.ts": {"key_every": 24},
    "h264.h264": {"container": "h264"},  # decord does not open it; it has no time stamps
}


def decoded(path: Path, decoder: Decoder = "pyav") -> tuple[list[int], list[float]]:
    """Return the numbers in a file's pictures and their times."""
    frames = read_frames(path, decoder=decoder)
    found = [(read_number(frame.picture()), frame.seconds) for frame in frames]
    return [number for number, _ in found], [seconds for _, seconds in found]


@pytest.mark.parametrize("name", FILES)
def test_every_frame_comes_once_in_order_at_its_time(name, tmp_path):
    path = encode(tmp_path / name, FRAMES, **FILES[name])
    numbers, seconds = decoded(path)
    assert numbers == list(range(FRAMES))
    np.testing.assert_allclose(seconds, np.arange(FRAMES) / 25, atol=0.0011)  # mkv: milliseconds
    by_decord = read_frames(path, decoder="decord")
    for ours, theirs in zip(read_frames(path), by_decord, strict=True):
        assert ours.seconds == theirs.seconds
        difference = np.abs(ours.picture().astype(int) - theirs.picture()).mean()
        assert difference <= (3 if "10bit" in name else 0)


@pytest.mark.parametrize("trimmed", [5, 30])
def test_an_edit_list_hides_frames_and_leaves_no_stale_ones(trimmed, tmp_path):
    hidden = {"use_editlist": "1", "avoid_negative_ts": "disabled"}
    stamps, out = range(-trimmed, FRAMES - trimmed), tmp_path / "edit.mp4"
    path = encode(out, FRAMES, stamps=stamps, key_every=24, container_options=hidden)
    numbers, seconds = decoded(path)
    timeline = read_timeline(path)
    assert len(timeline) == FRAMES - trimmed
    assert not timeline.continuous
    assert numbers == list(range(trimmed, FRAMES))
    np.testing.assert_allclose(seconds, np.arange(FRAMES - trimmed) / 25, atol=1e-9)


def test_a_stream_cut_in_the_middle_of_a_group_starts_at_its_first_key_frame(tmp_path):
    options = {"x264-params": "keyint=24:min-keyint=24:scenecut=0:bframes=0"}
    whole = encode(tmp_path / "whole.mkv", FRAMES, options=options)
    path = copy_packets(whole, tmp_path / "cut.mkv", range(5, FRAMES))
    numbers, seconds = decoded(path)
    assert numbers == list(range(24, FRAMES))
    # Counted from the first packet, as the duration is.
    np.testing.assert_allclose(seconds, np.arange(19, FRAMES - 5) / 25, atol=0.0011)


def test_frames_lost_between_others_leave_a_gap_in_time(tmp_path):
    whole = encode(tmp_path / "whole.mkv", FRAMES, options={"x264-params": "keyint=1"})
    kept = [*range(30), *range(40, FRAMES)]
    numbers, seconds = decoded(copy_packets(whole, tmp_path / "gap.mkv", kept))
    assert numbers == kept
    np.testing.assert_allclose(seconds, np.array(kept) / 25, atol=0.0011)


@pytest.mark.parametrize("width", [12, 16, 24, 32, 48, 72, 96, 130, 144])
def test_narrow_frames_that_decord_pads_come_whole(width, tmp_path):
    random = np.random.default_rng(width)
    picture = random.integers(0, 255, (18, width, 3), dtype=np.uint8)
    write_film(tmp_path / "narrow.mkv", [picture], codec="ffv1", pixels="bgr0")
    for decoder in ("pyav", "decord"):
        (only,) = read_frames(tmp_path / "narrow.mkv", decoder=decoder)
        np.testing.assert_array_equal(only.picture(), picture)


@pytest.mark.parametrize(
    ("frames", "lacking", "refused"),
    [(24, 6, False), (24, 7, True), (100, 16, False), (100, 17, True)],
)
def test_a_quarter_of_the_frames_and_16_may_lack(tmp_path, monkeypatch, frames, lacking, refused):
    path = encode(tmp_path / "v.mp4", frames)
    pictures = [(0.0, lambda: np.zeros((2, 2, 3), np.uint8))] * (frames - lacking)
    monkeypatch.setattr(decode, "_pyav_frames", lambda *_: iter(pictures))
    found = read_frames(path)
    if refused:
        with pytest.raises(InputError, match=f"stopped at frame {frames - lacking} of {frames}"):
            list(found)
    else:
        assert len(list(found)) == frames - lacking


def test_frames_beyond_the_packets_follow_at_the_usual_step(tmp_path):
    timeline = read_timeline(encode(tmp_path / "v.mp4", 10))
    assert [timeline.at(index) for index in (0, 9, 10, 12)] == pytest.approx([0, 0.36, 0.4, 0.48])


def test_decord_decodes_a_frame_once(tmp_path, monkeypatch):
    path = encode(tmp_path / "v.mp4", FRAMES)
    calls = []
    reader: Any = decord().VideoReader

    class Watched(reader):
        def next(self):
            calls.append("next")
            return super().next()

        def seek(self, position):
            raise AssertionError("no seeking")

        seek_accurate = get_batch = skip_frames = seek

    monkeypatch.setattr(decord(), "VideoReader", Watched)
    monkeypatch.setattr(decode, "_pyav_frames", None)
    assert len(list(read_frames(path, decoder="decord"))) == FRAMES == len(calls)


def test_without_decord_the_extra_is_named_and_no_video_is_rejected(tmp_path, monkeypatch, capfd):
    path, table = encode(tmp_path / "v.mp4", 8), tmp_path / "v.tsv"
    assert actionspan("dataset", "probe", "--videos", path, "--out", table) == 0
    (tmp_path / "decord.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)  # of the processes that decode, too
    out = tmp_path / "x.h5"
    words = ("video", "frames", "--shard", table, "--out", out)
    assert actionspan(*words, "--decoder", "decord") != 0
    assert "decord is not installed: pip install 'actionspan[decord]'" in capfd.readouterr().err
    assert not out.exists()
    assert actionspan(*words) == 0


@pytest.mark.full
def test_memory_does_not_grow_with_the_length(tmp_path):
    path = encode(tmp_path / "long.mp4", 1500, options={"preset": "ultrafast"})
    tracemalloc.start()
    for frame in read_frames(path):
        frame.picture()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1500 * 64 * 128 * 3 / 20


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv"])
@pytest.mark.parametrize("turn", [90, 180, 270])
def test_stored_turned_pictures_are_shown_upright(turn, suffix, tmp_path):
    path = tmp_path / f"v.{suffix}"
    pictures = (np.rot90(numbered_picture(number), -turn // 90) for number in range(20))
    write_film(path, pictures, rotation=turn)
    assert decoded(path)[0] == decoded(path, "decord")[0] == list(range(20))


CASES = {  # frames, height, width, seconds of the last frame
    "decord_unordered.mov": (4, 50, 50, 3 / 32),
    "decord_video_0.mov": (3, 320, 568, None),
    "decord_video_90.mov": (3, 568, 320, None),
    "decord_video_180.mov": (3, 320, 568, None),
    "decord_video_270.mov": (3, 568, 320, None),
    "flipping_a_pancake.mkv": (310, 240, 426, 10.3),
    "intel_onebyone.mp4": (1394, 432, 768, None),
    "mma_demo.mp4": (280, 256, 340, 279 / 28),
    "torchcodec_av1_video.mkv": (125, 360, 640, 4.96),
    "torchcodec_bt709_full_range.mp4": (30, 720, 1280, 29 / 30),
    "torchcodec_h264_10bits.mp4": (30, 200, 200, 29 / 30),
    "torchcodec_h265_video.mp4": (10, 128, 128, 0.9),
    # Two video streams: the one FFmpeg calls best is the larger, 29.97 a second.
    "torchcodec_nasa_13013.mp4": (390, 270, 480, 389 * 1001 / 30000),
}


SHORT = [name for name in sorted(CASES)[::2] if name != "intel_onebyone.mp4"]


@pytest.mark.parametrize("name", first_tier(CASES, *SHORT))
def test_hard_cases(name, shared_data):
    """Facts, sizes, counts and times are right; decord's pictures are the same, and upright."""
    frames, height, width, last = CASES[name]
    path = shared_data / "decode_cases" / name
    video = probe_video(path)
    assert (video.error, video.frames, video.height, video.width) == ("", frames, height, width)
    ours = list(read_frames(path))
    assert len(ours) == frames
    assert ours[0].picture().shape == (height, width, 3)
    assert last is None or ours[-1].seconds == pytest.approx(last, abs=0.001)
    for one, other in zip(ours[:60], read_frames(path, decoder="decord"), strict=False):
        difference = np.abs(one.picture().astype(int) - other.picture()).mean()
        assert difference <= (3 if "10bits" in name else 0)
        assert one.seconds == pytest.approx(other.seconds, abs=1e-6)


def test_a_corrupted_file_is_one_line_and_not_a_short_video(shared_data):
    path = shared_data / "decode_cases" / "decord_corrupted.mp4"
    assert probe_video(path).error == "damaged at frame 30: its data do not fit its packet"
    line = rf"^{path}: decoding stopped at frame 28 of 50: [^\n]*damaged[^\n]*$"
    with pytest.raises(InputError, match=line):
        list(read_frames(path))


def test_damage_in_the_middle_and_a_lost_end_are_found(tmp_path):
    flags = {"movflags": "faststart"}
    options = {"x264-params": "keyint=24:bframes=2"}
    path = encode(tmp_path / "v.mp4", 300, options=options, container_options=flags)
    content = path.read_bytes()
    middle = len(content) * 2 // 3
    damaged = content[:middle] + b"\xff" * 300 + content[middle + 300 :]
    for each, of in ((damaged, 300), (content[: len(content) // 2], "")):
        path.write_bytes(each)
        with pytest.raises(InputError, match=rf"decoding stopped at frame \d+ of {of}"):
            list(read_frames(path))


def test_pyav_goes_on_where_decord_gives_up(tmp_path, monkeypatch):
    path = encode(tmp_path / "v.mp4", FRAMES)
    first = list(islice(decord_pictures(path), 20))
    monkeypatch.setattr(decode, "decord_pictures", lambda path: iter(first))
    numbers, seconds = decoded(path, "decord")
    assert numbers == list(range(FRAMES))
    np.testing.assert_allclose(seconds, np.arange(FRAMES) / 25, atol=1e-9)


def write_sound(path: Path) -> None:
    with av.open(str(path), "w") as file:
        stream = file.add_stream("pcm_s16le", rate=8000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), "s16", "mono")
        sound.sample_rate = 8000
        file.mux(stream.encode(sound))
        file.mux(stream.encode(None))


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (Path.touch, "FFmpeg"),
        (lambda path: path.write_bytes(b"no video at all" * 100), "FFmpeg"),
        (write_sound, "no video stream"),
        (lambda path: None, "no such file"),
    ],
)
def test_what_is_no_video_is_one_line(write, reason, tmp_path):
    path = tmp_path / "v.mkv"
    write(path)
    assert probe_video(path).error
    with pytest.raises(InputError, match=rf"{path}: [^\n]*{reason}[^\n]*$"):
        list(read_frames(path))


def test_names_that_look_like_protocols_or_options_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a:b.mp4", "-x.mp4", "ünï cödé.mp4"):
        source = encode(tmp_path / "v.mp4", 3)
        source.rename(tmp_path / name)
        assert decoded(Path(name))[0] == [0, 1, 2]


@pytest.mark.full
def test_torch_and_pyav_work_after_decord(tmp_path):
    """decord2 puts NVIDIA's BLAS before torch's and its FFmpeg before PyAV's, if it is let.

    What the program does after decord is decoding; encoding one H.265 frame beside decord and
    torch still fails now and then, so the file is made before.
    """
    path = encode(tmp_path / "v.mp4", 8)
    code = (
        "from actionspan.video import decode, decord_reader\n"
        "decord_reader.decord()\n"
        "import av, pathlib, torch\n"
        "print(torch.nn.Conv2d(3, 32, 7)(torch.rand(1, 3, 136, 152)).shape)\n"
        "print((torch.rand(300, 300) @ torch.rand(300, 300)).shape)\n"
        "assert not [line for line in open('/proc/self/maps') if 'libnvblas' in line]\n"
        f"path = pathlib.Path({str(path)!r})\n"
        "assert len(list(av.open(str(path)).decode(video=0))) == 8\n"
        "print(len(list(decode.read_frames(path, decoder='decord'))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "torch.Size([1, 32, 130, 146])\ntorch.Size([300, 300])\n8\n"
