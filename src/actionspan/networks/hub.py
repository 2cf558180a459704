"""Image networks of timm and transformers, by the libraries themselves: weights, preprocessing.

A name is `timm:MODEL`, `hf:ORGANISATION/MODEL`, or the path of a folder (or of a weights file in
it) that either library saved: timm's config.json names an `architecture`, that of transformers a
`model_type`. What is on this machine is used as it is; what is not is fetched once, if there is a
network. Only the code of the libraries runs, never a model's own.
"""

import difflib
import hashlib
import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from actionspan.errors import InputError, printable
from actionspan.networks.names import FROM_TIMM, FROM_TRANSFORMERS

if TYPE_CHECKING:
    from actionspan.networks.hub_images import HubInputs

_CONFIGURATION = ("*.json", "*.txt", "*.model")  # of networks, preprocessing and words
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")  # the second kind where there is no first
_BLOCK = 1 << 24  # bytes hashed at once


class Source(NamedTuple):
    """Where an encoder comes from."""

    name: str  # as it was asked for
    library: str  # timm or transformers
    model: str  # what the library calls it: a model's name, or a folder
    weights: tuple[Path, ...]


class HubNetwork(NamedTuple):
    """A network that gives vectors, and what turns pictures into what it sees."""

    network: nn.Module  # (B, 3, h, w) pixels to (B, features)
    inputs: "HubInputs"
    features: int


@lru_cache(maxsize=8)
def find_source(name: str, weights: Path | None = None, *, fetch: bool = True) -> Source:
    """Return where an encoder's weights are on this machine.

    Args:
        name: Of the encoder.
        weights: A checkpoint for a model of timm.
        fetch: Whether weights that are not here are fetched, once.

    Raises:
        InputError: There is no such model, its library is missing, or its weights are not here
            and cannot be fetched.
    """
    if name.startswith(FROM_TIMM):
        return _of_timm(name, weights, fetch=fetch)
    if weights is not None:
        raise InputError(f"rgb_weights {weights}: {name} brings its own; leave them out")
    if name.startswith(FROM_TRANSFORMERS):
        _imported("transformers")
        folder = _fetched(name, name.removeprefix(FROM_TRANSFORMERS), fetch=fetch)
        return Source(name, "transformers", str(folder), _weights_in(name, folder))
    return _on_disk(name)


def weights_digest(source: Source) -> str:
    """Return the SHA-256 of a file of weights, as `sha256sum` prints it; of several, of theirs."""
    found = [_file_digest(path, path.stat().st_mtime_ns) for path in source.weights]
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()


@lru_cache(maxsize=64)
def _file_digest(path: Path, _changed: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def load(source: Source, layer: int | None, pooling: str) -> HubNetwork:
    """Return a network of images in evaluation mode, without gradients, and its preprocessing.

    Args:
        source: Where it is.
        layer: Whose output is pooled; None: the last.
        pooling: `auto`, `cls` or `mean`, see `EncoderSettings.rgb_pooling`.

    Raises:
        InputError: The weights do not fit, or the network has no such layer or pooling.
    """
    from actionspan.networks import hub_images

    build = hub_images.timm_network if source.library == "timm" else hub_images.hf_network
    with telling(source.name):
        network, inputs = build(source, layer, pooling)
        network.eval().requires_grad_(False)
        sample = inputs(torch.zeros(1, 64, 64, 3, dtype=torch.uint8))
        with torch.inference_mode():
            vectors: Tensor = network(sample)
    if vectors.ndim != 2:
        raise InputError(f"{source.name}: gives {vectors.ndim - 1} axes a picture, not a vector")
    return HubNetwork(network, inputs, vectors.shape[1])


def _of_timm(name: str, weights: Path | None, *, fetch: bool) -> Source:
    timm = _imported("timm")
    model = name.removeprefix(FROM_TIMM)
    known = timm.get_pretrained_cfg(model, allow_unregistered=False) if _is_model(model) else None
    if known is None:
        near = difflib.get_close_matches(model, timm.list_models(), n=3, cutoff=0.5)
        raise InputError(
            f"{name}: timm {timm.__version__} has no such model"
            + (f"; near it: {', '.join(near)}" if near else "")
        )
    if weights is not None:
        if not weights.is_file():
            raise InputError(f"rgb_weights {weights}: no such file")
        return Source(name, "timm", model, (weights,))
    if not known.hf_hub_id:
        raise InputError(f"{name}: timm has no weights for it; give rgb_weights, or name a tag")
    folder = _fetched(name, known.hf_hub_id, fetch=fetch)
    return Source(name, "timm", model, _weights_in(name, folder))


def _is_model(model: str) -> bool:
    import timm

    return bool(timm.is_model(model))


def _on_disk(name: str) -> Source:
    """Return the source in a folder, or of a file of weights in it."""
    path = Path(name)
    folder = path if path.is_dir() else path.parent
    configuration = folder / "config.json"
    if not path.exists():
        raise InputError(
            f"{name}: no such folder or file (a model's name begins with hf: or timm:)"
        )
    if not configuration.is_file():
        raise InputError(
            f"{name}: no config.json beside the weights says what they are of; give the folder "
            "that timm or transformers saved, or rgb_encoder timm:MODEL and rgb_weights"
        )
    try:
        said = json.loads(configuration.read_text(encoding="utf-8"))
        library = "timm" if "architecture" in said else "transformers"
        is_named = "architecture" in said or "model_type" in said
    except (ValueError, TypeError):
        is_named = False
    if not is_named:
        raise InputError(f"{configuration}: names no architecture (timm) or model_type")
    _imported(library)
    weights = (path,) if path.is_file() else _weights_in(name, folder)
    return Source(name, library, str(folder), weights)


def _weights_in(name: str, folder: Path) -> tuple[Path, ...]:
    for pattern in _WEIGHTS:
        if found := sorted(folder.glob(pattern)):
            return tuple(found)
    raise InputError(f"{name}: no {_WEIGHTS[0]} in {folder}")


def _fetched(name: str, repository: str, *, fetch: bool) -> Path:
    """Return the folder of a repository's files: those on this machine, else fetched ones."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with telling(name, repository):
        with suppress(LocalEntryNotFoundError):
            folder = Path(snapshot_download(repository, local_files_only=True))
            if not fetch or any(any(folder.glob(kinds)) for kinds in _WEIGHTS):
                return folder
        if not fetch:
            raise LocalEntryNotFoundError(repository)
        for kinds in _WEIGHTS:
            wanted = [*_CONFIGURATION, kinds]
            folder = Path(snapshot_download(repository, allow_patterns=wanted))
            if any(folder.glob(kinds)):
                break
        return folder


def _imported(library: str) -> Any:
    """Return the library, which then says nothing by itself but errors."""
    try:
        found = importlib.import_module(library)
    except ImportError:
        install = f"uv pip install 'actionspan[{library}]'"
        raise InputError(f"{library} is not installed; run: {install}") from None
    if library == "transformers":
        found.logging.set_verbosity_error()
        found.logging.disable_progress_bar()
    return found


@contextmanager
def telling(name: str, repository: str = "") -> Iterator[None]:
    """Turn what the libraries raise for a model into one line."""
    from huggingface_hub import errors
    from safetensors import SafetensorError

    get = f"run `hf download {repository}` where there is a network, or give its folder"
    try:
        yield
    except InputError:
        raise
    except errors.GatedRepoError:
        page = f"https://huggingface.co/{repository}"
        line = f"its licence must be accepted at {page}; then run `hf auth login`"
        raise InputError(f"{name}: {line}") from None
    except errors.RepositoryNotFoundError:
        raise InputError(f"{name}: there is no such model, or it is private") from None
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise InputError(f"{name}: its weights are not on this machine; {get}") from None
    except (
        *(OSError, ValueError, RuntimeError, KeyError, ImportError, AttributeError),
        SafetensorError,
    ) as error:
        reason = printable(" ".join(str(error).split()))[:300]
        raise InputError(f"{name}: {type(error).__name__}: {reason}") from None
