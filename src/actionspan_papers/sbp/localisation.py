"""The whole pipeline on features of a tuned encoder: features, network, proposals, scores.

It is what a run does, by the stages' own functions on files of a scratch folder: RGB alone, as in
table 5 of paper 004.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float64, Int64
from actionspan.evaluation.detection import match_greedily
from actionspan.evaluation.evaluate import VIDEO_COLUMNS, video_rows
from actionspan.evaluation.recall import DETECTION_THRESHOLDS, average_recall_activitynet, tiou
from actionspan.evaluation.rows import check_truth, match_proposals
from actionspan.evaluation.score import read_scored
from actionspan_papers.sbp.settings import TuningSettings
from actionspan_papers.sbp.trainings import encoder_settings, rescale_settings, temporal_settings

PRINTED = np.flatnonzero(
    np.isclose(DETECTION_THRESHOLDS[:, None], (0.3, 0.4, 0.5, 0.6, 0.7)).any(axis=1)
)
"""Of `DETECTION_THRESHOLDS`, those of table 5: tIoU 0.3, 0.4, 0.5, 0.6, 0.7."""
_SUBSET = "validation"
_AUC = VIDEO_COLUMNS.index("AUC")


@dataclass(frozen=True, kw_only=True)
class LocalisationScores:
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


def score_proposals(annotations: Path, proposals: Path) -> LocalisationScores:
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
) -> LocalisationScores:
    names = sorted(truth)
    scores, videos, right = [np.empty(0)], [np.empty(0, np.int64)], [np.zeros((0, 5), bool)]
    for number, name in enumerate(names):
        rows = given.get(name, np.empty((0, 3)))
        scores.append(rows[:, 2])
        videos.append(np.full(len(rows), number))
        right.append(match_greedily(tiou(rows[:, :2], truth[name]), DETECTION_THRESHOLDS[PRINTED]))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    return LocalisationScores(
        areas=np.array([areas.get(name, 0.0) for name in names]),
        instances=np.array([len(truth[name]) for name in names]),
        video=np.concatenate(videos)[order],
        right=np.concatenate(right)[order],
    )


@dataclass(frozen=True, kw_only=True)
class Line:
    """What the pipeline reads, whatever the encoder: stored snippets, videos.tsv, annotations."""

    snippets: tuple[Path, ...]
    videos: Path
    annotations: Path
    tuning: TuningSettings

    def proposals(self, weights: Path | None, seed: int, out: Path) -> Path:
        """Run the pipeline with an encoder's weights; return proposals.json in the folder `out`.

        `weights` is a checkpoint of `finetune train`; None: the public weights.
        """
        from actionspan.features.collect import collect
        from actionspan.proposals.candidates import write_candidates
        from actionspan.proposals.settings import CandidateSettings, EvaluatorSettings
        from actionspan.proposals.training import train_pem
        from actionspan.temporal.prediction import predict
        from actionspan.temporal.training import train

        out.mkdir(parents=True, exist_ok=True)
        features, probabilities = out / "features.h5", out / "probabilities.h5"
        candidates, evaluator = out / "candidates.h5", out / "pem.pt"
        settings = rescale_settings(self.tuning)
        self._encode(weights, out / "shard.h5")
        collect([out / "shard.h5"], self.videos, self.annotations, features, settings)
        train(features, self.annotations, "mtn", temporal_settings(seed), out)
        predict(out / "model.pt", features, probabilities)
        write_candidates(probabilities, candidates, CandidateSettings())
        own = replace(EvaluatorSettings(), seed=seed)
        train_pem(candidates, self.annotations, own, evaluator)
        return _ranked(candidates, evaluator, out / "proposals.json")

    def _encode(self, weights: Path | None, out: Path) -> None:
        """Write the RGB features of all stored snippets as a shard of the features stage."""
        from actionspan.features.encoders import Encoder
        from actionspan.files.storage import create_h5, digest
        from actionspan.finetune.snippets import SnippetStore

        store, settings = SnippetStore(self.snippets), encoder_settings(self.tuning, weights)
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
    from actionspan.proposals.segments import Row, result_rows, write_proposals
    from actionspan.proposals.settings import RankingSettings, SuppressionSettings

    model, table = load_evaluator(evaluator), open_candidates(candidates)
    settings, ranking = SuppressionSettings(), RankingSettings()

    def rows(index: int) -> tuple[str, list[Row]]:
        seconds = float(table.duration_seconds[index])
        ranked = rank_candidates(table.video(index), seconds, model, settings, ranking)
        return table.video_id[index], result_rows(*ranked)

    write_proposals(map(rows, range(len(table.video_id))), out, None, labelled=False)
    return out
