r"""What each method finds in uncut footage, cross-validated over people or scenes.

    python benchmarks/uncut.py --data DATA --work build/uncut --sets rooms hapt

The sets are folders of `--data`; the features of each are made by the workflow in `--work`, once.
Its videos are divided by people (scenes, where nobody is named) into folds: every method is fitted
on the others of a fold, and the proposals of all held-out videos are scored together. Models are
trained once a seed. Beside the default model stand two that see less of the same columns, zeros in
place of the rest: `cues only` has the changes and the motion curves, `motion only` these curves;
and `cuts`, a rule of shot boundaries that learns only the lengths of instances.

`--set` changes settings, as `features.encoders.flow_encoder=none` or `temporal.training.epochs=20`.
`--folds 0` leaves one person or scene out at a time. `--learn 1 2 4 8` shows instead how much more
videos are worth: each fold trains on so many of its videos, with instances, a random choice for
each seed, of which larger ones hold the smaller.

Prints a Markdown table a set: mean ± deviation over seeds, the bootstrap interval over videos of
the seeds' mean recall, and the paired difference in AUC to the default model, with its interval.
The line above it says on how many videos the figures rest, and how much "found in the first five"
can be at most. Ranking is in how many pairs of a right and a wrong event, of one fold, the right
one has the higher chance (the area under the ROC curve).
"""

import argparse
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
import yaml

from accuracy import BASELINES, READER, call, changed_config, read, run_baseline, run_model
from actionspan.annotations.tables import write_annotations
from actionspan.evaluation.evaluate import VIDEO_COLUMNS, evaluate_files
from actionspan.evaluation.reader import most_found
from actionspan.evaluation.settings import EvaluationSettings
from actionspan.features.collect import MOTION
from actionspan.features.cues import REACHES
from actionspan.features.store import read_transform
from actionspan.jobs.apart import worker_pool
from actionspan.storage.writing import create_h5
from folds import Fold, Footage, hashed_folds, read_footage, write_fold
from recipes import rescale, rescaled

RESAMPLES = 2000
SCORES = ("AR@1", "AR@10", "AR@100", "AUC")
_TITLES = ("method", *READER, *SCORES, "95 % over videos", "AUC − model's")
HEAD = f"| {' | '.join(_TITLES)} |\n|---|" + "---:|" * (len(_TITLES) - 1)


@dataclass(frozen=True, kw_only=True)
class Set:
    """A set of footage."""

    videos: str = "videos"  # its folder; "" where there are features alone
    who: Callable[[str], str] = str  # the person or scene that a video shows
    says: str
    """What it can show."""


SETS = {
    "rooms": Set(says="falls and posture changes under a ceiling camera; times good to a second"),
    "hapt": Set(
        videos="",
        who=lambda name: name.partition("_")[2],
        says="posture transitions by a phone's sensors: sparse, long, well timed; no video",
    ),
    "kinect": Set(
        videos="",
        who=lambda name: name.partition("_")[0],
        says="ten actions by skeletons; few people, so easily learned by heart; no video",
    ),
    "cycles": Set(
        who=lambda name: name.partition("_")[2],
        says="every repetition of a movement: boundaries on real motion, but nearly all of a "
        "video is an instance, so not whether anything happens",
    ),
    "fights": Set(
        videos="untrimmed",
        says="EDITED: every boundary is a cut, so it ranks detectors of cuts; no evidence for "
        "uncut footage",
    ),
}


def prepare(
    name: str, data: Path, work: Path, changed: Mapping[str, Any] | None = None
) -> list[Footage]:
    """Make the features of a set by the workflow, if they are not there, and read them.

    `changed` are settings, of which video and features.encoders count, of sets with videos.
    """
    one, folder, data = SETS[name], work / name, data.resolve()
    dataset = {"annotations": str(data / name / "annotations.json")}
    config: dict[str, Any] = {"dataset": {**dataset, "videos": str(data / name / one.videos)}}
    if changed:
        config["video"] = changed["video"]
    config["features"] = {"encoders": changed["features"]["encoders"] if changed else {}}
    if not one.videos:
        info = str(data / name / "video_info.csv")
        external = {"source": "external", "external": {"folder": str(data / name / "features")}}
        config = {
            "dataset": {**dataset, "videos": None, "video_info": info},
            "features": external,
            "evaluation": {"baselines": ["random", "sliding"]},
        }
    return make_features(folder, config)


def prepare_demo(work: Path) -> list[Footage]:
    """Do the same with rendered videos."""
    return make_features(
        work / "demo",
        {"dataset": {"videos": "demo"}, "demo": {"videos": 60, "longest_seconds": 60}},
    )


def make_features(folder: Path, config: dict[str, Any]) -> list[Footage]:
    """Run the workflow in a folder as far as the features, and read them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = ["actionspan", "run", "results/features/sequences.h5", "--cores", "all"]
    subprocess.run([*command, "--configfile", "config.yaml", "--quiet"], cwd=folder, check=True)
    return read_footage(folder / "results", ("training", "validation"))


def masked(source: Path, out: Path, keep: int) -> None:
    """Write sequences.h5 with zeros in all columns but the first and the last `keep`."""
    with h5py.File(source) as given, create_h5(out, "") as file:
        for key, value in given.attrs.items():
            if key not in file.attrs:
                file.attrs[key] = value
        for key in given:
            if key != "features":
                given.copy(key, file)
        features = given["features"][:]
        features[..., 1 : features.shape[2] - keep] = 0
        file.create_dataset("features", data=features)


def views(results: Path) -> dict[str, Path]:
    """Write and return what a fold looks like to models that see less, by name."""
    sequences = results / "features/sequences.h5"
    with h5py.File(sequences) as file:
        motion = sum(key in file for key in MOTION)
    kept = {"cues only": len(REACHES) * len(read_transform(sequences).streams) + motion}
    if motion:
        kept["motion only"] = motion
    made = {}
    for name, keep in kept.items():
        made[name] = results.parent / name.replace(" ", "-")
        shutil.copytree(results / "dataset", made[name] / "dataset")
        masked(sequences, made[name] / "features/sequences.h5", keep)
    return made


def fewer(fold: Fold, count: int, seed: int) -> Fold:
    """Return a fold that trains on so many of its videos with instances."""
    order = np.random.default_rng(seed).permutation(len(fold.training))
    useful = [fold.training[place] for place in order if fold.training[place].instances]
    return replace(fold, training=useful[:count])


def make_fold(
    place: Path, fold: Fold, config: dict[str, Any], all_views: bool = True
) -> dict[str, Path]:
    """Write a fold as results of runs: of all features, and of each view of them if wanted."""
    write_fold(place, fold, "testing")
    rescale(place, config)
    results = rescaled(place, config)
    return {"": results, **(views(results) if all_views else {})}


def run(
    method: str, seed: int, folds: Sequence[dict[str, Path]], truth: Path, config: dict, out: Path
) -> dict[str, Any]:
    """Fit a method on each fold; score the proposals for all held-out videos together."""
    torch.set_num_threads(1)
    model, _, view = method.partition(", ")
    run_one = run_baseline if model in BASELINES else run_model
    places = [out / str(number) for number in range(len(folds))]
    for place, fold in zip(places, folds, strict=True):
        run_one(fold[view], config, model, seed, place)
    # join the folds
    kinds = ["proposals"] + ["events"] * (places[0] / "events.json").exists()
    for kind in kinds:
        call(
            *("evaluation", "pool", "--proposals", *(place / f"{kind}.json" for place in places)),
            *("--annotations", *(fold[""] / "dataset/annotations.json" for fold in folds)),
            *("--out-json", out / f"{kind}.json", "--out-csv", out / f"{kind}.csv"),
        )
    record, rows = evaluate_files(
        truth,
        out / "proposals.json",
        subset="testing",
        method=model,
        settings=EvaluationSettings(resamples=RESAMPLES),
    )
    reader = read(out, truth, config)
    if "events" in kinds:
        reader["ranking"] = ranking([place / "reader.json" for place in places])
    videos = {row[0]: (row[1], row[VIDEO_COLUMNS.index("AUC")]) for row in rows}
    return {**record, "reader": reader, "videos": [videos[name] for name in sorted(videos)]}


def ranking(readers: Sequence[Path]) -> float | None:
    """Return how many pairs of a right and a wrong event of one fold the chances rank rightly.

    Pairs of two folds do not count: their chances are by two models.
    """
    found, pairs = 0.0, 0.0
    for path in readers:
        record = json.loads(path.read_text())
        events = record["lists"]["events"]
        if events["ranking"] is not None:
            share = events["precision"] * (1 - events["precision"])
            own = share * (events["per_video"] * record["videos"]) ** 2
            found, pairs = found + own * events["ranking"], pairs + own
    return found / pairs if pairs else None


def difference(records: Sequence[dict], reference: Sequence[dict]) -> str:
    """Return the difference in AUC, seeds averaged, and its bootstrap interval over videos."""

    def areas(several: Sequence[dict]) -> np.ndarray:
        return np.mean([[area for _, area in one["videos"]] for one in several], axis=0)

    weights = np.array([instances for instances, _ in records[0]["videos"]], float)
    paired = areas(records) - areas(reference)
    drawn = np.random.default_rng(0).integers(len(paired), size=(RESAMPLES, len(paired)))
    means = (weights * paired)[drawn].sum(axis=1) / weights[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{np.average(paired, weights=weights):+.1f} [{low:.1f}, {high:.1f}]"


def row(name: str, records: Sequence[dict], reference: Sequence[dict] | None) -> str:
    """Return one method's line of the table, in percent."""

    def spread(values: Sequence[float | None], digits: int = 1) -> str:
        known = [value for value in values if value is not None]
        if not known:
            return "–"
        deviation = f" ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else ""
        return f"{np.mean(known):.{digits}f}{deviation}"

    columns = [[one["reader"].get(key) for one in records] for key in READER]
    cells = [spread(column, 1 if place < 6 else 2) for place, column in enumerate(columns)]
    cells += [spread([100 * one[key] for one in records]) for key in SCORES[:3]]
    low, high = np.mean([one["AUC_interval"] for one in records], axis=0)
    cells += [spread([one["AUC"] for one in records]), f"{low:.1f}–{high:.1f}"]
    cells.append(difference(records, reference) if reference else "")
    return f"| {name} | " + " | ".join(cells) + " |"


def learn(
    model: str, count: int, seed: int, folds: Sequence[Fold], truth: Path, config: dict, out: Path
) -> dict[str, Any]:
    """Fit a model on `count` videos of each fold, and score what it finds in the held-out ones."""
    made = [
        make_fold(out / f"fold-{number}", fewer(fold, count, seed), config, all_views=False)
        for number, fold in enumerate(folds)
    ]
    return run(model, seed, made, truth, config, out)


def learning_curve(
    name: str,
    folds: Sequence[Fold],
    truth: Path,
    config: dict[str, Any],
    arguments: argparse.Namespace,
    pool: Executor,
) -> None:
    """Print what each number of training videos gives."""
    model, place = arguments.models[0], truth.parent
    jobs = {
        count: [
            pool.submit(learn, model, count, seed, folds, truth, config, place / f"{count}/{seed}")
            for seed in arguments.seeds
        ]
        for count in arguments.learn
    }
    print(f"\n**{name}**, {model} by the number of training videos\n\n{HEAD}", flush=True)
    for count, running in jobs.items():
        print(row(str(count), [job.result() for job in running], None), flush=True)


def size(footage: Sequence[Footage], folds: Sequence[Fold], who: Callable[[str], str]) -> str:
    """Return on how much the figures of a set rest, and the most that one of them can be."""
    minutes = sum(one.video.duration_seconds for one in footage) / 60
    people = len({who(one.video.video_id) for one in footage})
    counts = [len(one.instances) for one in footage]
    learned = [len(fold.training) for fold in folds]
    return (
        f"{len(footage)} videos of {people}, {minutes:.0f} minutes, {sum(counts)} instances; "
        f"{len(folds)} folds, each trained on {min(learned)} to {max(learned)} videos; "
        f"found in the first five: of at most {100 * most_found(counts, 5):.1f} %"
    )


def run_set(name: str, arguments: argparse.Namespace, pool: Executor) -> None:
    """Print the table of one set."""
    changes = ["evaluation.subset=testing", *arguments.set]
    config = changed_config([], changes)
    footage = prepare(name, arguments.data, arguments.work, config)
    place = arguments.work / name / "folds"
    shutil.rmtree(place, ignore_errors=True)
    people = {SETS[name].who(one.video.video_id) for one in footage}
    folds = hashed_folds(footage, arguments.folds or len(people), SETS[name].who)
    truth = place / "annotations.json"
    place.mkdir(parents=True)
    write_annotations(truth, [one.annotation("testing") for one in footage])
    if arguments.learn:
        learning_curve(name, folds, truth, config, arguments, pool)
        return
    making = [
        pool.submit(make_fold, place / str(number), fold, config, not arguments.alone)
        for number, fold in enumerate(folds)
    ]
    made = [job.result() for job in making]
    methods = [each for each in BASELINES if SETS[name].videos or each in BASELINES[:3]]
    methods *= not arguments.alone
    views_of = [f"{arguments.models[0]}, {view}" for view in made[0] if view]
    methods += [*arguments.models, *views_of]
    jobs = {
        method: [
            pool.submit(run, method, seed, made, truth, config, place / method / str(seed))
            for seed in (arguments.seeds[:1] if method in BASELINES[1:] else arguments.seeds)
        ]
        for method in methods
    }
    print(f"\n**{name}** ({size(footage, folds, SETS[name].who)}): {SETS[name].says}\n")
    print(HEAD, flush=True)
    default = [job.result() for job in jobs[arguments.models[0]]]
    if "tiles" in jobs:
        listed = round(np.mean([one["reader"][READER[0]] for one in default]))
        given = (truth, changed_config([], [*changes, f"evaluation.baseline.tiles={listed}"]))
        place = place / "tiles-as-many"
        jobs[f"tiles, {listed}"] = [pool.submit(run, "tiles", 1, made, *given, place)]
    for method, running in jobs.items():
        records = [job.result() for job in running]
        print(row(method, records, None if records[0] is default[0] else default), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("build/uncut"), help="to write")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--models", nargs="+", default=["span", "origin"])
    parser.add_argument("--folds", type=int, default=5, help="0: one a person or scene")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--learn", nargs="+", type=int, default=[], metavar="VIDEOS")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="of the settings")
    parser.add_argument("--alone", action="store_true", help="no baselines, no views of less")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    pool = worker_pool(arguments.processes)
    try:
        for name in arguments.sets:
            run_set(name, arguments, pool)
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
