"""From snippets to features as a chain of modules, which can be cut into stages.

The functions are the workflow's: `compute_flow`, then the encoders of `TwoStream`. A message
is four tensors: seconds of work so far, facts of motion, and the two streams, each first pixels and
then features. A snippet is a message, and eager PyTorch computes it layer by layer: features differ
from the workflow's by rounding, and where only one of both takes a snippet for still.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32
from actionspan.errors import InputError
from actionspan.features.encoders import Encoder, flow_histogram
from actionspan.features.extraction import TwoStream
from actionspan.features.settings import EncoderSettings
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.runtime import Eager
from actionspan.video.optical_flow import compute_flow
from actionspan.video.settings import FlowSettings
from actionspan.video.snippets import Snippet, frame_differences
from actionspan.video.zones import Zones, share_inside

Message = tuple[Tensor, ...]
_RGB, _FLOW = 2, 3  # places in a message


class Encoded(NamedTuple):
    """The features of one snippet."""

    features: dict[str, Float32]  # (C,) of each stream, as `TwoStream` gives them
    motion: dict[str, float]  # as in feature shards
    compute_seconds: float  # of flow and encoders, all stages together


def message_of(snippet: Snippet) -> Message:
    """Return a snippet as the chain takes it: (1,), (1,), (H, W, 3) and (L + 1, h, w)."""
    unknown = torch.zeros(1, dtype=torch.float64), torch.zeros(1)
    return (*unknown, torch.from_numpy(snippet.rgb), torch.from_numpy(snippet.gray))


def encoded(message: Message) -> Encoded:
    """Return the chain's output for a snippet.

    Raises:
        InputError: A feature is not finite.
    """
    spent, facts, rgb, flow = (tensor.numpy() for tensor in message)
    vectors = {"rgb": rgb, "flow": np.concatenate([flow, facts[2:]])}
    features = {stream: vector for stream, vector in vectors.items() if vector.size}
    for stream, vector in features.items():
        if not np.isfinite(vector).all():
            raise InputError(f"{stream}: a feature is not finite; use precision float32")
    motion = {"flow_magnitude": float(facts[0]), "frame_difference": float(facts[1])}
    return Encoded(features, motion, float(spent[0]))


def encoding_chain(
    encoders: EncoderSettings,
    flow: FlowSettings,
    stack: int,
    weights: Mapping[str, Mapping[str, Tensor]] | None = None,
    widths: Mapping[str, int] | None = None,
    *,
    one_process: bool = True,
    zones: Zones = (),
) -> nn.Sequential:
    """Return the chain of a model's encoders, in as many modules as it can be cut into.

    Args:
        encoders: The encoders of the model.
        flow: Its optical flow.
        stack: Flow fields of a snippet.
        weights: Tuned parameters of the encoders, by stream.
        widths: The lengths of the vectors that the model takes, by stream.
        one_process: Whether all stages are in this process; only then may they use a GPU.
        zones: Outside which the snippets show nothing.

    Raises:
        InputError: The encoders cannot be built, or need more than a snippet at a time.
    """
    if encoders.clip_encoder != "none":
        raise InputError(
            f"the model was trained with clip_encoder {encoders.clip_encoder}, which sees long "
            "clips; a stream needs features.encoders.clip_encoder none"
        )
    if not one_process:
        encoders = replace(encoders, device="cpu")
    # layer by layer, to be cut anywhere
    streams = TwoStream(replace(encoders, runtime="eager"), 2 * stack, weights)
    if widths is not None:
        streams.check(widths)
    kept = {_RGB: streams.rgb is not None, _FLOW: streams.flow is not None}
    motion = _Flow(flow, histogram=streams.has_histogram, kept=kept, zones=zones)
    parts: list[_Timed] = [motion]
    if streams.flow is not None:
        parts += _encoder_parts(streams.flow, _FLOW)
    if streams.rgb is not None:
        parts += _encoder_parts(streams.rgb, _RGB)
    return nn.Sequential(*parts).eval()


class _Timed(nn.Module):
    """A part of the chain that adds the seconds it takes to the message's."""

    @torch.no_grad()
    def forward(self, message: Message) -> Message:
        begun = time.perf_counter()
        made = self.work(message)
        return (message[0] + (time.perf_counter() - begun), *made[1:])

    def work(self, message: Message) -> Message:
        """Return the message with what this part makes."""
        raise TypeError(f"{type(self).__name__} has no work")


class _Flow(_Timed):
    """Grey frames to coded flow planes, the facts of motion, and the histogram if it is wanted."""

    def __init__(
        self, settings: FlowSettings, *, histogram: bool, kept: Mapping[int, bool], zones: Zones
    ) -> None:
        super().__init__()
        self.settings, self.histogram, self.kept, self.zones = settings, histogram, kept, zones

    def work(self, message: Message) -> Message:
        gray = message[_FLOW].numpy()
        share = share_inside(self.zones, *gray.shape[1:])
        (planes,), (magnitude,) = compute_flow(gray[None], self.settings, share)
        facts = [np.array([magnitude, frame_differences(gray, self.zones)], np.float32)]
        if self.histogram:
            facts.append(flow_histogram(planes, self.settings.bound))
        # what no network sees goes no further
        rgb = message[_RGB] if self.kept[_RGB] else torch.zeros(0)
        flow = torch.from_numpy(planes) if self.kept[_FLOW] else torch.zeros(0)
        return (message[0], torch.from_numpy(np.concatenate(facts)), rgb, flow)


class _Layer(_Timed):
    """A layer of a network on one of the streams."""

    def __init__(self, place: int, layer: nn.Module, encoder: EncoderSettings) -> None:
        super().__init__()
        self.place, self.layer = place, layer
        self.precision = encoder.precision

    def work(self, message: Message) -> Message:
        images = message[self.place]
        if images.ndim == 4:
            # As the weights are; the last bits of a convolution depend on it.
            images = images.contiguous(memory_format=torch.channels_last)
        half = self.precision != "float32"
        dtype = getattr(torch, self.precision) if half else None
        with torch.autocast(images.device.type, dtype=dtype, enabled=half):
            made = self.layer(images)
        return (*message[: self.place], made, *message[self.place + 1 :])


class _Images(nn.Module):
    """Pixels of one snippet to the batch of one that the network sees."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.inputs, self.images = encoder.inputs, encoder.images

    def forward(self, pixels: Tensor) -> Tensor:
        return self.inputs(torch.from_numpy(self.images(pixels.numpy()[None])))


class _Vector(nn.Module):
    """(1, C) features of any precision, anywhere, to (C,) float32 in main memory."""

    def forward(self, features: Tensor) -> Tensor:
        return features[0].float().cpu()


def _encoder_parts(encoder: Encoder, place: int) -> list[_Timed]:
    assert isinstance(encoder.run, Eager)
    network = encoder.run.network
    layers = network.layers() if isinstance(network, EfficientNetLite0) else [network]
    chain = [_Images(encoder), *layers, _Vector()]
    return [_Layer(place, layer, encoder.settings) for layer in chain]
