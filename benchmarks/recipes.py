r"""Cross-validated AUC of recipes (settings changed) on training videos alone.

    python benchmarks/recipes.py --results rooms/results fights/results --by-footage fights \
        --folds 3 fights=5

The training videos of each finished run are divided into folds (folds.py); transforms, network
and evaluator are fitted on the others of a fold, and the held-out ones are scored. The runs'
validation videos are never read, so that numbers on them stay clean of the choice of a recipe.
Nothing is chosen by the held-out videos either, so network and evaluator keep their last epoch;
`--choose-epochs` lets the held-out videos choose it, as the validation subset does in a run.

`--by-footage SET` is for sets spliced from clips that occur in several videos, named as the folder
that holds `results`: it divides footage, so that each side has the rest of every video.
`--spliced FILE.npz` adds a set, `spliced`, of feature sequences spliced from trimmed clips.

Prints a Markdown table a set as rows come: means over folds and seeds, and the difference to the
first recipe with the same model, paired by fold and seed, ± its standard error (folds share
training videos, so it is rather too small). The last table has the differences' mean over sets.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from accuracy import READER, ROOT, call, changed_config, flags, run_model
from actionspan.errors import InputError
from actionspan.jobs.apart import worker_pool
from actionspan.storage.writing import digest
from folds import (
    Fold,
    Footage,
    footage_folds,
    hashed_folds,
    read_footage,
    spliced_folds,
    write_fold,
)

STAGES = (
    "features.rescale.",
    "features.sequences.",
    "features.causal.",
    "temporal.training.",
    "proposals.",
)
SCORES = ("AUC", "AR@1", "AR@10", "AR@100")
COLUMNS = SCORES + READER  # the reader's are empty for models without events
Recipe = Mapping[str, Any]


def read_recipes(path: Path, only: list[str]) -> dict[str, Recipe]:
    """Return the recipes to run by name; the first one is always among them.

    Raises:
        SystemExit: A recipe is unknown or has a key that it cannot have.
    """
    recipes: dict[str, Recipe] = yaml.safe_load(path.read_text())
    if unknown := set(only) - set(recipes):
        raise SystemExit(f"{path}: no recipe {', '.join(sorted(unknown))}")
    first = next(iter(recipes))
    chosen = {
        name: recipe
        for name, recipe in recipes.items()
        if not only or name in only or name == first
    }
    config = changed_config([], [])
    for name, recipe in chosen.items():
        for key in recipe:
            if not key.startswith(STAGES) or not _has(config, key):
                raise SystemExit(
                    f"{path}: recipe {name}: {key} is not a key of the configuration below "
                    f"{', '.join(STAGES)}"
                )
    return chosen


def _has(config: Any, key: str) -> bool:
    for word in key.split("."):
        if not isinstance(config, dict) or word not in config:
            return False
        config = config[word]
    return not isinstance(config, dict)


def recipe_config(recipe: Recipe, subset: str) -> dict[str, Any]:
    """Return the defaults with a recipe's values, the subset to score, and few resamples."""
    settings = {
        "evaluation.subset": subset,
        "evaluation.protocol.resamples": 100,  # the interval isn't used
        **recipe,
    }
    return changed_config([], [f"{key}={json.dumps(value)}" for key, value in settings.items()])


def rescaled(fold: Path, config: dict[str, Any]) -> Path:
    """Return the folder of a fold's features rescaled as configured."""
    return fold / digest(*(config["features"][key] for key in ("rescale", "sequences", "causal")))


def rescale(fold: Path, config: dict[str, Any]) -> None:
    """Make the features of a fold, and the files beside them, where `run_model` looks for them."""
    torch.set_num_threads(1)
    results = rescaled(fold, config)
    (results / "dataset").mkdir(parents=True)
    shutil.copy(fold / "annotations.json", results / "dataset")
    call(
        *("features", "rescale", "--shards", fold / "shard.h5", "--videos", fold / "videos.tsv"),
        *("--annotations", fold / "annotations.json", "--on-bad-input", "fail"),
        *("--out", results / "features/features.h5"),
        *flags(config["features"]["rescale"]),
    )
    call(
        *("features", "sequences", "--shards", fold / "shard.h5", "--videos", fold / "videos.tsv"),
        *("--annotations", fold / "annotations.json", "--on-bad-input", "fail"),
        *("--out", results / "features/sequences.h5"),
        *flags(config["features"]["sequences"]),
    )
    call(
        *("features", "causal", "--shards", fold / "shard.h5", "--videos", fold / "videos.tsv"),
        *("--annotations", fold / "annotations.json", "--on-bad-input", "fail"),
        *("--out", results / "features/causal.h5"),
        *flags({**config["features"]["sequences"], **config["features"]["causal"]}),
    )


def run(fold: Path, config: dict[str, Any], model: str, seed: int) -> list[float]:
    """Train and score one model on one fold; return the values of `COLUMNS` in percent."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=fold) as out:
        record = run_model(rescaled(fold, config), config, model, seed, Path(out))
    scores = [record["AUC"], *(100 * record[column] for column in SCORES[1:])]
    reader = (record["reader"].get(column) for column in READER)
    return scores + [np.nan if value is None else value for value in reader]


def held_out_subset(arguments: argparse.Namespace) -> str:
    """Return the subset as which the held-out videos go."""
    return "validation" if arguments.choose_epochs else "testing"


def set_name(results: Path) -> str:
    """Return the name of a run's set: of its folder, or of the one above a folder `results`."""
    whole = results.resolve()
    return whole.parent.name if whole.name == "results" else whole.name


def fold_count(text: str) -> tuple[str, int]:
    """Return the set and its number of folds of `SET=N`; of `N`, which is for all, the set ''."""
    name, _, number = text.rpartition("=")
    return name, int(number)


def make_sets(arguments: argparse.Namespace) -> dict[str, list[Fold]]:
    """Return the folds of each set.

    Raises:
        SystemExit: Sets have the same name, or an option names one that there isn't.
    """
    names = [set_name(results) for results in arguments.results]
    names += ["spliced"] if arguments.spliced else []
    if len(set(names)) < len(names):
        raise SystemExit(f"sets of the same name: {', '.join(names)}")
    numbers = {"": 3, **dict(arguments.folds)}
    for option, given in (("--by-footage", arguments.by_footage), ("--folds", numbers)):
        if unknown := set(given) - {*names, ""}:
            raise SystemExit(f"{option}: {' '.join(unknown)} is no set of {', '.join(names)}")
    sets = {}
    for results in arguments.results:
        name = set_name(results)
        divide = footage_folds if name in arguments.by_footage else hashed_folds
        sets[name] = divide(read_footage(results), numbers.get(name, numbers[""]))
    if arguments.spliced:
        number = numbers.get("spliced", numbers[""])
        sets["spliced"] = spliced_folds(arguments.spliced, number)
    return sets


def _snippets(videos: list[Footage]) -> int:
    return sum(len(one.times) for one in videos)


def difference(values: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return the mean of paired differences, and its standard error (NaN of a single pair)."""
    paired = values - reference
    error = paired.std(ddof=1) / np.sqrt(len(paired)) if len(paired) > 1 else np.nan
    return float(paired.mean()), float(error)


def cell(mean: float, error: float) -> str:
    """Return a difference for the table."""
    return f"{mean:+.1f}" + ("" if np.isnan(error) else f" ± {error:.1f}")


def run_set(
    folder: Path,
    name: str,
    folds: list[Fold],
    configs: dict[str, dict[str, Any]],
    arguments: argparse.Namespace,
    pool: Executor,
) -> dict[tuple[str, str], tuple[float, float]]:
    """Run all recipes on one set; print its table; return the differences in AUC."""
    sizes = [
        f"{len(fold.training)}+{len(fold.held_out)} ({_snippets(fold.training)} snippets)"
        for fold in folds
    ]
    print(f"\n**{name}**: training + held-out videos of the folds: {', '.join(sizes)}\n")
    print(f"| recipe | model | AUC | difference | {' | '.join(COLUMNS[1:])} |")
    print("|---|---|---:|---:|" + "---:|" * len(COLUMNS[1:]), flush=True)
    places = [folder / f"{name}-{number}" for number in range(len(folds))]
    for place, fold in zip(places, folds, strict=True):
        write_fold(place, fold, held_out_subset(arguments))
    wanted = {
        rescaled(place, config): (place, config) for place in places for config in configs.values()
    }
    for job in [pool.submit(rescale, *task) for task in wanted.values()]:
        job.result()
    jobs = {
        (recipe, model): [
            pool.submit(run, place, config, model, seed)
            for place in places
            for seed in arguments.seeds
        ]
        for recipe, config in configs.items()
        for model in arguments.models
    }
    first = next(iter(configs))
    values: dict[tuple[str, str], np.ndarray] = {}
    differences = {}
    for (recipe, model), running in jobs.items():
        values[recipe, model] = np.array(
            [job.result() for job in running]
        )  # (folds·seeds, columns)
        known = [column[~np.isnan(column)] for column in values[recipe, model].T]
        means = [f"{column.mean():.3g}" if len(column) else "–" for column in known]
        cells = [means[0], "", *means[1:]]
        if recipe != first:
            compared = difference(values[recipe, model][:, 0], values[first, model][:, 0])
            differences[recipe, model] = compared
            cells[1] = cell(*compared)
        print(f"| {recipe} | {model} | {' | '.join(cells)} |", flush=True)
    for place in places:
        shutil.rmtree(place)
    return differences


def summary(differences: dict[str, dict[tuple[str, str], tuple[float, float]]]) -> None:
    """Print the differences in AUC on each set and their mean, each set counted alike."""
    print(f"\n**Difference in AUC**\n\n| recipe | model | {' | '.join(differences)} | mean |")
    print("|---|---|" + "---:|" * (len(differences) + 1))
    for key in next(iter(differences.values())):
        found = np.array([one[key] for one in differences.values()])  # (sets, 2)
        mean, error = found[:, 0].mean(), np.sqrt((found[:, 1] ** 2).sum()) / len(found)
        cells = [*(cell(*one) for one in found), cell(mean, error)]
        print(f"| {' | '.join(key)} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", nargs="*", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--by-footage", nargs="*", default=[], metavar="SET")
    parser.add_argument("--spliced", type=Path, metavar="FILE.npz")
    parser.add_argument("--recipes", type=Path, default=ROOT / "benchmarks/recipes.yaml")
    parser.add_argument("--only", nargs="*", default=[], metavar="RECIPE")
    parser.add_argument("--models", nargs="+", default=["origin", "mtn"])
    parser.add_argument("--folds", nargs="+", type=fold_count, default=[], metavar="[SET=]N")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--choose-epochs", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    recipes = read_recipes(arguments.recipes, arguments.only)
    configs = {
        name: recipe_config(recipe, held_out_subset(arguments)) for name, recipe in recipes.items()
    }
    try:
        sets = make_sets(arguments)
    except (InputError, ValueError) as error:
        raise SystemExit(str(error)) from None
    if not sets:
        raise SystemExit("give --results or --spliced")
    pool = worker_pool(arguments.processes)
    try:
        with tempfile.TemporaryDirectory() as folder:
            differences = {
                name: run_set(Path(folder), name, folds, configs, arguments, pool)
                for name, folds in sets.items()
            }
    finally:
        pool.shutdown(cancel_futures=True)
    if len(recipes) > 1:
        summary(differences)


if __name__ == "__main__":
    main()
