"""Image networks of timm and transformers, by the libraries themselves: weights, preprocessing.

A name is `timm:MODEL`, `hf:ORGANISATION/MODEL`, or the path of a folder (or of a weights file in
it) that either library saved: timm's config.json names an `architecture`, transformers' a
`model_type`. Files on this machine are used as they are; others are fetched once, if there is a
network. Only the code of the libraries runs, never a model's own.
"""

import difflib
import hashlib
import json
import math
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.func import functional_call

from actionspan.errors import InputError
from actionspan.lazy import needed
from actionspan.networks.hub_source import Source, input_errors, read_configuration
from actionspan.networks.names import FROM_TIMM, FROM_TRANSFORMERS

if TYPE_CHECKING:
    from actionspan.networks.hub_images import HubInputs

_CONFIGURATION = ("*.json", "*.txt", "*.model")  # of networks, preprocessing and words
# the first kind of weights that is there counts
_WEIGHTS = (
    *("model.safetensors", "model-*.safetensors"),
    *("pytorch_model.bin", "pytorch_model-*.bin"),
)
_PREPARES = tuple(  # images and clips for transformers
    f"{kind}_config.json" for kind in ("preprocessor", "processor", "video_preprocessor")
)
_BLOCK = 1 << 24  # bytes hashed at once


class HubNetwork(NamedTuple):
    """A network that gives vectors, and the preprocessing of its images or clips."""

    network: nn.Module  # (B, 3, h, w) pixels, or (B, T, 3, h, w) of a clip, to (B, features)
    inputs: "HubInputs"
    features: int
    frames: int = 1  # T, of a clip


def find_source(name: str, weights: Path | None = None, *, fetch: bool = True) -> Source:
    """Return where an encoder's weights are on this machine.

    Args:
        name: Of the encoder.
        weights: A checkpoint for a model of timm.
        fetch: Whether weights that are not here are fetched, once.

    Raises:
        InputError: The model does not exist, its library is missing, or its weights are not here
            and cannot be fetched.
    """
    if name.startswith(FROM_TIMM):
        return _of_timm(name, weights, fetch=fetch)
    if weights is not None:
        raise InputError(f"{weights}: {name} brings weights of its own; leave these out")
    if name.startswith(FROM_TRANSFORMERS):
        _imported("transformers")
        folder = _fetched(name, name.removeprefix(FROM_TRANSFORMERS), fetch=fetch)
        read_configuration(folder, _PREPARES)
        return _in_folder(name, "transformers", folder)
    return _on_disk(name)


def encoder_digest(source: Source) -> str:
    """Return a SHA-256 of weights, preprocessing and configuration."""
    digest = hashlib.sha256(source.prepares.encode())
    for path in source.weights:
        digest.update(_file_digest(path, path.stat().st_mtime_ns).encode())
    return digest.hexdigest()


@lru_cache(maxsize=64)
def _file_digest(path: Path, _changed: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def load_network(
    source: Source, layer: int | None, pooling: str, *, clips: bool = False
) -> HubNetwork:
    """Return a network in evaluation mode, without gradients, and its preprocessing.

    Args:
        source: Where it is.
        layer: The layer with the output to pool; None: the last.
        pooling: `auto`, `cls` or `mean`, see `EncoderSettings.rgb_pooling`.
        clips: Whether it is one of clips, not of images.

    Raises:
        InputError: The weights do not fit, or the network has no such layer or pooling.
    """
    from actionspan.networks import hub_clips, hub_images

    # 1. load
    network: nn.Module
    inputs: HubInputs
    frames = 1
    shape: tuple[int, ...] = (1, 64, 64, 3)
    with input_errors(source.name):
        if clips:
            network, inputs, frames = hub_clips.clip_network(source, layer, pooling)
            shape = (1, frames, 64, 64, 3)
        elif source.package == "timm":
            network, inputs = hub_images.timm_network(source, layer, pooling)
        else:
            network, inputs = hub_images.hf_network(source, layer, pooling)
        network.eval().requires_grad_(False)
        levels = torch.arange(math.prod(shape)) * 37 % 256  # any image with something in it
        sample = inputs(levels.to(torch.uint8).view(shape))
        with torch.inference_mode():
            if clips:  # which take long: their lengths alone
                named = (*network.named_parameters(), *network.named_buffers())
                shapes = {name: values.to("meta") for name, values in named}
                vectors = again = functional_call(network, shapes, (sample.to("meta"),))
            else:
                vectors, again = network(sample), network(sample)
    # 2. check its vectors
    finite = (sample, vectors) if vectors is not again else (sample, *network.parameters())
    if not all(torch.isfinite(values).all() for values in finite):
        raise InputError(
            f"{source.name}: its weights or preprocessing give values that are not finite"
        )
    if vectors is not again and not torch.equal(vectors, again):
        raise InputError(f"{source.name}: gives other vectors each time")
    if vectors.ndim != 2:
        raise InputError(f"{source.name}: gives {vectors.ndim - 1} axes an image, not a vector")
    return HubNetwork(network, inputs, vectors.shape[1], frames)


def _of_timm(name: str, weights: Path | None, *, fetch: bool) -> Source:
    timm = _imported("timm")
    model = name.removeprefix(FROM_TIMM)
    with input_errors(name):
        known = timm.get_pretrained_cfg(model) if timm.is_model(model) else None
    if known is None:
        near = difflib.get_close_matches(model, timm.list_models(), n=3, cutoff=0.5)
        raise InputError(
            f"{name}: timm {timm.__version__} has no such model"
            + (f"; near it: {', '.join(near)}" if near else "")
        )
    pictures = ("input_size", "mean", "std", "crop_pct", "crop_mode", "interpolation")
    prepares = json.dumps([model, *(getattr(known, key) for key in pictures)])
    if weights is not None:
        if not weights.is_file():
            raise InputError(f"rgb_weights {weights}: no such file")
        return Source(name, "timm", model, (weights,), prepares)
    if not known.hf_hub_id:
        raise InputError(f"{name}: timm has no weights for it; give rgb_weights, or name a tag")
    folder = _fetched(name, known.hf_hub_id, fetch=fetch)
    return Source(name, "timm", model, _weights_in(name, folder), prepares)


def _on_disk(name: str) -> Source:
    """Return the source in a folder, or of a file of weights in it."""
    path = Path(name)
    folder = path if path.is_dir() else path.parent
    configuration = folder / "config.json"
    if not path.exists():
        hint = f"names begin with {FROM_TRANSFORMERS} or {FROM_TIMM}"
        raise InputError(f"{name}: no such folder or file ({hint})")
    if not configuration.is_file():
        raise InputError(
            f"{name}: no config.json next to the weights names their network; give the folder "
            "that timm or transformers saved, or rgb_encoder timm:MODEL and rgb_weights"
        )
    configured = read_configuration(folder, _PREPARES)
    library = "timm" if "architecture" in configured else "transformers"
    if library == "transformers" and "model_type" not in configured:
        raise InputError(f"{configuration}: names no architecture (timm) or model_type")
    _imported(library)
    if path.is_file() and library == "timm":
        return _in_folder(name, library, folder, (path,))
    found = _in_folder(name, library, folder)
    if path.is_file() and path not in found.weights:
        raise InputError(f"{name}: transformers loads {found.weights[0].name}; give the folder")
    return found


def _in_folder(
    name: str, library: str, folder: Path, weights: tuple[Path, ...] | None = None
) -> Source:
    files = [folder / file for file in ("config.json", *_PREPARES)]
    prepares = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    weights = weights or _weights_in(name, folder)
    return Source(name, library, str(folder), weights, "\0".join(prepares))


def _weights_in(name: str, folder: Path) -> tuple[Path, ...]:
    for pattern in _WEIGHTS:
        if found := sorted(folder.glob(pattern)):
            return tuple(found)
    raise InputError(f"{name}: no {_WEIGHTS[0]} in {folder}")


@lru_cache(maxsize=8)
def _fetched(name: str, repository: str, *, fetch: bool) -> Path:
    """Return the folder of a repository's files: those on this machine, else fetched ones."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with input_errors(name, repository):
        with suppress(LocalEntryNotFoundError):
            folder = Path(snapshot_download(repository, local_files_only=True))
            if _is_whole(folder, pictures=name.startswith(FROM_TRANSFORMERS)):
                return folder
        if not fetch:
            raise LocalEntryNotFoundError(repository)
        for group in (_WEIGHTS[:2], _WEIGHTS[2:]):
            folder = Path(snapshot_download(repository, allow_patterns=[*_CONFIGURATION, *group]))
            if any(any(folder.glob(kind)) for kind in group):
                break
        return folder


def _is_whole(folder: Path, *, pictures: bool) -> bool:
    """Return whether all that is needed of a repository is in a folder."""
    weights = [path for kind in _WEIGHTS for path in folder.glob(kind)]
    wanted: set[str] = {"config.json"}
    for index in folder.glob("*.index.json"):
        wanted |= set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
    has_pictures = not pictures or any((folder / file).is_file() for file in _PREPARES)
    return bool(weights) and has_pictures and all((folder / each).is_file() for each in wanted)


def _imported(library: str) -> Any:
    """Return the library, which then prints only errors."""
    found = needed(library, library)
    if library == "transformers":
        found.logging.set_verbosity_error()
        found.logging.disable_progress_bar()
    return found
