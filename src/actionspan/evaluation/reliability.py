"""The meaning of the scores of one method: how good proposals of each score are.

A score can be read as the tIoU to expect of a proposal, or as the chance that it overlaps an
instance by 0.5. Either way the expected calibration error (ECE) is the mean distance between
the score and the truth, over bins of proposals (Guo, Pleiss, Sun and Weinberger, "On
Calibration of Modern Neural Networks", ICML 2017, there with bins of equal width; ours hold equally
many proposals, because most scores lie close together). A rank correlation shows how well they
sort the proposals by quality, whatever their scale.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.annotations.tables import Annotation
from actionspan.arrays import Float64
from actionspan.errors import counted
from actionspan.evaluation.detection import match_greedily
from actionspan.evaluation.files import segments_of
from actionspan.evaluation.recall import QUALITY_THRESHOLDS, tiou
from actionspan.evaluation.rows import NO_PROPOSALS, check_truth, match_proposals
from actionspan.storage.text import markdown_table

BINS = 10
_DRAWS = 500


@dataclass(frozen=True, kw_only=True)
class ScoredProposals:
    """All P proposals given for a subset, with their worth."""

    scores: Float64
    """(P,) as given, on any scale."""
    best_tiou: Float64
    """(P,) best tIoU with any instance of the video; 0 where it has none."""
    first: NDArray[np.bool_]
    """(P, 2) whether each is the first to find an instance at tIoU 0.5 and 0.7, as detections are
    matched for average precision."""
    videos: int
    """How many videos the subset has, also without an instance or a proposal."""

    @property
    def is_share(self) -> bool:
        """Whether all scores lie in 0…1, so that they can be read as a tIoU or a chance."""
        return bool(((self.scores >= 0) & (self.scores <= 1)).all())


@dataclass(frozen=True, kw_only=True)
class ScoreBin:
    """Proposals of neighbouring scores, with their worth."""

    proposals: int
    lowest: float
    highest: float
    mean_score: float
    mean_tiou: float
    """Mean of each proposal's best tIoU."""
    share: tuple[float, float]
    """Share that overlaps an instance by 0.5 and 0.7, also one that is found already."""
    first: tuple[float, float]
    """Share that is the first to find an instance at 0.5 and 0.7: the precision of detections."""

    def cells(self) -> list[Any]:
        """Return these values in order."""
        *values, shares, firsts = vars(self).values()
        return [*values, *shares, *firsts]


def scored_proposals(
    annotations: Sequence[Annotation], proposals: Mapping[str, ArrayLike]
) -> ScoredProposals:
    """Find what each proposal of a subset's videos overlaps.

    Proposals are (P, 3) start and end in seconds and score for each video id, in any order; other
    videos' are left out.

    Raises:
        ValueError: A row is reversed or not finite, no video has an instance, or two ids of
            the proposals mean one video.
    """
    truth = check_truth({video.video_id: segments_of(video) for video in annotations})
    matched, _ = match_proposals(proposals, truth)
    scores, best, first = [np.empty(0)], [np.empty(0)], [np.empty((0, 2), dtype=bool)]
    for video_id, segments in truth.items():
        rows = matched.get(video_id, NO_PROPOSALS)
        overlaps = tiou(segments, rows[:, :2])  # (G, P)
        scores.append(rows[:, 2])
        best.append(overlaps.max(axis=0, initial=0.0))
        first.append(match_greedily(overlaps.T, QUALITY_THRESHOLDS))
    return ScoredProposals(
        scores=np.concatenate(scores),
        best_tiou=np.concatenate(best),
        first=np.concatenate(first),
        videos=len(truth),
    )


def score_bins(scored: ScoredProposals, count: int = BINS) -> list[ScoreBin]:
    """Return bins of equally many proposals (one more or less), lowest scores first.

    Proposals of equal score may lie in two bins, in the order in which they are given. The bins do
    not outnumber the proposals.
    """
    order = np.argsort(scored.scores, kind="stable")
    if not len(order):
        return []
    return [summarize(scored, rows) for rows in np.array_split(order, min(count, len(order)))]


def summarize(scored: ScoredProposals, rows: ArrayLike) -> ScoreBin:
    """Return the bin of the proposals of these rows, at least one."""
    chosen = np.asarray(rows)
    scores, best = scored.scores[chosen], scored.best_tiou[chosen]
    shares = (best[:, None] >= QUALITY_THRESHOLDS).mean(axis=0).tolist()
    first = scored.first[chosen].mean(axis=0).tolist()
    return ScoreBin(
        proposals=len(chosen),
        lowest=float(scores.min()),
        highest=float(scores.max()),
        mean_score=float(scores.mean()),
        mean_tiou=float(best.mean()),
        share=(shares[0], shares[1]),
        first=(first[0], first[1]),
    )


def calibration_error(
    scored: ScoredProposals, bins: Sequence[ScoreBin], truth: Callable[[ScoreBin], float]
) -> float | None:
    """Return the ECE of the scores read as what `truth` returns of a bin.

    It is not defined, None, without proposals or where a score lies outside 0…1.
    """
    if not bins or not scored.is_share:
        return None
    errors = [abs(row.mean_score - truth(row)) for row in bins]
    return float(np.average(errors, weights=[row.proposals for row in bins]))


def calibration_errors(
    scored: ScoredProposals, bins: Sequence[ScoreBin]
) -> tuple[float, float] | None:
    """Return the ECE of the scores read as expected tIoU, and as the chance of tIoU >= 0.5."""
    tious = calibration_error(scored, bins, lambda row: row.mean_tiou)
    chances = calibration_error(scored, bins, lambda row: row.share[0])
    return None if tious is None or chances is None else (tious, chances)


def error_by_luck(scored: ScoredProposals, bins: Sequence[ScoreBin]) -> float | None:
    """Return the mean ECE, from draws, if each score were exactly the chance to be the first.

    By luck alone, so few proposals are right more or less often than they should be. None where
    `calibration_error` is.
    """
    if not bins or not scored.is_share:
        return None
    generator = np.random.default_rng(0)
    scores = np.sort(scored.scores)
    firsts = np.cumsum([0, *(row.proposals for row in bins)])[:-1]
    total = 0.0
    for _ in range(_DRAWS):
        right = generator.random(len(scores)) < scores
        total += np.abs(np.add.reduceat(right - scores, firsts)).sum()
    return float(total / _DRAWS / len(scores))


def ranking(scored: ScoredProposals) -> float | None:
    """Return the area under the ROC curve of the scores: right, the first at 0.5, or wrong.

    That is in how many pairs of both the right one has the higher score; equal ones count half.
    None where all are right, or none is.
    """
    right = scored.first[:, 0]
    pairs = int(right.sum()) * int((~right).sum())
    if not pairs:
        return None
    lowest = right.sum() * (right.sum() + 1) / 2  # of the sum of ranks
    return float((_ranks(scored.scores)[right].sum() - lowest) / pairs)


def rank_correlation(one: ArrayLike, other: ArrayLike) -> float | None:
    """Return Spearman's rank correlation of two lists, equal values sharing their mean rank.

    It is not defined, None, where all values of a list are equal.
    """
    first, second = _ranks(one), _ranks(other)
    first, second = first - first.mean(), second - second.mean()
    scale = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / scale) if scale > 0 else None


def _ranks(values: ArrayLike) -> Float64:
    """Return ranks from 1 on, equal values sharing their mean, as `scipy.stats.rankdata`.

    To import that takes a second, which scoring itself does not.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


COLUMNS = (
    *("bin", "proposals", "lowest_score", "highest_score", "mean_score", "mean_tiou"),
    *("share@0.5", "share@0.7", "first@0.5", "first@0.7"),
    *("error_tiou", "error_0.5", "rank_correlation"),
)


def table_rows(scored: ScoredProposals, bins: Sequence[ScoreBin]) -> list[list[Any]]:
    """Return a row for all proposals and a row for each bin, as the cells of `COLUMNS`.

    The errors of a bin are its own |mean score - mean tIoU| and |mean score - share@0.5|; the
    errors of all are their means over the proposals, the expected calibration errors. An undefined
    value is None.
    """
    if not bins:
        return [["all", 0, *[None] * (len(COLUMNS) - 2)]]
    undefined = (None, None)
    errors = calibration_errors(scored, bins)
    correlation = rank_correlation(scored.scores, scored.best_tiou)
    everything = summarize(scored, np.arange(len(scored.scores)))
    rows = [["all", *everything.cells(), *(errors or undefined), correlation]]
    for number, row in enumerate(bins, start=1):
        own = (abs(row.mean_score - row.mean_tiou), abs(row.mean_score - row.share[0]))
        rows.append([number, *row.cells(), *(own if errors else undefined), None])
    return rows


def reliability_markdown(
    scored: ScoredProposals, bins: Sequence[ScoreBin], method: str, subset: str
) -> str:
    """Return the page: definitions, how far the scores can be trusted, and the bins."""
    lines = [
        f"# Meaning of the scores of {method}",
        "",
        f"All {counted(len(scored.scores), 'proposal')} of the {counted(scored.videos, 'video')} "
        f"of subset {subset}, also of those without an instance, sorted by score into "
        f"{len(bins)} bins of equally many. tIoU is that with the best instance of the video. "
        "First: the share that is the first to find its instance at tIoU 0.5, which leaves out "
        "those that find it again.",
        "",
    ]
    if not bins:
        return "\n".join([*lines, "The method has no proposals."]) + "\n"
    correlation = rank_correlation(scored.scores, scored.best_tiou)
    order = "not defined, because all scores or all tIoU are equal."
    if correlation is not None:
        order = f"**{correlation:.3f}** (1: the scores sort the proposals by tIoU; 0: no relation)."
    if errors := calibration_errors(scored, bins):
        scale = (
            f"the mean score is {np.mean(scored.scores):.3f}, the mean tIoU "
            f"{np.mean(scored.best_tiou):.3f}. Read as the tIoU to expect, scores are off by "
            f"**{errors[0]:.3f}** on average over the bins; as the chance of tIoU ≥ 0.5, by "
            f"**{errors[1]:.3f}** (expected calibration error)."
        )
    else:
        scale = (
            f"scores lie between {scored.scores.min():.4g} and {scored.scores.max():.4g}; outside "
            "0…1 they cannot be read as a tIoU or a chance, and have no calibration error."
        )
    lines += [f"Order: Spearman's rank correlation of score and tIoU is {order}", ""]
    lines += [f"Scale: {scale}", ""]
    titles = ["scores", "proposals", "mean score", "mean tIoU"]
    titles += ["tIoU ≥ 0.5", "tIoU ≥ 0.7", "first at 0.5"]
    rows = []
    for row in reversed(bins):
        scores = [f"{row.lowest:.4g} – {row.highest:.4g}", f"{row.proposals:,}"]
        means = [f"{row.mean_score:.4g}", f"{row.mean_tiou:.3f}"]
        shares = [f"{100 * share:.1f} %" for share in (*row.share, row.first[0])]
        rows.append([*scores, *means, *shares])
    return "\n".join([*lines, *markdown_table("lrrrrrr", titles, rows)]) + "\n"
