"""A classifier of one stream: an image network with a new last layer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch
from actionspan.networks.architecture import architecture
from actionspan.networks.weights import fill, load_state, widen
from actionspan.recognition.clip_store import Stream
from actionspan.recognition.settings import RecognitionSettings
from actionspan.running.determinism import seed_torch

FORMAT = "actionspan recognition 1"


def build_classifier(
    settings: RecognitionSettings, channels: int, classes: int, weights: Path | None
) -> nn.Module:
    """Return a network with its weights to start from and a last layer of random ones.

    Weights of RGB start a network of flow: its first convolution gets the mean of theirs over the
    three colours for each plane (paper 003, section V).

    Args:
        settings: Which network, and whether its weights are public ones.
        channels: Input planes, 3 or 2L.
        classes: Outputs.
        weights: A checkpoint, or a name of torchvision's; None: those that come as a package.

    Raises:
        InputError: There are no such weights, or there are but none are wanted.
    """
    if weights is not None and not settings.pretrained:
        raise InputError(f"{weights}: not used with pretrained false; leave out one of them")
    seed_torch(settings.seed)
    known = architecture(settings.network)
    network = known.build(channels, classes)
    if not settings.pretrained:
        return network
    state = load_state(settings.network, weights, known.last)
    new = {name: value for name, value in network.state_dict().items() if known.last in name}
    return _filled(network, {**state, **new}, known.first, str(weights or settings.network))


def carry_over(
    settings: RecognitionSettings, channels: int, classes: Sequence[str], rgb: Path
) -> nn.Module:
    """Return a network of flow that starts from the trained one of RGB, last layer and all.

    Args:
        settings: Of the flow network.
        channels: Its input planes.
        classes: The names of its outputs.
        rgb: model.pt of the RGB network.

    Raises:
        InputError: It is no such model, or of another network or other classes.
    """
    content = read_classifier(rgb)
    if content["stream"] != "rgb":
        raise InputError(f"{rgb}: a network of {content['stream']}; flow starts from one of rgb")
    if content["network"] != settings.network:
        raise InputError(
            f"{rgb}: a {content['network']}, but the flow network is a {settings.network}; train "
            "both alike"
        )
    if content["classes"] != list(classes):
        raise InputError(
            f"{rgb}: its classes are {', '.join(content['classes'])}, but those of the clips are "
            f"{', '.join(classes)}; train both on the same clips"
        )
    known = architecture(settings.network)
    return _filled(
        known.build(channels, len(classes)), dict(content["state_dict"]), known.first, str(rgb)
    )


def _filled(network: nn.Module, state: dict[str, Tensor], first: str, origin: str) -> nn.Module:
    kernel = f"{first}.weight"
    if kernel not in state:
        raise InputError(f"{origin}: not weights of this network: lacks {kernel}")
    channels = network.state_dict()[kernel].shape[1]
    if state[kernel].shape[1] == 3 != channels:
        state[kernel] = widen(state[kernel], channels)
    fill(network, state, origin)
    return network


def classifier_content(
    settings: RecognitionSettings,
    stream: Stream,
    channels: int,
    classes: list[str],
    weights: Mapping[str, Tensor],
    training_digest: str,
) -> dict[str, Any]:
    """Return what model.pt holds; the features stage reads its `state_dict`."""
    return {
        "format": FORMAT,
        "actionspan_version": __version__,
        "network": settings.network,
        "stream": stream,
        "channels": channels,
        "classes": classes,
        "input_size": settings.input_size,
        "state_dict": dict(weights),
        "digest": training_digest,
    }


def read_classifier(path: Path) -> dict[str, Any]:
    """Return what a model.pt of this stage holds.

    Raises:
        InputError: It is missing or another kind of file.
    """
    content = read_torch(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a model of 'actionspan recognition train' ({FORMAT!r})")
    return content
