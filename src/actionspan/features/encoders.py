"""The spatial and the temporal encoder: networks with their weights, ready to be called."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32, UInt8
from actionspan.errors import InputError
from actionspan.features.images import frames_to_batch, planes_to_batch
from actionspan.features.settings import EncoderSettings
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.runtime import (
    INSTALL,
    Eager,
    NotConverted,
    OpenVino,
    Runner,
    Runtime,
    choose_device,
    find_openvino,
)
from actionspan.networks.weights import fill, fold_batch_norms, load_state, widen
from actionspan.running.apart import still_working

Weights = Path | Mapping[str, Tensor] | None


class Snippets(Protocol):
    """Images of a video's snippets: an array or an HDF5 dataset, read slice by slice."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes, snippets first."""

    def __getitem__(self, rows: Any, /) -> Any: ...


def build_network(
    encoder: str, weights: Weights, channels: int, source: str
) -> tuple[nn.Module, int]:
    """Build a network with its weights and with its batch norms folded.

    Args:
        encoder: The encoder's name.
        weights: A checkpoint, a name of torchvision's, the parameters themselves, or None for the
            package's weights.
        channels: Input planes: 3, or 2L for flow. RGB weights are widened to 2L.
        source: `"scores"` keeps the classifier, `"pooled"` removes it.

    Returns:
        The network in evaluation mode and the length of its output vector.

    Raises:
        InputError: The weights do not fit.
    """
    parts = architecture(encoder)
    origin = "the model" if isinstance(weights, Mapping) else str(weights or encoder)
    state = load_state(encoder, weights, parts.last)
    # the first layer
    first, last = f"{parts.first}.weight", f"{parts.last}.weight"
    if first not in state:
        raise InputError(f"{origin}: not weights of {encoder}: lacks {first}")
    planes = state[first].shape[1]
    if planes == 3 and channels != 3 and source == "pooled":
        state[first] = widen(state[first], channels)
    elif planes != channels:
        raise InputError(f"{origin}: takes {planes} input planes, this stream has {channels}")
    # the classifier
    if last not in state and source == "scores":
        raise InputError(f"{origin}: has no classifier ({last}); give source pooled")
    classes = len(state[last]) if last in state else 1
    with torch.device("meta"):
        network = parts.build(channels, classes)
    features = int(network.get_submodule(parts.last).in_features)  # type: ignore[arg-type]
    if last not in state:
        state |= {last: torch.zeros(1, features), f"{parts.last}.bias": torch.zeros(1)}
    # the network
    fill(network, state, origin)
    network.eval().requires_grad_(False)
    fold_batch_norms(network)
    if source == "pooled":
        setattr(network, parts.last, nn.Identity())
    return network, classes if source == "scores" else features


class Encoder:
    """The network of a stream: images of snippets in, a vector for each snippet out.

    Each video starts a new batch, so that a video's features do not depend on other videos, to the
    bit. `networks.architecture.Inputs` makes numbers of levels.
    """

    def __init__(
        self, encoder: str, weights: Weights, settings: EncoderSettings, channels: int
    ) -> None:
        self.settings = settings
        self.is_flow = channels != 3
        network, self.features = build_network(encoder, weights, channels, settings.source)
        self.inputs = Inputs(
            architecture(encoder), channels, device_of(settings), settings.flow_gain
        )
        self.run = runner(encoder, network, self.inputs, settings)

    def __call__(self, snippets: Snippets) -> Float32:
        """Encode uint8 (T, H, W, 3) frames or (T, 2L, h, w) flow planes, (T, features)."""
        count, size = snippets.shape[0], self.settings.batch_size
        starts = range(0, count, size)
        return np.concatenate([self.batch(snippets[start : start + size]) for start in starts])

    def batch(self, snippets: UInt8) -> Float32:
        """Encode the next `batch_size` snippets of a video, fewer at its end: (B, features)."""
        convert = planes_to_batch if self.is_flow else frames_to_batch
        still_working()
        return self.run(convert(snippets, self.settings.input_size, self.settings.crop))


def runner(encoder: str, network: nn.Module, inputs: Inputs, settings: EncoderSettings) -> Runner:
    """Return what computes a network of images: PyTorch where OpenVINO does not take it.

    Args:
        encoder: The encoder's name.
        network: In evaluation mode, on the CPU.
        inputs: Makes its numbers of bytes.
        settings: Of the encoders.

    Raises:
        InputError: There is no such device or runtime, or it does not take the network.
    """
    if runtime_of(settings) == "openvino":
        try:
            return OpenVino(network, inputs, settings.input_size)
        except NotConverted as error:
            if settings.runtime == "openvino":
                raise InputError(
                    f"runtime is openvino, which does not take {encoder}: {error}; give auto"
                ) from None
            print(f"{encoder}: computed by PyTorch, not OpenVINO: {error}", file=sys.stderr)
    return Eager(network, inputs, settings.precision)


def runtime_of(settings: EncoderSettings) -> Runtime:
    """Return the runtime that `runtime` asks for, which is eager where a GPU computes.

    Raises:
        InputError: There is no such device or runtime.
    """
    on_cpu = device_of(settings).type == "cpu"
    if settings.runtime == "openvino":
        if not on_cpu:
            raise InputError("runtime is openvino, and device auto is a GPU here; give device cpu")
        if not find_openvino():
            raise InputError(f"runtime is openvino, which is not installed; run: {INSTALL}")
        return "openvino"
    can = settings.runtime == "auto" and on_cpu and settings.precision == "float32"
    return "openvino" if can and find_openvino() else "eager"


def device_of(settings: EncoderSettings) -> torch.device:
    """Return the device that `device` and `precision` ask for.

    Raises:
        InputError: There is no such device, or it does not do that precision.
    """
    device = choose_device(settings.device)
    if device.type == "cpu" and settings.precision == "float16":
        raise InputError("precision is float16, which needs a CUDA device; give bfloat16")
    return device
