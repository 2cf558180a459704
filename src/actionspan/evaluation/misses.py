"""The instances that one method misses, by their characteristics.

After the false-negative analysis of Alwassel et al., "Diagnosing Error in Temporal Action
Detectors" (ECCV 2018). Its edges for coverage, length and number of instances differ between
ActivityNet and THUMOS14; ours are both together, so that its bins for either data set are sums of
ours. The position in the video is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actionspan.annotations.tables import Annotation, Instance
from actionspan.arrays import Float64, Int64
from actionspan.errors import counted
from actionspan.evaluation import recall
from actionspan.evaluation.files import segments_of
from actionspan.evaluation.rows import NO_PROPOSALS, match_proposals
from actionspan.storage.text import markdown_table

_SHOWN_NUMBERS = (1, 10, 100)
NAMES = tuple(f"{threshold:.1f}" for threshold in recall.MISSES_THRESHOLDS)


class _Characteristic(NamedTuple):
    """One way to sort instances into bins: up to the first edge, between edges, above the last."""

    name: str
    title: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]


CHARACTERISTICS = (
    _Characteristic(
        "coverage",
        "Length as a share of the video",
        (0.02, 0.04, 0.06, 0.08, 0.2, 0.4, 0.6, 0.8),
        ("≤ 2%", "2–4%", "4–6%", "6–8%", "8–20%", "20–40%", "40–60%", "60–80%", "> 80%"),
    ),
    _Characteristic(
        "length",
        "Length in seconds",
        (3, 6, 12, 18, 30, 60, 120, 180),
        ("≤ 3", "3–6", "6–12", "12–18", "18–30", "30–60", "60–120", "120–180", "> 180"),
    ),
    _Characteristic(
        "position",
        "Centre, as a share of the video",
        (0.2, 0.4, 0.6, 0.8),
        ("0–20%", "20–40%", "40–60%", "60–80%", "80–100%"),
    ),
    _Characteristic(
        "instances",
        "Instances in the video",
        (1, 4, 8, 40, 80),
        ("1", "2–4", "5–8", "9–40", "41–80", "> 80"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Bin:
    """The instances of one bin, and how many of them are found."""

    characteristic: str
    label: str
    above: float | None
    up_to: float | None
    """The edges, if the bin has them; the lower one lies outside."""
    instances: int
    found: tuple[int, ...]
    """At tIoU 0.5, 0.7 and 0.9, by what their videos contribute at AN = 100."""
    misses_share: tuple[float | None, ...]
    """At the same tIoU, its misses as a share of all misses; None where nothing is missed."""
    average_recall: float | None
    """AR@100 of these instances; None where there is none."""

    @property
    def missed(self) -> tuple[int, ...]:
        """How many are not found, at the same tIoU."""
        return tuple(self.instances - found for found in self.found)


@dataclass(frozen=True, kw_only=True)
class _Outcomes:
    """The I instances of a subset and the best proposal of each, in the protocol's order."""

    result: recall.AverageRecall
    """The protocol's result; its `best_tiou` has a row an instance."""
    instances: tuple[Instance, ...]
    """The I instances, video by video."""
    durations: Float64
    """(V,) durations of the videos in seconds."""
    best_segments: Float64
    """(I, 2) the proposal with the best tIoU at AN = 100, in seconds; NaN where none overlaps."""
    best_ranks: Int64
    """(I,) its place in the video's list, from 1; 0 where none overlaps."""

    @cached_property
    def videos(self) -> Int64:
        """(I,) the row of each instance's video among `result.video_ids`."""
        return np.repeat(np.arange(len(self.result.instances)), self.result.instances)

    @cached_property
    def found(self) -> NDArray[np.bool_]:
        """(I, 3) whether each is found at tIoU 0.5, 0.7, 0.9 at AN = 100."""
        return np.asarray(self.result.best_tiou[:, -1:] >= recall.MISSES_THRESHOLDS)


def instance_outcomes(
    annotations: Sequence[Annotation], proposals: Mapping[str, ArrayLike]
) -> _Outcomes:
    """Score proposals by ActivityNet's protocol and keep what each instance of a subset gets.

    Proposals are (P, 3) start and end in seconds and score for each video id, in any order.

    Raises:
        ValueError: A row is reversed or not finite, no video has an instance, two ids of the
            proposals mean one video, or the duration of a video with instances is not positive.
    """
    videos = {video.video_id: video for video in annotations if video.instances}
    for name, video in videos.items():
        seconds = video.duration_seconds
        if not 0 < seconds < np.inf:
            raise ValueError(f"video {name!r}: duration {seconds:g} s; a positive one is needed")
    truth = {name: segments_of(video) for name, video in videos.items()}
    result = recall.average_recall_activitynet(truth, proposals)
    matched, _ = match_proposals(proposals, truth)
    kept, shares = recall.kept_proposals(result.given)
    budgets = recall.contributed(kept, shares[-1]).tolist()
    best = [
        _best_proposals(segments, matched.get(video, NO_PROPOSALS)[:budget, :2])
        for (video, segments), budget in zip(truth.items(), budgets, strict=True)
    ]
    table = np.concatenate(best)
    return _Outcomes(
        result=result,
        instances=tuple(item for video in videos.values() for item in video.instances),
        durations=np.array([video.duration_seconds for video in videos.values()]),
        best_segments=table[:, :2],
        best_ranks=table[:, 2].astype(np.int64),
    )


def _best_proposals(segments: Float64, ranked: Float64) -> Float64:
    """Return (G, 3) start, end and rank of the best of (P, 2) proposals for each instance."""
    overlaps = recall.tiou(segments, ranked)  # (G, P)
    padded = np.pad(overlaps, ((0, 0), (1, 0)))  # (G, 1 + P), first: no proposal
    ranks = padded.argmax(axis=1)
    return np.column_stack([np.vstack([[np.nan, np.nan], ranked])[ranks], ranks])


def characteristic_values(outcomes: _Outcomes) -> dict[str, Float64]:
    """Return (I,) values of each characteristic: shares, seconds and counts."""
    segments = np.array([(item.start, item.end) for item in outcomes.instances], dtype=np.float64)
    durations = outcomes.durations[outcomes.videos]
    lengths = segments[:, 1] - segments[:, 0]
    return {
        "coverage": lengths / durations,
        "length": lengths,
        "position": segments.mean(axis=1) / durations,
        "instances": outcomes.result.instances[outcomes.videos].astype(np.float64),
    }


def break_down(outcomes: _Outcomes) -> list[Bin]:
    """Return a bin of all instances, then the bins of each characteristic, empty bins too."""
    missed = (~outcomes.found).sum(axis=0).tolist()

    def bin_of(chosen: NDArray[np.bool_], kind: str, label: str, edges: tuple[Any, Any]) -> Bin:
        instances = int(chosen.sum())
        hits = outcomes.found[chosen].sum(axis=0).tolist()
        totals = zip(hits, missed, strict=True)
        best = outcomes.result.best_tiou[chosen, -1:]
        return Bin(
            characteristic=kind,
            label=label,
            above=edges[0],
            up_to=edges[1],
            instances=instances,
            found=tuple(hits),
            misses_share=tuple(
                (instances - hit) / total if total else None for hit, total in totals
            ),
            average_recall=float((best >= recall.TIOU_THRESHOLDS).mean()) if instances else None,
        )

    # a bin of all, then those between the edges of each characteristic
    bins = [bin_of(np.full(len(outcomes.instances), True), "all", "all", (None, None))]
    values = characteristic_values(outcomes)
    for kind in CHARACTERISTICS:
        place = np.searchsorted(kind.edges, values[kind.name], side="left")  # (I,)
        edges = pairwise((None, *kind.edges, None))
        for number, (label, ends) in enumerate(zip(kind.labels, edges, strict=True)):
            bins.append(bin_of(place == number, kind.name, label, ends))
    return bins


TABLE_COLUMNS = (
    *("characteristic", "bin", "above", "up_to", "instances"),
    *(f"{what}@{name}" for name in NAMES for what in ("found", "missed", "misses_share")),
    "AR@100",
)
INSTANCE_COLUMNS = (
    *("video_id", "start", "end", "label"),
    *(f"best_tiou@{number}" for number in _SHOWN_NUMBERS),
    *("best_start", "best_end", "best_rank"),
)


def table_row(row: Bin) -> list[Any]:
    """Return a bin as the cells of `TABLE_COLUMNS`; an undefined value is None."""
    at_tious = zip(row.found, row.missed, row.misses_share, strict=True)
    edges = row.above, row.up_to
    own = (row.characteristic, row.label, *edges, row.instances)
    return [*own, *chain.from_iterable(at_tious), row.average_recall]


def instance_rows(outcomes: _Outcomes) -> list[list[Any]]:
    """Return all instances as the cells of `INSTANCE_COLUMNS`, the least found first."""
    best = outcomes.result.best_tiou[:, [number - 1 for number in _SHOWN_NUMBERS]].tolist()
    proposals = zip(outcomes.best_segments.tolist(), outcomes.best_ranks.tolist(), strict=True)
    videos = [outcomes.result.video_ids[row] for row in outcomes.videos]
    rows = []
    for video, item, tious, (segment, rank) in zip(
        videos, outcomes.instances, best, proposals, strict=True
    ):
        proposal = [*segment, rank] if rank else [None] * 3
        rows.append([video, item.start, item.end, item.label, *tious, *proposal])
    return sorted(rows, key=lambda row: (*row[6:3:-1], row[0], row[1], row[2]))


def misses_markdown(outcomes: _Outcomes, bins: Sequence[Bin], method: str, subset: str) -> str:
    """Return the page: definitions, the main finding, and a table for each characteristic."""
    result, everything = outcomes.result, bins[0]
    missed = ", ".join(
        f"{number:,} ({_percent(number, everything.instances)}) at tIoU {name}"
        for number, name in zip(everything.missed, NAMES, strict=True)
    )
    lines = [
        f"# What {method} misses",
        "",
        f"The {counted(everything.instances, 'instance')} of the "
        f"{counted(len(result.video_ids), 'video')} of subset "
        f"{subset}, and the first 100 proposals a video by ActivityNet's budgets. An instance is "
        "found at tIoU t if one of its video's proposals overlaps it by at least t, and missed "
        "otherwise. AR@100 is the mean share found at tIoU 0.5, 0.55, …, 0.95. Missed instances "
        "are given in percent of the bin's instances; the last column is the bin's share of all "
        "misses at tIoU 0.5, to compare with its share of the instances.",
        "",
        f"Missed: {missed}; AR@100 is {100 * (everything.average_recall or 0):.2f} %. "
        f"{result.missing_videos:,} of the videos have no proposal at all.",
        "",
    ]
    for kind in CHARACTERISTICS:
        rows = [row for row in bins if row.characteristic == kind.name and row.instances]
        lines += [f"## {kind.title}", "", *_sentence(rows, everything), *_table(rows, everything)]
    lines += [
        f"Each instance with its best proposal, the least found first: `{method}.instances.tsv`.",
        "",
        "Bins after the false-negative analysis of Alwassel et al., Diagnosing Error in Temporal "
        "Action Detectors (ECCV 2018); those without an instance are left out here. "
        "A bin holds its upper edge, not its lower one.",
    ]
    return "\n".join(lines) + "\n"


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.1f} %"


def _sentence(rows: Sequence[Bin], everything: Bin) -> list[str]:
    """Name the bin with the most misses beyond its share of the instances, if any has."""
    excess = [(row.misses_share[0] or 0.0) - row.instances / everything.instances for row in rows]
    if not everything.missed[0] or len(rows) < 2 or max(excess) <= 0:
        return []
    most = rows[excess.index(max(excess))]
    return [
        f"Most over-represented among the misses at tIoU 0.5: **{most.label}**, with "
        f"{_percent(most.misses_share[0] or 0.0, 1)} of the misses and "
        f"{_percent(most.instances, everything.instances)} of the instances.",
        "",
    ]


def _table(rows: Sequence[Bin], everything: Bin) -> list[str]:
    names = [f"missed at {name}" for name in NAMES]
    titles = ["", "instances", "of all", *names, "AR@100", "of the misses at 0.5"]
    cells = []
    for row in rows:
        shares = [_percent(missed, row.instances) for missed in row.missed]
        of_all = _percent(row.instances, everything.instances)
        average = f"{100 * (row.average_recall or 0):.2f}"
        of_misses = "–" if row.misses_share[0] is None else _percent(row.misses_share[0], 1)
        cells.append([row.label, f"{row.instances:,}", of_all, *shares, average, of_misses])
    return [*markdown_table("lrrrrrrr", titles, cells), ""]
