r"""What each round of corrections gives: a simulated person corrects videos, one after another.

    python benchmarks/rounds.py --data DATA --work build/uncut --sets rooms cycles fights demo

Features are those of uncut.py, whose folds keep people or scenes apart. In each fold the person
corrects so many of the videos that are not held out, in the order that `actionspan dataset next`
gives with the model of the moment (or at random), and `actionspan learn` learns from them. Scored
is what the model that it keeps finds in the held-out videos, of which nobody corrected any.

Prints a Markdown table a set, in percent, means and deviations over seeds: AUC, videos whose first
event is right, and instances found by the first five; the included model and motion beside it, and
the difference in AUC to the included model with its bootstrap interval over videos. Then how many
instances were learned from in the folds, and how far the mean chance of the events shown is off the
share of them that is right, the mean over folds (highest), whether or not the product shows a
chance of so few.
"""

import argparse
import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from actionspan.annotations.tables import read_annotations, read_videos
from actionspan.dataset.next import worth_of
from actionspan.evaluation.recall import average_recall_activitynet
from actionspan.proposals import selection
from actionspan.proposals.bundle_files import included_model
from actionspan.proposals.model_bundle import Bundle, load_bundle
from actionspan.review import learning
from actionspan.review.footage import Encoded
from actionspan.storage.writing import open_h5
from folds import hashed_folds
from uncut import SETS, prepare, prepare_demo

COUNTS = (1, 2, 3, 5, 8, 13)
FOLDS = {"rooms": 5, "cycles": 2, "fights": 2, "demo": 2}
RESAMPLES = 2000
HEAD = (
    "| corrected | AUC | first event right | in the first five | AUC − included's | own used "
    "| instances | chance off by |\n|---:|---:|---:|---:|---:|---:|---:|---:|"
)


class Footage:
    """The videos of a set, with their features and what happens in them."""

    def __init__(self, results: Path) -> None:
        known = read_annotations(results / "dataset/annotations.json")
        self.truth = {one.video_id: one.instances for one in known}
        shards = {}
        for path in sorted((results / "features/shards").glob("*.h5")):
            with open_h5(path) as file:
                shards |= dict.fromkeys(file, path)
        self.videos = {
            one.video_id: Encoded(video=one, shard=shards[one.video_id])
            for one in read_videos(results / "dataset/videos.tsv")
            if one.video_id in shards
        }

    def order(self, names: Sequence[str], model: Bundle) -> list[str]:
        """Return videos, those most worth correcting first, by the events of a model."""
        worths = []
        for name in names:
            one = self.videos[name]
            seconds = one.video.duration_seconds
            cells = learning.expected(model, one)
            _, chances = selection.shown_events(*cells, model.density.calibration, model.events)
            known = [0.5] * len(chances) if model.ranks else chances.tolist()
            worths.append(worth_of(name, known, seconds))
        ranked = sorted(worths, key=lambda worth: (-worth.bits_per_minute, worth.video))
        return [worth.video for worth in ranked]


class Round(NamedTuple):
    """The model after a round, whether it is the person's own, and of how many instances."""

    model: Bundle
    own: bool
    instances: int


def rounds(
    footage: Footage,
    pool: Sequence[str],
    drawn: Sequence[str] | None,
    counts: Sequence[int],
    seed: int,
    out: Path,
) -> dict[int, Round]:
    """Return what comes of each number of corrected videos, the first of those `drawn`, if any."""
    model, corrected, models = load_bundle(included_model()), [], {}
    for count in counts:
        if count > len(pool):
            break
        while len(corrected) < count:
            left = [name for name in drawn or footage.order(pool, model) if name not in corrected]
            corrected.append(left[0])
        truth = {name: footage.truth[name] for name in corrected}
        uses = "included"
        if any(truth.values()):
            videos = [footage.videos[name] for name in corrected]
            uses = learning.learn(videos, truth, out / str(count), processes=1, seed=seed).uses
            model = load_bundle(out / str(count))
            shutil.rmtree(out / str(count))
        models[count] = Round(model, uses == "own", sum(map(len, truth.values())))
    return models


def chance_error(model: Bundle, cells: dict, truth: dict) -> float:
    """Return how far the mean chance of the events shown is off the share that is right."""
    chances, right = [np.zeros(0)], [np.zeros(0)]
    for name, found in cells.items():
        events, chance = selection.shown_events(*found, model.density.calibration, model.events)
        chances.append(chance)
        right.append(selection.right_events(events, learning.segments_of(truth[name])))
    off = np.concatenate(chances) - np.concatenate(right)
    return abs(float(off.mean())) if len(off) else np.nan


def areas(cells: dict, truth: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of a video's AUC over its instances, and how many it has, by video."""
    instances = {name: learning.segments_of(rows) for name, rows in truth.items() if rows}
    proposals = {}
    for name in instances:
        chosen, gains = selection.select(*cells[name])
        proposals[name] = np.column_stack([cells[name][0][chosen], gains])
    recall = average_recall_activitynet(instances, proposals)
    return 100 * recall.sums_by_video(recall.hits.mean(axis=1)), recall.instances


def difference(own: Sequence[dict], included: dict, truth: dict) -> str:
    """Return the mean difference in AUC to the included model's cells, and its interval."""
    before, counts = areas(included, truth)
    gained = np.mean([areas(cells, truth)[0] for cells in own], axis=0) - before
    drawn = np.random.default_rng(0).integers(len(counts), size=(RESAMPLES, len(counts)))
    low, high = np.quantile(gained[drawn].sum(axis=1) / counts[drawn].sum(axis=1), (0.025, 0.975))
    return f"{gained.sum() / counts.sum():+.1f} [{low:.1f}, {high:.1f}]"


def percents(found: learning.Figures) -> tuple[float, float, float]:
    """Return the AUC, the videos whose first event is right, and what the first five find."""
    first, five = found.first_right / found.videos, found.in_first_five / found.instances
    return found.auc, 100 * first, 100 * five


def spread(values: Sequence[float]) -> str:
    """Return a mean and, of several values, their deviation."""
    deviation = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{deviation}"


def run_set(name: str, arguments: argparse.Namespace) -> None:
    """Print the table of a set."""
    if name == "demo":
        everything, who = prepare_demo(arguments.work), str
    else:
        everything, who = prepare(name, arguments.data, arguments.work), SETS[name].who
    footage = Footage(arguments.work / name / "results")
    folds = hashed_folds(everything, FOLDS[name], who)
    included = load_bundle(included_model())
    truth = {one.video.video_id: one.instances for fold in folds for one in fold.held_out}
    before = {key: learning.expected(included, footage.videos[key]) for key in truth}
    motion = {key: learning.motion_of(footage.videos[key]) for key in truth}
    references = {
        "included model": learning.figures_of(before, truth),
        "motion": learning.figures_of({}, truth, motion),
    }
    print(f"\n**{name}**, {len(truth)} videos, {len(folds)} folds\n\n{HEAD}", flush=True)
    for title, found in references.items():
        print(f"| {title} | {' | '.join(f'{each:.1f}' for each in percents(found))} | | | | |")
    for order in ([] if arguments.random_only else [None]) + arguments.random:
        # by count: what is expected by seed, the models of all, and how far their chances are off
        cells: dict[int, dict[int, dict]] = {}
        own: dict[int, list[Round]] = {}
        errors: dict[int, list[float]] = {}
        for seed, (number, fold) in product(arguments.seeds, enumerate(folds)):
            pool = [one.video.video_id for one in fold.training]
            held = [each.video.video_id for each in fold.held_out]
            drawn = None
            if order is not None:
                drawn = np.random.default_rng(order).permutation(pool).tolist()
            place = arguments.work / name / f"rounds/{order}-{seed}-{number}"
            shutil.rmtree(place, ignore_errors=True)
            made = rounds(footage, pool, drawn, arguments.counts, seed, place)
            for count, one in made.items():
                found = {key: learning.expected(one.model, footage.videos[key]) for key in held}
                own.setdefault(count, []).append(one)
                cells.setdefault(count, {}).setdefault(seed, {}).update(found)
                errors.setdefault(count, []).append(chance_error(one.model, found, truth))
        said = "`dataset next`" if order is None else f"at random, {order}"
        for count, seeds in cells.items():
            found = list(seeds.values())
            scored = {key: truth[key] for key in found[0]}
            figures = [percents(learning.figures_of(each, scored)) for each in found]
            columns = [spread(values) for values in zip(*figures, strict=True)]
            learned = [one.instances for one in own[count]]
            columns.append(difference(found, before, scored))
            columns.append(f"{sum(one.own for one in own[count])} of {len(own[count])}")
            columns.append(f"{min(learned)}–{max(learned)}")
            columns.append(f"{np.nanmean(errors[count]):.2f} ({np.nanmax(errors[count]):.2f})")
            print(f"| {count}, {said} | {' | '.join(columns)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("build/uncut"), help="to write")
    parser.add_argument("--sets", nargs="+", choices=FOLDS, default=list(FOLDS))
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--random", nargs="*", type=int, default=[1], help="seeds of random orders")
    parser.add_argument("--random-only", action="store_true", help="without dataset next")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="of the networks")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.sets:
        run_set(name, arguments)


if __name__ == "__main__":
    main()
