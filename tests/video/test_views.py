"""What a network sees of a stored picture: cut, resized, mirrored."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from actionspan.video.jpegs import flipped, square
from actionspan.video.optical_flow import compute_flow, quantise
from actionspan.video.settings import FlowSettings
from video.test_optical_flow import dequantise

codes = arrays(np.uint8, (4, 6, 6), elements=st.integers(1, 255))


@given(codes, st.sampled_from(["rgb", "flow"]))
def test_mirroring_twice_changes_nothing(picture, stream):
    np.testing.assert_array_equal(flipped(flipped(picture, stream), stream), picture)


@given(arrays(np.float32, (4, 6, 2), elements=st.floats(-30, 30, width=32)))
def test_mirrored_codes_are_the_codes_of_mirrored_vectors(flow):
    mirrored = flow[:, ::-1] * np.float32([-1, 1])
    np.testing.assert_array_equal(flipped(quantise(flow, 20.0), "flow"), quantise(mirrored, 20.0))


def test_mirroring_flow_is_the_flow_of_the_mirrored_video(rng):
    """A texture that moves right and down: mirrored, it moves left and down."""
    texture = cv2.GaussianBlur(rng.integers(0, 256, (140, 160), np.uint8), (0, 0), 2)
    texture = cv2.normalize(texture, None, 0, 255, cv2.NORM_MINMAX)
    frames = np.stack([texture[20 - k : 116 - k, 30 - 3 * k : 126 - 3 * k] for k in range(3)])
    settings = FlowSettings()
    planes, mirrored = (
        compute_flow(np.ascontiguousarray(video)[None], settings)[0][0].transpose(1, 2, 0)
        for video in (frames, frames[:, :, ::-1])
    )
    inner = (slice(16, -16), slice(16, -16))
    one = dequantise(flipped(planes, "flow")[inner], 20.0)
    other = dequantise(np.ascontiguousarray(mirrored[inner]), 20.0)
    np.testing.assert_allclose(one[..., ::2].mean(), -3, atol=0.2)
    np.testing.assert_allclose(one[..., 1::2].mean(), 1, atol=0.2)
    assert np.abs(one - other).mean() < 0.1


def test_colours_are_mirrored_as_they_are(rng):
    picture = rng.integers(0, 256, (5, 7, 3), np.uint8)
    np.testing.assert_array_equal(flipped(picture, "rgb"), picture[:, ::-1])


@given(st.integers(2, 60), st.integers(2, 60), st.integers(1, 40), st.integers(0, 9))
def test_channels_are_resized_one_by_one_or_at_once_with_the_same_bits(height, width, size, seed):
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    everything = slice(None)
    apart = np.ascontiguousarray(picture.transpose(2, 0, 1)).transpose(1, 2, 0)
    whole = square(picture, everything, everything, size)
    assert whole.shape == (size, size, 3)
    assert whole.flags.c_contiguous
    np.testing.assert_array_equal(whole, square(apart, everything, everything, size))


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 20])
def test_any_number_of_channels_is_resized(rng, channels):
    picture = rng.integers(0, 256, (24, 30, channels), np.uint8)
    part = square(picture, slice(4, 20), slice(7, 27), 8)
    assert part.shape == (8, 8, channels)
    wanted = cv2.resize(picture[4:20, 7:27, -1], (8, 8), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(part[:, :, -1], wanted)
