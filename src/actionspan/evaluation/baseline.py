"""Proposals by simpler means than training a network for them."""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.annotations.tables import Annotation, read_annotations
from actionspan.arrays import Float64, Int64
from actionspan.errors import InputError
from actionspan.evaluation.files import without_videos
from actionspan.evaluation.settings import BASELINES, BaselineSettings
from actionspan.features.steps import merge_windows
from actionspan.features.store import open_features
from actionspan.proposals.grouping import group_proposals
from actionspan.proposals.segments import result_rows, write_proposals
from actionspan.proposals.settings import SuppressionSettings
from actionspan.proposals.shots import shot_runs
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.writing import open_h5
from actionspan.temporal.probabilities import read_probabilities

_SCALE_STEP = 2**0.5

_READ = {  # the input of a method: the flag and its file
    "difference": ("features", "features.h5"),
    "cuts": ("features", "sequences.h5"),
    "tag": ("probabilities", "probabilities.h5"),
}

Proposals = tuple[Float64, Float64]
"""(P, 2) starts and ends in seconds, and (P,) scores, best first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--method", required=True, choices=BASELINES, help="which baseline")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    features = "features.h5, for its frame differences, or sequences.h5, for its cuts"
    parser.add_argument("--features", type=Path, nargs="?", help=features)
    probabilities = "probabilities.h5, for its actionness (tag only)"
    parser.add_argument("--probabilities", type=Path, nargs="?", help=probabilities)
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument("--out-csv", type=Path, required=True, help="the same as a table")
    add_settings(parser, BaselineSettings)
    # difference and tag only; --proposals is the number kept
    add_settings(parser, SuppressionSettings, without=["keep"])


def run(arguments: argparse.Namespace) -> None:
    """Write the proposals of one baseline for every video of a subset."""
    annotations = read_annotations(arguments.annotations)
    videos = [video for video in annotations if video.subset == arguments.subset]
    if not videos:
        held = without_videos(arguments.subset, Counter(video.subset for video in annotations))
        raise InputError(
            f"{arguments.annotations}: {held}; evaluation.subset (--subset) names the one to score"
        )
    proposals = _proposals(arguments, annotations, videos)
    results = (
        (video.video_id, result_rows(*own)) for video, own in zip(videos, proposals, strict=True)
    )
    write_proposals(results, arguments.out_json, arguments.out_csv)


def _proposals(
    arguments: argparse.Namespace, annotations: list[Annotation], videos: list[Annotation]
) -> list[Proposals]:
    """Return the proposals of each of `videos`."""
    settings = from_arguments(BaselineSettings, arguments)
    suppression = from_arguments(SuppressionSettings, arguments, keep=settings.proposals)
    if arguments.method == "random":
        return [random_proposals(item.video_id, item.duration_seconds, settings) for item in videos]
    if arguments.method == "tiles":
        return [tiles(video.duration_seconds, settings.tiles) for video in videos]
    if arguments.method == "sliding":
        prior = annotations if settings.window_prior == "training" else []
        lengths = relative_lengths(prior)
        return [sliding_windows(video.duration_seconds, lengths, settings) for video in videos]
    name, file = _READ[arguments.method]
    path = getattr(arguments, name)
    if path is None:
        raise InputError(f"--method {arguments.method} needs --{name} {file}")
    if arguments.method == "cuts":
        return _runs_of_shots(path, annotations, videos, settings.proposals)
    is_motion = arguments.method == "difference"
    signals = frame_differences(path, videos) if is_motion else actionness(path, videos)
    return [
        group_proposals(signal, video.duration_seconds, None, suppression, stretch=is_motion)
        for signal, video in zip(signals, videos, strict=True)
    ]


def random_proposals(video_id: str, duration: float, settings: BaselineSettings) -> Proposals:
    """Draw segments with uniform centres and lengths, cut at the video's ends, in random order.

    A video's proposals depend only on the seed, its id and its duration. Without the cut, as in
    ActivityNet's own notebook, they score an AUC of 45.0 there; the cut lifts it to 48.7.
    """
    word = int.from_bytes(hashlib.sha256(video_id.encode()).digest()[:8], "little")
    generator = np.random.default_rng([settings.seed, word])
    centre, half = generator.uniform(0, duration, (2, settings.proposals)) * [[1.0], [0.5]]
    scores = np.sort(generator.uniform(size=settings.proposals))[::-1]
    segments = np.clip(np.stack([centre - half, centre + half], axis=1), 0, duration)
    return segments, scores


def tiles(duration: float, parts: int) -> Proposals:
    """Return the equal parts of a video, the first as the best."""
    edges = np.linspace(0, duration, parts + 1)
    return np.stack([edges[:-1], edges[1:]], axis=1), 1 - np.arange(parts) / 1000


def sliding_windows(
    duration: float, training_lengths: Float64, settings: BaselineSettings
) -> Proposals:
    """Return windows of many lengths, the lengths first that should find the most per window.

    Window lengths go down from the full video by factors of √2. A length's worth is the share
    of training instances that are closest to it, over the number of windows it takes to cover
    the video. Windows of one length are ordered so that any first few are spread evenly.

    The `duration` is in seconds, `training_lengths` are shares of the videos; without any, every
    window length counts for the same share.
    """
    steps = int(np.floor(np.log(settings.shortest_window) / -np.log(_SCALE_STEP) + 1e-9)) + 1
    lengths = _SCALE_STEP ** -np.arange(steps, dtype=np.float64)
    usual = training_lengths[(training_lengths > 0) & (training_lengths <= 1)]
    nearest = np.rint(-np.log(usual) / np.log(_SCALE_STEP)).astype(np.int64).clip(0, steps - 1)
    # An additional instance of each length, so that a small training set rules out none.
    prior = np.bincount(nearest, minlength=steps) + 1.0
    segments, worth, turn = [], [], []
    for length, share in zip(lengths, prior / prior.sum(), strict=True):
        count = int(np.ceil((1 - length) / (length * (1 - settings.overlap)) - 1e-9)) + 1
        start = np.linspace(0, 1 - length, count)
        segments.append(np.stack([start, start + length], axis=1))
        worth.append(np.full(count, share / count))
        turn.append(_spread_order(count))
    order = np.lexsort((np.concatenate(turn), -np.concatenate(worth)))[: settings.proposals]
    scores = 1 - np.arange(len(order)) / settings.proposals
    return np.concatenate(segments)[order] * duration, scores


def _spread_order(count: int) -> Int64:
    """Return each place's turn when `count` places are visited evenly (bit-reversed order)."""
    bits = max(1, (count - 1).bit_length())
    reversed_bits = [int(f"{place:0{bits}b}"[::-1], 2) for place in range(count)]
    return np.argsort(np.argsort(reversed_bits))


def relative_lengths(annotations: Sequence[Annotation]) -> Float64:
    """Return the lengths of the training instances as shares of their videos' durations."""
    lengths = [
        (instance.end - instance.start) / video.duration_seconds
        for video in annotations
        if video.subset == "training"
        for instance in video.instances
    ]
    return np.array(lengths, np.float64)


def _runs_of_shots(
    path: Path, annotations: Sequence[Annotation], videos: Sequence[Annotation], most: int
) -> list[Proposals]:
    """Return the proposals of `cuts` of each video, none where it has no features.

    Raises:
        InputError: The file lacks the cuts of videos.
    """
    features = open_features(path)
    found = {features.video_id[rows.start]: features.marks(rows) for rows in features.videos()}
    cuts = {name: own.cuts for name, own in found.items() if own is not None}
    if found and not cuts:
        raise InputError(f"{path}: no cuts; give sequences.h5, which `features sequences` makes")
    lengths = [
        instance.end - instance.start
        for video in annotations
        if video.subset == "training"
        for instance in video.instances
    ]
    _check_there(path, cuts, videos)
    none = np.zeros((0, 2)), np.zeros(0)
    return [
        cut_proposals(cuts[video.video_id], video.duration_seconds, lengths, most)
        if video.video_id in cuts
        else none
        for video in videos
    ]


def cut_proposals(
    cuts: Float64, duration: float, lengths: Sequence[float], most: int
) -> tuple[Float64, Float64]:
    """Return the at most `most` runs of shots (P, 2) that are worth most, and their worth (P,).

    A rule that knows cuts and lengths, and no action. In footage that is spliced from clips every
    instance begins and ends at a cut, and this rule scores like a trained network: a figure of
    edited footage has to be held against it. In uncut footage it finds next to nothing. A run is
    worth the value of `shot_runs`, times the density of the training instances' lengths at its own.

    Args:
        cuts: (K, 2) when the video is cut, in seconds, rising, and how much the colours change.
        duration: Of the video in seconds.
        lengths: Of training instances in seconds; of fewer than two that differ, no length counts
            for more than another.
        most: How many are kept.
    """
    from scipy.stats import gaussian_kde

    runs, worth = shot_runs(cuts, duration)
    logarithms = np.log([length for length in lengths if length > 0])
    if len(np.unique(logarithms)) > 1:
        worth = worth * gaussian_kde(logarithms)(np.log(runs[:, 1] - runs[:, 0]))
    order = np.argsort(-worth, kind="stable")[:most]
    return runs[order], worth[order]


def frame_differences(path: Path, videos: Sequence[Annotation]) -> list[Float64]:
    """Return the (T,) frame differences of each video, from features.h5.

    Raises:
        InputError: The file has none, as with external features.
    """
    features = open_features(path)
    if features.frame_difference is None:
        raise InputError(
            f"{path}: no 'frame_difference' (external features have none); "
            "leave out the baseline 'difference'"
        )
    values = features.frame_difference[:].astype(np.float64)
    signals = {
        features.video_id[rows.start]: merge_windows(
            values[rows], features.first_step[rows], int(features.length[rows.start])
        )
        for rows in features.videos()
    }
    return _chosen(path, signals, videos)


def actionness(path: Path, videos: Sequence[Annotation]) -> list[Float64]:
    """Return the (T,) probabilities of action of each video, from probabilities.h5.

    Raises:
        InputError: The file has none, or a value is not in 0…1.
    """
    with open_h5(path) as file:
        table = read_probabilities(file, path)
        named = zip(table.video_id, table, strict=True)
        signals = {name: values[:, 1].astype(np.float64) for name, values in named}
    chosen = _chosen(path, signals, videos)
    for video, signal in zip(videos, chosen, strict=True):
        if not ((signal >= 0) & (signal <= 1)).all():  # NaN compares false
            raise InputError(
                f"{path}: {video.video_id}: probabilities are not all in 0…1; make the file again"
            )
    return chosen


def _chosen(
    path: Path, signals: Mapping[str, Float64], videos: Sequence[Annotation]
) -> list[Float64]:
    """Return the signal of each video, a zero where it is not in the file."""
    _check_there(path, signals, videos)
    return [signals.get(video.video_id, np.zeros(1)) for video in videos]


def _check_there(path: Path, held: Mapping[str, Float64], videos: Sequence[Annotation]) -> None:
    """Report the videos that are not in the file.

    The decoding of such a video broke off: it gets no proposals and counts as a miss.
    """
    missing = [video.video_id for video in videos if video.video_id not in held]
    if missing:
        print(f"{path}: without features: {', '.join(missing)}", file=sys.stderr)
