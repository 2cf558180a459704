"""The sections of a model's settings and where its file is; quick to import."""

from importlib import resources
from pathlib import Path

from actionspan.errors import InputError
from actionspan.proposals import settings as knobs
from actionspan.settings import Checked

SECTIONS: dict[str, type[Checked]] = {
    "candidates": knobs.CandidateSettings,
    "ranking": knobs.RankingSettings,
    "suppression": knobs.SuppressionSettings,
    "selection": knobs.SelectionSettings,
    "events": knobs.EventSettings,
    "online": knobs.OnlineSettings,
}


DEMO = "demo"  # the model that comes with the package (docs/demo_model.md)
UNTRAINED = "none"  # motion is grouped, without a model


def included_model() -> Path:
    """Return the file of the model that comes with the package."""
    return Path(str(resources.files("actionspan"))) / "propose" / "demo.safetensors"


def bundle_path(path: Path) -> Path:
    """Return the file of a model: `path`, or `model.safetensors` in it if it is a folder.

    `demo` is the model that comes with the package, unless there is a file or folder of that name.

    Raises:
        InputError: There is no such file.
    """
    if path == Path(DEMO) and not path.exists():
        return included_model()
    file = path / "model.safetensors" if path.is_dir() else path
    if path.is_dir() and not file.exists() and (path / "model.pt").exists():
        file = path / "model.pt"  # which its reader refuses with the command that converts it
    if not file.is_file():
        missing = "no model.safetensors in this folder" if path.is_dir() else "no such file"
        cure = "give that of a run, such as results/proposals/span/model.safetensors"
        demo = f"{DEMO}, the model that comes with actionspan"
        raise InputError(f"{path}: {missing}; {cure}, or {demo}")
    return file
