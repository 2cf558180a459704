"""The networks of timm and transformers that settings name: which they are, and where."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings
from actionspan.networks.hub import HubNetwork, encoder_digest, find_source, load_network
from actionspan.networks.names import FROM_TIMM, FROM_TRANSFORMERS, is_hub

_HubStream = Literal["rgb", "clip"]  # their networks may come from timm or transformers


def hub_network(settings: EncoderSettings, stream: _HubStream = "rgb") -> HubNetwork:
    """Return the network of a stream that timm or transformers bring.

    Raises:
        InputError: It cannot be had, or its weights differ from the stream's digest.
    """
    pinned(settings)
    name, weights = _named(settings, stream)
    layer, pooling = getattr(settings, f"{stream}_layer"), getattr(settings, f"{stream}_pooling")
    return load_network(find_source(name, weights), layer, pooling, clips=stream == "clip")


def _named(settings: EncoderSettings, stream: _HubStream) -> tuple[str, Path | None]:
    """Return the network of a stream, and a checkpoint for it."""
    return getattr(settings, f"{stream}_encoder"), getattr(settings, f"{stream}_weights")


def _digest(settings: EncoderSettings, stream: _HubStream) -> str | None:
    digest: str | None = getattr(settings, f"{stream}_digest")
    return digest


def _brought(settings: EncoderSettings) -> list[_HubStream]:
    """Return the streams with networks from other packages."""
    streams: tuple[_HubStream, ...] = () if settings.source == "motion" else ("rgb", "clip")
    return [stream for stream in streams if is_hub(_named(settings, stream)[0])]


def pinned(settings: EncoderSettings) -> EncoderSettings:
    """Return settings with the digests of networks that others bring.

    Raises:
        InputError: One cannot be had, or differs from `rgb_digest` or `clip_digest`.
    """
    for stream in _brought(settings):
        name, weights = _named(settings, stream)
        found, wanted = encoder_digest(find_source(name, weights)), _digest(settings, stream)
        if wanted not in (None, found):
            raise InputError(_another(name, found, [str(wanted)]))
        digest: dict[str, Any] = {f"{stream}_digest": found}
        settings = replace(settings, **digest)
    return settings


def _another(name: str, found: str, wanted: Iterable[str]) -> str:
    those = " or ".join(f"{digest[:12]}…" for digest in wanted)
    line = f"{name}: weights and preprocessing have the digest {found[:12]}…, wanted is"
    return f"{line} {those}; give its path by --encoder"


def located(settings: EncoderSettings, given: Sequence[str] = ()) -> EncoderSettings:
    """Return the settings of a model from anywhere, with those networks here that others bring.

    No path in the settings is opened and nothing that they name is fetched.

    Args:
        settings: Of the model.
        given: The networks, or their weights, where the settings name a path or they are not here;
            their digests show which is which.

    Raises:
        InputError: A network is not here, or its weights are others.
    """
    wanted: dict[_HubStream, str] = {}
    for stream in _brought(settings):
        if (digest := _digest(settings, stream)) is None:
            name = _named(settings, stream)[0]
            raise InputError(f"its encoder {name} has no digest; make the model again")
        wanted[stream] = digest
    if given and not wanted:
        raise InputError(f"--encoder {given[0]}: the model has encoders of its own")
    # those that a person gives
    here: dict[_HubStream, tuple[str, Path | None]] = {}
    for word in given:
        name, timm = encoder_name(word), _named(settings, "rgb")[0]
        ways: list[tuple[str, Path | None]] = [(name, None)]
        if timm.startswith(FROM_TIMM) and Path(name).is_file():  # may be a checkpoint of it
            ways.insert(0, (timm, Path(name)))
        digests = {encoder_digest(find_source(*way)): way for way in ways}
        streams = [stream for stream, digest in wanted.items() if digest in digests]
        if not streams:
            raise InputError(_another(word, next(iter(digests)), wanted.values()))
        here |= {stream: digests[wanted[stream]] for stream in streams}
    # those that are here by their names
    for stream, digest in wanted.items():
        if stream in here:
            continue
        name, weights = _named(settings, stream)
        if weights or not name.startswith((FROM_TIMM, FROM_TRANSFORMERS)):
            raise InputError(f"its encoder is {weights or name}; give its path by --encoder")
        found = encoder_digest(find_source(name, fetch=False))
        if found != digest:
            raise InputError(_another(name, found, [digest]))
        here[stream] = name, None
    changes: dict[str, Any] = {}
    for stream, (name, weights) in here.items():
        changes |= {f"{stream}_encoder": name, f"{stream}_weights": weights}
    return replace(settings, **changes)


def encoder_name(word: str) -> str:
    """Return a person's name for a network of timm or transformers as settings take it.

    Raises:
        InputError: It is none of these.
    """
    if is_hub(word):
        return word
    if os.path.exists(word):  # noqa: PTH110, False for a word too long for a path
        return f"./{word}"
    raise InputError(f"--encoder {word[:100]}: timm:MODEL, hf:ORGANISATION/MODEL or a path")
