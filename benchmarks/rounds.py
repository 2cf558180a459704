r"""What each round of corrections gives: a simulated person corrects videos, one after another.

    python benchmarks/rounds.py --data DATA --work build/uncut --sets rooms cycles fights demo

Features are those of uncut.py, whose folds keep people or scenes apart. In each fold the person
corrects so many of the videos that are not held out, in a random order, and `actionspan learn`
learns from them. Scored is what the model that it keeps finds in the held-out videos, of which
nobody corrected any. With `--judged 3` the person also accepts or rejects the first three listed
events of each of five further videos, by the model of the round before.

Prints a Markdown table a set: the list that the page would show, judged by `evaluation reader`, in
percent and seconds, means and deviations over seeds. Above it are the list before any correction,
and as many equal parts as there are events. AUC is less that
of the included model, with its bootstrap interval over videos. Then in how many rounds the person's
own model is used, of how many instances, and of its events how far the chance is off (expected
calibration error) and in how many pairs of a right and a wrong one it is higher for the right one,
whether or not the product shows a chance of so few. The last table pools these over all sets.
"""

import argparse
import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from actionspan.annotations.tables import Annotation, Instance, read_annotations, read_videos
from actionspan.arrays import temporal_iou
from actionspan.evaluation.reader import judge_list
from actionspan.evaluation.recall import average_recall_activitynet
from actionspan.proposals import selection
from actionspan.proposals.bundle_files import included_model
from actionspan.proposals.model_bundle import Bundle, load_bundle
from actionspan.review import judging, learning
from actionspan.review.footage import Encoded
from actionspan.review.stretches import Stretch, stretches_of
from actionspan.storage.writing import open_h5
from folds import hashed_folds
from uncut import SETS, prepare, prepare_demo

COUNTS = (1, 2, 3, 5, 8, 13)
FOLDS = {"rooms": 5, "cycles": 2, "fights": 2, "demo": 2}
JUDGED_VIDEOS = 5
RESAMPLES = 2000
HEAD = (
    "| corrected | in as many | first right | right of those shown | starts, ends off (s) "
    "| AUC − included's | own used | instances | chance off by | ranks |\n"
    "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)
Lists = dict[str, np.ndarray]
"""(E, 3) starts and ends in seconds and chances of each video's events, the best first."""


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

    @classmethod
    def joined(cls, several: Sequence["Footage"]) -> "Footage":
        """Return the videos of all."""
        joined = cls.__new__(cls)
        joined.truth = {name: rows for one in several for name, rows in one.truth.items()}
        joined.videos = {name: video for one in several for name, video in one.videos.items()}
        return joined


class Round(NamedTuple):
    """The model after a round, whether it is the person's own, and of how many instances."""

    model: Bundle
    own: bool
    instances: int


def judge_events(
    footage: Footage, names: Sequence[str], model: Bundle, judged: int
) -> list[tuple[Encoded, Stretch]]:
    """Return the stretches of videos of which a person judges the first listed events."""
    found = []
    for name in names if judged else ():
        one, instances = footage.videos[name], footage.truth[name]
        listed = shown(model, one)[:, :2]
        best = temporal_iou(listed, judging.segments_of(instances))
        rows = [
            [name, *map(str, place), label_of(instances, tious), status_of(tious)]
            for place, tious in zip(listed[:judged], best, strict=False)
        ]
        own = stretches_of(rows, listed, one.video.duration_seconds)
        found += [(one, each) for each in own]
    return found


def label_of(instances: Sequence[Instance], tious: np.ndarray) -> str:
    """Return the label of the instance that an event has the highest tIoU with."""
    return instances[int(tious.argmax())].label if len(tious) else ""


def status_of(tious: np.ndarray) -> str:
    """Return the judgement of an event with these tIoUs."""
    return "accepted" if tious.max(initial=0) >= 0.5 else "rejected"


def rounds(
    footage: Footage,
    drawn: Sequence[str],
    counts: Sequence[int],
    seed: int,
    out: Path,
    judged: int = 0,
) -> dict[int, Round]:
    """Return what comes of each number of corrected videos, the first of those `drawn`."""
    model, models = load_bundle(included_model()), {}
    for count in counts:
        if count > len(drawn):
            break
        corrected = drawn[:count]
        truth = {name: footage.truth[name] for name in corrected}
        uses = "included"
        if any(truth.values()):
            videos = [footage.videos[name] for name in corrected]
            further = drawn[count : count + JUDGED_VIDEOS]
            stretches = judge_events(footage, further, model, judged)
            learned = learning.learn(
                videos, truth, out / str(count), processes=1, seed=seed, stretches=stretches
            )
            uses = learned.uses
            model = load_bundle(out / str(count))
            shutil.rmtree(out / str(count))
        models[count] = Round(model, uses == "own", sum(map(len, truth.values())))
    return models


def shown(model: Bundle, one: Encoded) -> np.ndarray:
    """Return the events (E, 3) that the page lists of a video."""
    bouts = judging.listed_bouts(model, one)
    if bouts is not None:
        return np.column_stack([bouts, 1 - np.arange(len(bouts)) / 1000])
    cells = judging.expected(model, one)
    return np.column_stack(
        selection.shown_events(*cells, model.density.calibration, model.listing(cells[1]))
    )


def judge(footage: Footage, lists: Lists) -> dict:
    """Return the record of a reader for lists; their names end in a video's id."""
    rows = []
    for name in lists:
        video = name.rpartition(":")[2]
        seconds = footage.videos[video].video.duration_seconds
        known = {"subset": "testing", "duration_seconds": seconds}
        rows.append(Annotation(video_id=name, **known, instances=footage.truth[video]))
    return judge_list(rows, lists)


def cells_of(judged: Sequence[dict]) -> list[str]:
    """Return the first cells of a row, of the records of all seeds."""

    def percents(values: Sequence[float | None]) -> str:
        return spread([100 * value for value in values if value is not None])

    off = [[each["end_errors"][end] for each in judged] for end in ("start", "end")]
    known = [[value for value in values if value is not None] for values in off]
    return [
        percents([each["as_many"] for each in judged]),
        percents([each["first"]["1"]["precision"] for each in judged]),
        percents([each["precision"] for each in judged]),
        ", ".join(f"{np.mean(values):.2f}" if values else "–" for values in known),
    ]


def chances(footage: Footage, lists: Lists) -> list[str]:
    """Return how far the chances of events are off, and how they rank, as cells."""
    if not lists:
        return ["", ""]
    judged = judge(footage, lists)
    values = judged["calibration_error"], judged["ranking"]
    return ["–" if value is None else f"{value:.2f}" for value in values]


def areas(cells: dict, truth: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of a video's AUC over its instances, and how many it has, by video."""
    instances = {name: judging.segments_of(rows) for name, rows in truth.items() if rows}
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


def spread(values: Sequence[float]) -> str:
    """Return a mean and, of several values, their deviation."""
    deviation = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{deviation}"


def run_set(name: str, arguments: argparse.Namespace) -> tuple[Footage, dict[int, Lists]]:
    """Print the table of a set; return its footage and the events of own models by round."""
    if name == "demo":
        everything, who = prepare_demo(arguments.work), str
    else:
        everything, who = prepare(name, arguments.data, arguments.work), SETS[name].who
    footage = Footage(arguments.work / name / "results")
    folds = hashed_folds(everything, FOLDS[name], who)
    included = load_bundle(included_model())
    truth = {one.video.video_id: one.instances for fold in folds for one in fold.held_out}
    before = {key: judging.expected(included, footage.videos[key]) for key in truth}
    references = {
        "nothing": {key: shown(included, footage.videos[key]) for key in truth},
        "equal parts": {
            key: judging.tiles_of(footage.videos[key], len(rows)) for key, rows in truth.items()
        },
    }
    print(f"\n**{name}**, {len(truth)} videos, {len(folds)} folds\n\n{HEAD}", flush=True)
    for title, lists in references.items():
        print(f"| {title} | {' | '.join(cells_of([judge(footage, lists)]))} |" + " |" * 5)
    pooled: dict[int, Lists] = {}
    for order in arguments.random:
        # by count: what is expected and listed by seed, the models of all, and their events
        cells: dict[int, dict[int, dict]] = {}
        listed: dict[int, dict[int, Lists]] = {}
        own: dict[int, list[Round]] = {}
        events: dict[int, Lists] = {}
        for seed, (number, fold) in product(arguments.seeds, enumerate(folds)):
            pool = [one.video.video_id for one in fold.training]
            held = [each.video.video_id for each in fold.held_out]
            drawn = np.random.default_rng([order, seed]).permutation(pool).tolist()
            place = arguments.work / name / f"rounds/{order}-{seed}-{number}"
            shutil.rmtree(place, ignore_errors=True)
            made = rounds(footage, drawn, arguments.counts, seed, place, arguments.judged)
            for count, one in made.items():
                found = {key: judging.expected(one.model, footage.videos[key]) for key in held}
                lists = {key: shown(one.model, footage.videos[key]) for key in held}
                own.setdefault(count, []).append(one)
                cells.setdefault(count, {}).setdefault(seed, {}).update(found)
                listed.setdefault(count, {}).setdefault(seed, {}).update(lists)
                if one.own:
                    named = {f"{order}-{seed}:{key}": rows for key, rows in lists.items()}
                    events.setdefault(count, {}).update(named)
        for count, seeds in cells.items():
            found = list(seeds.values())
            columns = cells_of([judge(footage, each) for each in listed[count].values()])
            columns.append(difference(found, before, {key: truth[key] for key in found[0]}))
            columns.append(f"{sum(one.own for one in own[count])} of {len(own[count])}")
            learned = [one.instances for one in own[count]]
            columns.append(f"{min(learned)}–{max(learned)}")
            columns += chances(footage, events.get(count, {}))
            print(f"| {count}, order {order} | {' | '.join(columns)} |", flush=True)
            pooled.setdefault(count, {}).update(events.get(count, {}))
    return footage, pooled


def print_pooled(sets: Sequence[tuple[Footage, dict[int, Lists]]]) -> None:
    """Print the error and the ranking of the chances of own models, over all sets."""
    everything = Footage.joined([footage for footage, _ in sets])
    print("\n| corrected | events | chance off by | ranks |\n|---:|---:|---:|---:|")
    for count in sorted({count for _, own in sets for count in own}):
        lists = {name: rows for _, own in sets for name, rows in own.get(count, {}).items()}
        if lists:
            cells = [str(sum(map(len, lists.values()))), *chances(everything, lists)]
            print(f"| {count} | {' | '.join(cells)} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("build/uncut"), help="to write")
    parser.add_argument("--sets", nargs="+", choices=FOLDS, default=list(FOLDS))
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    text = "listed events that are judged of each of five further videos"
    parser.add_argument("--judged", type=int, default=0, help=text)
    parser.add_argument("--random", nargs="+", type=int, default=[1], help="seeds of the orders")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="of the networks")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print_pooled([run_set(name, arguments) for name in arguments.sets])


if __name__ == "__main__":
    main()
