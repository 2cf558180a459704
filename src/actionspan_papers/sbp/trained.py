"""The file of trained transformers: `table3` writes it, figures 1 and 4 read it."""

from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch, write_torch
from actionspan.settings import from_mapping
from actionspan_papers.sbp.transformer_settings import TransformerSettings
from actionspan_papers.sbp.transformer_training import Training, make_network
from actionspan_papers.sbp.video_transformer import VideoTransformer


class Trained(NamedTuple):
    """Networks by the way they were trained, one for each seed, and what they were made with."""

    settings: TransformerSettings
    networks: dict[Training, list[VideoTransformer]]


def write_trained(path: Path, trained: Trained) -> None:
    """Write settings and weights."""
    weights = {
        way: [network.state_dict() for network in networks]
        for way, networks in trained.networks.items()
    }
    write_torch(path, {"settings": asdict(trained.settings), "weights": weights})


def read_trained(path: Path) -> Trained:
    """Read what `write_trained` wrote.

    Raises:
        InputError: The file is missing, or not one of these.
    """
    content = read_torch(path)
    try:
        settings = from_mapping(TransformerSettings, content["settings"])
        networks = {
            way: [_network(settings, weights) for weights in seeds]
            for way, seeds in content["weights"].items()
        }
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise InputError(f"{path}: not the networks of `papers sbp table3`") from None
    return Trained(settings, networks)


def _network(settings: TransformerSettings, weights: dict[str, object]) -> VideoTransformer:
    network = make_network(settings)
    network.load_state_dict(weights)
    return network.eval()
