"""Feature shards: each video of a shard through its encoders, resumable by video."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np
import torch
from torch import Tensor

from actionspan.arrays import Float32, Mask, UInt8
from actionspan.errors import InputError
from actionspan.features.clips import ClipEncoder, read_clips
from actionspan.features.encoders import (
    HISTOGRAM_FEATURES,
    Encoder,
    flow_histogram,
    runtime_of,
)
from actionspan.features.hub_encoders import pinned
from actionspan.features.settings import EncoderSettings
from actionspan.jobs.memory import keep_freed_memory
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork
from actionspan.networks.runtime import openvino_version
from actionspan.networks.weights import describe
from actionspan.settings import to_json
from actionspan.storage.writing import digest, open_h5
from actionspan.video.earlier import FEATURES, Made, read_made
from actionspan.video.jpegs import JpegPictures, read_pictures
from actionspan.video.settings import BOUTS, CUTS
from actionspan.video.stillness import STILL, own_rows
from actionspan.video.zones import ZONE_MOTION

COPIED = ("time", "frame_difference", "flow_magnitude", STILL)
# snippets: (B, H, W, 3) centre frames, (B, 2L, h, w) coded flow, (B, side, side, 3) what moves
Images = tuple[UInt8, UInt8, UInt8 | None]
_FACTS = ("fps", "frame_count", "stated_frames", "duration_seconds", "snippet_frames")
_VIDEO_SHA = "video_sha256"  # the checksum of the video in a store of images


class TwoStream:
    """Both encoders and a clip encoder, if there is one, loaded once and called for each video."""

    def __init__(
        self,
        settings: EncoderSettings,
        flow_channels: int,
        weights: Mapping[str, Mapping[str, Tensor]] | None = None,
    ) -> None:
        """Build the networks for flow of 2L planes.

        `weights` are parameters by stream, instead of the files that the settings name.
        """
        self.features: dict[str, int] = {}  # the lengths of vectors
        self.rgb: Encoder | None = None
        self.flow: Encoder | None = None
        self.clip: ClipEncoder | None = None
        self.has_histogram = False
        if settings.source == "motion":
            return
        own = weights or {}
        rgb, flow = own.get("rgb", settings.rgb_weights), own.get("flow", flow_weights(settings))
        self.rgb = Encoder(settings.rgb_encoder, rgb, settings, 3)
        self.features["rgb"] = self.rgb.features
        if settings.flow_encoder not in ("flow_histogram", "none"):
            self.flow = Encoder(settings.flow_encoder, flow, settings, flow_channels)
            self.features["flow"] = self.flow.features
        self.has_histogram = settings.flow_histogram or settings.flow_encoder == "flow_histogram"
        if self.has_histogram:
            self.features["flow"] = self.features.get("flow", 0) + HISTOGRAM_FEATURES
        if settings.mover:
            self.features["mover"] = self.rgb.features
        if settings.clip_encoder != "none":
            self.clip = ClipEncoder(settings, own.get("clip"))
            self.features["clip"] = self.clip.features

    def check(self, wanted: Mapping[str, int]) -> None:
        """Check that vectors have the lengths which a model was trained with.

        Raises:
            InputError: They have others.
        """
        if self.features != wanted:
            given, asked = (
                ", ".join(f"{stream} {length}" for stream, length in sorted(each.items()))
                for each in (self.features, wanted)
            )
            raise InputError(f"its encoders give features of {given}, its transform takes {asked}")

    @property
    def made_by(self) -> dict[str, str]:
        """What computed the vectors of each stream that has a network."""
        mover = self.rgb if "mover" in self.features else None
        encoders = {"rgb": self.rgb, "flow": self.flow, "mover": mover, "clip": self.clip}
        return {stream: each.run.made_by for stream, each in encoders.items() if each}

    def __call__(self, batches: Iterable[Images], bound: float) -> dict[str, Float32]:
        """Encode a video's streams but clips, (M, features) each, a batch at a time.

        Batches are of `batch_size` snippets, of which M in all are not still and are given.
        `bound` are the pixels of motion at level 255.

        Raises:
            InputError: The batches hold no snippet.
        """
        encoded = [self.batch(*images, bound) for images in batches if len(images[0])]
        if not encoded:
            raise InputError("no snippets")
        return {key: np.concatenate([each[key] for each in encoded]) for key in encoded[0]}

    def batch(
        self, pictures: UInt8, planes: UInt8, movers: UInt8 | None, bound: float
    ) -> dict[str, Float32]:
        """Encode up to `batch_size` snippets of a video: (B, features) of each stream but clips."""
        if self.rgb is None:
            return {}
        parts = [self.flow.batch(planes)] if self.flow else []
        if self.has_histogram:
            parts.append(np.stack([flow_histogram(each, bound) for each in planes]))
        made = {"rgb": self.rgb.batch(pictures)}
        if parts:
            made["flow"] = np.concatenate(parts, axis=1)
        if "mover" in self.features:
            assert movers is not None
            made["mover"] = self.rgb.batch(movers)
        return made


def decoded_images(frames: Any, flow: Any, size: int, *, mover: bool) -> Iterator[Images]:
    """Yield `size` snippets at a time of a video's groups of `video frames` and `video flow`.

    Those that are still are left out.

    Raises:
        InputError: What moves is wanted, and the frames have no squares around it.
    """
    if mover and "mover" not in frames:
        wanted = "run video frames with --mover-side, or give --no-mover"
        raise InputError(f"{frames.file.filename}: no squares around what moves; {wanted}")
    for start in range(0, len(flow["flow"]), size):
        rows = slice(start, start + size)
        own = ~_still_in(flow)[rows]
        movers = frames["mover"][rows][own] if mover else None
        yield frames["rgb"][rows][own], flow["flow"][rows][own], movers


def _still_in(group: Any) -> Mask:
    """Return which snippets of a video's group are still; none where older steps made it."""
    return group[STILL][:] if STILL in group else np.zeros(len(group["time"]), bool)


def _stored_images(pictures: JpegPictures, size: int) -> Iterator[Images]:
    """Yield `size` snippets at a time of a video's stored images."""
    for start in range(0, pictures.count, size):
        rows = range(start, min(start + size, pictures.count))
        planes = [pictures.read("flow", row).transpose(2, 0, 1) for row in rows]
        yield np.stack([pictures.read("rgb", row) for row in rows]), np.stack(planes), None


class NotFiniteError(InputError):
    """Encoders give features that are not finite."""


def check_finite(streams: Mapping[str, Float32]) -> None:
    """Refuse features that no later step can use.

    Raises:
        NotFiniteError: A feature is not finite.
    """
    for stream, vectors in streams.items():
        if not np.isfinite(vectors).all():
            raise NotFiniteError(f"{stream}: a feature is not finite; use precision float32")


def write_streams(group: h5py.Group, streams: Mapping[str, Float32], encoders: TwoStream) -> None:
    """Write a video's features, with the runtime that made each stream."""
    for stream, vectors in streams.items():
        group[stream] = vectors
        if stream in encoders.made_by:
            group[stream].attrs["runtime"] = encoders.made_by[stream]


def encoders_digest(settings: EncoderSettings, *made_of: str) -> str:
    """Return a digest of the encoders, their runtime, weights and inputs."""
    settings, runtime = pinned(settings), runtime_of(settings)
    return digest(
        replace(settings, runtime="auto"),
        openvino_version() if runtime == "openvino" else runtime,
        describe(settings.rgb_encoder, settings.rgb_weights),
        describe(settings.flow_encoder, flow_weights(settings)),
        describe(settings.clip_encoder, settings.clip_weights),
        *made_of,
    )


def flow_weights(settings: EncoderSettings) -> Path | None:
    """Return the flow network's weights: its own, or the RGB stream's of the same encoder."""
    if settings.flow_weights is None and settings.flow_encoder == settings.rgb_encoder:
        return settings.rgb_weights
    return settings.flow_weights


def extract(
    frames: Path, flow: Path, out: Path, settings: EncoderSettings, how: ShardWork | None = None
) -> dict[str, str]:
    """Write the features of a shard, given its files of `video frames` and `video flow`.

    Features that are there instead of a video's frames and flow are copied. Returns the reasons of
    the rejected videos by video id.

    Raises:
        InputError: A file is incomplete, or the encoders cannot be built.
    """
    made = read_made(frames, flow)
    with open_h5(flow) as file:
        channels = next((group["flow"].shape[1] for group in file.values() if "flow" in group), 0)
    return _encode(frames, flow, made, channels, out, settings, how)


def extract_stored(
    snippets: Path, out: Path, settings: EncoderSettings, how: ShardWork | None = None
) -> dict[str, str]:
    """Do the same for a shard of stored images, on which encoders are tuned."""
    if settings.clip_encoder != "none" or settings.mover:
        line = "stored images hold no clips and no squares; give clip_encoder none, and no mover"
        raise InputError(f"{snippets}: {line}")
    with open_h5(snippets) as file:
        pictures = _stored(snippets)
        made = read_made(snippets)
        hashes = {name: str(file[name].attrs[_VIDEO_SHA]) for name in pictures}
    channels = next((each.planes for each in pictures.values()), 0)
    return _encode(None, snippets, made._replace(hashes=hashes), channels, out, settings, how)


def _stored(snippets: Path) -> dict[str, JpegPictures]:
    """Return the images of each video of a store."""
    made_by = "`actionspan finetune store`"
    return dict(read_pictures(snippets, "video", made_by, needed=("duration_seconds",)))


def _encode(
    frames: Path | None,
    flow: Path,
    made: Made,
    channels: int,
    out: Path,
    settings: EncoderSettings,
    how: ShardWork | None,
) -> dict[str, str]:
    """Write the features of a shard's videos with flow of `channels` planes."""
    how, names, settings = how or ShardWork(), list(made.hashes), pinned(settings)
    both = encoders_digest(settings, *made.digests)
    algorithm = json.loads(made.settings).get("flow", {}).get("algorithm", "")
    return map_videos(
        out,
        names,
        names,
        [digest(both, sha256) for sha256 in made.hashes.values()],
        partial(_work, frames, flow, settings, channels),
        title="encoding",
        # without a video to encode, no network is needed
        prepare=partial(_prepare, settings, channels, how.threads) if channels else None,
        how=how,
        settings_digest=both,
        attributes={
            "description": settings.described(algorithm),
            "settings": to_json(made.settings, encoders=settings),
            **made.recipe,
        },
        before=made.rejected,
    )


_encoders = lru_cache(maxsize=1)(TwoStream)  # loaded once in a process


def _prepare(settings: EncoderSettings, channels: int, threads: int) -> None:
    keep_freed_memory()
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)
    _encoders(settings, channels)


def _work(
    frame_file: Path | None,
    flow_file: Path,  # or a store of images, without a file of frames
    settings: EncoderSettings,
    channels: int,
    name: str,
    group: h5py.Group,
) -> None:
    with ExitStack() as opened:
        flow: Any = opened.enter_context(open_h5(flow_file))[name]
        if FEATURES in flow:
            for features in flow[FEATURES].values():
                flow.copy(features, group)
            group.attrs.update(flow.attrs)
            return
        encode, size = _encoders(settings, channels), settings.batch_size
        facts: dict[str, Any] = dict(flow.attrs)
        if frame_file is None:
            pictures = _stored(flow_file)[name]
            images, bound = _stored_images(pictures, size), pictures.bound
            still = np.zeros(pictures.count, bool)
            kept = {key: facts[key] for key in _FACTS if key in facts}
            facts = kept | {"sha256": facts[_VIDEO_SHA]}
        else:
            frames = opened.enter_context(open_h5(frame_file))[name]
            images = decoded_images(frames, flow, size, mover=settings.mover)
            still = _still_in(flow)
            bound = float(flow["flow"].attrs["bound"])  # pixels of motion at level 255
        streams = {key: each[own_rows(still)] for key, each in encode(images, bound).items()}
        if encode.clip:
            streams["clip"] = encode.clip(read_clips(frames))
        check_finite(streams)
        write_streams(group, streams, encode)
        for key in (*COPIED, CUTS, BOUTS, ZONE_MOTION):
            if key in flow:
                group[key] = flow[key][:]
        group.attrs.update(facts)
