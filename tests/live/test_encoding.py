"""The chain of encoders: what the workflow computes, whatever it is cut into."""

from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch import nn

from actionspan.errors import InputError
from actionspan.features.encoders import build_network
from actionspan.features.extraction import TwoStream, decoded_images
from actionspan.features.settings import EncoderSettings
from actionspan.live.encoding import encoded, encoding_chain, message_of
from actionspan.live.play import pipeline_of
from actionspan.live.settings import StreamSettings
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.streaming import Pipeline, balance_stages
from actionspan.video.optical_flow import write_flow
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import snippets, write_frames
from tiers import first_tier
from video.numbered import encode
from video.test_snippets import plain_video

CUTTING = FrameSettings(snippet_frames=8, stack=2)
FLOW = FlowSettings(preset="ultrafast")
ENCODERS: dict[str, dict[str, Any]] = {
    "network": {"input_size": 64},
    "both": {"input_size": 64, "flow_histogram": True, "crop": "centre"},
    "histogram": {"input_size": 64, "flow_encoder": "flow_histogram"},
    "motion": {"source": "motion", "mover": False},
}


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 44)


def offline(video, settings):
    """Return features and motion as the workflow makes them."""
    with h5py.File("x", "w", driver="core", backing_store=False) as file:
        frames, flow = file.create_group("frames"), file.create_group("flow")
        write_frames(plain_video(video, 44), frames, CUTTING)
        write_flow(frames, flow, FLOW)
        motion = {key: flow[key][:] for key in ("flow_magnitude", "frame_difference")}
        images = decoded_images(frames, flow, settings.batch_size, mover=False)
        return TwoStream(settings, 2 * CUTTING.stack)(images, FLOW.bound), motion


CUT = [
    *(("thread", name) for name in ("network", "histogram")),
    *(("process", name) for name in ("both", "histogram")),
]


@pytest.mark.parametrize("name", first_tier(ENCODERS, "both"))
@pytest.mark.parametrize(
    ("runtime", "rounding"), first_tier([("eager", 1e-6), ("auto", 1e-5)], ("auto", 1e-5))
)
def test_features_are_the_workflows(video, name, runtime, rounding):
    settings = EncoderSettings(**ENCODERS[name] | {"mover": False}, runtime=runtime)
    features, motion = offline(video, settings)
    chain = encoding_chain(settings, FLOW, CUTTING.stack)
    found = [encoded(chain(message_of(snippet))) for snippet in snippets(video, CUTTING)]
    assert [each.features.keys() for each in found] == [features.keys()] * 5
    for stream, rows in features.items():
        streamed = np.stack([each.features[stream] for each in found])
        assert streamed.dtype == rows.dtype == np.float32
        np.testing.assert_allclose(
            streamed, rows, rtol=rounding, atol=rounding * np.abs(rows).max()
        )
    for key, curve in motion.items():
        assert [each.motion[key] for each in found] == curve.tolist()
    assert all(each.compute_seconds > 0 for each in found)


@pytest.mark.parametrize(
    ("executor", "name"), first_tier(CUT, ("thread", "histogram"), ("process", "both"))
)
def test_any_cut_under_any_executor_gives_the_same_bits(video, executor, name):
    settings = EncoderSettings(**ENCODERS[name])
    chain = encoding_chain(settings, FLOW, CUTTING.stack, one_process=executor != "process")
    messages = [message_of(snippet) for snippet in snippets(video, CUTTING)]
    expected = [chain(message) for message in messages]
    stages = balance_stages(chain, messages[0], 2, repetitions=1)
    with Pipeline(stages, executor=executor) as pipeline:
        answers = [answer.output for answer in pipeline.run(messages)]
    for wanted, found in zip(expected, answers, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(wanted[1:], found[1:], strict=True))


def test_without_networks_there_is_one_stage(video):
    settings = EncoderSettings(**ENCODERS["motion"])
    chain = encoding_chain(settings, FLOW, CUTTING.stack)
    message = message_of(next(snippets(video, CUTTING)))
    with pipeline_of(chain, StreamSettings(executor="thread", stages=2), message) as pipeline:
        (answer,) = pipeline.run([message])
    assert torch.equal(answer.output[1], chain(message)[1])


def test_the_layers_of_a_network_are_the_network():
    torch.manual_seed(0)
    fresh = EfficientNetLite0(4, 3).eval()
    folded, _ = build_network("efficientnet_lite0", None, 4, "pooled")
    for network in (fresh, folded):
        assert isinstance(network, EfficientNetLite0)
        images = torch.randn(2, 4, 64, 64)
        with torch.no_grad():
            expected = network(images)
            assert torch.equal(nn.Sequential(*network.layers())(images), expected)
    assert len(fresh.layers()) == 18


def test_clips_cannot_be_streamed():
    settings = EncoderSettings(clip_encoder="i3d")
    with pytest.raises(InputError, match="clip_encoder none"):
        encoding_chain(settings, FLOW, 1)


def test_a_feature_that_is_no_number_is_one_line():
    message = (
        torch.zeros(1, dtype=torch.float64),
        torch.zeros(2),
        torch.tensor([1.0, float("inf")]),
        torch.zeros(3),
    )
    with pytest.raises(InputError, match="rgb: a feature is not finite"):
        encoded(message)
