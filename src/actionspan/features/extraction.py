"""Feature shards: each video of a shard through its encoders, resumable by video."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from torch import Tensor

from actionspan.arrays import Float32, UInt8
from actionspan.errors import InputError
from actionspan.features.clips import ClipEncoder, read_clips
from actionspan.features.encoders import Encoder
from actionspan.features.flow_histogram import FEATURES as HISTOGRAM_FEATURES
from actionspan.features.flow_histogram import flow_histogram
from actionspan.features.settings import EncoderSettings
from actionspan.features.stored import stored_streams
from actionspan.files.storage import digest, open_h5
from actionspan.networks.weights import describe
from actionspan.running.parts import map_videos
from actionspan.settings import to_json
from actionspan.video.jpeg_reading import read_pictures

COPIED = ("time", "frame_difference", "flow_magnitude")


class TwoStream:
    """Both encoders and that of clips, if there is one, loaded once and called for each video."""

    def __init__(
        self,
        settings: EncoderSettings,
        flow_channels: int,
        weights: Mapping[str, Mapping[str, Tensor]] | None = None,
    ) -> None:
        """Build the networks.

        Args:
            settings: Of the encoders.
            flow_channels: 2L.
            weights: Parameters by stream, in place of the files that the settings name.
        """
        self.settings, own = settings, weights or {}
        rgb = own.get("rgb", settings.rgb_weights)
        self.rgb = Encoder(settings.rgb_encoder, rgb, settings, 3)
        self.flow: Encoder | None = None
        if settings.flow_encoder != "flow_histogram":
            flow = own.get("flow", flow_weights(settings))
            self.flow = Encoder(settings.flow_encoder, flow, settings, flow_channels)
        self.clip = ClipEncoder(settings) if settings.clip_encoder != "none" else None

    @property
    def features(self) -> dict[str, int]:
        """The length of each stream's vectors."""
        network = self.flow.features if self.flow else 0
        histogram = HISTOGRAM_FEATURES if self._uses_histogram else 0
        lengths = {"rgb": self.rgb.features, "flow": network + histogram}
        return lengths | ({"clip": self.clip.features} if self.clip else {})

    @property
    def _uses_histogram(self) -> bool:
        return self.flow is None or self.settings.flow_histogram

    def __call__(self, frames: Any, flow: Any) -> dict[str, Float32]:
        """Encode a video as `rgb`, `flow` and, if there is its encoder, `clip`: (T, features) each.

        Args:
            frames: The video's group of `video frames`, or a mapping like it.
            flow: Its group of `video flow`, or a mapping like it.

        Raises:
            InputError: The frames of clips are needed and were not kept.
        """
        planes, pictures = flow["flow"], frames["rgb"]
        bound = float(planes.attrs["bound"])  # pixels of motion at level 255
        size = self.settings.batch_size
        batches = [slice(start, start + size) for start in range(0, planes.shape[0], size)]
        streams = joined([self.batch(pictures[rows], planes[rows], bound) for rows in batches])
        return streams | ({"clip": self.clip(read_clips(frames))} if self.clip else {})

    def batch(self, pictures: UInt8, planes: UInt8, bound: float) -> dict[str, Float32]:
        """Encode the next `batch_size` snippets of a video as `rgb` and `flow`: (B, features) each.

        Args:
            pictures: (B, H, W, 3) centre frames, fewer than `batch_size` at the video's end.
            planes: (B, 2L, h, w) coded flow.
            bound: Pixels of motion at level 255.
        """
        parts = [self.flow.batch(planes)] if self.flow else []
        if self._uses_histogram:
            parts.append(np.stack([flow_histogram(each, bound) for each in planes]))
        return {"rgb": self.rgb.batch(pictures), "flow": np.concatenate(parts, axis=1)}


def joined(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arrays of a video, given those of its batches."""
    return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}


def check_finite(streams: Mapping[str, Float32]) -> None:
    """Refuse features that no later step can use.

    Raises:
        InputError: A feature is not finite.
    """
    for stream, vectors in streams.items():
        if not np.isfinite(vectors).all():
            raise InputError(f"{stream}: a feature is not finite; use precision float32")


def encoders_digest(settings: EncoderSettings, *made_of: str) -> str:
    """Return a digest of the encoders, their weights and what they see."""
    return digest(
        settings,
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


def extract(frames: Path, flow: Path, out: Path, settings: EncoderSettings) -> dict[str, str]:
    """Write the features of a shard of frames and flow.

    Returns:
        The reasons of the rejected videos by video id.

    Raises:
        InputError: A file is incomplete, or the encoders cannot be built.
    """
    with open_h5(frames) as frame_file, open_h5(flow) as flow_file:
        names = list(flow_file)
        missing = [name for name in names if name not in frame_file]
        if missing:
            raise InputError(f"{frames}: lacks {missing[0]}, which {flow} holds")
        made_of = [str(file.attrs["digest"]) for file in (frame_file, flow_file)]
        earlier = str(flow_file.attrs.get("settings", "{}"))
        videos = {name: (frame_file[name], flow_file[name]) for name in names}
        return _encode(videos, out, settings, made_of, earlier)


def extract_stored(snippets: Path, out: Path, settings: EncoderSettings) -> dict[str, str]:
    """Write the features of a shard of stored pictures, those that encoders are tuned on.

    Returns and raises what `extract` does.
    """
    if settings.clip_encoder != "none":
        raise InputError(f"{snippets}: stored pictures hold no clips; give clip_encoder none")
    with open_h5(snippets) as file:
        made_of, earlier = [str(file.attrs["digest"])], str(file.attrs.get("settings", "{}"))
        videos = {
            name: stored_streams(pictures, file[name])
            for name, pictures in read_pictures(
                snippets, "video", "`actionspan finetune store`", needed=("duration_seconds",)
            )
        }
        return _encode(videos, out, settings, made_of, earlier)


def _encode(
    videos: Mapping[str, tuple[Any, Any]],
    out: Path,
    settings: EncoderSettings,
    made_of: Sequence[str],
    earlier: str,
) -> dict[str, str]:
    """Write the features of videos, given by the groups of their frames and of their flow."""
    names = list(videos)
    both = encoders_digest(settings, *made_of)
    digests = [digest(both, str(videos[name][1].attrs["sha256"])) for name in names]
    algorithm = json.loads(earlier).get("flow", {}).get("algorithm", "")
    if names:  # all videos of the file have the same number of planes
        encode = TwoStream(settings, videos[names[0]][1]["flow"].shape[1])

    def work(name: str, group: h5py.Group) -> None:
        frames, flow = videos[name]
        streams = encode(frames, flow)
        check_finite(streams)
        for stream, vectors in streams.items():
            group[stream] = vectors
        for key in COPIED:
            if key in flow:
                group[key] = flow[key][:]
        group.attrs.update(flow.attrs)

    return map_videos(
        out,
        names,
        names,
        digests,
        work,
        title="encoding",
        settings_digest=both,
        attributes={
            "description": settings.described(algorithm),
            "settings": to_json(earlier, encoders=settings),
        },
    )
