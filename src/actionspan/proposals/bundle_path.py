"""Where a complete trained model lies; found before torch is imported."""

from pathlib import Path

from actionspan.errors import InputError

_CURE = (
    "`make demo` makes results/proposals/span, docs/tutorial.md says how to train on your videos"
)


def bundle_path(path: Path) -> Path:
    """Return the file of a model: `path`, or `model.pt` in it if it is a folder.

    Raises:
        InputError: There is no such file.
    """
    file = path / "model.pt" if path.is_dir() else path
    if not file.is_file():
        missing = "no model.pt in this folder" if path.is_dir() else "no such file"
        raise InputError(f"{path}: {missing}; {_CURE}")
    return file
