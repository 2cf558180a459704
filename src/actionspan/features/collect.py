"""features.h5: the features of all shards, rescaled and standardised, video by video."""

import hashlib
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from actionspan.annotations.tables import Video, read_annotations, read_name, read_videos
from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.features.cues import REACHES, Past, causal_cues
from actionspan.features.footage import FEWEST_FEATURES, MOST_STEPS, shared_footage
from actionspan.features.settings import AND_MOVER, CausalSettings, RescaleSettings
from actionspan.features.steps import cut_windows, merge_windows, rescale
from actionspan.features.store import UNSHARED, write_checked
from actionspan.features.transform import (
    CURVES,
    Moments,
    Transform,
    fit_transform,
    transform_features,
)
from actionspan.jobs.progress import progress
from actionspan.storage.writing import create_h5, digest, open_h5
from actionspan.video.marks import WIDTHS, Marks, marks_of
from actionspan.video.sound import SOUND, sound_rows
from actionspan.video.stillness import STILL

STREAMS = ("rgb", "flow", "mover", "clip", "external")
_SPAN_ONLY = "mover"  # the papers' models have no such stream, and it sees ahead
# Attributes of shards that features.h5 has too, and their values where a shard has none.
_ATTRIBUTES = {"description": "features without a description", "settings": "{}"}
MOTION = ("frame_difference", "flow_magnitude")
_LEAST_DEVIATION = 1e-3  # of a cue of a stream, a logarithm


class _Raw(NamedTuple):
    """A video's features as its shard has them."""

    streams: dict[str, Float32]
    times: Float64
    motion: dict[str, Float32]
    marks: Marks


def collect(
    shards: Sequence[Path],
    videos: Path,
    annotations: Path,
    out: Path,
    settings: RescaleSettings,
    *,
    with_cues: bool = False,
    causal: CausalSettings | None = None,
    same_footage: float = 1.0,
    all_needed: bool = False,
    sound: bool = False,
) -> None:
    """Make features.h5, sequences.h5 or causal.h5 of feature shards.

    The training subset is read once for its moments and all videos once for their rows: memory
    holds a single video and a covariance for each stream; to find shared footage, the first stream
    of all training videos. Videos that annotations.json does not name count as testing.

    Args:
        shards: Of `features extract`, `encode` or `external`.
        videos: videos.tsv.
        annotations: annotations.json.
        out: The file to write.
        settings: Steps, components and standardisation.
        with_cues: Whether rows have cues of change and mark the inside of the video.
        causal: How rows differ from the past (with cues), where they are for a stream.
        same_footage: The similarity from which training videos show the same, looked for with cues.
        all_needed: Whether a video without features is an error, not a line on standard error.
        sound: Whether the video files' loudness is a stream.

    Raises:
        InputError: A shard is incomplete, features do not fit together or are not finite, or there
            is not one training video to fit on.
    """
    listed, where = _find_features(shards, videos, all_needed)
    subsets = {video.video_id: video.subset for video in read_annotations(annotations)}
    chosen = [replace(video, subset=subsets.get(video.video_id, "testing")) for video in listed]
    with_span = with_cues and causal is None
    streams = [stream for stream in STREAMS if with_span or stream != _SPAN_ONLY]
    with closing(_Shards(where, streams, sound=sound)) as opened:
        transform = replace(_fit(chosen, opened, settings), cues=with_cues)
        if causal is not None:
            transform = replace(transform, past=_fit_cues(chosen, opened, transform, causal))
        made_by = (settings, "features.h5", with_cues, same_footage, *([causal] if causal else []))
        made_by += (SOUND,) * sound
        with create_h5(out, digest(*made_by)) as file:
            for key, unsaid in _ATTRIBUTES.items():
                file.attrs[key] = opened.file.attrs.get(key, unsaid)
            if not with_span:
                file.attrs["description"] = file.attrs["description"].replace(AND_MOVER, "")
            file.attrs["data"] = read_name(annotations)
            _write(file, chosen, opened, transform)
            if with_cues:
                _write_footage(out, file, transform, same_footage)


def _find_features(
    shards: Sequence[Path], videos: Path, all_needed: bool
) -> tuple[list[Video], dict[str, Path]]:
    """Return the videos that have features, sorted by id, and their shards; report the others."""
    where: dict[str, Path] = {}  # the shard of each video
    still = np.zeros(2, int)  # snippets, of how many
    for shard in shards:
        with open_h5(shard) as file:
            for name, group in file.items():
                if name in where:
                    raise InputError(f"{shard}: video {name} is in {where[name]} too")
                where[name] = shard
                if STILL in group:
                    still += [group[STILL][:].sum(), len(group[STILL])]
    if still[0]:
        line = "still; they have the features of the last that is not"
        print(f"{still[0] / still[1]:.1%} of {still[1]} snippets are {line}", file=sys.stderr)
    listed = sorted(read_videos(videos), key=lambda video: video.video_id)
    missing = [video.video_id for video in listed if video.video_id not in where]
    if missing:
        some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        line = f"without features: {len(missing)} of {len(listed)} videos: {some}"
        if all_needed:
            raise InputError(
                f"{videos}: {line}; the logs of `video frames` have the reasons, and "
                "--on-bad-input skip continues without them"
            )
        print(line, file=sys.stderr)
    if len(missing) == len(listed):
        raise InputError(f"{videos}: no shard has features of any of its {len(listed)} videos")
    return [video for video in listed if video.video_id in where], where


class _Shards:
    """The shard files, open one at a time: neighbours in the order of ids often share a file."""

    def __init__(self, where: dict[str, Path], streams: Sequence[str], *, sound: bool) -> None:
        self.where, self.streams, self.sound = where, streams, sound
        self.sounds: dict[str, Float32] = {}  # (T, 2) by video
        self.stack = ExitStack()
        self.path: Path | None = None
        self.file: Any = None
        self.widths: dict[str, int] = {}  # of the streams of the first video that was read
        self.motion: list[str] = []  # its curves

    def close(self) -> None:
        self.stack.close()

    def group(self, video: Video) -> Any:
        path = self.where[video.video_id]
        if path != self.path:
            self.stack.close()
            self.file, self.path = self.stack.enter_context(open_h5(path)), path
        return self.file[video.video_id]

    def times(self, video: Video) -> Float64:
        values: Float64 = self.group(video)["time"][:].astype(np.float64)
        return values

    def read(self, video: Video) -> _Raw:
        """Return a video's features, which must fit the features of the first one read."""
        group = self.group(video)
        raw = _Raw(
            streams={key: group[key][:].astype(np.float32) for key in self.streams if key in group},
            times=self.times(video),
            motion={key: group[key][:].astype(np.float32) for key in MOTION if key in group},
            marks=marks_of(group),
        )
        if self.sound:
            if video.video_id not in self.sounds:
                self.sounds[video.video_id] = sound_rows(
                    video.path, video.duration_seconds, raw.times
                )
            raw.streams[SOUND] = self.sounds[video.video_id]
        self._check(f"{self.path}: video {video.video_id}", raw)
        return raw

    def _check(self, where: str, raw: _Raw) -> None:
        if not raw.streams and len(raw.motion) < CURVES:
            raise InputError(f"{where}: no features (rgb and flow, external, or motion)")
        widths = {stream: rows.shape[1] for stream, rows in raw.streams.items()}
        if not self.widths:
            self.widths, self.motion = widths, sorted(raw.motion)
        if widths != self.widths:
            raise InputError(
                f"{where}: {_list(widths)} features, other videos have {_list(self.widths)}; "
                f"extract all shards with the same encoders"
            )
        if sorted(raw.motion) != self.motion:
            raise InputError(f"{where}: frame_difference and flow_magnitude unlike other videos'")
        for stream, rows in raw.streams.items():
            if len(rows) != len(raw.times) or len(rows) == 0:
                raise InputError(f"{where}: {len(rows)} rows of {stream}, {len(raw.times)} times")
            if not np.isfinite(rows).all():
                raise InputError(f"{where}: {stream} holds values that are not finite")


def _list(widths: dict[str, int]) -> str:
    return ", ".join(f"{stream} {width}" for stream, width in widths.items())


def _fit(videos: list[Video], opened: _Shards, settings: RescaleSettings) -> Transform:
    """Fit each stream's transform on the training subset."""
    chosen = [video for video in videos if video.subset == "training"]
    if settings.standardise == "none" and not settings.components:
        chosen = videos[:1]
    if not chosen:
        raise InputError(
            "no video of the subset training has features to fit components and scales on; "
            "give --standardise none --components 0, or annotations with a training subset"
        )
    opened.read(videos[0])  # the others must have as many features

    def read(video: Video) -> tuple[dict[str, Float32], Float64, float]:
        raw = opened.read(video)
        return raw.streams, raw.times, video.duration_seconds

    return fit_transform(settings, map(read, progress(chosen, "fitting", len(chosen))))


def _fit_cues(
    videos: list[Video], opened: _Shards, transform: Transform, settings: CausalSettings
) -> Past:
    """Fit the mean and deviation of the cues of a stream on the training subset."""
    moments = Moments(len(REACHES) * len(transform.streams) + len(opened.motion))
    for video in videos:
        if video.subset == "training":
            raw = opened.read(video)
            parts = {key: each.apply(raw.streams[key]) for key, each in transform.streams.items()}
            moments.add(causal_cues(parts, raw.motion, settings.ahead))
    deviation = np.sqrt(np.maximum(np.diag(moments.covariance), 0))
    return Past(
        horizon=settings.horizon,
        ahead=settings.ahead,
        mean=moments.mean.astype(np.float32),
        deviation=np.maximum(deviation, _LEAST_DEVIATION).astype(np.float32),
    )


def _write(file: h5py.File, videos: list[Video], opened: _Shards, transform: Transform) -> None:
    """Write the rows one video at a time, and what describes them."""
    for key, values in transform.to_arrays().items():
        file[f"transform/{key}"] = values
    # the rows of each video
    windowed = transform.grid == "windows"
    lengths = [transform.steps] * len(videos)
    if windowed:
        lengths = [transform.length(opened.times(v), v.duration_seconds) for v in videos]
    starts = [transform.starts(length) for length in lengths]
    video_of = np.repeat(np.arange(len(videos)), [len(firsts) for firsts in starts])  # (N,)
    for key in ("video_id", "subset"):
        texts = [getattr(videos[place], key) for place in video_of]
        file.create_dataset(key, data=texts, dtype=h5py.string_dtype())
    file["duration_seconds"] = [videos[place].duration_seconds for place in video_of]
    if windowed:
        file["first_step"] = np.concatenate(starts)
        file["length"] = np.array(lengths, np.int64)[video_of]
    # their features and curves
    width = sum(fitted.features for fitted in transform.streams.values())
    if not (width or transform.cues):
        width = len(opened.motion)
    if transform.cues:
        width += len(REACHES) * len(transform.streams) + len(opened.motion)
        width = 1 + width * (1 if transform.past is None else 2)
    shape = (len(video_of), transform.steps)
    features = file.create_dataset("features", (*shape, width), np.float32)
    curves = {key: file.create_dataset(key, shape, np.float32) for key in opened.motion}
    end, content = 0, hashlib.sha256()
    # the first row of a video, and a mark of it
    marks = {key: [np.zeros((0, 1 + width))] for key, width in WIDTHS.items()}
    for video, firsts in zip(progress(videos, "rescaling", len(videos)), starts, strict=True):
        raw, duration = opened.read(video), video.duration_seconds
        rows = slice(end, end + len(firsts))
        end = rows.stop
        for key, own in raw.marks._asdict().items():
            marks[key].append(np.column_stack([np.full(len(own), rows.start), own]))
        sequence = transform_features(raw.streams, raw.times, duration, transform, raw.motion)
        windows = cut_windows(sequence, firsts, transform.steps)
        if not np.isfinite(windows).all():
            raise InputError(f"{opened.path}: video {video.video_id}: features beyond float32")
        content.update(np.ascontiguousarray(windows, np.float32).data)
        features[rows] = windows
        for key, curve in curves.items():
            values = raw.motion[key]
            if transform.past is None:
                length, method = len(sequence), transform.method
                values = rescale(values, raw.times, duration, length, method, motion=True)
            curve[rows] = cut_windows(values, firsts, transform.steps)
    if transform.cues and transform.past is None:
        for key, every in marks.items():
            file[key] = np.concatenate(every)
    write_checked(file, content.hexdigest())


def _write_footage(path: Path, file: h5py.File, transform: Transform, similarity: float) -> None:
    """Write (N, steps) what footage each step of a training video shares with others.

    Videos are compared by their first stream, which shows the scene, if it has enough features.
    """
    names, subsets = file["video_id"].asstr()[:], file["subset"].asstr()[:]
    starts, lengths = file["first_step"][:], file["length"][:]
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows_of.setdefault(name, []).append(row)
    training = [name for name, rows in rows_of.items() if subsets[rows[0]] == "training"]
    # compare the videos
    steps = sum(int(lengths[rows_of[name][0]]) for name in training)
    width = next((stream.features for stream in transform.streams.values()), 0)
    why_not = "" if transform.streams else "no stream shows the scene"
    if steps > MOST_STEPS:
        why_not = f"{steps} training steps are too many to compare (up to {MOST_STEPS})"
    elif transform.streams and width < FEWEST_FEATURES:
        why_not = f"{width} features of the first stream are too few (from {FEWEST_FEATURES})"
    found = {}
    if similarity < 1 and training and not why_not:
        sequences = []
        for name in training:
            rows = rows_of[name]
            windows = file["features"][rows, :, 1 : 1 + width]
            sequences.append(merge_windows(windows, starts[rows], lengths[rows[0]]))
        found = dict(zip(training, shared_footage(sequences, similarity), strict=True))
    elif similarity < 1 and training:
        line = f"{why_not}; footage that videos share was not looked for"
        print(f"{path}: {line}", file=sys.stderr)
    # write the shared part
    footage = file.create_dataset("footage", (len(names), transform.steps), np.int32)
    for name, rows in rows_of.items():
        shown = found.get(name, np.full(lengths[rows[0]], UNSHARED)) - UNSHARED
        # windows are 0 beyond the end
        footage[rows] = cut_windows(shown, starts[rows], transform.steps) + UNSHARED
