"""Convert a model file of an earlier version (model.pt, pem.pt, density.pt, classifier.pt)."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("model", type=Path, metavar="OLD", help="file to convert: a run of yours")
    parser.add_argument("out", type=Path, metavar="NEW", help="file to write, NAME.safetensors")


def run(arguments: argparse.Namespace) -> None:
    """Write the content of a torch.save file as a model file."""
    from actionspan.storage.model_files import write_model
    from actionspan.storage.torch_files import read_torch

    write_model(arguments.out, read_torch(arguments.model))
