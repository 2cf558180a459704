"""A round of learning: a model of the corrections so far, and whether it is better.

The model learns from all corrected videos and continues from the one that comes with actionspan:
the density of a segment is the mean of both, in which the included model weighs as much as two
videos. It is tried by cross-validation on the same videos, against the list of the included model,
and against grouped motion. It is used only where it is better than both: where its lists find more
instances by as many events, or as many but not all and its AUC is higher. A model of one video is
not tried: its halves are not evidence of its worth for others (docs/benchmarks.md). Single events
that were judged in other videos are learned from as well.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from actionspan.annotations.tables import (
    VIDEO_COLUMNS,
    Annotation,
    write_annotations,
    write_videos,
)
from actionspan.errors import counted
from actionspan.evaluation.operating import Point, operating_points
from actionspan.features.collect import collect
from actionspan.features.settings import SequenceSettings
from actionspan.jobs.apart import worker_pool
from actionspan.jobs.launcher import cores
from actionspan.proposals import selection
from actionspan.proposals import settings as knobs
from actionspan.proposals.bundle_files import SECTIONS, included_model
from actionspan.proposals.bundle_writing import calibrate_bundle, continue_from, write_bundle
from actionspan.proposals.classifier import train_on_features
from actionspan.proposals.density_training import load_density, train_density
from actionspan.proposals.model_bundle import Bundle, load_bundle
from actionspan.proposals.segments import Row, label_rows, result_rows
from actionspan.proposals.selection import Calibration
from actionspan.propose.proposer import class_scores_of
from actionspan.review.footage import Encoded
from actionspan.review.judging import (
    FEWEST_FOR_CHANCES,
    Cells,
    Figures,
    Truth,
    calibration_of,
    expected,
    figures_of,
    listed_bouts,
    listed_cells,
    motion_of,
    ranks_well,
    tiles_of,
)
from actionspan.review.stretches import Stretch, cut_out
from actionspan.storage.writing import write_json
from actionspan.temporal.prediction import predict
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import train

SEED = 1
FOLDS = 3
_BASE_VIDEOS = 2  # weight of the included model, in videos


@dataclass(frozen=True, kw_only=True)
class Learned:
    """The result of a round of learning."""

    uses: Literal["own", "included"]
    videos: int
    instances: int
    labels: int
    single_events: int = 0  # judged in other videos
    figures: Mapping[str, Figures]  # own (if it was tried), included, motion
    ranks: bool  # whether chances rest on too few instances, or show too little
    thresholds: Mapping[str, Sequence[Point]]  # by label, what each chance makes of the events

    def sentence(self) -> str:
        """Return the result in a sentence for people."""
        parts = [(self.videos, "corrected video"), (self.instances, "instance")]
        parts += [(self.labels, "label")] * (self.labels > 0)
        parts += [(self.single_events, "single event")] * (self.single_events > 0)
        learned = ", ".join(counted(*part) for part in parts)
        if "own" not in self.figures:
            missing = "to try one of your own takes two videos with events"
            return f"{learned}: the included model is used; {missing}."
        now, before = self.figures["own"], self.figures["included"]
        places = "videos" + " with events" * (now.videos < self.videos)
        found = f"of {now.instances} events that happen, found by lists as long as there are: "
        found += f"{now.in_as_many} (before, by the included model, {before.in_as_many}; "
        found += f"by as many equal parts of each video {self.figures['tiles'].in_as_many})"
        first = f"first event right in {now.first_right} of {now.videos} {places} "
        first += f"(before {before.first_right})"
        used = "used" if self.uses == "own" else "not used yet"
        tried = f"On your {counted(self.videos, 'corrected video')}, each left out of learning in"
        tried += f" turn: {found}; {first}"
        return f"{learned}. {tried}. Your model is {used}."


def learn(
    videos: Sequence[Encoded],
    truth: Truth,
    out: Path,
    processes: int = 0,
    seed: int = SEED,
    stretches: Sequence[tuple[Encoded, Stretch]] = (),
) -> Learned:
    """Learn from the videos that `truth` names, and write out/model.safetensors, the model to use.

    Args:
        videos: With their features.
        truth: All that happens in each corrected video; at least one has an instance.
        out: The folder.
        processes: At once; 0: the number of cores, but no more than the trainings.
        seed: Of the networks.
        stretches: Of other videos, where single events were judged; an own model learns from them,
            and is not tried on them.

    Raises:
        InputError: A file cannot be read.
    """
    # 1. the included model's list, grouped motion, and equal parts
    corrected = [one for one in videos if one.video.video_id in truth]
    included, trials = included_model(), out / ".learning"  # no folder of a person's
    base = load_bundle(included)
    before = {one.video.video_id: expected(base, one) for one in corrected}
    bouts = {one.video.video_id: listed_bouts(base, one) for one in corrected}
    listed = {
        name: listed_cells(base, before[name]) if own is None else own
        for name, own in bouts.items()
    }
    equal = {one.video.video_id: tiles_of(one, len(truth[one.video.video_id])) for one in corrected}
    figures = {
        "included": figures_of(before, truth, lists=listed),
        "motion": figures_of({}, truth, {one.video.video_id: motion_of(one) for one in corrected}),
        "tiles": figures_of({}, truth, equal),
    }
    counts: dict[str, Any] = {
        "videos": len(corrected),
        "instances": sum(map(len, truth.values())),
        "labels": len({each.label for own in truth.values() for each in own if each.label}),
    }
    few = counts["instances"] < FEWEST_FOR_CHANCES
    # 2. the own model, which is used if it is better than both
    found, models = before, {name: base for name in before}
    uses: Literal["own", "included"] = "included"
    if sum(map(bool, truth.values())) > 1:
        counts["single_events"] = sum(each.judged for _, each in stretches)
        own, unseen = _try(corrected, truth, trials, processes, seed, stretches)
        figures = {"own": figures_of(own, truth), **figures}
        if all(figures["own"].better_than(figures[name]) for name in ("included", "motion")):
            uses, found, models = "own", own, unseen
    # 3. the model to use, with its chances and thresholds
    calibrated = calibration_of(found, truth)
    source = trials / "whole/model.safetensors" if uses == "own" else included
    by_bouts = any(own is not None for own in bouts.values())  # which have no chance
    ranks = few or (uses == "included" and by_bouts)
    ranks = ranks or not ranks_well(found, truth, calibrated)
    calibrate_bundle(source, out / "model.safetensors", calibrated, ranks=ranks)
    shutil.rmtree(trials, ignore_errors=True)
    labelled = uses == "own" and counts["labels"] > 1
    points = (
        {} if ranks else _thresholds(corrected, truth, found, models, calibrated, labelled=labelled)
    )
    learned = Learned(uses=uses, figures=figures, ranks=ranks, thresholds=points, **counts)
    counted_by = {key: each._asdict() for key, each in figures.items()}
    content = {**vars(learned), "figures": counted_by}
    write_json(out / "learned.json", {**content, "sentence": learned.sentence()})
    return learned


def _try(
    corrected: Sequence[Encoded],
    truth: Truth,
    out: Path,
    processes: int,
    seed: int,
    stretches: Sequence[tuple[Encoded, Stretch]],
) -> tuple[dict[str, Cells], dict[str, Bundle]]:
    """Train on all corrected videos as out/whole, and by cross-validation; on stretches in each.

    Returns:
        The density of each video by a model that has not seen it, and that model.
    """
    folds = _folds(corrected, truth)
    further, inside = cut_out(stretches, out / "stretches.h5")
    known = {**truth, **inside}
    jobs = [([*corrected, *further], known, out / "whole", seed)]
    jobs += [
        (
            [*(one for one in corrected if one not in held), *further],
            known,
            out / f"fold-{number}",
            seed,
        )
        for number, held in enumerate(folds)
    ]
    pool = worker_pool(min(processes or cores(), len(jobs)))
    try:
        for job in [pool.submit(_train, *given) for given in jobs]:
            job.result()
    finally:
        pool.shutdown(cancel_futures=True)
    cells: dict[str, Cells] = {}
    models: dict[str, Bundle] = {}
    for number, held in enumerate(folds):
        bundle = load_bundle(out / f"fold-{number}")
        cells |= {one.video.video_id: expected(bundle, one) for one in held}
        models |= {one.video.video_id: bundle for one in held}
    return cells, models


def _thresholds(
    corrected: Sequence[Encoded],
    truth: Truth,
    found: Mapping[str, Cells],
    models: Mapping[str, Bundle],
    calibration: Calibration,
    *,
    labelled: bool,
) -> dict[str, list[Point]]:
    """Return what each chance makes of the events that models show in videos unseen by them."""
    shown: dict[str, list[Row]] = {}
    for one in corrected:
        name = one.video.video_id
        bundle, classifier = models[name], models[name].classifier
        if labelled and classifier is None:
            continue  # the others had one label alone
        segments, chances = selection.shown_events(*found[name], calibration, knobs.EventSettings())
        shown[name] = result_rows(segments, chances)
        if classifier is not None:
            given = (*one.read(), one.video.duration_seconds)
            (scores,) = class_scores_of(bundle, *given, segments)
            shown[name] = label_rows(shown[name], classifier.labels, scores)
    return operating_points(shown, {name: truth[name] for name in shown})


def _folds(corrected: Sequence[Encoded], truth: Truth) -> list[list[Encoded]]:
    """Divide the videos so that each part has about as many with instances."""
    ranked = sorted(corrected, key=lambda one: (not truth[one.video.video_id], one.video.sha256))
    useful = sum(bool(truth[one.video.video_id]) for one in corrected)
    count = min(FOLDS, useful)
    return [ranked[first::count] for first in range(count)]


def _train(videos: Sequence[Encoded], truth: Truth, out: Path, seed: int) -> None:
    """Train a model that continues from the included one, and write out/model.safetensors."""
    out.mkdir(parents=True, exist_ok=True)
    shards = sorted({one.shard for one in videos})
    table, annotations = out / "videos.tsv", out / "annotations.json"
    write_videos(table, [one.video for one in videos], VIDEO_COLUMNS)
    rows = [
        Annotation(
            video_id=one.video.video_id,
            subset="training",
            duration_seconds=one.video.duration_seconds,
            instances=tuple(truth[one.video.video_id]),
        )
        for one in videos
    ]
    write_annotations(annotations, rows)
    # the network, the density and the classifier of labels
    sequences, how = out / "sequences.h5", SequenceSettings()
    given = (shards, table, annotations, sequences, how.rescaling())
    collect(*given, with_cues=True, same_footage=how.same_footage, all_needed=True)
    settings = TemporalSettings(seed=seed)
    train(sequences, annotations, "span", settings, out / "network", continued=False)
    network, probabilities = out / "network/model.safetensors", out / "probabilities.h5"
    predict(network, sequences, probabilities)
    density = out / "density.safetensors"
    chosen = (knobs.DensitySettings(seed=seed), knobs.LatticeSettings())
    train_density(probabilities, annotations, density, *chosen)
    classifier = None
    if len({each.label for row in rows for each in row.instances}) > 1:
        classifier = out / "classifier.safetensors"
        train_on_features(sequences, annotations, classifier, knobs.ClassifierSettings())
    sections: dict[str, Any] = {name: kind() for name, kind in SECTIONS.items()}
    model = out / "model.safetensors"
    write_bundle(sequences, network, density, model, classifier=classifier, **sections)
    # the model it continues from
    included = included_model()
    base, learned = load_bundle(included), load_density(density)
    assert base.density is not None
    # the worth of a bout is that in these videos
    base = replace(base, density=replace(base.density, per_bout=learned.per_bout))
    there = sum(float(expected(base, one)[1].sum()) for one in videos)
    happens = sum(len(row.instances) for row in rows)
    share = len(videos) / (len(videos) + _BASE_VIDEOS)
    scale = (happens + 0.5) / (there + 0.5)  # so that both expect the same number
    continue_from(model, included, share, (1 - share) * scale)
