"""Principal components and standardisation of a stream, fitted on the training subset."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.features.cues import REACHES, Past, cues, past_rows
from actionspan.features.settings import Grid, RescaleSettings
from actionspan.features.steps import rescale, window_starts

if TYPE_CHECKING:
    from actionspan.storage.model_files import Part

CURVES = 2  # of motion
_NEGLIGIBLE = 1e-6  # a deviation below this share of the stream's largest counts as 0
MOST_STEPS = 8192  # of a row
_MOST_SNIPPETS = 1_000_000  # that a row may depend on, or that may be in no window
_METHODS = ("mean", "bins", "linear", "nearest")
_STREAMS = ("rgb", "flow", "mover", "clip", "sound")


@dataclass(frozen=True, kw_only=True)
class StreamTransform:
    """(T, C) features to (T, K): subtract `mean`, project on `components`, multiply by `scale`.

    `mean` is (C,); `components` is (K, C) with orthonormal rows, or (0, C) for no projection
    (K = C); `scale` is (K,), and 0 for a dimension that never varies.
    """

    mean: Float32
    components: Float32
    scale: Float32

    @property
    def features(self) -> int:
        """The number K of features that come out."""
        return len(self.scale)

    def apply(self, features: Float32) -> Float32:
        """Transform (T, C) features.

        The order of the sums does not depend on the number of threads or rows or on the memory
        layout, so that a video gives the same bits alone and among others.

        Raises:
            ValueError: C differs from the channels that the transform was fitted on.
        """
        if features.shape[1] != len(self.mean):
            raise ValueError(f"{features.shape[1]} features a row, the model has {len(self.mean)}")
        centred = np.ascontiguousarray(features - self.mean)
        if len(self.components):
            components = np.ascontiguousarray(self.components)
            centred = np.einsum("tc,kc->tk", centred, components, optimize=False)
        return centred * self.scale


@dataclass(frozen=True, kw_only=True)
class Transform:
    """How raw features of every stream become rows of features.h5.

    With grid "windows" `steps` is the length of a window; a video has a step for each snippet. With
    `cues`, a row begins with a column of ones, which marks the inside of the video, and ends with
    the cues of change; with `past`, it has the features and cues of `past_rows`. Without any stream
    the curves of motion are all that a row has.
    """

    steps: int
    method: str
    streams: Mapping[str, StreamTransform]
    grid: Grid = "video"
    stride: int = 0
    rest: int = 0
    cues: bool = False
    past: Past | None = None

    @property
    def channels(self) -> int:
        """How many features a step has."""
        features = sum(stream.features for stream in self.streams.values())
        cues = len(REACHES) * len(self.streams) + CURVES
        if self.past is not None:
            return 1 + 2 * (features + cues)
        return 1 + features + cues if self.cues else features or CURVES

    def length(self, times: Float64, duration: float) -> int:
        """Return how many equal steps a video has: `steps`, or with grid "windows" one per snippet.

        Rows of a stream are snippets at any distance; others are evened out. `times` are the (T,)
        snippet centres and `duration` is the video's, in seconds.
        """
        if self.grid == "video":
            return self.steps
        if self.past is not None:
            return len(times)
        interval = float(np.median(np.diff(times))) if len(times) > 1 else duration
        return max(1, round(duration / interval))

    def starts(self, length: int) -> Int64:
        """Return the first step of each row of a video of `length` steps."""
        if self.grid == "video":
            return np.zeros(1, np.int64)
        return window_starts(length, self.steps, self.stride, self.rest)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return a flat dictionary of arrays, for any file that holds arrays."""
        arrays: dict[str, NDArray[np.generic]] = {
            "steps": np.asarray(self.steps),
            "method": np.frombuffer(self.method.encode(), np.uint8),
            "streams": np.frombuffer(",".join(self.streams).encode(), np.uint8),
        }
        if self.grid == "windows":
            arrays["windows"] = np.array([self.stride, self.rest])
        if self.cues:
            arrays["cues"] = np.asarray(True)
        if self.past is not None:
            arrays |= {f"past/{part}": np.asarray(value) for part, value in vars(self.past).items()}
        for stream, fitted in self.streams.items():
            arrays |= {f"{stream}/{part}": values for part, values in vars(fitted).items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> "Transform":
        """Return the transform of which `to_arrays` made these arrays."""

        def text(key: str) -> str:
            return np.asarray(arrays[key], np.uint8).tobytes().decode()

        def floats(group: str, *parts: str) -> dict[str, Float32]:
            return {part: np.asarray(arrays[f"{group}/{part}"], np.float32) for part in parts}

        past = None
        if "past/horizon" in arrays:
            horizon, ahead = int(arrays["past/horizon"]), int(arrays["past/ahead"])
            past = Past(horizon=horizon, ahead=ahead, **floats("past", "mean", "deviation"))
        stride, rest = np.asarray(arrays.get("windows", [0, 0])).tolist()
        parts = ("mean", "components", "scale")
        streams = {
            stream: StreamTransform(**floats(stream, *parts))
            for stream in text("streams").split(",")
            if stream
        }
        return cls(
            grid="windows" if "windows" in arrays else "video",
            stride=stride,
            rest=rest,
            cues="cues" in arrays,
            past=past,
            steps=int(arrays["steps"]),
            method=text("method"),
            streams=streams,
        )


def transform_features(
    raw: Mapping[str, Float32],
    times: Float64,
    duration: float,
    transform: Transform,
    motion: Mapping[str, Float32] | None = None,
) -> Float32:
    """Turn a video's raw features into the sequence that its rows of features.h5 are cut from.

    `raw` are (T, C) features of each stream, maybe of others too, `times` (T,) snippet centres and
    `duration` the video's length in seconds; `motion` are (T,) curves, which cues are made of too.

    Returns:
        (T, C): the streams side by side, in the transform's order, at T equal steps of the video;
        without streams, the logarithms of the curves by their mean and deviation in the video.
        With cues, a column of ones before them and the cues behind; with a past, its rows.

    Raises:
        ValueError: A stream of the transform is not there.
    """
    if not set(transform.streams) <= set(raw):
        given, fitted = (", ".join(sorted(names)) for names in (raw, transform.streams))
        raise ValueError(f"streams are {given}, the model has {fitted}")
    if transform.past is not None:
        parts = {name: stream.apply(raw[name]) for name, stream in transform.streams.items()}
        return past_rows(parts, motion or {}, transform.past)
    length = transform.length(times, duration)

    even = partial(rescale, times=times, duration=duration, steps=length, method=transform.method)
    parts = {name: stream.apply(even(raw[name])) for name, stream in transform.streams.items()}
    if parts and not transform.cues:
        return np.concatenate(list(parts.values()), axis=1)
    curves = cues(parts, {key: even(curve, motion=True) for key, curve in (motion or {}).items()})
    inside = [np.ones((length, 1), np.float32)] * transform.cues
    return np.concatenate([*inside, *parts.values(), curves], axis=1)


class Moments:
    """Mean and covariance of rows that come in blocks, in float64.

    Differences to the first row are summed, so that a large mean costs no digits.
    """

    def __init__(self, features: int) -> None:
        self.rows = 0
        self.shift = np.zeros(features)
        self.total = np.zeros(features)
        self.products = np.zeros((features, features))

    def add(self, block: Float32) -> None:
        """Count the rows of a (n, C) block."""
        if self.rows == 0:
            self.shift = block[0].astype(np.float64)
        centred = block - self.shift
        self.rows += len(block)
        self.total += centred.sum(axis=0)
        self.products += centred.T @ centred

    @property
    def mean(self) -> Float64:
        """The mean row, (C,)."""
        return self.shift + self.total / self.rows

    @property
    def covariance(self) -> Float64:
        """The covariance (divided by n), (C, C)."""
        offset = self.total / self.rows
        return self.products / self.rows - np.outer(offset, offset)


def fit_stream(moments: Moments, components: int, standardise: str) -> StreamTransform:
    """Fit a stream's transform.

    Args:
        moments: Of the training subset's rescaled rows.
        components: Principal components to keep (at most C); 0: no projection.
        standardise: `"none"`: features stay as they are, or are centred and projected;
            `"stream"`: centred, with a scale that makes the mean variance over dimensions 1;
            `"dimension"`: centred, variance 1 in each dimension.
    """
    # components, of a sign that does not depend on the solver
    covariance = moments.covariance
    kept = np.zeros((0, len(covariance)))
    variance = np.diag(covariance)
    if components:
        values, vectors = np.linalg.eigh(covariance)  # ascending
        kept = vectors[:, ::-1][:, :components].T  # (K, C)
        variance = values[::-1][:components]
        largest = np.abs(kept).argmax(axis=1)
        kept = kept * np.sign(kept[np.arange(len(kept)), largest])[:, None]
    # scales
    mean, deviation = moments.mean, np.sqrt(np.maximum(variance, 0))
    if standardise == "none":
        scale = np.ones(len(deviation))
        mean = mean if components else np.zeros_like(mean)
    elif standardise == "stream":
        common = np.sqrt(np.mean(np.square(deviation)))
        scale = np.full(len(deviation), 1 / common if common > 0 else 0.0)
    else:
        varies = deviation > _NEGLIGIBLE * deviation.max(initial=0)
        scale = np.where(varies, 1 / np.where(varies, deviation, 1), 0.0)
    return StreamTransform(
        mean=mean.astype(np.float32),
        components=kept.astype(np.float32),
        scale=scale.astype(np.float32),
    )


def fit_transform(
    settings: RescaleSettings, videos: Iterable[tuple[Mapping[str, Float32], Float64, float]]
) -> Transform:
    """Fit each stream's transform on the rescaled rows of videos of the same streams.

    With grid "video" all videos have the same weight, as each has `steps` rows. A video is given by
    the features (T, C) of each stream, its snippet centres (T,) and its duration in seconds.
    """
    windows = settings.grid == "windows"
    unfitted = Transform(
        steps=settings.steps,
        method="nearest" if windows else settings.method,
        grid=settings.grid,
        stride=settings.stride if windows else 0,
        rest=settings.rest if windows else 0,
        streams={},
    )
    moments: dict[str, Moments] = {}
    for raw, times, duration in videos:
        length = unfitted.length(times, duration)
        for stream, rows in raw.items():
            even = rescale(rows, times, duration, length, unfitted.method)
            moments.setdefault(stream, Moments(rows.shape[1])).add(even)
    kept = (settings.components, settings.standardise)
    return replace(unfitted, streams={key: fit_stream(m, *kept) for key, m in moments.items()})


def transform_from(part: "Part") -> Transform:
    """Return the transform of a model file, of which `to_arrays` made the tensors.

    Raises:
        InputError: It is none.
    """
    import torch  # takes seconds, and most that transforms features needs none of it

    from actionspan.storage.model_files import Part

    arrays: dict[str, NDArray[np.generic]] = {}

    def take(key: str, *shape: int | None, kind: torch.dtype = torch.float32) -> Part:
        found: NDArray[np.generic] = part[key].tensor(*shape, kind=kind).numpy()
        arrays[key] = found
        is_text = kind == torch.uint8
        value = found.tobytes().decode("latin1") if is_text else found.tolist()
        return Part(value, part[key].name)

    steps = take("steps", kind=torch.int64).whole(1, MOST_STEPS)
    take("method", None, kind=torch.uint8).text(_METHODS)
    named = take("streams", None, kind=torch.uint8).text()
    streams = named.split(",") if named else []
    if len(set(streams)) < len(streams) or not set(streams) <= set(_STREAMS):
        part["streams"].refuse(f"some of {', '.join(_STREAMS)}")
    if "windows" in part:
        stride, rest = take("windows", 2, kind=torch.int64).items(2, 2)
        stride.whole(1, steps)
        rest.whole(0, _MOST_SNIPPETS)
    if "cues" in part:
        take("cues", kind=torch.bool)
    if "past/horizon" in part:
        take("past/horizon", kind=torch.int64).whole(1, _MOST_SNIPPETS)
        take("past/ahead", kind=torch.int64).whole(1, MOST_STEPS)
        cues = len(REACHES) * len(streams) + CURVES
        take("past/mean", cues)
        if min(take("past/deviation", cues).value) <= 0:
            raise InputError(f"{part.name}: past/deviation: above 0")
    for name in streams:
        width = len(take(f"{name}/mean", None).value)
        kept = len(take(f"{name}/components", None, width).value)
        take(f"{name}/scale", kept or width)
    return Transform.from_arrays(arrays)
