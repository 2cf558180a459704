"""Where a complete trained model lies; found before torch is imported."""

from pathlib import Path

from actionspan.errors import InputError

SHIPPED = {"demo": Path(__file__).with_name("demo_model.pt")}  # `make model` makes it
_CURE = (
    "`make demo` makes results/proposals/span, docs/tutorial.md says how to train on your videos, "
    "and the model `demo` comes with the package"
)


def bundle_path(path: Path) -> Path:
    """Return the file of a model: `path`, `model.pt` in it, or the one of that name in the package.

    Raises:
        InputError: There is no such file.
    """
    if str(path) in SHIPPED and not path.exists():
        return SHIPPED[str(path)]
    file = path / "model.pt" if path.is_dir() else path
    if not file.is_file():
        missing = "no model.pt in this folder" if path.is_dir() else "no such file"
        raise InputError(f"{path}: {missing}; {_CURE}")
    return file
