"""Labels of any model's events, by words that nobody has trained a classifier for.

A model of words and images, or of words and clips, encodes the video and the words.

A segment is described by the mean of its snippets' unit vectors. Its likeness to a label is the
cosine to the mean of the label's wordings, and chances are the softmax of these by the model's own
scale (Radford et al., 2021).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import softmax

from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.features.hub_encoders import encoder_name, pinned
from actionspan.features.one_pass import VideoEncoder
from actionspan.features.settings import Device, EncoderSettings, VideoSettings
from actionspan.networks.hub import find_source
from actionspan.networks.hub_clips import sees_clips
from actionspan.networks.hub_words import Texts, text_vectors, words_digest
from actionspan.propose.proposed import OpenedVideo, Proposed
from actionspan.storage.writing import digest
from actionspan.video.settings import FrameSettings
from actionspan.video.zones import Cameras, zones_of

_OnProgress = Callable[[float, float], None]
_WORDINGS = ("{}", "a photo of {}", "a video of {}", "a scene in which {}")
# X-CLIP learned 8 frames of two seconds
_CLIP_FRAMES = FrameSettings(mover_side=0, clip_rate=4.0, clip_side=256)
_CLIP_STRIDE = 2


class WordModel:
    """A model of words and images, or of words and clips, by its name or folder.

    Raises:
        InputError: It cannot be had.
    """

    def __init__(self, name: str, device: Device | None = None) -> None:
        name = encoder_name(name)
        self.source = find_source(name)
        self.stream = "clip" if sees_clips(self.source) else "rgb"
        frames = FrameSettings(mover_side=0)
        chosen: dict[str, Any] = {"rgb_encoder": name}
        if self.stream == "clip":
            frames, chosen = _CLIP_FRAMES, {"clip_encoder": name, "clip_stride": _CLIP_STRIDE}
        chosen |= {"flow_encoder": "none", "mover": False, "device": device or "auto"}
        encoders = pinned(EncoderSettings(**chosen))
        self.settings = VideoSettings(frames=frames, encoders=encoders)
        self.digest = str(encoders.clip_digest or encoders.rgb_digest)
        self.made_by = digest(self.digest, words_digest(self.source))

    def texts(self, wordings: Sequence[str]) -> Texts:
        """Return the vectors of wordings as they are.

        Raises:
            InputError: The model knows no words.
        """
        return text_vectors(self.source, wordings)

    def of(self, streams: Mapping[str, Float32]) -> Float32:
        """Return the vectors (T, D) of a video's snippets, in the space of the words' vectors."""
        return streams[self.stream]


def worded(texts: Sequence[str]) -> list[str]:
    """Return texts in several wordings."""
    return [wording.format(text) for text in texts for wording in _WORDINGS]


class Labels(NamedTuple):
    """Words for what happens, and the model that knows them, by name or folder."""

    names: tuple[str, ...]
    model: str


def labels_of(listed: str | None, model: str | None) -> Labels:
    """Return the labels of a list such as "fall, sit down".

    Raises:
        InputError: They are fewer than two or repeated, or one of the two is missing.
    """
    if listed is None or model is None:
        raise InputError("--labels and --labels-by: give both, or none")
    names = tuple(filter(None, map(str.strip, listed.split(","))))
    if len(set(names)) < max(len(names), 2):
        raise InputError(f"--labels {listed!r}: two different labels at least, with commas between")
    return Labels(names, model)


class _Proposes(Protocol):
    cameras: Cameras

    def propose(
        self, video: Path | str | OpenedVideo, on_progress: _OnProgress | None = None
    ) -> Proposed: ...


class Labelling:
    """Gives the segments of another proposer labels by words.

    Raises:
        InputError: The model of words cannot be had, or knows no words.
    """

    def __init__(self, proposer: _Proposes, labels: Labels, device: Device | None = None) -> None:
        self.proposer, self.names = proposer, labels.names
        self.words = WordModel(labels.model, device)
        texts = self.words.texts(worded(labels.names))
        each = texts.vectors.reshape(len(labels.names), -1, texts.vectors.shape[1])
        if texts.scale is None:
            raise InputError(
                f"{labels.model}: has no logit_scale, which chances need; give another"
            )
        self.vectors, self.scale = _unit(each.mean(axis=1)), texts.scale
        self.encode = VideoEncoder(self.words.settings)

    def propose(
        self, video: Path | str | OpenedVideo, on_progress: _OnProgress | None = None
    ) -> Proposed:
        """Return the proposals of one video file with labels; it is decoded once more for them."""
        report = on_progress or (lambda done, length: None)
        proposed = self.proposer.propose(video, lambda done, length: report(done / 2, length))
        length = proposed.duration_seconds
        path = video.path if isinstance(video, OpenedVideo) else Path(video)
        streams, facts, _ = self.encode(
            path,
            on_progress=lambda done: report((length + done) / 2, length),
            zones=zones_of(self.proposer.cameras, path.stem),
        )
        near = _unit(self.words.of(streams)), facts["time"]
        events = proposed.events
        return replace(
            proposed,
            classes=self.names,
            class_scores=self._chances(*near, proposed.segments),
            event_classes=None if events is None else self._chances(*near, events),
        )

    def _chances(self, vectors: Float32, times: Float64, segments: Float64) -> Float64:
        """Return the chances (N, K) of the labels for segments (N, 2) of snippets at times (T,)."""
        sums = np.concatenate(
            [np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0, dtype=np.float64)]
        )
        first, last = np.searchsorted(times, segments.T)
        # a segment between two snippets is described by the nearer one
        nearest = np.abs(times - segments.mean(axis=1, keepdims=True)).argmin(axis=1)
        none = first >= last
        first, last = np.where(none, nearest, first), np.where(none, nearest + 1, last)
        shown = _unit(sums[last] - sums[first])
        chances: Float64 = softmax(self.scale * (shown @ self.vectors.T), axis=1)
        return chances


def _unit(rows: Float32) -> Float32:
    found: Float32 = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return found
