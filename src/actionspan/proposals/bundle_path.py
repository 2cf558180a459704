"""Where a complete trained model lies; found before torch is imported."""

from importlib import resources
from pathlib import Path

from actionspan.errors import InputError

DEMO = "demo"  # the model that comes with the package (docs/demo_model.md)
_CURE = (
    "give the model.pt of a run, such as results/proposals/span/model.pt, or "
    f"{DEMO}, the model that comes with actionspan"
)


def bundle_path(path: Path) -> Path:
    """Return the file of a model: `path`, or `model.pt` in it if it is a folder.

    `demo` is the model that comes with the package, unless there is a file or folder of that name.

    Raises:
        InputError: There is no such file.
    """
    if path == Path(DEMO) and not path.exists():
        return Path(str(resources.files("actionspan"))) / "propose" / "demo.pt"
    file = path / "model.pt" if path.is_dir() else path
    if not file.is_file():
        missing = "no model.pt in this folder" if path.is_dir() else "no such file"
        raise InputError(f"{path}: {missing}; {_CURE}")
    return file
