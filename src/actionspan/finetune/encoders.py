"""The encoders that are tuned: networks of the streams side by side, their norms folded."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.features.encoders import build_network
from actionspan.features.extraction import flow_weights
from actionspan.features.hub_encoders import hub_network
from actionspan.features.settings import EncoderSettings
from actionspan.finetune.settings import Stream
from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.division import stages
from actionspan.networks.hub import encoder_digest, find_source
from actionspan.networks.hub_tuning import levels_of, save_tuned, unfreeze
from actionspan.networks.names import is_hub
from actionspan.networks.weights import describe, unfolded_state

FORMAT = "actionspan finetune 1"  # of model.safetensors; the features stage reads its state_dict


class _StreamEncoder(nn.Module):
    """Images of a stream, uint8 (n, size, size, C), to pooled features (n, F)."""

    mean: Tensor
    std: Tensor

    def __init__(
        self, network: nn.Module, features: int, mean: Tensor, std: Tensor, *, bgr: bool = False
    ) -> None:
        super().__init__()
        self.network, self.features, self.bgr = network, features, bgr
        # as buffers, unlike in `Inputs`, they move with the module
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std, persistent=False)

    def train(self, mode: bool = True) -> "_StreamEncoder":
        """Stay as in evaluation: norms keep their statistics, and nothing is dropped."""
        return super().train(False)

    def forward(self, pictures: Tensor) -> Tensor:
        """Encode images as the features stage does."""
        if self.bgr:
            pictures = pictures.flip(-1)
        images = (pictures.to(self.mean.device).float() - self.mean) / self.std
        vectors: Tensor = self.network(images.movedim(-1, 1))
        return vectors


class StreamEncoders(nn.Module):
    """The encoders of several streams: one input for each, their features side by side."""

    def __init__(self, encoders: Mapping[Stream, _StreamEncoder]) -> None:
        super().__init__()
        self.streams = tuple(encoders)
        self.encoders = nn.ModuleDict({str(stream): each for stream, each in encoders.items()})

    @property
    def features(self) -> dict[Stream, int]:
        """The length of each stream's vectors."""
        return {stream: int(self.of(stream).features) for stream in self.streams}

    def of(self, stream: Stream) -> _StreamEncoder:
        """Return the encoder of a stream."""
        encoder = self.encoders[stream]
        assert isinstance(encoder, _StreamEncoder)
        return encoder

    def forward(self, *pictures: Tensor) -> Tensor:
        """Encode n images of each stream, (n, size, size, C) each, as (n, F)."""
        parts = [self.of(each)(images) for each, images in zip(self.streams, pictures, strict=True)]
        return torch.cat(parts, dim=1)


def build_encoders(
    streams: tuple[Stream, ...],
    settings: EncoderSettings,
    planes: int,
    frozen_stages: int,
    device: torch.device,
    side: int = 224,
) -> StreamEncoders:
    """Return the encoders with the weights that they start from; norms are folded.

    Folding halves the bytes that some networks save for backward, with the same gradient, and
    leaves no running mean that a batch of few snippets could move. The first `frozen_stages` stay
    as they are; `planes` of flow are 2L. Networks of timm and transformers are tried with squares
    of `side` pixels.

    Raises:
        InputError: The weights do not fit, or there are fewer stages than are frozen.
    """
    if "flow" in streams and settings.flow_encoder in ("flow_histogram", "none"):
        raise InputError(
            f"finetune.streams: flow: features.encoders.flow_encoder is {settings.flow_encoder}, "
            "which nothing can tune; leave flow out, or name a network"
        )
    built: dict[Stream, _StreamEncoder] = {}
    for stream in streams:
        # 1. the network, its stages and its levels
        name, weights = _start(settings, stream)
        channels = 3 if stream == "rgb" else planes
        bgr = False
        parts: Sequence[nn.Module]
        if is_hub(name):
            found = hub_network(settings)
            network, features = found.network.to(device), found.features
            parts = unfreeze(network, name, side)
            mean, std = levels_of(found.inputs, name)
        else:
            network, features = build_network(name, weights, channels, "pooled")
            network.requires_grad_(True)
            parts = stages(network)
            inputs = Inputs(architecture(name), channels, device, settings.flow_gain)
            mean, std, bgr = inputs.mean, inputs.std, inputs.bgr
        # 2. first stages stay as they are
        if frozen_stages >= len(parts):
            raise InputError(
                f"finetune.frozen_stages is {frozen_stages}, but {name} has {len(parts)} stages, "
                f"one of which must learn; it must be at most {len(parts) - 1}"
            )
        for part in parts[:frozen_stages]:
            part.requires_grad_(False)
        network = network.to(device=device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        built[stream] = _StreamEncoder(network, features, mean, std, bgr=bgr).to(device)
    return StreamEncoders(built)


def encoder_content(
    encoders: StreamEncoders,
    stream: Stream,
    settings: EncoderSettings,
    state: Mapping[str, Tensor],
    input_size: int,
    digest: str,
) -> dict[str, Any]:
    """Return the content of {stream}/model.safetensors: weights under public names, unfolded.

    `state` is a state_dict of `encoders`. The file is a checkpoint that
    `features.encoders.{stream}_weights` takes, but of networks of timm and transformers: theirs is
    the folder next to it, `write_encoder`.
    """
    name, _ = _start(settings, stream)
    channels = len(encoders.of(stream).mean)
    state = part_of(state, f"encoders.{stream}.network.")
    if not is_hub(name):
        with torch.device("meta"):
            unfolded = architecture(name).build(channels, 1)
        state = unfolded_state(state, unfolded)
    return {
        "format": FORMAT,
        "actionspan_version": __version__,
        "network": name,
        "stream": stream,
        "channels": channels,
        "input_size": input_size,
        "state_dict": {key: value.cpu().contiguous() for key, value in state.items()},
        "digest": digest,
    }


def write_encoder(
    encoder: _StreamEncoder, content: Mapping[str, Any], settings: EncoderSettings, folder: Path
) -> None:
    """Write the `encoder_content` of a network of timm or transformers as its library does.

    Raises:
        InputError: The network that it started from is gone.
    """
    source = find_source(settings.rgb_encoder, settings.rgb_weights)
    levels, state = (encoder.mean, encoder.std), part_of(content["state_dict"], "model.")
    save_tuned(source, levels, state, content["input_size"], folder)


def part_of(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the entries of a state_dict with names that begin with `prefix`, without it."""
    own = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state[name] for name in own}


def weights_facts(settings: EncoderSettings, streams: tuple[Stream, ...]) -> list[Any]:
    """Return the facts of the initial weights that belong in a digest."""
    starts = [_start(settings, stream) for stream in streams]
    facts: list[Any] = [describe(*start) for start in starts]
    return facts + [encoder_digest(find_source(*start)) for start in starts if is_hub(start[0])]


def _start(settings: EncoderSettings, stream: Stream) -> tuple[str, Path | None]:
    """Return the network of a stream and the weights that it starts from."""
    if stream == "rgb":
        return settings.rgb_encoder, settings.rgb_weights
    return settings.flow_encoder, flow_weights(settings)
