"""Write table 5 of paper 004: proposals of the whole pipeline on features of tuned encoders.

The pipeline is a run's, by the stages' own functions on files of a scratch folder, with RGB
alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float64, Int64
from actionspan.evaluation.detection import match_greedily
from actionspan.evaluation.evaluate import VIDEO_COLUMNS, video_rows
from actionspan.evaluation.recall import DETECTION_THRESHOLDS, average_recall_activitynet, tiou
from actionspan.evaluation.rows import check_truth, match_proposals
from actionspan.evaluation.score import read_scored
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.temporal.settings import TemporalSettings
from actionspan_papers.estimates import Resampled
from actionspan_papers.experiments import Cell, Experiment, Row, Table
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.sbp.published import FROZEN, LOCALISATION, Training
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings
from actionspan_papers.sbp.trainings import (
    ENDS,
    SETTINGS,
    SNIPPETS,
    interval_words,
    measure,
    scores_of,
    tuned,
    with_sbp,
)

PRINTED = np.flatnonzero(
    np.isclose(DETECTION_THRESHOLDS[:, None], (0.3, 0.4, 0.5, 0.6, 0.7)).any(axis=1)
)
"""The thresholds of table 5 among `DETECTION_THRESHOLDS`: tIoU 0.3, 0.4, 0.5, 0.6, 0.7."""
_SUBSET = "validation"
_AUC = VIDEO_COLUMNS.index("AUC")
_MEASURES = {"auc": "AUC", "map": "mAP"}
_TITLES = {
    "way": "training",
    "keep_ratio": "keep ratio",
    "sampler": "sampler",
    **_MEASURES,
    **{f"{key}_above_frozen": f"{name}, above frozen" for key, name in _MEASURES.items()},
    **{f"{key}_above_full": f"{name}, above full" for key, name in _MEASURES.items()},
    "published": "mAP, published",
}
_Found = Mapping[str, Mapping[Training, Resampled]]
"""By measure and training."""


@dataclass(frozen=True, kw_only=True)
class _LocalisationScores:
    """How proposals of V videos are scored, so that any resample of the videos can be.

    `areas` (V,) are AUC as a fraction by video, `instances` (V,) how many there are. Proposals
    (N,), best score first: `video` of each, and `right` (N, 5) whether it is right at `PRINTED`.
    """

    areas: Float64
    instances: Int64
    video: Int64
    right: NDArray[np.bool_]

    def auc(self, counts: Float64) -> float:
        """Return AUC, a fraction, where each video counts so often, (V,)."""
        weights = counts * self.instances
        return float(weights @ self.areas / weights.sum()) if weights.any() else float("nan")

    def precision(self, counts: Float64) -> float:
        """Return the mean average precision at `PRINTED`, a fraction, in the same way."""
        total = float(counts @ self.instances)
        if not total:
            return float("nan")
        weights = counts[self.video][:, None]  # (N, 1)
        hits = weights * self.right  # (N, 5)
        given = np.maximum(np.cumsum(weights, axis=0), 1e-300)
        precision = np.cumsum(hits, axis=0) / given
        best = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
        return float((hits * best).sum(axis=0).mean() / total)


def score_proposals(annotations: Path, proposals: Path) -> _LocalisationScores:
    """Score the proposals of the validation videos.

    Raises:
        InputError: A file cannot be read, or they have no video in common.
    """
    truth, given = read_scored(annotations, proposals, _SUBSET)
    rows = video_rows(average_recall_activitynet(truth, given), None)
    areas = {str(row[0]): float(row[_AUC] or 0.0) / 100 for row in rows}
    return _scores(check_truth(truth), match_proposals(given, truth)[0], areas)


def _scores(
    truth: Mapping[str, Float64], given: Mapping[str, Float64], areas: Mapping[str, float]
) -> _LocalisationScores:
    names = sorted(truth)
    scores, videos, right = [np.empty(0)], [np.empty(0, np.int64)], [np.zeros((0, 5), bool)]
    for number, name in enumerate(names):
        rows = given.get(name, np.empty((0, 3)))
        scores.append(rows[:, 2])
        videos.append(np.full(len(rows), number))
        right.append(match_greedily(tiou(rows[:, :2], truth[name]), DETECTION_THRESHOLDS[PRINTED]))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    return _LocalisationScores(
        areas=np.array([areas.get(name, 0.0) for name in names]),
        instances=np.array([len(truth[name]) for name in names]),
        video=np.concatenate(videos)[order],
        right=np.concatenate(right)[order],
    )


def _read(
    arguments: Flags, own: SbpSettings, tuning: TuningSettings, compared: DetectionSettings
) -> _Found:
    """Tune, run the pipeline and score with every training and seed."""

    def score(training: Training, seed: int, out: Path) -> _LocalisationScores:
        weights = None
        if training != FROZEN:
            tuned(arguments, training, tuning, seed, out / "tuned")
            weights = out / "tuned" / "rgb" / "model.safetensors"
        proposals = _proposals(arguments, tuning, weights, seed, out)
        return score_proposals(arguments.annotations, proposals)

    ours = Training(keep_ratio=compared.importance_ratio, sampler="importance")
    scored = scores_of([*with_sbp(compared.ratios), ours], own.seeds, "pipelines", score)
    videos = len(scored[FROZEN][0].instances)
    return {
        "auc": measure(scored, _LocalisationScores.auc, videos, own.resamples),
        "map": measure(scored, _LocalisationScores.precision, videos, own.resamples),
    }


def _proposals(
    arguments: Flags, tuning: TuningSettings, weights: Path | None, seed: int, out: Path
) -> Path:
    """Run the pipeline with an encoder's weights; return proposals.json in the folder `out`.

    `weights` is a checkpoint of `finetune train`; None: the public weights.
    """
    from actionspan.features.collect import collect
    from actionspan.proposals.candidates import write_candidates
    from actionspan.proposals.settings import CandidateSettings, EvaluatorSettings
    from actionspan.proposals.training import train_pem
    from actionspan.temporal.prediction import predict
    from actionspan.temporal.training import train

    annotations, shard, features = arguments.annotations, out / "shard.h5", out / "features.h5"
    probabilities, candidates = out / "probabilities.h5", out / "candidates.h5"
    _encode(arguments, tuning, weights, shard)
    rescaling = RescaleSettings(components=tuning.components)
    collect([shard], arguments.videos, annotations, features, rescaling)
    train(features, annotations, "mtn", TemporalSettings(seed=seed), out)
    predict(out / "model.safetensors", features, probabilities)
    write_candidates(probabilities, candidates, CandidateSettings())
    train_pem(candidates, annotations, EvaluatorSettings(seed=seed), out / "pem.safetensors")
    return _ranked(candidates, out / "pem.safetensors", out / "proposals.json")


def _encode(arguments: Flags, tuning: TuningSettings, weights: Path | None, out: Path) -> None:
    """Write the RGB features of all stored snippets as a shard of the features stage."""
    from actionspan.features.encoders import Encoder
    from actionspan.finetune.snippets import SnippetStore
    from actionspan.storage.writing import create_h5, digest

    store = SnippetStore(arguments.snippets)
    settings = EncoderSettings(rgb_weights=weights, input_size=tuning.input_size, device="cpu")
    encoder = Encoder(settings.rgb_encoder, weights, settings, channels=3)
    with create_h5(out, digest(settings, store.fingerprint)) as file:
        for name in store.videos:
            group = file.create_group(name)
            rows = range(store.count(name))
            group["rgb"] = encoder(store.read(name, rows, "rgb"))
            group["time"] = store.times(name)


def _ranked(candidates: Path, evaluator: Path, out: Path) -> Path:
    """Rank candidates and suppress overlaps, as `proposals generate` does."""
    from actionspan.proposals.candidates import open_candidates
    from actionspan.proposals.evaluator import load_evaluator, rank_candidates
    from actionspan.proposals.segments import Row as Ranked
    from actionspan.proposals.segments import result_rows, write_proposals
    from actionspan.proposals.settings import RankingSettings, SuppressionSettings

    model, table = load_evaluator(evaluator), open_candidates(candidates)
    settings, ranking = SuppressionSettings(), RankingSettings()

    def rows(index: int) -> tuple[str, list[Ranked]]:
        seconds = float(table.duration_seconds[index])
        ranked = rank_candidates(table.video(index), seconds, model, settings, ranking)
        return table.video_id[index], result_rows(*ranked)

    write_proposals(map(rows, range(len(table.video_id))), out, None, labelled=False)
    return out


def _rows(found: _Found, own: SbpSettings, *_: object) -> list[Row]:
    """Return the rows, with differences to the frozen and the fully trained encoder."""
    rows: list[Row] = []
    for training in found["auc"]:
        row: dict[str, Cell] = {**training.cells(), "seeds": own.seeds}
        for key, of_training in found.items():
            measured = of_training[training]
            row[key] = measured.estimate(own.confidence).percentage()
            for way, end in ENDS.items():
                row[f"{key}_above_{way}"] = measured.above(of_training[end], own.confidence)
        printed = LOCALISATION.get(training)
        rows.append({**row, "published": printed.mean if printed else math.nan})
    return rows


def _table(
    _: DataFrame, found: _Found, own: SbpSettings, tuning: TuningSettings, __: DetectionSettings
) -> Table:
    videos = found["auc"][FROZEN].samples
    caption = [
        "Table 5 of paper 004: proposals of the whole pipeline, in percent. AUC of AR@AN, and mean "
        "average precision at tIoU 0.3 to 0.7 of proposals as detections of one class. "
        f"EfficientNet-Lite0 on RGB images of {tuning.input_size} pixels, tuned with an MTN for "
        f"{tuning.epochs} epochs (frozen: public weights); then a new MTN and evaluator are "
        f"trained on its features. {videos} validation videos.",
        interval_words(own),
        "Published: THUMOS14, ResNet-50 of Kinetics-400 and G-TAD; the order of the trainings can "
        "be compared, the numbers cannot.",
    ]
    return Table(caption=caption, titles=_TITLES)


EXPERIMENT = Experiment(
    inputs={**SNIPPETS, "videos": "dataset/videos.tsv"},
    read=_read,
    rows=_rows,
    table=_table,
    settings=SETTINGS,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
