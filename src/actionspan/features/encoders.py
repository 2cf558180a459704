"""The spatial and the temporal encoder: networks with their weights, ready to be called."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import h5py
import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32, Float64, UInt8
from actionspan.errors import InputError
from actionspan.features.hub_encoders import hub_network
from actionspan.features.settings import EncoderSettings
from actionspan.jobs.apart import still_working
from actionspan.networks import runtime
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.names import NO_MOTION, is_hub
from actionspan.networks.weights import checked, fill, fold_batch_norms, load_state, widen
from actionspan.video.optical_flow import CODES

_GRID = 4  # cells a side of the histogram of flow
_CELL = 12  # points a side of a cell
_ORIENTATIONS = 8
HISTOGRAM_FEATURES = (_GRID * _GRID + 1) * (_ORIENTATIONS + 3) + 4

Weights = Path | Mapping[str, Tensor] | None
Snippets: TypeAlias = UInt8 | h5py.Dataset  # images; a dataset is read slice by slice


def build_network(
    encoder: str, weights: Weights, channels: int, source: str
) -> tuple[nn.Module, int]:
    """Return an encoder with its weights, its batch norms folded, and the length of its vectors.

    It is in evaluation mode.

    Args:
        encoder: Its name.
        weights: A checkpoint, a name of torchvision's, the parameters themselves, or None for the
            package's weights.
        channels: Input planes: 3, or 2L for flow. RGB weights are widened to 2L.
        source: `"scores"` keeps the classifier, `"pooled"` removes it.

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
    state |= checked(state, (first, last), origin)
    planes = state[first].shape[1:2].numel()
    if planes == 3 and channels != 3 and source == "pooled":
        state[first] = widen(state[first], channels)
    elif planes != channels:
        raise InputError(f"{origin}: takes {planes} input planes, this stream has {channels}")
    # the classifier
    if last not in state and source == "scores":
        raise InputError(f"{origin}: has no classifier ({last}); give source pooled")
    classes = state[last].shape[:1].numel() if last in state else 1
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
    bit. `networks.architecture.Inputs` makes numbers of levels; networks of timm and transformers
    see images as their own library prepares them.
    """

    def __init__(
        self, encoder: str, weights: Weights, settings: EncoderSettings, channels: int
    ) -> None:
        self.settings = settings
        device = device_of(settings)
        self.inputs: runtime.ToPixels
        self.run: runtime.Runner
        # snippets as `inputs` takes them: squares, of networks of ours
        self.images: Callable[[UInt8], UInt8] = np.asarray
        if is_hub(encoder):
            found = hub_network(settings)
            self.features, self.inputs = found.features, found.inputs
            self.inputs.device = device
            self.run = runtime.Eager(found.network, self.inputs, settings.precision)
            return
        convert = frames_to_batch if channels == 3 else planes_to_batch
        self.images = partial(convert, size=settings.input_size, crop=settings.crop)
        network, self.features = build_network(encoder, weights, channels, settings.source)
        self.inputs = inputs = Inputs(architecture(encoder), channels, device, settings.flow_gain)
        self.run = self._runner(encoder, network, inputs)

    def __call__(self, snippets: Snippets) -> Float32:
        """Encode uint8 (T, H, W, 3) frames or (T, 2L, h, w) flow planes, (T, features)."""
        count, size = snippets.shape[0], self.settings.batch_size
        starts = range(0, count, size)
        return np.concatenate([self.batch(snippets[start : start + size]) for start in starts])

    def batch(self, snippets: UInt8) -> Float32:
        """Encode the next `batch_size` snippets of a video, fewer at its end: (B, features)."""
        still_working()
        return self.run(self.images(snippets))

    def _runner(self, encoder: str, network: nn.Module, inputs: Inputs) -> runtime.Runner:
        """Return what computes the network: PyTorch where OpenVINO does not take it."""
        settings = self.settings
        if runtime_of(settings) == "openvino":
            try:
                return runtime.OpenVino(network, inputs, settings.input_size, settings.precision)
            except runtime.NotConverted as error:
                if settings.runtime == "openvino":
                    raise InputError(
                        f"runtime is openvino, which does not take {encoder}: {error}; give auto"
                    ) from None
                print(f"{encoder}: computed by PyTorch, not OpenVINO: {error}", file=sys.stderr)
        return runtime.Eager(network, inputs, settings.precision)


def runtime_of(settings: EncoderSettings) -> runtime.Runtime:
    """Return the runtime that `runtime` asks for, which is eager where a GPU computes.

    Raises:
        InputError: The device or runtime is not here.
    """
    on_cpu = device_of(settings).type == "cpu"
    if settings.runtime == "openvino":
        if not on_cpu:
            raise InputError("runtime is openvino, and device auto is a GPU here; give device cpu")
        if not runtime.find_openvino():
            raise InputError(f"runtime is openvino, which is not installed; run: {runtime.INSTALL}")
        if not runtime.openvino_computes(settings.precision):
            raise InputError("runtime is openvino, and this CPU has no bfloat16; give float32")
        return "openvino"
    can = settings.runtime == "auto" and on_cpu and runtime.openvino_computes(settings.precision)
    return "openvino" if can else "eager"


def device_of(settings: EncoderSettings) -> torch.device:
    """Return the device that `device` and `precision` ask for.

    Raises:
        InputError: The device is not here, or does not do that precision.
    """
    device = runtime.choose_device(settings.device)
    if device.type == "cpu" and settings.precision == "float16":
        raise InputError("precision is float16, which needs a CUDA device; give bfloat16")
    return device


def fit_square(image: UInt8, size: int, crop: str) -> UInt8:
    """Resize an image, (h, w) or (h, w, 3), to a square of `size` pixels a side.

    With crop `"squash"` the aspect of the image changes; with `"centre"` its centre is cut out.
    """
    height, width = image.shape[:2]
    if crop == "centre":
        short = min(height, width)
        top, left = (height - short) // 2, (width - short) // 2
        image = image[top : top + short, left : left + short]
    if image.shape[:2] == (size, size):
        return image
    method = cv2.INTER_AREA if min(image.shape[:2]) > size else cv2.INTER_LINEAR
    resized: Any = cv2.resize(np.ascontiguousarray(image), (size, size), interpolation=method)
    return np.asarray(resized, np.uint8)


def frames_to_batch(frames: UInt8, size: int, crop: str) -> UInt8:
    """Turn (B, H, W, 3) frames into a (B, size, size, 3) batch."""
    return np.stack([fit_square(frame, size, crop) for frame in frames])


def planes_to_batch(planes: UInt8, size: int, crop: str) -> UInt8:
    """Turn (B, 2L, h, w) flow planes into a (B, size, size, 2L) batch.

    Flow vectors keep their length: only their grid changes.
    """
    batch = np.empty((len(planes), size, size, planes.shape[1]), np.uint8)
    for snippet, stack in zip(batch, planes, strict=True):
        for channel, plane in enumerate(stack):
            snippet[:, :, channel] = fit_square(plane, size, crop)
    return batch


def flow_histogram(planes: UInt8, bound: float) -> Float32:
    """Describe the motion of a snippet, given as (2L, h, w) quantised flow, x and y interleaved.

    The planes are shrunk to 4×4 cells of 12×12 points, the median vector of each pair (the
    camera's motion) is subtracted, and vectors become percent of the frame's height. Each cell, and
    the full frame, gives a histogram of 8 orientations weighted by magnitude, the mean magnitude
    and the mean vector, over all L pairs. The frame also gives the camera's motion, the 95th
    percentile of magnitude and the deviation of the pairs' mean magnitudes. Signed square roots
    compress the range. `bound` are the pixels at level 255.

    Returns:
        (191,): 11 values of each of 16 cells, 11 of the frame, 4 more of the frame.
    """
    # vectors, without the camera's
    side = _GRID * _CELL
    levels = [plane.astype(np.float32) for plane in planes]
    shrunk = np.stack([cv2.resize(x, (side, side), interpolation=cv2.INTER_AREA) for x in levels])
    percent = 100 * bound / (CODES * planes.shape[1])  # of the height, a code
    vectors = ((shrunk - NO_MOTION) * percent).reshape(-1, 2, side, side)  # (L, 2, 48, 48)
    camera = np.median(vectors, axis=(2, 3))  # (L, 2)
    x, y = np.moveaxis(vectors - camera[:, :, None, None], 1, 0)  # (L, 48, 48) each
    magnitude = np.hypot(x, y)
    # cells (16, 11) and frame
    means = map(_cell_means, (magnitude, x, y))
    cells = np.column_stack([_orientation_histogram(x, y, magnitude), *means])
    spread = magnitude.mean(axis=(1, 2)).std()
    frame = [*camera.mean(axis=0), np.percentile(magnitude, 95), spread]
    values = np.concatenate([cells.ravel(), cells.mean(axis=0), frame])
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)), np.float32)


def _cell_means(points: Float32) -> Float64:
    """Average (L, 48, 48) points over the pairs and over each cell, (16,)."""
    blocks = points.reshape(-1, _GRID, _CELL, _GRID, _CELL)
    return np.asarray(blocks.mean(axis=(0, 2, 4), dtype=np.float64).ravel())


def _orientation_histogram(x: Float32, y: Float32, magnitude: Float32) -> Float64:
    """Share each point's magnitude between its two nearest orientations, (16 cells, 8)."""
    turns = np.arctan2(y, x) * (_ORIENTATIONS / (2 * np.pi)) % _ORIENTATIONS
    lower = np.floor(turns).astype(np.int64)
    upper_weight = (turns - lower) * magnitude
    rows = np.arange(_GRID * _CELL) // _CELL
    cell = (rows[:, None] * _GRID + rows[None, :]) * _ORIENTATIONS  # (48, 48)
    histogram = np.zeros(_GRID * _GRID * _ORIENTATIONS)
    for index, weight in ((lower, magnitude - upper_weight), (lower + 1, upper_weight)):
        histogram += np.bincount(
            (cell + index % _ORIENTATIONS).ravel(), weight.ravel(), minlength=len(histogram)
        )
    points = x.size / (_GRID * _GRID)
    return histogram.reshape(_GRID * _GRID, _ORIENTATIONS) / points
