r"""What a search by example finds, by the number of marked segments.

    python benchmarks/find.py --data DATA --work build/uncut --sets rooms cycles demo

Features are those of uncut.py. For each label of a set so many of its instances are marked, in
videos in a random order that hold them all (at most half of those with the label), and searched for
in all videos. Scored are the videos without a mark: average precision at tIoU 0.5 over all of them
together, and how many of the first ten are right. Beside it the same segments in the order of their
motion, and in a random one.

`--words` searches by planted words in place of that: the vector of a label is the mean of what our
encoders see in its instances in half of the videos, that of the background the mean of all else
there, and the other half is searched and scored.

Prints a Markdown table a set, in percent: the means over labels, and their deviation over draws.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actionspan.annotations.tables import Instance
from actionspan.evaluation.detection import detection_precision
from actionspan.find.examples import Footage, Similar, find_like
from actionspan.find.words import find_words
from actionspan.proposals.selection import distinct, right_events
from actionspan.proposals.settings import EventSettings
from rounds import Footage as Shards
from uncut import SETS, prepare, prepare_demo

_LISTED = 20  # segments of a video
Truth = Mapping[str, Sequence[Instance]]


class Score(NamedTuple):
    """In percent."""

    precision: float  # average precision at tIoU 0.5
    ten: float  # of the first ten that are right


def draw(known: Truth, label: str, count: int, seed: int) -> dict[str, list[Instance]] | None:
    """Return so many instances of a label in as few videos as a random order needs."""
    rng = np.random.default_rng([seed, count])
    own = {
        name: [one for one in instances if one.label == label]
        for name, instances in known.items()
        if any(one.label == label for one in instances)
    }
    names, marks, left = sorted(own), {}, count
    for place in rng.permutation(len(names))[: max(1, len(names) // 2)]:
        found = own[names[place]]
        chosen = rng.permutation(len(found))[:left]
        marks[names[place]] = [found[each] for each in chosen]
        left -= len(chosen)
        if not left:
            return marks
    return None


def score(found: Mapping[str, Similar], truth: Mapping[str, np.ndarray]) -> Score:
    """Return what is right of the distinct segments of the videos of `truth`."""
    lists = {}
    for name in truth:
        segments, scores = found[name]
        order = np.argsort(-scores, kind="stable")
        kept = order[distinct(segments[order[:2000]], EventSettings().overlap, _LISTED)]
        lists[name] = np.column_stack([segments[kept], scores[kept]])
    precision = detection_precision(truth, lists).average_precision
    rows = [(row[2], name, place) for name, rows in lists.items() for place, row in enumerate(rows)]
    first = sorted(rows, reverse=True)[:10]
    right = {name: right_events(rows[:, :2], truth[name]) for name, rows in lists.items()}
    possible = min(10, sum(map(len, truth.values())))
    ten = sum(right[name][place] for _, name, place in first) / possible
    at_half = precision[[each == 0.5 for each in _thresholds()].index(True)]
    return Score(100 * float(at_half), 100 * float(ten))


def _thresholds() -> list[float]:
    from actionspan.evaluation.recall import DETECTION_THRESHOLDS

    return [round(float(each), 2) for each in DETECTION_THRESHOLDS]


def by_motion(footage: Footage, found: Mapping[str, Similar]) -> dict[str, Similar]:
    """Return the same segments in the order of the mean of the last curve, of motion."""
    ranked = {}
    for name, (segments, _) in found.items():
        steps, seconds = footage.sequence(name)
        sums = np.concatenate([[0.0], np.cumsum(steps[:, -1])])
        edges = np.clip(segments / seconds, 0, len(steps))
        below = np.interp(edges, np.arange(len(sums)), sums)
        ranked[name] = Similar(segments, (below[:, 1] - below[:, 0]) / np.ptp(edges, axis=1))
    return ranked


def planted(footage: Footage, known: Truth, label: str, seed: int) -> tuple[dict, list[str]]:
    """Return what the planted words of a label find in half of the videos, and these videos."""
    names = sorted(known)
    order = np.random.default_rng(seed).permutation(len(names))
    learned = [names[place] for place in order[: len(names) // 2]]
    searched = [name for name in names if name not in learned]
    rows = {name: footage.sequence(name) for name in names}
    inside, outside = [], []
    for name in learned:
        steps, seconds = rows[name]
        middles = (np.arange(len(steps)) + 0.5) * seconds
        own = [one for one in known[name] if one.label == label]
        happens = np.zeros(len(steps), bool)
        for one in own:
            happens |= (middles >= one.start) & (middles < one.end)
        unit = steps / np.linalg.norm(steps, axis=1, keepdims=True)
        inside.append(unit[happens])
        outside.append(unit[~happens])
    words, background = (np.concatenate(each).mean(axis=0) for each in (inside, outside))
    given = [(name, *rows[name]) for name in searched]
    vectors = [(each / np.linalg.norm(each))[None] for each in (words, background)]
    return find_words(given, *vectors), searched


def run_words(name: str, footage: Footage, known: Truth, labels: list[str], draws: int) -> None:
    """Print the table of a set for planted words."""
    print(f"\n**{name}**, planted words\n\n| label | average precision | of the first ten right |")
    print("|---|---:|---:|")
    for label in labels:
        rows = []
        for seed in range(draws):
            found, searched = planted(footage, known, label, seed)
            truth = {
                each: np.array(
                    [(one.start, one.end) for one in known[each] if one.label == label]
                ).reshape(-1, 2)
                for each in searched
            }
            rows.append(score(found, truth))
        cells = [
            f"{np.mean(each):.1f} ± {np.std(each, ddof=1):.1f}" for each in zip(*rows, strict=True)
        ]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


def run_set(name: str, arguments: argparse.Namespace) -> None:
    """Print the table of a set."""
    if name == "demo":
        prepare_demo(arguments.work)
    else:
        prepare(name, arguments.data, arguments.work)
    shards = Shards(arguments.work / name / "results")
    known = {each: shards.truth.get(each, ()) for each in shards.videos}
    footage = Footage(list(shards.videos.values()))
    labels = sorted({one.label for instances in known.values() for one in instances})
    if arguments.words:
        run_words(name, footage, known, labels, arguments.draws)
        return
    made: dict[tuple[int, str], dict[int, list[Score]]] = {}
    seconds = []
    for count in arguments.counts:
        for seed in range(arguments.draws):
            for label in labels:
                marks = draw(known, label, count, seed)
                if marks is None:
                    continue
                truth = {
                    each: np.array(
                        [(one.start, one.end) for one in own if one.label == label]
                    ).reshape(-1, 2)
                    for each, own in known.items()
                    if each not in marks
                }
                if not sum(map(len, truth.values())):
                    continue
                started = time.process_time()
                found = find_like(footage, marks)
                seconds.append(time.process_time() - started)
                rng = np.random.default_rng(seed)
                orders = {
                    "like the examples": found,
                    "chance": {
                        each: Similar(one.segments, rng.random(len(one.scores)))
                        for each, one in found.items()
                    },
                }
                if name == "demo" or SETS[name].videos:
                    orders["motion"] = by_motion(footage, found)
                for order, ranked in orders.items():
                    rows = made.setdefault((count, order), {}).setdefault(seed, [])
                    rows.append(score(ranked, truth))
    size = f"{len(known)} videos, {len(labels)} labels"
    print(f"\n**{name}**, {size}; a search took a median of {np.median(seconds):.1f} CPU seconds\n")
    print("| marked | order | labels | average precision | of the first ten right |")
    print("|---:|---|---:|---:|---:|")
    for (count, order), draws in made.items():
        means = np.array([np.mean(rows, axis=0) for rows in draws.values()])
        cells = [f"{mean:.1f} ± {spread:.1f}" for mean, spread in zip(
            means.mean(axis=0), means.std(axis=0, ddof=1), strict=True
        )]  # fmt: skip
        tried = min(map(len, draws.values()))
        print(f"| {count} | {order} | {tried} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("build/uncut"), help="to write")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, "demo"], default=[*SETS, "demo"])
    parser.add_argument("--counts", nargs="+", type=int, default=[1, 3, 10])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--words", action="store_true", help="by planted words")
    arguments = parser.parse_args()
    for name in arguments.sets:
        run_set(name, arguments)


if __name__ == "__main__":
    main()
