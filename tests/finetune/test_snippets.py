"""Reading stored snippets: rows, boxes, squares, threads, and stores that cannot be read."""

from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.features.encoders import frames_to_batch, planes_to_batch
from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.snippets import NONE, Augmentation, SnippetFrames, SnippetStore, draw
from finetune.conftest import HEIGHT, STACK, WIDTH, near, pictures_of, write_store_in

LENGTHS = {"b": 5, "a": 9, "c": 1}
BOTH = ("rgb", "flow")
sizes = st.integers(8, 700)
numbers = st.integers(0, 10**6)


@given(numbers, numbers, numbers, sizes, sizes)
def test_a_drawn_box_is_large_within_the_picture_and_at_one_place_at_any_size(
    seed, epoch, place, height, width
):
    drawn = draw(seed, epoch, place)
    assert 0.8 <= min(drawn.height, drawn.width) <= max(drawn.height, drawn.width) <= 1
    small, large = drawn.box(height, width), drawn.box(2 * height, 2 * width)
    for side, double, size in zip(small, large, (height, width), strict=True):
        assert 0 <= side.start < side.stop <= size
        assert side.stop - side.start >= 0.8 * size - 1
        assert abs(2 * side.start - double.start) <= 1
        assert abs(2 * side.stop - double.stop) <= 1
    assert NONE.box(height, width) == (slice(0, height), slice(0, width))
    assert not NONE.flip


def test_a_draw_follows_from_its_three_numbers_alone():
    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(*each) for each in [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]}) == 4


def test_draws_are_spread_evenly():
    drawn = [draw(7, epoch, place) for epoch in range(20) for place in range(100)]
    sides = [np.array([getattr(each, key) for each in drawn]) for key in ("height", "width")]
    for each in sides:
        counts, _ = np.histogram(each, 10, (0.8, 1.0))
        assert abs(counts - 200).max() < 60, "4 standard deviations"
    assert abs(np.corrcoef(*sides)[0, 1]) < 0.1, "sides are drawn apart"
    assert abs(sum(each.flip for each in drawn) - 1000) < 90, "4 standard deviations"
    slack = np.array([each.left / (1 - each.width) for each in drawn])
    assert abs(slack.mean() - 0.5) < 0.03


@pytest.mark.parametrize("length", [0.001, 0.2])
def test_the_smallest_box_has_a_pixel(length):
    box = Augmentation(top=1 - length, left=0.0, height=length, width=length).box(9, 9)
    assert all(side.stop - side.start >= 1 and side.stop <= 9 for side in box)


@pytest.mark.parametrize(
    "wrong",
    [{"top": -0.1}, {"left": 1.0}, {"height": 0.0}, {"width": 1.2}, {"top": 0.5, "height": 0.6}],
)
def test_a_box_outside_the_picture_is_refused(wrong):
    with pytest.raises(ValueError, match="must be a box within 0 … 1 of each side"):
        Augmentation(**wrong)


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A store that tests leave as it is."""
    return write_store_in(tmp_path_factory.mktemp("stored"), LENGTHS)


@pytest.fixture
def store(stored) -> SnippetStore:
    return SnippetStore([stored])


def test_the_store_has_the_videos_times_and_sizes(store):
    assert store.videos == ["a", "b", "c"]
    assert {video: store.count(video) for video in store.videos} == LENGTHS
    assert store.seconds == pytest.approx({"a": 3.6, "b": 2.0, "c": 0.4})
    times = store.times("b")
    assert times.dtype == np.float64
    np.testing.assert_allclose(times, 0.2 + 0.4 * np.arange(5))
    assert (store.height, store.width, store.planes) == (HEIGHT, WIDTH, 2 * STACK)


@pytest.mark.parametrize("rows", [[4], [0, 1, 2, 3, 4], [4, 0, 2], [3, 3], []])
def test_rows_come_in_the_order_asked_for(store, rows):
    rgb, planes = pictures_of("b", 5)
    made = store.read("b", rows, "rgb")
    assert made.shape == (len(rows), HEIGHT, WIDTH, 3)
    assert made.dtype == np.uint8
    if rows:
        near(made, rgb[rows])
        near(store.read("b", rows, "flow"), np.moveaxis(planes, 1, -1)[rows])
    for squares, channels in zip(store.pictures("b", rows, BOTH, 16), (3, 2 * STACK), strict=True):
        assert squares.shape == (len(rows), 16, 16, channels)


@pytest.mark.parametrize("size", [20, 32, HEIGHT, 56, 112])
def test_squares_are_plainly_resized_as_in_the_features_stage(store, size):
    method = cv2.INTER_AREA if size < HEIGHT else cv2.INTER_LINEAR
    whole = [store.read("a", [6, 2], stream) for stream in BOTH]
    made = store.pictures("a", [6, 2], BOTH, size)
    for squares, pictures in zip(made, whole, strict=True):
        for square, picture in zip(squares, pictures, strict=True):
            for channel in range(picture.shape[2]):
                plane = np.ascontiguousarray(picture[:, :, channel])
                wanted = cv2.resize(plane, (size, size), interpolation=method)
                np.testing.assert_array_equal(square[:, :, channel], wanted)
    planes = np.moveaxis(whole[1], -1, 1)
    np.testing.assert_array_equal(made[0], frames_to_batch(whole[0], size, "squash"))
    np.testing.assert_array_equal(made[1], planes_to_batch(planes, size, "squash"))


def test_a_box_is_cut_and_mirrored_in_both_streams(store):
    box = Augmentation(top=0.25, left=0.5, height=0.5, width=0.375, flip=True)
    rgb, flow = store.pictures("a", [3], BOTH, 24, box)
    wanted_rgb, wanted_flow = (store.read("a", [3], stream)[0] for stream in BOTH)
    np.testing.assert_array_equal(rgb[0], wanted_rgb[12:36, 32:56][:, ::-1])
    wanted = wanted_flow[12:36, 32:56][:, ::-1].astype(int)
    np.testing.assert_array_equal(flow[0, :, :, 1::2], wanted[:, :, 1::2])
    np.testing.assert_array_equal(flow[0, :, :, ::2], 256 - wanted[:, :, ::2])


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_a_stride_leaves_snippets_out(store, stored, stride):
    some = SnippetStore([stored], stride=stride)
    for video, count in LENGTHS.items():
        rows = range(len(range(0, count, stride)))
        assert some.count(video) == len(some.times(video)) == len(rows)
        np.testing.assert_array_equal(some.times(video), store.times(video)[::stride])
        kept = store.read(video, range(0, count, stride), "rgb")
        np.testing.assert_array_equal(some.read(video, rows, "rgb"), kept)
        with pytest.raises(ValueError, match="snippets, from 0"):
            some.read(video, [len(rows)], "rgb")


@pytest.mark.parametrize("streams", [("rgb",), ("flow",), ("flow", "rgb")])
def test_frames_are_inputs_of_an_encoder_and_threads_read_the_same_as_one(store, stored, streams):
    rows = [7, 0, 3, 3, 8, 1]
    together = SnippetStore([stored], readers=3)
    for box in (NONE, draw(0, 1, 2)):
        frames = SnippetFrames(together, "a", streams, 32, box)
        assert len(frames) == 9
        inputs, wanted = frames[torch.tensor(rows)], store.pictures("a", rows, streams, 32, box)
        for one, other in zip(inputs, wanted, strict=True):
            assert one.dtype == torch.uint8
            np.testing.assert_array_equal(one.numpy(), other)
    assert frames[torch.tensor([], dtype=torch.int64)][0].shape[:3] == (0, 32, 32)
    np.testing.assert_array_equal(store.read("a", rows, "rgb"), together.read("a", rows, "rgb"))


def test_the_fingerprint_follows_the_content_and_not_the_files(store, write_store):
    parts = [write_store({"a": 9}, "0001"), write_store({"b": 5, "c": 1}, "0002")]
    assert SnippetStore(parts).fingerprint == SnippetStore(parts[::-1]).fingerprint
    assert SnippetStore(parts).fingerprint == store.fingerprint
    others = [{"a": 9}, {**LENGTHS, "c": 2}, {"x": 5, "a": 9, "c": 1}]
    changed = {SnippetStore([write_store(each, "0003")]).fingerprint for each in others}
    settings = StoreSettings(height=HEIGHT, width=WIDTH, jpeg_quality=50)
    changed.add(SnippetStore([write_store(LENGTHS, settings=settings)]).fingerprint)
    assert len(changed - {store.fingerprint}) == 4


def test_rows_videos_and_streams_that_do_not_exist_are_refused(store, write_store):
    for error, message, call in (
        (ValueError, "row 5 of video b: it has 5", lambda: store.read("b", [5], "rgb")),
        (ValueError, "row -1 of video b", lambda: store.pictures("b", [0, -1], BOTH, 16)),
        (ValueError, "stream is 'c'; it must be", lambda: store.pictures("b", [0], ("c",), 16)),
        (InputError, "video x: not in the snippet store", lambda: store.count("x")),
        (InputError, "video x: not in the snippet store", lambda: store.times("x")),
        (ValueError, "readers is 0; it must be at least 1", lambda: SnippetStore([], readers=0)),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(
    ("dataset", "values", "message"),
    [
        ("rgb_offsets", None, "0000.h5: not a video store: a is not a video; make it with `acti"),
        ("time", [0, 1, 2], "video a has 3 times for 2 images"),
        ("time", [1, 1], "video a: its times do not rise, or its duration 0.8 s is not above 0"),
    ],
)
def test_a_store_whose_parts_do_not_fit_is_refused(write_store, dataset, values, message):
    path = write_store({"a": 2})
    with h5py.File(path, "r+") as file:
        del file["a"][dataset]
        if values is not None:
            file["a"][dataset] = np.array(values, float)
    with pytest.raises(InputError, match=message):
        SnippetStore([path])


def test_a_damaged_picture_is_one_line_from_several_readers_too(write_store):
    path = write_store({"a": 4})
    with h5py.File(path, "r+") as file:
        begin, end = file["a/flow_offsets"][2:4]
        file["a/flow"][begin:end] = 0
    words = "0000.h5: flow of video a is damaged at position 2; delete the file and run again"
    with pytest.raises(InputError, match=words):
        SnippetStore([path], readers=3).read("a", [0, 1, 2], "flow")


def test_stores_of_different_settings_are_refused(write_store):
    path = write_store({"a": 1})
    other = write_store({"b": 1}, "0001", snippet_frames=16)
    with pytest.raises(InputError, match=r"1.h5: video b has snippet_frames 16, but a of .*0.h5"):
        SnippetStore([path, other])
