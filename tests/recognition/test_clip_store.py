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
from actionspan.video.jpegs import scaled
from recognition.conftest import HEIGHT, STACK, WIDTH

CLIPS = [
    ("z.1", "run", "training", 3),
    ("a.2", "background", "training", 2),
    ("m.3", "jump", "validation", 1),
]
SMALL = {"height": HEIGHT, "width": WIDTH}


@pytest.fixture
def stored(tmp_path, make_positions):
    """Store one picture, whose flow or frame may be given, and return the store."""

    def store(settings, **given) -> ClipStore:
        clip = [make_positions(1)[0]._replace(**given)]
        with create_h5(tmp_path / "one.h5", "") as file:
            group = file.create_group("a")
            write_clip(group, clip, settings, label="x", subset="training", bound=20.0)
        return ClipStore([tmp_path / "one.h5"])

    return store


def even(count, code, height=HEIGHT, width=WIDTH):
    return np.full((count, height, width), code, np.uint8)


def test_clips_are_sorted_by_id_and_background_is_the_last_class(write_store):
    store = ClipStore([write_store(CLIPS)])
    assert store.classes == ["jump", "run", "background"]
    assert [tuple(clip) for clip in store.clips] == [
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
        rgb, flow = (store.read(stream, 0, place) for stream in ("rgb", "flow"))
        assert rgb.dtype == flow.dtype == np.uint8
        np.testing.assert_allclose(flow.astype(int), position.planes.transpose(1, 2, 0), atol=4)
        # colours have half the resolution: they run at the edges of the blocks of 16 pixels
        within = np.ix_(*(abs(np.arange(side) % 16 - 7.5) < 5 for side in (HEIGHT, WIDTH)))
        np.testing.assert_allclose(rgb[within].astype(int), position.rgb[within], atol=4)


def test_no_motion_stays_exactly_no_motion(stored):
    assert (stored(ClipSettings(**SMALL), planes=even(20, 128)).read("flow", 0, 0) == 128).all()


def test_planes_do_not_run_into_each_other(stored):
    """Neighbours as different as can be: what JPEG does to one must not depend on the other."""
    planes = np.concatenate([even(1, 1), even(1, 255)] * 3)
    flow = stored(ClipSettings(**SMALL, jpeg_quality=20), planes=planes).read("flow", 0, 0)
    assert [len(np.unique(flow[:, :, channel])) for channel in range(6)] == [1] * 6


def test_codes_are_never_0(stored, tmp_path):
    """JPEG rings below 1 at sharp edges, and no code mirrors 0."""
    planes = even(2, 1)
    planes[:, :, 3::16] = 255
    store = stored(ClipSettings(**SMALL, jpeg_quality=50), planes=planes)
    with h5py.File(tmp_path / "one.h5") as file:
        assert cv2.imdecode(file["a/flow"][:], cv2.IMREAD_GRAYSCALE).min() == 0
    assert store.read("flow", 0, 0).min() == 1


def test_pictures_of_other_sizes_are_scaled_and_flow_keeps_its_length(stored, rng):
    rgb = cv2.resize(rng.integers(0, 256, (6, 9, 3), np.uint8), (90, 60))
    planes = np.concatenate([even(1, code, 60, 90) for code in (100, 200)])
    store = stored(ClipSettings(**SMALL, jpeg_quality=100), rgb=rgb, planes=planes)
    flow = store.read("flow", 0, 0)
    assert (flow == np.broadcast_to([100, 200], (HEIGHT, WIDTH, 2))).all()
    wanted = cv2.resize(rgb, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    assert np.abs(store.read("rgb", 0, 0).astype(int) - wanted).mean() < 4


@pytest.mark.parametrize("size", [(16, 24), (64, 96), (16, 96), (HEIGHT, WIDTH)])
def test_scaling_keeps_an_even_picture_even(size):
    assert (scaled(np.full((*size, 3), 77, np.uint8), HEIGHT, WIDTH) == 77).all()


def test_the_tallest_stack_that_is_allowed_can_be_written(stored):
    store = stored(ClipSettings(stack=127), planes=even(2 * 127, 128, 8, 8))
    assert store.read("flow", 0, 0).shape == (256, 340, 254)
    with pytest.raises(InputError, match="256 flow planes of height 256 are too much"):
        stored(ClipSettings(), planes=even(2 * 128, 128, 8, 8))


def test_threads_read_the_same_as_one(write_store):
    store = ClipStore([write_store([("a", "x", "training", 9), ("b", "y", "training", 9)])])
    wanted = [(s, c, p) for s in ("rgb", "flow") for c in (0, 1) for p in range(9)] * 5
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: store.read(*one), wanted))
    for one, found in zip(wanted, together, strict=True):
        np.testing.assert_array_equal(store.read(*one), found)


def test_shards_may_come_in_any_order_and_empty_ones_among_them(write_store):
    names = {"0000": CLIPS[:1], "0001": CLIPS[1:], "0002": []}
    shards = [write_store(clips, name) for name, clips in names.items()]
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
        ({"clips": [("a", "x", "training", 1)]}, "0001.h5: clip a is in .*0000.h5 too"),
    ],
)
def test_stores_that_do_not_go_together_are_refused(write_store, change, words):
    first = write_store([("a", "x", "training", 1)])
    second = write_store(**{"clips": [("b", "x", "training", 1)], "name": "0001", **change})
    with pytest.raises(InputError, match=words):
        ClipStore([first, second])


def test_files_without_clips_are_refused(write_store, tmp_path):
    with create_h5(tmp_path / "frames.h5", "") as file:
        file.create_group("video")["rgb"] = np.zeros((2, 4, 4, 3), np.uint8)
    for paths, words in (
        ([write_store([])], "0000.h5: no clip is in there"),
        ([], "no file: no clip"),
        ([tmp_path / "gone.h5"], "gone.h5: no such file"),
        ([tmp_path / "frames.h5"], "frames.h5: not a clip store: video is not a clip"),
    ):
        with pytest.raises(InputError, match=words):
            ClipStore(paths)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"height": 250}, "height 250: must be a multiple of 8"),
        ({"width": 200}, "width 200: at least the height, 256"),
        ({"stack": 128}, "stack 128: at most 127"),
    ],
)
def test_settings_that_do_not_fit_each_other_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        ClipSettings(**values)
