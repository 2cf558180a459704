"""One file with all that `actionspan propose` needs."""

import argparse
from importlib import resources
from pathlib import Path

from actionspan.errors import InputError
from actionspan.proposals import settings as knobs
from actionspan.settings import Checked, add_settings, from_arguments

SECTIONS: dict[str, type[Checked]] = {
    "candidates": knobs.CandidateSettings,
    "ranking": knobs.RankingSettings,
    "suppression": knobs.SuppressionSettings,
    "selection": knobs.SelectionSettings,
    "events": knobs.EventSettings,
    "online": knobs.OnlineSettings,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--features", type=Path, required=True, help="what the network learned from"
    )
    parser.add_argument("--temporal", type=Path, required=True, help="the network's model.pt")
    scorer = parser.add_mutually_exclusive_group(required=True)
    scorer.add_argument("--evaluator", type=Path, help="pem.pt")
    scorer.add_argument("--density", type=Path, help="density.pt (models span and stream)")
    parser.add_argument("--classifier", type=Path, help="classifier.pt; without it, no labels")
    parser.add_argument(
        "--classifier-features", type=Path, help="features.h5 (default: those of the network)"
    )
    parser.add_argument("--out", type=Path, required=True, help="model.pt to write")
    ranks = "give events ranks and no chance: for other footage than it learned from"
    parser.add_argument("--ranks", action="store_true", help=ranks)
    for settings in SECTIONS.values():
        add_settings(parser, settings)


def run(arguments: argparse.Namespace) -> None:
    """Collect a trained model into one file."""
    from actionspan.proposals.bundle_writing import write_bundle

    write_bundle(
        arguments.features,
        arguments.temporal,
        arguments.evaluator or arguments.density,
        arguments.out,
        classifier=arguments.classifier,
        classified=arguments.classifier_features,
        ranks=arguments.ranks,
        **{name: from_arguments(kind, arguments) for name, kind in SECTIONS.items()},
    )


DEMO = "demo"  # the model that comes with the package (docs/demo_model.md)


def included_model() -> Path:
    """Return the file of the model that comes with the package."""
    return Path(str(resources.files("actionspan"))) / "propose" / "demo.pt"


def bundle_path(path: Path) -> Path:
    """Return the file of a model: `path`, or `model.pt` in it if it is a folder.

    `demo` is the model that comes with the package, unless there is a file or folder of that name.

    Raises:
        InputError: There is no such file.
    """
    if path == Path(DEMO) and not path.exists():
        return included_model()
    file = path / "model.pt" if path.is_dir() else path
    if not file.is_file():
        missing = "no model.pt in this folder" if path.is_dir() else "no such file"
        cure = "give the model.pt of a run, such as results/proposals/span/model.pt"
        demo = f"{DEMO}, the model that comes with actionspan"
        raise InputError(f"{path}: {missing}; {cure}, or {demo}")
    return file
