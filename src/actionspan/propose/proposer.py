"""A trained model that takes a video file and returns its proposals, for scripts and notebooks."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError, naming
from actionspan.features.collect import MOTION
from actionspan.features.extraction import NotFiniteError
from actionspan.features.hub_encoders import located
from actionspan.features.one_pass import VideoEncoder
from actionspan.features.settings import Device, VideoSettings
from actionspan.features.steps import cut_windows, merge_windows
from actionspan.features.transform import Transform, transform_features
from actionspan.proposals.bundle_files import UNTRAINED
from actionspan.proposals.model_bundle import Bundle, load_bundle
from actionspan.propose.proposed import MotionProposer, OpenedVideo, Proposed, open_video
from actionspan.temporal.prediction import predict_sequence
from actionspan.temporal.probabilities import Prediction
from actionspan.video.marks import marks_of
from actionspan.video.settings import BOUTS
from actionspan.video.sound import SOUND, sound_rows
from actionspan.video.stillness import STILL
from actionspan.video.zones import WHOLE, Cameras, Zones, motion_among, zones_of


class Proposer:
    """A trained model, loaded once and used for any number of videos.

    On one thread (`torch.set_num_threads(1)`) its results are the workflow's, bit for bit. With
    tuned encoders they are so but for what JPEG alters: the workflow encodes stored images.

    Args:
        model: `model.safetensors` or the folder that holds it, such as `results/proposals/span`;
            `"demo"`: the included model; `"none"`: untrained, as `MotionProposer`.
        device: Where the encoders run: auto, cpu or cuda; None: as they were trained.
        encoders: Networks of timm or transformers that the model sees by, where it names a path.
        cameras: The zones of videos by patterns of their names; without any, whole frames count.

    Raises:
        InputError: The file does not exist or is not a complete model, or its encoder or the device
            is not here.
    """

    def __init__(
        self,
        model: Path | str,
        *,
        device: Device | None = None,
        encoders: Sequence[str] = (),
        cameras: Cameras = WHOLE,
    ) -> None:
        self.path, self.cameras = Path(model), cameras
        self._untrained = MotionProposer(cameras) if str(model) == UNTRAINED else None
        if self._untrained:
            return
        self.bundle = load_bundle(self.path)
        with naming(self.path):
            found = located(self.bundle.encoders, encoders)
        if device is not None:
            found = dataclasses.replace(found, device=device)
        settings = VideoSettings(frames=self.bundle.frames, flow=self.bundle.flow, encoders=found)
        with naming(self.path):
            self._encode = VideoEncoder(settings, self.bundle.weights)
            widths = self.bundle.widths
            self._hears = widths.pop(SOUND, 0) > 0
            self._encode.streams.check(widths)

    def __repr__(self) -> str:
        if self._untrained:
            return f"Proposer({UNTRAINED!r}): motion, untrained"
        bundle = self.bundle
        widths = bundle.widths.items()
        streams = ", ".join(f"{name} ({width})" for name, width in widths) or "motion"
        labels = ", ".join(bundle.classifier.labels) if bundle.classifier else "none"
        given = "ranks" if bundle.ranks or bundle.density is None else "chances"
        return (
            f"Proposer({str(self.path)!r}): sees {streams}; events with {given}; labels: {labels}"
        )

    def propose(
        self,
        video: Path | str | OpenedVideo,
        on_progress: Callable[[float, float], None] | None = None,
    ) -> Proposed:
        """Return the proposals of one video file.

        Args:
            video: The file, or what `open_video` returned.
            on_progress: Called now and then, in a thread, with how much is done, and the length,
                in seconds.

        Raises:
            InputError: The file is missing or cannot be decoded, or the model gives numbers that
                are not finite.
        """
        if self._untrained:
            return self._untrained.propose(video, on_progress)
        path, duration, frames = open_video(video)

        def report(done: float) -> None:
            if on_progress:
                on_progress(done, duration)

        try:
            zones = zones_of(self.cameras, path.stem)
            raw, facts, _ = self._encode(path, on_progress=report, frames=frames, zones=zones)
        except NotFiniteError as error:
            raise InputError(f"{self.path}: {error}") from None
        if self._hears:
            raw[SOUND] = sound_rows(path, duration, facts["time"])
        return proposed_of(self.bundle, raw, facts, duration, str(self.path), zones)


def proposed_of(
    bundle: Bundle,
    raw: Mapping[str, Float32],
    facts: Mapping[str, Any],
    duration: float,
    name: str,
    zones: Zones = (),
) -> Proposed:
    """Return a model's proposals for a video with these features and facts of its snippets.

    Args:
        bundle: The model.
        raw: (T, C) features of each stream that it takes, maybe of others too.
        facts: Other data of a feature shard: `time`, curves of motion, `cuts`, `bouts`.
        duration: Length of the video in seconds.
        name: Of the model, for messages.
        zones: In which features and facts were made.

    Raises:
        InputError: The model gives numbers that are not finite.
    """
    try:
        proposed = _proposed(bundle, raw, facts, duration)
        return dataclasses.replace(proposed, zone_motion=motion_among(facts, zones))
    except ValueError as error:  # of numbers that a model from anywhere makes
        raise InputError(f"{name}: {error}; a damaged or forged model") from None


def _proposed(
    bundle: Bundle, raw: Mapping[str, Float32], facts: Mapping[str, Any], duration: float
) -> Proposed:
    # features to boundary probabilities
    prediction, before = predicted(bundle, raw, facts, duration)
    # these to ranked proposals
    chosen = bundle.choose(prediction, duration, before)
    _check_finite(chosen.scores)
    if (bouts := bouts_listed(bundle, facts, duration)) is not None:
        chosen = dataclasses.replace(chosen, events=bouts)
    # and their classes
    class_scores = event_classes = None
    if bundle.classifier is not None:
        lists = [each for each in (chosen.segments, chosen.events) if each is not None]
        class_scores, *others = class_scores_of(bundle, raw, facts, duration, *lists)
        _check_finite(class_scores)
        event_classes = others[0] if others else None
    return Proposed(
        duration_seconds=duration,
        segments=chosen.segments,
        scores=chosen.scores,
        probabilities=prediction.probabilities,
        classes=bundle.classifier.labels if bundle.classifier else (),
        class_scores=class_scores,
        events=chosen.events,
        chances=None if bundle.ranks else chosen.chances,
        event_classes=event_classes,
        still=float(np.mean(facts.get(STILL, 0))),
    )


def class_scores_of(
    bundle: Bundle,
    raw: Mapping[str, Float32],
    facts: Mapping[str, Any],
    duration: float,
    *lists: Float64,
) -> list[Float64]:
    """Return scores (N, K) of classes for each list of segments (N, 2); see `proposed_of`."""
    assert bundle.classifier is not None
    seen = bundle.classified
    sequence = _sequence(seen, raw, facts, duration)
    starts = seen.starts(len(sequence))
    windows = cut_windows(sequence, starts, seen.steps)
    sequence = merge_windows(windows, starts, len(sequence))
    return [bundle.classifier.scores(sequence, segments, duration) for segments in lists]


def predicted(
    bundle: Bundle, raw: Mapping[str, Float32], facts: Mapping[str, Any], duration: float
) -> tuple[Prediction, Prediction | None]:
    """Return the output of a model's network for a video, and of its base's; see `proposed_of`.

    Raises:
        ValueError: Something that is not finite.
    """
    before = None
    if bundle.base is not None:
        before, _ = predicted(bundle.base.bundle, raw, facts, duration)
    sequence = _sequence(bundle.transform, raw, facts, duration)
    prediction = predict_sequence(bundle.temporal, sequence, bundle.transform)
    _check_finite(prediction.probabilities)
    return prediction._replace(marks=marks_of(facts)), before


def bouts_listed(bundle: Bundle, facts: Mapping[str, Any], duration: float) -> Float64 | None:
    """Return the bouts (B, 2) of a video if they are its list, else None; see `proposed_of`.

    They are for a model of other footage, unless the video is edited.
    """
    marks = marks_of(facts)
    if not bundle.of_other_footage or BOUTS not in facts or marks.is_edited(duration):
        return None
    return marks.moves(duration)


def _sequence(
    transform: Transform, raw: Mapping[str, Float32], facts: Mapping[str, Any], duration: float
) -> Float32:
    motion = {key: facts[key] for key in MOTION}
    return transform_features(raw, facts["time"], duration, transform, motion)


def _check_finite(values: Float32 | Float64) -> None:
    if not np.isfinite(values).all():
        raise ValueError("it gives numbers that are not finite")


def load_model(
    path: Path | str, *, device: Device | None = None, encoders: Sequence[str] = ()
) -> Proposer:
    """Return a trained model: `load_model("results/proposals/span").propose("holiday.mp4")`.

    `"none"` groups motion without training, as `actionspan propose --model none` does.
    """
    return Proposer(path, device=device, encoders=encoders)
