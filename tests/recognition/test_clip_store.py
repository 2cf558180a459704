"""Clips are read as they were written, from any thread; mixed or damaged stores are refused."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import h5py
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.recognition.clip_lists import ClipSettings
from actionspan.recognition.clip_store import ClipStore, write_clip
from actionspan.storage.writing import create_h5
from actionspan.video.jpegs import Position, scaled
from recognition.conftest import HEIGHT, STACK, WIDTH

CLIPS = [
    ("z.1", "run", "training", 3),
    ("a.2", "background", "training", 2),
    ("m.3", "jump", "validation", 1),
]


def test_clips_are_sorted_by_id_and_background_is_the_last_class(write_store):
    store = ClipStore([write_store(CLIPS)])
    assert store.classes == ["jump", "run", "background"]
    rows = [(clip.clip_id, clip.label, clip.subset, clip.positions) for clip in store.clips]
    assert rows == [
        ("a.2", 2, "training", 2),
        ("m.3", 0, "validation", 1),
        ("z.1", 1, "training", 3),
    ]
    assert store.rows("training").tolist() == [0, 2]
    assert store.rows("testing").tolist() == []
    assert (store.height, store.width, store.bound) == (HEIGHT, WIDTH, 20.0)
    assert store.channels == {"rgb": 3, "flow": 2 * STACK}


def test_pictures_are_read_as_they_were_written(write_store, make_positions):
    store = ClipStore([write_store([("a", "run", "training", 4)])])
    for place, position in enumerate(make_positions(4, 1 + ord("a"))):
        rgb = store.read("rgb", 0, place)
        flow = store.read("flow", 0, place)
        assert rgb.dtype == flow.dtype == np.uint8
        np.testing.assert_allclose(flow.astype(int), position.planes.transpose(1, 2, 0), atol=4)
        # colours have half the resolution: they run at the edges of the blocks of 16 pixels
        within = np.ix_(*(abs(np.arange(side) % 16 - 7.5) < 5 for side in (HEIGHT, WIDTH)))
        np.testing.assert_allclose(rgb[within].astype(int), position.rgb[within], atol=4)


def test_no_motion_stays_exactly_no_motion(tmp_path, make_positions):
    still = [
        position._replace(planes=np.full((20, HEIGHT, WIDTH), 128, np.uint8))
        for position in make_positions(1)
    ]
    settings = ClipSettings(height=HEIGHT, width=WIDTH)
    with create_h5(tmp_path / "s.h5", "") as file:
        write_clip(
            file.create_group("a"), still, settings, label="x", subset="training", bound=20.0
        )
    assert (ClipStore([tmp_path / "s.h5"]).read("flow", 0, 0) == 128).all()


def test_planes_do_not_run_into_each_other(tmp_path, make_positions):
    """Neighbours as different as can be: what JPEG does to one must not depend on the other."""
    planes = np.zeros((6, HEIGHT, WIDTH), np.uint8)
    planes[::2], planes[1::2] = 1, 255
    clip = [make_positions(1)[0]._replace(planes=planes)]
    settings = ClipSettings(height=HEIGHT, width=WIDTH, jpeg_quality=20)
    with create_h5(tmp_path / "s.h5", "") as file:
        write_clip(file.create_group("a"), clip, settings, label="x", subset="training", bound=1.0)
    flow = ClipStore([tmp_path / "s.h5"]).read("flow", 0, 0)
    for channel in range(6):
        assert len(np.unique(flow[:, :, channel])) == 1


def test_codes_are_never_0(tmp_path, make_positions):
    """JPEG rings below 1 at sharp edges, and no code mirrors 0."""
    planes = np.full((2, HEIGHT, WIDTH), 1, np.uint8)
    planes[:, :, 3::16] = 255
    clip = [make_positions(1)[0]._replace(planes=planes)]
    settings = ClipSettings(height=HEIGHT, width=WIDTH, jpeg_quality=50)
    with create_h5(tmp_path / "s.h5", "") as file:
        write_clip(file.create_group("a"), clip, settings, label="x", subset="training", bound=1.0)
        pictures = file["a/flow"][:]
    assert cv2.imdecode(pictures, cv2.IMREAD_GRAYSCALE).min() == 0
    assert ClipStore([tmp_path / "s.h5"]).read("flow", 0, 0).min() == 1


def test_pictures_of_other_sizes_are_scaled_and_flow_keeps_its_length(tmp_path, rng):
    rgb = cv2.resize(rng.integers(0, 256, (6, 9, 3), np.uint8), (90, 60))
    planes = np.stack([np.full((60, 90), code, np.uint8) for code in (100, 200)])
    settings = ClipSettings(height=HEIGHT, width=WIDTH, jpeg_quality=100)
    with create_h5(tmp_path / "s.h5", "") as file:
        write_clip(
            file.create_group("a"),
            [Position(rgb, planes, 0.0)],
            settings,
            label="x",
            subset="training",
            bound=20.0,
        )
    store = ClipStore([tmp_path / "s.h5"])
    assert store.read("rgb", 0, 0).shape == (HEIGHT, WIDTH, 3)
    flow = store.read("flow", 0, 0)
    assert (flow[:, :, 0] == 100).all()
    assert (flow[:, :, 1] == 200).all()
    wanted = cv2.resize(rgb, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    assert np.abs(store.read("rgb", 0, 0).astype(int) - wanted).mean() < 4


@pytest.mark.parametrize("size", [(16, 24), (64, 96), (16, 96), (HEIGHT, WIDTH)])
def test_scaling_keeps_an_even_picture_even(size):
    assert (scaled(np.full((*size, 3), 77, np.uint8), HEIGHT, WIDTH) == 77).all()


def test_threads_read_the_same_as_one(write_store):
    store = ClipStore([write_store([("a", "x", "training", 9), ("b", "y", "training", 9)])])
    wanted = [(s, c, p) for s in ("rgb", "flow") for c in (0, 1) for p in range(9)] * 5
    alone = [store.read(*one) for one in wanted]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: store.read(*one), wanted))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_shards_may_come_in_any_order_and_empty_ones_among_them(write_store):
    shards = [
        write_store(CLIPS[:1], "0000"),
        write_store(CLIPS[1:], "0001"),
        write_store([], "0002"),
    ]
    one, other = ClipStore(shards), ClipStore(shards[::-1])
    whole = ClipStore([write_store(CLIPS, "whole")])
    assert one.clips == other.clips == whole.clips
    assert one.fingerprint == other.fingerprint == whole.fingerprint
    np.testing.assert_array_equal(one.read("rgb", 2, 1), whole.read("rgb", 2, 1))


@pytest.mark.parametrize(
    "changed",
    [
        {"clips": [("z.1", "jump", "training", 3), *CLIPS[1:]]},
        {"clips": [("z.1", "run", "validation", 3), *CLIPS[1:]]},
        {"clips": [("z.2", "run", "training", 3), *CLIPS[1:]]},
        {"clips": [("z.1", "run", "training", 4), *CLIPS[1:]]},
        {"clips": CLIPS[1:]},
        {"jpeg_quality": 50},
        {"bound": 10.0},
        {"stack": 3},
    ],
)
def test_the_fingerprint_changes_with_the_content(write_store, changed):
    before = ClipStore([write_store(CLIPS)]).fingerprint
    assert ClipStore([write_store(**{"clips": CLIPS, **changed})]).fingerprint != before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stack": 3}, "clip b has planes 6, but a of .*0000.h5 has 4"),
        ({"width": 64}, "clip b has width 64, but a"),
        ({"bound": 8.0}, "clip b has bound 8.0, but a"),
    ],
)
def test_stores_of_different_settings_are_refused(write_store, change, words):
    first = write_store([("a", "x", "training", 1)])
    with pytest.raises(InputError, match=words):
        ClipStore([first, write_store([("b", "x", "training", 1)], "0001", **change)])


def test_a_clip_in_two_stores_is_refused(write_store):
    paths = [write_store(CLIPS, "0000"), write_store(CLIPS[:1], "0001")]
    with pytest.raises(InputError, match=r"0001.h5: clip z.1 is in .*0000.h5 too"):
        ClipStore(paths)


def test_files_without_clips_are_refused(write_store, tmp_path):
    with pytest.raises(InputError, match="0000.h5: no clip is in there"):
        ClipStore([write_store([])])
    with pytest.raises(InputError, match="no file: no clip"):
        ClipStore([])
    with pytest.raises(InputError, match="gone.h5: no such file"):
        ClipStore([tmp_path / "gone.h5"])
    with create_h5(tmp_path / "frames.h5", "") as file:
        file.create_group("video")["rgb"] = np.zeros((2, 4, 4, 3), np.uint8)
    with pytest.raises(InputError, match="frames.h5: not a clip store: video is no clip"):
        ClipStore([tmp_path / "frames.h5"])


def test_a_damaged_picture_names_its_place(write_store):
    path = write_store([("a", "x", "training", 3)])
    with h5py.File(path, "r+") as file:
        begin, end = file["a/flow_offsets"][1:3]
        file["a/flow"][begin:end] = 0
    store = ClipStore([path])
    assert store.read("flow", 0, 0).shape == (HEIGHT, WIDTH, 2 * STACK)
    with pytest.raises(InputError, match="0000.h5: flow of clip a is damaged at position 1"):
        store.read("flow", 0, 1)


def test_a_clip_without_a_position_is_refused(write_store):
    with pytest.raises(InputError, match="there is no frame to store"):
        write_store([("a", "x", "training", 0)])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"height": 250}, "height 250: must be a multiple of 8"),
        ({"height": 24}, "height 24"),
        ({"width": 200}, "width 200: at least the height, 256"),
        ({"stack": 0}, "stack 0: at least 1"),
        ({"stack": 128}, "stack 128: at most 127"),
        ({"jpeg_quality": 101}, "jpeg_quality 101"),
        ({"background_margin": -1.0}, "background_margin -1.0"),
        ({"background_ratio": 0.0}, "background_ratio 0.0"),
        ({"validation_fraction": 1.0}, "validation_fraction 1.0"),
    ],
)
def test_settings_out_of_range_say_what_is_right(values, words):
    with pytest.raises(ValueError, match=words):
        ClipSettings(**values)


def test_the_tallest_stack_that_is_allowed_can_be_written(tmp_path, make_positions):
    planes = np.full((2 * 127, 8, 8), 128, np.uint8)
    clip = [make_positions(1)[0]._replace(planes=planes)]
    with create_h5(tmp_path / "s.h5", "") as file:
        write_clip(
            file.create_group("a"),
            clip,
            ClipSettings(stack=127),
            label="x",
            subset="training",
            bound=1.0,
        )
    assert ClipStore([tmp_path / "s.h5"]).read("flow", 0, 0).shape == (256, 340, 254)
    clip = [clip[0]._replace(planes=np.full((2 * 128, 8, 8), 128, np.uint8))]
    with (
        create_h5(tmp_path / "t.h5", "") as file,
        pytest.raises(InputError, match="256 flow planes of height 256 are too much"),
    ):
        write_clip(
            file.create_group("a"), clip, ClipSettings(), label="x", subset="training", bound=1.0
        )
