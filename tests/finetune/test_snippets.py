"""Reading stored snippets: rows, squares, threads, and stores that cannot be read."""

import cv2
import h5py
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import frames_to_batch, planes_to_batch
from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.snippets import NONE, Augmentation, SnippetFrames, SnippetStore, draw
from actionspan.storage.writing import create_h5
from finetune.conftest import HEIGHT, STACK, WIDTH, near, pictures_of

LENGTHS = {"b": 5, "a": 9, "c": 1}
BOTH = ("rgb", "flow")


@pytest.fixture
def store(write_store) -> SnippetStore:
    return SnippetStore([write_store(LENGTHS)])


def test_the_store_tells_what_it_holds(store):
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


@pytest.mark.parametrize("size", [20, 40, 48, 112])
def test_the_whole_picture_is_a_plain_resize(store, size):
    method = cv2.INTER_AREA if size < HEIGHT else cv2.INTER_LINEAR
    for stream, made in zip(BOTH, store.pictures("a", [6, 2], BOTH, size), strict=True):
        for square, picture in zip(made, store.read("a", [6, 2], stream), strict=True):
            for channel in range(picture.shape[2]):
                plane = np.ascontiguousarray(picture[:, :, channel])
                wanted = cv2.resize(plane, (size, size), interpolation=method)
                np.testing.assert_array_equal(square[:, :, channel], wanted)


def test_a_box_is_cut_and_mirrored_in_both_streams(store):
    box = Augmentation(top=0.25, left=0.5, height=0.5, width=0.375, flip=True)
    rgb, flow = store.pictures("a", [3], BOTH, 24, box)
    wanted_rgb, wanted_flow = (store.read("a", [3], stream)[0] for stream in BOTH)
    np.testing.assert_array_equal(rgb[0], wanted_rgb[12:36, 32:56][:, ::-1])
    wanted = wanted_flow[12:36, 32:56][:, ::-1].astype(int)
    np.testing.assert_array_equal(flow[0, :, :, 1::2], wanted[:, :, 1::2])
    np.testing.assert_array_equal(flow[0, :, :, ::2], 256 - wanted[:, :, ::2])


@pytest.mark.parametrize("size", [16, 24, 32, HEIGHT, 56])
def test_squares_are_those_of_the_features_stage(write_store, size):
    store = SnippetStore([write_store({"a": 3})])
    rgb, flow = store.pictures("a", [0, 1, 2], BOTH, size)
    frames, planes = (store.read("a", [0, 1, 2], stream) for stream in BOTH)
    np.testing.assert_array_equal(rgb, frames_to_batch(frames, size, "squash"))
    wanted = planes_to_batch(np.moveaxis(planes, -1, 1), size, "squash")
    np.testing.assert_array_equal(flow, wanted)


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_a_stride_leaves_snippets_out(write_store, stride):
    path = write_store(LENGTHS)
    every, some = SnippetStore([path]), SnippetStore([path], stride=stride)
    for video, count in LENGTHS.items():
        assert some.count(video) == len(range(0, count, stride)) == len(some.times(video))
        rows = list(range(some.count(video)))
        np.testing.assert_array_equal(some.times(video), every.times(video)[::stride])
        kept = every.read(video, [stride * row for row in rows], "rgb")
        np.testing.assert_array_equal(some.read(video, rows, "rgb"), kept)
        with pytest.raises(ValueError, match="snippets, from 0"):
            some.read(video, [some.count(video)], "rgb")


@pytest.mark.parametrize("readers", [2, 5])
def test_threads_read_the_same_as_one(write_store, readers):
    path = write_store(LENGTHS)
    alone, together = SnippetStore([path]), SnippetStore([path], readers=readers)
    rows = [7, 0, 3, 3, 8, 1]
    for box in (NONE, draw(1, 2, 3)):
        made = (each.pictures("a", rows, BOTH, 32, box) for each in (alone, together))
        for one, other in zip(*made, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(alone.read("a", rows, "rgb"), together.read("a", rows, "rgb"))


@pytest.mark.parametrize("streams", [("rgb",), ("flow",), ("flow", "rgb")])
def test_frames_are_a_sequence_of_inputs_of_an_encoder(store, streams):
    frames = SnippetFrames(store, "a", streams, 32, draw(0, 1, 2))
    assert len(frames) == 9
    inputs = frames[torch.tensor([1, 4, 8])]
    wanted = store.pictures("a", [1, 4, 8], streams, 32, draw(0, 1, 2))
    assert len(inputs) == len(streams)
    for one, other in zip(inputs, wanted, strict=True):
        assert one.dtype == torch.uint8
        np.testing.assert_array_equal(one.numpy(), other)
    assert frames[torch.tensor([], dtype=torch.int64)][0].shape[:3] == (0, 32, 32)


def test_a_rows_pictures_do_not_depend_on_the_rows_beside_it(store):
    frames = SnippetFrames(store, "a", BOTH, 32, draw(5, 1, 2))
    whole = frames[torch.arange(9)]
    for row in (0, 4, 8):
        for one, every in zip(frames[torch.tensor([row])], whole, strict=True):
            assert torch.equal(one[0], every[row])


def test_the_fingerprint_follows_the_content_and_not_the_files(write_store):
    one = SnippetStore([write_store(LENGTHS)])
    parts = [write_store({"a": 9}, "0001"), write_store({"b": 5, "c": 1}, "0002")]
    assert SnippetStore(parts).fingerprint == SnippetStore(parts[::-1]).fingerprint
    assert SnippetStore(parts).fingerprint == one.fingerprint
    others = [{"a": 9}, {**LENGTHS, "c": 2}, {"x": 5, "a": 9, "c": 1}]
    changed = {SnippetStore([write_store(each, "0003")]).fingerprint for each in others}
    settings = StoreSettings(height=HEIGHT, width=WIDTH, jpeg_quality=50)
    changed.add(SnippetStore([write_store(LENGTHS, settings=settings)]).fingerprint)
    assert len(changed - {one.fingerprint}) == 4


def test_rows_and_streams_that_do_not_exist_are_refused(store):
    for rows in ([5], [0, -1]):
        with pytest.raises(ValueError, match="of video b: it has 5 snippets"):
            store.read("b", rows, "rgb")
        with pytest.raises(ValueError, match="of video b: it has 5 snippets"):
            store.pictures("b", rows, BOTH, 16)
    with pytest.raises(ValueError, match="stream 'colour': one of rgb, flow"):
        store.pictures("b", [0], ("colour",), 16)
    with pytest.raises(InputError, match="video x: not in the snippet store"):
        store.count("x")
    with pytest.raises(InputError, match="video x: not in the snippet store"):
        store.times("x")


def test_a_store_needs_a_reader(write_store):
    with pytest.raises(ValueError, match="readers 0: at least 1"):
        SnippetStore([write_store({"a": 1})], readers=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": StoreSettings(height=HEIGHT, width=80)}, "has width 80, but a of .*0000.h5"),
        ({"settings": StoreSettings(height=56, width=WIDTH)}, "has height 56, but a"),
        ({"stack": 3}, "has planes 6, but a"),
        ({"bound": 8.0}, "has bound 8.0, but a"),
        ({"snippet_frames": 16}, "has snippet_frames 16, but a of .*0000.h5 has 8; make all"),
    ],
)
def test_stores_of_different_settings_are_refused(write_store, change, words):
    paths = [write_store({"a": 1}), write_store({"b": 1}, "0001", **change)]
    with pytest.raises(InputError, match=f"0001.h5: video b {words}"):
        SnippetStore(paths)


def test_stores_that_cannot_be_used_are_one_line(write_store, tmp_path):
    path = write_store({"a": 1})
    with pytest.raises(InputError, match="gone.h5: no such file"):
        SnippetStore([path, tmp_path / "gone.h5"])
    with pytest.raises(InputError, match="0001.h5: video a is in .*0000.h5 too"):
        SnippetStore([path, write_store({"a": 1}, "0001")])
    with pytest.raises(InputError, match="0002.h5: no video is in there"):
        SnippetStore([write_store({}, "0002")])
    with pytest.raises(InputError, match="no file: no video is in there"):
        SnippetStore([])
    with create_h5(tmp_path / "features.h5", "") as file:
        file.create_group("v")["rgb"] = np.zeros((2, 4), np.float32)
    with pytest.raises(InputError, match="features.h5: not a video store: v is no video"):
        SnippetStore([tmp_path / "features.h5"])


@pytest.mark.parametrize("missing", ["rgb_offsets", "flow", "time"])
def test_a_video_without_a_dataset_is_refused(write_store, missing):
    path = write_store({"a": 2, "b": 1})
    with h5py.File(path, "r+") as file:
        del file["b"][missing]
    with pytest.raises(InputError, match="0000.h5: .*b "):
        SnippetStore([path])


def test_times_that_are_not_those_of_the_pictures_are_refused(write_store):
    path = write_store({"a": 2})
    with h5py.File(path, "r+") as file:
        del file["a/time"]
        file["a/time"] = np.zeros(3)
    with pytest.raises(InputError, match="video a has 3 times for 2 pictures"):
        SnippetStore([path])


@pytest.mark.parametrize("stream", BOTH)
@pytest.mark.parametrize("damage", ["zeros", "cut off", "no bytes"])
@pytest.mark.parametrize("readers", [1, 3])
def test_a_damaged_picture_is_one_line(write_store, stream, damage, readers):
    path = write_store({"a": 4})
    with h5py.File(path, "r+") as file:
        offsets = file[f"a/{stream}_offsets"]
        begin, end = offsets[2:4]
        if damage == "no bytes":
            offsets[3] = begin
        else:
            file[f"a/{stream}"][begin if damage == "zeros" else (begin + end) // 2 : end] = 0
    store = SnippetStore([path], readers)
    assert len(store.read("a", [0, 1], stream)) == 2
    words = f"0000.h5: {stream} of video a is damaged at position 2; delete the file and run again"
    with pytest.raises(InputError, match=words):
        store.read("a", [0, 1, 2], stream)
    with pytest.raises(InputError, match=words):
        SnippetFrames(store, "a", (stream,), 16)[torch.tensor([1, 2])]
