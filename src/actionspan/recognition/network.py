"""A classifier of one stream: an image network with a new last layer."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch
from actionspan.networks.architecture import architecture
from actionspan.networks.weights import fill, load_state, widen
from actionspan.recognition.settings import RecognitionSettings
from actionspan.running.determinism import seed_torch

FORMAT = "actionspan recognition 1"  # of model.pt, whose state_dict the features stage reads


def build_classifier(
    settings: RecognitionSettings, channels: int, classes: int, weights: Path | None
) -> nn.Module:
    """Return a network with its initial weights and a last layer of random ones.

    Weights of RGB may start a flow network: its first convolution gets the mean of theirs over the
    three colours for each plane (paper 003, section V).

    Args:
        settings: Which network, and whether its weights are public ones.
        channels: Input planes, 3 or 2L.
        classes: How many outputs.
        weights: A checkpoint, or a name of torchvision's; None: those that come as a package.

    Raises:
        InputError: There are no such weights, or there are but none are wanted.
    """
    if weights is not None and not settings.pretrained:
        raise InputError(f"{weights}: not used with pretrained false; leave out one of them")
    seed_torch(settings.seed)
    design = architecture(settings.network)
    network = design.build(channels, classes)
    if not settings.pretrained:
        return network
    state = load_state(settings.network, weights, design.last)
    new = {name: value for name, value in network.state_dict().items() if design.last in name}
    return _filled(network, {**state, **new}, design.first, str(weights or settings.network))


def carry_over(
    settings: RecognitionSettings, channels: int, classes: Sequence[str], rgb: Path
) -> nn.Module:
    """Return a flow network that starts from `rgb`, the model.pt of the RGB network.

    Its last layer is carried over too; both streams have the same `classes`.

    Raises:
        InputError: That is no such model, or has a different network or different classes.
    """
    content = read_torch(rgb)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{rgb}: not a model of 'actionspan recognition train' ({FORMAT!r})")
    if content["stream"] != "rgb":
        raise InputError(f"{rgb}: a network of {content['stream']}, but flow starts from rgb")
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
    design = architecture(settings.network)
    network = design.build(channels, len(classes))
    return _filled(network, dict(content["state_dict"]), design.first, str(rgb))


def _filled(network: nn.Module, state: dict[str, Tensor], first: str, origin: str) -> nn.Module:
    kernel = f"{first}.weight"
    if kernel not in state:
        raise InputError(f"{origin}: not weights of this network: lacks {kernel}")
    channels = network.state_dict()[kernel].shape[1]
    if state[kernel].shape[1] == 3 != channels:
        state[kernel] = widen(state[kernel], channels)
    fill(network, state, origin)
    return network
