"""features.h5: the features of all shards, rescaled and standardised, video by video."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.dataset.tables import Video, read_annotations, read_name, read_videos
from actionspan.errors import InputError
from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import rescale
from actionspan.features.transform import (
    Moments,
    Transform,
    fit_stream,
    transform_features,
    video_steps,
)
from actionspan.features.windows import cut_windows
from actionspan.files.storage import create_h5, digest, open_h5
from actionspan.running.parts import shard_videos
from actionspan.running.progress import progress

STREAMS = ("rgb", "flow", "external")
MOTION = ("frame_difference", "flow_magnitude")


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A video of videos.tsv that has features, and their shard."""

    video: Video
    shard: Path
    subset: str


@dataclass(frozen=True, kw_only=True)
class _Raw:
    """A video's features as its shard has them."""

    streams: dict[str, Float32]
    times: Float64
    motion: dict[str, Float32]


def collect(
    shards: Sequence[Path],
    videos: Path,
    annotations: Path,
    out: Path,
    settings: RescaleSettings,
    *,
    all_needed: bool = False,
) -> None:
    """Make features.h5.

    The training subset is read once for its moments and all videos once for their rows: memory
    holds a single video and a covariance for each stream.

    Args:
        shards: Feature shards of `features extract` or `features external`.
        videos: videos.tsv.
        annotations: annotations.json; videos that it does not name count as testing.
        out: features.h5.
        settings: Steps, components and standardisation.
        all_needed: Whether a video without features is an error, not a line on standard error.

    Raises:
        InputError: A shard is incomplete, features do not fit together or are not finite, or there
            is no training video to fit on.
    """
    sources = _find_sources(shards, videos, annotations, all_needed)
    with _Shards() as opened:
        first = opened.read(sources[0])
        widths = {stream: rows.shape[1] for stream, rows in first.streams.items()}
        motion = sorted(first.motion)

        def read(source: _Source) -> _Raw:
            raw = opened.read(source)
            _check(source, raw, widths, motion)
            return raw

        transform = _fit(sources, read, widths, settings)
        with create_h5(out, digest(settings, "features.h5")) as file:
            file.attrs["description"] = opened.description
            file.attrs["data"] = read_name(annotations)
            _write(file, sources, opened, read, transform, motion)


def _find_sources(
    shards: Sequence[Path], videos: Path, annotations: Path, all_needed: bool
) -> list[_Source]:
    """Return the videos of videos.tsv that have features, sorted by id; report the others."""
    # the shard of each video
    where: dict[str, Path] = {}
    for shard in shards:
        with open_h5(shard) as file:
            for name in shard_videos(file):
                if name in where:
                    raise InputError(f"{shard}: video {name} is in {where[name]} too")
                where[name] = shard
    # videos without features
    listed = sorted(read_videos(videos), key=lambda video: video.video_id)
    missing = [video.video_id for video in listed if video.video_id not in where]
    if missing:
        some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        line = f"without features: {len(missing)} of {len(listed)} videos: {some}"
        if all_needed:
            raise InputError(
                f"{videos}: {line}; the logs of `video frames` say why, and "
                "--on-bad-input skip goes on without them"
            )
        print(line, file=sys.stderr)
    if len(missing) == len(listed):
        raise InputError(f"{videos}: no shard has features of any of its {len(listed)} videos")
    subsets = {video.video_id: video.subset for video in read_annotations(annotations)}
    return [
        _Source(video=video, shard=where[name], subset=subsets.get(name, "testing"))
        for video in listed
        if (name := video.video_id) in where
    ]


class _Shards:
    """The shard files, open one at a time: neighbours in the order of ids often share a file."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.path: Path | None = None
        self.file: Any = None

    def __enter__(self) -> "_Shards":
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def group(self, source: _Source) -> Any:
        if source.shard != self.path:
            self.stack.close()
            self.file, self.path = self.stack.enter_context(open_h5(source.shard)), source.shard
        return self.file[source.video.video_id]

    @property
    def description(self) -> str:
        """What the features of the open shard are."""
        return str(self.file.attrs.get("description", "features without a description"))

    def times(self, source: _Source) -> Float64:
        values: Float64 = self.group(source)["time"][:].astype(np.float64)
        return values

    def read(self, source: _Source) -> _Raw:
        group = self.group(source)
        return _Raw(
            streams={key: group[key][:].astype(np.float32) for key in STREAMS if key in group},
            times=group["time"][:].astype(np.float64),
            motion={key: group[key][:].astype(np.float32) for key in MOTION if key in group},
        )


def _check(source: _Source, raw: _Raw, widths: dict[str, int], motion: list[str]) -> None:
    """Check that a video's features fit those of the first video."""
    where = f"{source.shard}: video {source.video.video_id}"
    if not raw.streams:
        raise InputError(f"{where}: no features (rgb, flow or external)")
    own = {stream: rows.shape[1] for stream, rows in raw.streams.items()}
    if own != widths:
        raise InputError(
            f"{where}: {_list(own)} features, other videos have {_list(widths)}; "
            f"extract all shards with the same encoders"
        )
    if sorted(raw.motion) != motion:
        raise InputError(f"{where}: frame_difference and flow_magnitude unlike other videos'")
    for stream, rows in raw.streams.items():
        if len(rows) != len(raw.times) or len(rows) == 0:
            raise InputError(f"{where}: {len(rows)} rows of {stream}, {len(raw.times)} times")
        if not np.isfinite(rows).all():
            raise InputError(f"{where}: {stream} holds values that are not finite")


def _list(widths: dict[str, int]) -> str:
    return ", ".join(f"{stream} {width}" for stream, width in widths.items())


def _fit(
    sources: list[_Source],
    read: Callable[[_Source], _Raw],
    widths: dict[str, int],
    settings: RescaleSettings,
) -> Transform:
    """Fit each stream's transform on the rescaled rows of the training subset.

    With grid "video" all training videos have the same weight, as each has `steps` rows.
    """
    chosen = [source for source in sources if source.subset == "training"]
    if settings.standardise == "none" and not settings.components:
        chosen = sources[:1]
    if not chosen:
        raise InputError(
            "no video of the subset training has features to fit components and scales on; "
            "give --standardise none --components 0, or annotations with a training subset"
        )
    method = settings.method if settings.grid == "video" else "nearest"
    moments = {stream: Moments(width) for stream, width in widths.items()}
    for source in progress(chosen, "fitting", len(chosen)):
        raw = read(source)
        duration = source.video.duration_seconds
        length = video_steps(raw.times, duration, settings.steps, settings.grid)
        for stream, rows in raw.streams.items():
            moments[stream].add(rescale(rows, raw.times, duration, length, method))
    windows = settings.grid == "windows"
    return Transform(
        steps=settings.steps,
        method=method,
        grid=settings.grid,
        stride=settings.stride if windows else 0,
        rest=settings.rest if windows else 0,
        streams={
            stream: fit_stream(seen, settings.components, settings.standardise)
            for stream, seen in moments.items()
        },
    )


def _write(
    file: h5py.File,
    sources: list[_Source],
    opened: _Shards,
    read: Callable[[_Source], _Raw],
    transform: Transform,
    motion: list[str],
) -> None:
    """Write the rows one video at a time, and what describes them."""
    for key, values in transform.to_arrays().items():
        file[f"transform/{key}"] = values
    # the rows of each video
    lengths = [transform.steps] * len(sources)
    if transform.grid == "windows":
        lengths = [
            transform.length(opened.times(source), source.video.duration_seconds)
            for source in sources
        ]
    starts = [transform.starts(length) for length in lengths]
    counts = [len(firsts) for firsts in starts]

    def repeated(values: list[Any]) -> list[Any]:
        return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]

    text = h5py.string_dtype()
    names = repeated([source.video.video_id for source in sources])
    file.create_dataset("video_id", data=names, dtype=text)
    file.create_dataset("subset", data=repeated([source.subset for source in sources]), dtype=text)
    file["duration_seconds"] = repeated([source.video.duration_seconds for source in sources])
    if transform.grid == "windows":
        file["first_step"] = np.concatenate(starts)
        file["length"] = np.array(repeated(lengths), np.int64)
    # their features and curves
    width = sum(fitted.features for fitted in transform.streams.values())
    shape = (len(names), transform.steps)
    features = file.create_dataset("features", (*shape, width), np.float32)
    curves = {key: file.create_dataset(key, shape, np.float32) for key in motion}
    end = 0
    for index, source in enumerate(progress(sources, "rescaling", len(sources))):
        raw, duration = read(source), source.video.duration_seconds
        begin, end = end, end + counts[index]
        whole = transform_features(raw.streams, raw.times, duration, transform)
        features[begin:end] = cut_windows(whole, starts[index], transform.steps)
        for key, curve in curves.items():
            values = rescale(raw.motion[key], raw.times, duration, len(whole), transform.method)
            curve[begin:end] = cut_windows(values, starts[index], transform.steps)
