"""What `--resume` needs: how far the stream was worked on, and what the models remember."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch, write_torch

FILE = "state.pt"
_FORMAT = "actionspan stream 2"
_ARRAY = "numpy array"  # key of an array inside the file, which holds tensors and plain values only


@dataclass(frozen=True, kw_only=True)
class State:
    """A stream between two snippets, all that came before written down."""

    made_of: str  # digest of what must be the same to go on: source, model, settings
    ended: bool  # nothing is left to do
    snippets: int  # numbered so far; the next has this number
    seconds: float  # time stamp of the last
    done: int  # worked on
    dropped: int
    began: float  # seconds since 1970 of the first frame of a live source
    unanswered: list[tuple[int, float]]  # numbers and time stamps: their actionness is to come
    written: dict[str, str]  # fingerprints of growing files, and of what was learned
    proposer: dict[str, Any]


def write_state(folder: Path, state: State) -> None:
    """Write a state, atomically."""
    content = asdict(state) | {"format": _FORMAT, "proposer": _packed(state.proposer)}
    write_torch(folder / FILE, content)


def read_state(folder: Path, made_of: str) -> State | None:
    """Return the state of a stream that was not finished, None if there is none.

    Raises:
        InputError: It is of another stream, or cannot be read.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    content = read_torch(path)
    if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
        raise InputError(f"{path}: not the state of a stream ({_FORMAT!r}); delete it")
    if content["made_of"] != made_of:
        raise InputError(
            f"{path}: of another stream: the source, the model or a setting has changed; go on as "
            "before, or begin again without --resume"
        )
    fields = {name: content[name] for name in State.__dataclass_fields__}
    return State(**fields | {"proposer": _unpacked(content["proposer"])})


def _packed(value: Any) -> Any:
    """Return a value with its arrays as tensors, which is all that is safe to read again."""
    if isinstance(value, np.ndarray):
        return {_ARRAY: torch.from_numpy(np.ascontiguousarray(value).copy()), "shape": value.shape}
    if isinstance(value, np.generic):
        return {_ARRAY: torch.from_numpy(np.array(value)), "shape": None}
    if isinstance(value, Mapping):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_packed, value))
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Mapping):
        if _ARRAY in value:
            array = value[_ARRAY].numpy()
            return array[()] if value["shape"] is None else array.reshape(value["shape"])
        return {key: _unpacked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unpacked, value))
    return value
