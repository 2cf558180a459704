"""Thumbnails: the right moments, upright, of every kind of file; damaged files give fewer."""

import cv2
import numpy as np

from actionspan.video.thumbnails import read_thumbnails, thumbnails
from video.numbered import HEIGHT, encode, read_number


def test_key_frames_serve_where_they_are_near(tmp_path, monkeypatch):
    path = encode(tmp_path / "v.mp4", 250, key_every=10, b_frames=0)
    monkeypatch.setattr("actionspan.video.thumbnails._MOST_FRAMES", 3)
    small = thumbnails(path, 10)
    assert [round(25 * seconds) % 10 for seconds, _ in small] == [0] * 10
    assert read_thumbnails(path, [0.2, 0.39], 72)[1] is None  # frame 9 takes ten


def test_thumbnails_are_of_their_parts_and_have_the_height(tmp_path):
    path = encode(tmp_path / "v.mp4", 100)
    small = thumbnails(path, 8, height=40)
    assert [int(seconds / 0.5) for seconds, _ in small] == list(range(8))
    for seconds, jpeg in small:
        pixels = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB)
        assert pixels.shape == (40, 80, 3)
        assert abs(read_number(pixels) - 25 * seconds) < 0.1


def test_a_short_video_gives_each_frame_once(tmp_path):
    for frames in (1, 3):
        small = thumbnails(encode(tmp_path / "v.mp4", frames), 24)
        assert [round(25 * seconds) for seconds, _ in small] == [*range(frames)]


def test_what_cannot_be_decoded_has_no_picture(tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    whole = encode(tmp_path / "whole.ts", 100, key_every=10).read_bytes()
    (tmp_path / "cut.ts").write_bytes(whole[: len(whole) // 2])
    for name in ("none.mp4", "text.mp4"):
        assert thumbnails(tmp_path / name, 4) == []
        assert read_thumbnails(tmp_path / name, [0.0], 72) == [None]
    assert all(seconds < 2.2 for seconds, _ in thumbnails(tmp_path / "cut.ts", 4))
    raw = encode(tmp_path / "raw.h264", 75, container="h264")  # no time stamps: nothing is known
    assert len(read_thumbnails(raw, [0.0, 1.0], HEIGHT)) == 2


def test_real_files_are_shown_as_a_player_shows_them(shared_data):
    for name, shape in {
        "decord_corrupted.mp4": None,
        "decord_video_90.mov": (72, round(72 * 320 / 568)),  # upright
        "mma_demo.mp4": (72, 120),  # pixels of 64:51 are made square
        "torchcodec_av1_video.mkv": (72, 128),
    }.items():
        _, first = thumbnails(shared_data / "decode_cases" / name, 4)[0]
        found = cv2.imdecode(np.frombuffer(first, np.uint8), 0).shape
        assert shape is None or found == shape
