"""Where a network of timm or transformers comes from, and its possible inputs.

A folder of a few bytes may ask for any network and any image. So its numbers are limited as in
models, and its network is built on torch's `meta` device first, which takes no memory.
"""

import copy
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.modules import module as modules

from actionspan.errors import InputError, lacks_memory, printable
from actionspan.storage.model_files import Part

LOCAL: Any = {"local_files_only": True, "trust_remote_code": False}
"""How transformers loads a model: from this machine, and no code of its own."""
_OWN_WORDS = {  # of the libraries some advise to run the code
    "trust_remote_code": "needs code of its own, which is never run; give a model of the library's",
    "npickling": "its weights are a pickle of more than tensors; give model.safetensors",
    "weights_only": "its weights are a pickle of more than tensors; give model.safetensors",
    "size mismatch": "its weights have other shapes than its config.json asks for",
    "ignore_mismatched_sizes": "its weights have other shapes than its config.json asks for",
}
_JSON = 64 << 20  # bytes
_MOST = 1 << 20  # of a whole number
_SIDE = 2048  # pixels
_SIDES = ("input_size", "image_size", "img_size")
FRAMES = ("num_frames", "frames_per_clip")  # of a clip, as configurations name it
_MOST_FRAMES = 512
_ATTENTION = (None, True, False, "eager", "sdpa")
_MORE, _MORE_TENSORS = 1 << 24, 1000  # than twice the numbers of the weights: heads, larger grids
_PICKLED = 10_000  # tensors of a file that does not state their number


class Source(NamedTuple):
    """Where an encoder comes from."""

    name: str  # as it was asked for
    package: str  # timm or transformers
    model: str  # its name in the library: a model's name, or a folder
    weights: tuple[Path, ...]
    prepares: str  # configuration of the preprocessing and of the network


@contextmanager
def input_errors(name: str, repository: str = "") -> Iterator[None]:
    """Turn the errors of the libraries for a model into one line."""
    from huggingface_hub import errors

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
        raise InputError(f"{name}: the model does not exist, or is private") from None
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise InputError(f"{name}: its weights are not on this machine; {get}") from None
    except Exception as error:  # of code that is not ours
        if lacks_memory(error):
            raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        ours = (ours for theirs, ours in _OWN_WORDS.items() if theirs in text)
        raise InputError(f"{name}: {next(ours, printable(text)[:300])}") from None


def read_configuration(folder: Path, pictures: Sequence[str]) -> dict[str, Any]:
    """Return the content of config.json, if it and the files of `pictures` keep to the limits.

    Raises:
        InputError: A file is not a regular one, too large or not JSON, or a value is not allowed.
    """
    for path in folder.iterdir():
        if not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: not a regular file")
        if path.suffix == ".json" and (size := path.stat().st_size) > _JSON:
            raise InputError(f"{path}: {size:,} bytes of JSON; at most {_JSON:,}")
        if path.name.endswith(".index.json"):
            names = Part(_loaded(path), str(path))["weight_map"].entries().values()
            if any(Path(each.text()).name != each.value for each in names):
                raise InputError(f"{path}: weights outside its folder")
    files = [(folder / name, _SIDE) for name in pictures if (folder / name).is_file()]
    for path, most in [*files, (folder / "config.json", _MOST)]:
        part = Part(_loaded(path), str(path))
        _check(part, most)
    return {key: each.value for key, each in part.entries().items()}


def _loaded(path: Path) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        copy.deepcopy(content)  # an object that cannot be copied is nested too deep
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not JSON, or nested too deep") from None
    return content


def _check(part: Part, most: int, key: str = "") -> None:
    """Refuse numbers beyond `most`, and names of foreign code, at any depth."""
    value = part.value
    if isinstance(value, dict | list):
        if key == "quantization_config":
            raise InputError(f"{part.name}: weights that are not quantized")
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            inner = str(name) if isinstance(value, dict) and "_implementation" not in key else key
            _check(Part(each, f"{part.name}: {name}"[:300]), most, inner)
    elif "_implementation" in key:
        if value not in _ATTENTION:
            part.refuse("eager or sdpa: others may be code from elsewhere")
    elif key == "crop_pct" and value is not None:
        part.number(0.25, 4)
    elif key in FRAMES and value is not None:
        part.whole(1, _MOST_FRAMES)
    elif "theta" not in key and type(value) in ((int, float) if most == _SIDE else (int,)):
        part.number(-most, _SIDE if key.endswith(_SIDES) else most)


@contextmanager
def size_limit(weights: Sequence[Path], origin: str) -> Iterator[None]:
    """Build on `meta` in a block, and refuse a network much larger than its weights.

    Raises:
        InputError: It is too large; `origin` names it.
    """
    held = [_held(path) for path in weights]
    most = [2 * sum(each) for each in zip(*held, strict=True)]
    most = [most[0] + _MORE_TENSORS, most[1] + _MORE]
    asked = [0, 0]

    def count(_module: Any, _name: str, values: Tensor | None) -> None:
        for place, more in enumerate((1, 0 if values is None else values.numel())):
            asked[place] += more
            if asked[place] > most[place]:
                what = ("parameters by name", "parameters")[place]
                line = f"asks for {asked[place]:,} {what} or more; at most {most[place]:,}"
                raise InputError(f"{origin}: {line} for its weights")

    hooks = (
        modules.register_module_parameter_registration_hook(count),
        modules.register_module_buffer_registration_hook(count),
    )
    try:
        with torch.device("meta"):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def _held(path: Path) -> tuple[int, int]:
    """Return how many tensors and numbers a file of weights holds, at most."""
    if path.suffix != ".safetensors":
        return _PICKLED, path.stat().st_size
    with safe_open(path, "pt") as file:
        shapes = [file.get_slice(key).get_shape() for key in file.keys()]  # noqa: SIM118
    return len(shapes), sum(map(math.prod, shapes))
