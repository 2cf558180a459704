"""The sections of a model's settings and where its file is; quick to import."""

from contextlib import suppress
from importlib import resources
from pathlib import Path

from actionspan.errors import InputError
from actionspan.lazy import needed
from actionspan.networks.names import FROM_TRANSFORMERS as FROM_HUB
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


_FILE = "model.safetensors"
DEMO = "demo"  # the model that comes with the package (docs/demo_model.md)
UNTRAINED = "none"  # motion is grouped, without a model


def included_model() -> Path:
    """Return the file of the model that comes with the package."""
    return Path(str(resources.files("actionspan"))) / "propose" / "demo.safetensors"


def bundle_path(path: Path) -> Path:
    """Return the file of a model: `path`, or `model.safetensors` in it if it is a folder.

    `demo` is the model that comes with the package, unless there is a file or folder of that name.
    `hf:ORG/NAME`, and `hf:ORG/NAME@REVISION`, is one on Hugging Face's hub, which is fetched once.

    Raises:
        InputError: The file does not exist, or cannot be fetched.
    """
    if path.as_posix().startswith(FROM_HUB) and not path.exists():
        return _from_hub(path.as_posix())
    if path == Path(DEMO) and not path.exists():
        return included_model()
    file = path / _FILE if path.is_dir() else path
    if path.is_dir() and not file.exists() and (path / "model.pt").exists():
        file = path / "model.pt"  # which its reader refuses with the command that converts it
    if not file.is_file():
        missing = "no model.safetensors in this folder" if path.is_dir() else "no such file"
        cure = "give a run's file, such as results/proposals/span/model.safetensors"
        demo = f"{DEMO}, the model that comes with actionspan"
        raise InputError(f"{path}: {missing}; {cure}, or {demo}")
    return file


def _from_hub(name: str) -> Path:
    """Return the file of a model of the hub: the one on this machine, else it is fetched."""
    fetch = needed("huggingface_hub", "hub").snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError, RevisionNotFoundError

    from actionspan.networks.hub_source import input_errors

    repository, _, revision = name.removeprefix(FROM_HUB).partition("@")
    wanted = {"revision": revision or None, "allow_patterns": [_FILE, "learned.json"]}
    with input_errors(name, repository):
        with suppress(LocalEntryNotFoundError):
            file = Path(fetch(repository, local_files_only=True, **wanted)) / _FILE
            if file.is_file():
                return file
        try:
            file = Path(fetch(repository, **wanted)) / _FILE
        except RevisionNotFoundError:
            raise InputError(f"{name}: {repository} has no revision {revision}") from None
    if not file.is_file():
        raise InputError(f"{name}: no {_FILE} in it, and nothing else is loaded")
    return file
