"""A trained model that takes a video file and returns its proposals, for scripts and notebooks."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from actionspan.arrays import Float32, Int64
from actionspan.features.collect import MOTION
from actionspan.features.one_pass import VideoEncoder
from actionspan.features.settings import Device
from actionspan.features.transform import Transform, transform_features
from actionspan.features.video_settings import VideoSettings
from actionspan.features.windows import cut_windows, merge_windows
from actionspan.proposals.choosing import choose
from actionspan.proposals.model_bundle import load_bundle
from actionspan.proposals.predicted import candidates_of
from actionspan.proposals.ranking import rank_candidates
from actionspan.propose.proposed import Proposed
from actionspan.propose.reading import read_duration
from actionspan.temporal.prediction import (
    needs_no_windows,
    predict_sequence,
    predict_windows,
)


class Proposer:
    """A trained model, loaded once and used for any number of videos.

    On one thread (`torch.set_num_threads(1)`) its results are the workflow's, bit for bit. With
    tuned encoders they are so but for what JPEG alters: the workflow encodes stored pictures.

    Args:
        model: `model.pt` or the folder that holds it, such as `results/proposals/span`.
        device: Where the encoders run: auto, cpu or cuda; None: as they were trained.

    Raises:
        InputError: There is no such file, it is not a complete model, or there is no such device.
    """

    def __init__(self, model: Path | str, *, device: Device | None = None) -> None:
        self.bundle = load_bundle(Path(model))
        encoders = self.bundle.encoders
        if device is not None:
            encoders = dataclasses.replace(encoders, device=device)
        settings = VideoSettings(
            frames=self.bundle.frames, flow=self.bundle.flow, encoders=encoders
        )
        self._encode = VideoEncoder(settings, self.bundle.weights)

    def propose(
        self, video: Path | str, on_progress: Callable[[float, float], None] | None = None
    ) -> Proposed:
        """Return the proposals of one video file.

        Args:
            video: The file.
            on_progress: Is told now and then how much of the video is done, and its length [s].

        Raises:
            InputError: The file is missing or cannot be decoded.
        """
        bundle = self.bundle
        # pixels to the features of each snippet
        duration = read_duration(Path(video))

        def told(done: float) -> None:
            if on_progress:
                on_progress(done, duration)

        raw, facts, _ = self._encode(Path(video), on_progress=told)
        times, motion = facts["time"], {key: facts[key] for key in MOTION}

        def sequence_of(transform: Transform) -> Float32:
            return transform_features(raw, times, duration, transform, motion)

        def windows_of(transform: Transform) -> tuple[Float32, Int64, int]:
            features = sequence_of(transform)
            starts = transform.starts(len(features))
            return cut_windows(features, starts, transform.steps), starts, len(features)

        # features to boundary probabilities, and the segments of a network that finds some
        if needs_no_windows(bundle.temporal):
            prediction = predict_sequence(bundle.temporal, sequence_of(bundle.transform))
        else:
            prediction = predict_windows(bundle.temporal, *windows_of(bundle.transform))
        # these to ranked proposals
        events = chances = None
        if bundle.density is not None:
            settings = (bundle.density, bundle.selection, bundle.events)
            chosen = choose(prediction.probabilities, duration, *settings)
            segments, scores = chosen.segments, chosen.scores
            events, chances = chosen.events, chosen.chances
        else:
            assert bundle.evaluator is not None
            candidates = candidates_of(prediction, bundle.candidates)
            kept = (bundle.suppression, bundle.ranking)
            segments, scores = rank_candidates(candidates, duration, bundle.evaluator, *kept)
        # and their classes
        class_scores = event_classes = None
        if bundle.classifier is not None:
            sequence = merge_windows(*windows_of(bundle.classified))
            class_scores = bundle.classifier.scores(sequence, segments, duration)
            if events is not None:
                event_classes = bundle.classifier.scores(sequence, events, duration)
        return Proposed(
            duration_seconds=duration,
            segments=segments,
            scores=scores,
            probabilities=prediction.probabilities,
            classes=bundle.classifier.labels if bundle.classifier else (),
            class_scores=class_scores,
            events=events,
            chances=chances,
            event_classes=event_classes,
        )


def load_model(path: Path | str, *, device: Device | None = None) -> Proposer:
    """Return a trained model: `load_model("results/proposals/span").propose("holiday.mp4")`."""
    return Proposer(path, device=device)
