import hashlib
import re
import shutil
import struct
from dataclasses import replace
from fractions import Fraction

import pytest

from actionspan.dataset.containers import stated_bytes, turned_sideways
from actionspan.dataset.settings import LimitSettings
from actionspan.dataset.video_facts import probe_video, timing
from actionspan.errors import InputError


def read_in_order(path):
    """Return the number of frames and (height, width) as decord reads them, in order."""
    from actionspan.video.decord_reader import decord

    reader = decord().VideoReader(str(path), num_threads=1)
    shapes = []
    while True:
        try:
            shapes.append(reader.next().shape[:2])
        except StopIteration:
            return len(shapes), shapes[0]


def test_a_plain_file(video_file):
    video = probe_video(video_file)
    assert (video.video_id, video.path, video.error) == ("whole", video_file, "")
    assert (video.fps, video.frames, video.duration_seconds) == (10.0, 20, 2.0)
    assert (video.width, video.height) == (64, 48)
    assert video.sha256 == hashlib.sha256(video_file.read_bytes()).hexdigest()
    assert probe_video(video_file, checksum=False) == replace(video, sha256="")


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("b.mkv", "libx264"),
        ("b.mov", "libx264"),
        ("b.avi", "mpeg4"),
        ("b.mpg", "mpeg1video"),
        ("b.ts", "libx264"),
        ("b.webm", "libvpx"),
        ("b.mp4", "libx265"),
    ],
)
def test_containers_agree_with_the_decoder(tmp_path, encode, name, codec):
    options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
    if name == "b.ts":  # decord reads none of H.264 with B-frames in a transport stream
        options = {"bf": "0"}
    path = encode(tmp_path / name, codec=codec, tick=Fraction(1, 25), options=options)
    video = probe_video(path)
    assert video.error == ""
    assert video.frames == 20 == read_in_order(path)[0]
    assert video.fps == pytest.approx(25)
    assert video.duration_seconds == pytest.approx(0.8)


def test_ntsc_rate_is_exact(tmp_path, encode):
    video = probe_video(encode(tmp_path / "n.mp4", tick=Fraction(1001, 30000)))
    assert video.fps == 30000 / 1001
    assert video.duration_seconds == pytest.approx(20 * 1001 / 30000, rel=1e-12)


def test_variable_frame_rate_goes_by_the_time_stamps(tmp_path, encode):
    times = [0, 1, 2, 3, 10, 11, 12, 30, 31]
    video = probe_video(encode(tmp_path / "v.mkv", times=times, options={"bf": "0"}))
    assert video.frames == 9
    assert video.duration_seconds == pytest.approx(3.2)
    assert video.fps == pytest.approx(9 / 3.2)


def test_a_single_frame_is_no_video(tmp_path, encode):
    video = probe_video(encode(tmp_path / "one.mp4", times=[0]))
    assert video.error == "the video stream has a single frame; two or more are needed"
    assert (video.frames, video.duration_seconds) == (0, 0.0)
    two = probe_video(encode(tmp_path / "two.mp4", times=[0, 1]))
    assert (two.error, two.frames, two.duration_seconds) == ("", 2, 0.2)


@pytest.mark.parametrize(("rotation", "size"), [(90, (48, 64)), (270, (48, 64)), (180, (64, 48))])
def test_size_is_as_displayed(tmp_path, encode, rotation, size):
    path = encode(tmp_path / "r.mp4", rotation=rotation)
    video = probe_video(path)
    assert (video.width, video.height) == size
    assert read_in_order(path)[1] == (video.height, video.width)


def test_odd_names_work(tmp_path, video_file):
    for name in ["two words", "a.b", 'it\'s "q"', "größe", "100%d", "a:b", "-x", "*?"]:
        path = shutil.copy(video_file, tmp_path / f"{name}.mp4")
        video = probe_video(path)
        assert (video.video_id, video.frames, video.error) == (name, 20, "")


def bad_files(tmp_path, whole):
    content = whole.read_bytes()

    def write(name, data):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    marker = content.index(b"mdat")
    place = marker + 4  # the length of the first unit
    damaged = content[:place] + b"\xff" * 200 + content[place + 200 :]
    half = len(content) * 6 // 10
    unfinished = content[: marker - 4] + bytes(4) + content[marker : marker + 4]
    unfinished += content[marker + 4 : half]
    return {
        "empty": (write("empty.mp4", b""), "the file is empty"),
        "text": (
            write("text.mp4", b"this is no video\n" * 50),
            "not a video that FFmpeg can read: Invalid data found when processing input",
        ),
        "truncated": (
            write("truncated.mp4", content[:half]),
            f"truncated: {half} bytes of at least {len(content)}",
        ),
        "open end": (write("open_end.mp4", unfinished), "damaged or truncated at frame"),
        "damaged": (write("damaged.mp4", damaged), "its data do not fit its packet"),
        "zeros": (write("zeros.mp4", content[:half] + bytes(len(content) - half)), "do not fit"),
        "missing": (tmp_path / "missing.mp4", "cannot be read: No such file or directory"),
    }


@pytest.mark.parametrize(
    "case", ["empty", "text", "truncated", "open end", "damaged", "zeros", "missing"]
)
def test_bad_files_have_one_reason(tmp_path, video_file, case):
    path, reason = bad_files(tmp_path, video_file)[case]
    video = probe_video(path)
    assert reason in video.error
    assert video.error.isprintable()
    assert (video.fps, video.frames, video.duration_seconds, video.sha256) == (0, 0, 0, "")


def test_an_error_that_nobody_foresaw_is_the_videos_reason(video_file, monkeypatch):
    def fails(*_) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("actionspan.dataset.video_facts.timing", fails)
    assert probe_video(video_file).error.startswith("ZeroDivisionError: a bug (dataset/video_facts")


def write_gif_header(path, width, height):
    size = struct.pack("<HH", width, height)
    image = b"," + bytes(4) + size + b"\x00\x02\x02\x4c\x01\x00;"
    path.write_bytes(b"GIF89a" + size + b"\x80\x00\x00" + bytes(6) + image)
    return path


def test_a_header_may_not_claim_any_size(tmp_path, encode):
    path = write_gif_header(tmp_path / "huge.gif", 15000, 15000)
    expected = "pictures of 15000×15000 pixels are more than video.max_pixels, 36000000"
    assert probe_video(path).error.startswith(expected)
    large = probe_video(write_gif_header(tmp_path / "8k.gif", 7680, 4320))
    assert large.error == "the video stream has a single frame; two or more are needed"
    video = encode(tmp_path / "long.mp4")
    assert not probe_video(video, LimitSettings(max_frames=20)).error
    expected = "more frames than video.max_frames, 19; cut the video or raise it"
    assert probe_video(video, LimitSettings(max_frames=19)).error == expected


@pytest.mark.parametrize(
    ("name", "codec"),
    [("t.avi", "mpeg4"), ("t.mkv", "libx264"), ("t.wmv", "wmv2"), ("t.mxf", "mpeg2video")],
)
def test_frames_are_stated_by_containers(tmp_path, encode, name, codec):
    video = probe_video(encode(tmp_path / name, codec=codec, tick=Fraction(1, 25)))
    assert video.frames == video.stated_frames == 20


@pytest.mark.parametrize("lost", [3, 14])
def test_frames_lost_inside_are_told_by_the_duration_that_is_stated(tmp_path, encode, lost):
    path = encode(tmp_path / "t.mxf", codec="mpeg2video", tick=Fraction(1, 25))
    content = bytearray(path.read_bytes())
    picture = bytes.fromhex("060e2b34010201010d01030115")  # the key of an essence element
    places = [found.start() for found in re.finditer(re.escape(picture), content)]
    assert len(places) == 20
    for place in places[5 : 5 + lost]:
        content[place + 4] ^= 0xFF  # no key that a demuxer knows
    path.write_bytes(content)
    video = probe_video(path)
    assert (video.error, video.frames, video.stated_frames) == ("", 20 - lost, 20)


def packets_of(content: bytes) -> tuple[int, int]:
    """Return where the packets of an ASF file begin, and the bytes of each."""
    properties = content.index(bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"))
    data = content.index(bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c"))
    return data + 50, struct.unpack_from("<I", content, properties + 92)[0]


@pytest.mark.parametrize("frames", [6, 8, 20, 100])
def test_a_gap_in_a_wmv_of_any_length_is_told(tmp_path, encode, frames):
    path = encode(tmp_path / "t.wmv", codec="wmv2", tick=Fraction(1, 25), times=range(frames))
    content = bytearray(path.read_bytes())
    start, size = packets_of(content)
    lost = start + size * ((len(content) - start) // size // 2)
    content[lost : lost + size] = bytes(size)
    path.write_bytes(content)
    video = probe_video(path)
    assert video.error == ""
    assert video.frames < frames == video.stated_frames


def test_bytes_put_into_a_wmv_do_not_hide_the_frames_they_cost(tmp_path, encode):
    """FFmpeg forgets the duration of a file whose size is not the stated one."""
    path = encode(tmp_path / "t.wmv", codec="wmv2", tick=Fraction(1, 25))
    content = path.read_bytes()
    start, size = packets_of(content)
    place = start + 3 * size
    path.write_bytes(content[:place] + bytes(len(content) // 4) + content[place:])
    video = probe_video(path)
    assert video.error or video.frames == 20 or video.stated_frames == 20
    assert video.frames < 20


def test_a_live_wmv_states_no_length(tmp_path, encode):
    path = encode(tmp_path / "t.wmv", codec="wmv2")
    content = bytearray(path.read_bytes())
    properties = content.index(bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"))
    content[properties + 88] |= 1  # broadcast: the sizes mean nothing
    struct.pack_into("<Q", content, properties + 40, 10**9)
    path.write_bytes(content)
    assert stated_bytes(path) == 0
    assert (probe_video(path).error, probe_video(path).frames) == ("", 20)


def test_a_truncated_mxf_lacks_the_footer_that_its_header_names(tmp_path, encode):
    path = encode(tmp_path / "t.mxf", codec="mpeg2video", tick=Fraction(1, 25))
    content = path.read_bytes()
    footer = content.rindex(bytes.fromhex("060e2b34020501010d010201010404"))
    assert footer < stated_bytes(path) <= len(content)
    path.write_bytes(content[: len(content) // 2])
    assert probe_video(path).error.startswith(f"truncated: {len(content) // 2} bytes of at least")


@pytest.mark.parametrize(
    ("name", "codec"),
    [("t.mkv", "libx264"), ("t.avi", "mpeg4"), ("t.wmv", "wmv2"), ("t.flv", "libx264")],
)
def test_truncated_containers_are_told_by_the_length_they_state(tmp_path, encode, name, codec):
    path = encode(tmp_path / name, codec=codec)
    content = path.read_bytes()
    assert stated_bytes(path) == len(content)
    path.write_bytes(content[: len(content) // 2])
    expected = f"truncated: {len(content) // 2} bytes of at least {len(content)}"
    assert probe_video(path).error == expected


def test_bytes_after_the_end_do_no_harm(tmp_path, video_file):
    path = tmp_path / "longer.mp4"
    path.write_bytes(video_file.read_bytes() + b"\0" * 100)
    assert probe_video(path).frames == 20


def test_a_sound_file_has_no_video(tmp_path):
    av = pytest.importorskip("av")
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate, frame.pts = 8000, 0
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert probe_video(path).error == "no video stream"


def test_timing_by_hand():
    assert timing([0, 0.5, 1.0], 3, 2.0, 0.001, 0.5) == (2.0, 1.5)
    assert timing([1.0, 0, 0.5], 3, 0.0, 0.001, 0.5) == (2.0, 1.5)  # out of order, no rate stated
    assert timing([0, 0.5, 1.0], 3, 25.0, 0.001, 0.5) == (2.0, 1.5)  # the header's rate is wrong
    assert timing([], 3, 2.0, 0.001, 0.0) == (2.0, 1.5)  # no stamps
    assert timing([0, 1, 3], 3, 1.0, 0.001, 1.0) == (0.75, 4.0)
    with pytest.raises(InputError, match="no frame rate and no time stamps"):
        timing([], 3, 0.0, 0.001, 0.0)


# What decord reads of these files, and their displayed width and height.
DECODE_CASES = {
    "decord_unordered.mov": (4, 50, 50),
    "decord_video_0.mov": (3, 568, 320),
    "decord_video_90.mov": (3, 320, 568),
    "decord_video_180.mov": (3, 568, 320),
    "decord_video_270.mov": (3, 320, 568),
    "flipping_a_pancake.mkv": (310, 426, 240),
    "intel_onebyone.mp4": (1394, 768, 432),
    "mma_demo.mp4": (280, 340, 256),
    "torchcodec_av1_video.mkv": (125, 640, 360),
    "torchcodec_bt709_full_range.mp4": (30, 1280, 720),
    "torchcodec_h264_10bits.mp4": (30, 200, 200),
    "torchcodec_h265_video.mp4": (10, 128, 128),
    "torchcodec_nasa_13013.mp4": (390, 480, 270),
}


@pytest.mark.parametrize("name", DECODE_CASES)
def test_hard_cases_agree_with_the_decoder(shared_data, name):
    path = shared_data / "decode_cases" / name
    video = probe_video(path)
    assert video.error == ""
    assert (video.frames, video.width, video.height) == DECODE_CASES[name]
    frames, (height, width) = read_in_order(path)
    assert (frames, width, height) == DECODE_CASES[name]


def test_the_corrupted_case_is_found_without_decoding(shared_data):
    video = probe_video(shared_data / "decode_cases" / "decord_corrupted.mp4")
    assert video.error == "damaged at frame 30: its data do not fit its packet"


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
