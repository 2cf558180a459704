"""Model files: the tensors as safetensors, and in its header one JSON of all else.

A model file may be a stranger's: nothing of it is run or unpickled. It is looked at leaf by leaf
before it is used. Its settings name its networks, and a network on torch's `meta` device,
which takes no memory, lists the tensors that it needs. Only where names, types, shapes and values
are right is the network built: a file costs as much memory as its own tensors, and a wrong one is a
line that names the file and the leaf.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from actionspan.errors import InputError, brief, lacks_memory
from actionspan.settings import Checked, from_mapping
from actionspan.storage.torch_files import content_digest
from actionspan.storage.writing import atomic_path

_KEY = "actionspan"  # of the JSON in the header; more keys would have no order
_LEAF = "$tensor"  # in the JSON, with the name of a tensor
_HEADER = 1 << 24  # bytes of names and plain values, each of which may take 100 in memory
_SHARED = 8  # how often a file may use its tensors: streams share networks
_DAMAGED = "not a complete model file; if a run made it, delete it and run again"
_EARLIER = "a model file of an earlier version; convert it: actionspan convert-model {} NEW"
_NUMBERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64)
Network = TypeVar("Network", bound=nn.Module)
Settings = TypeVar("Settings", bound=Checked)


class Part:
    """A value of a file that is not trusted, and what messages call it.

    Args:
        value: Anything.
        name: The file and the keys that lead to the value.
    """

    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = value, name

    def refuse(self, wanted: str) -> NoReturn:
        """Raise the InputError that names the right content."""
        raise InputError(f"{self.name} {brief(self.value)}: {wanted}")

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, Mapping) and self.value.get(key) is not None

    def __getitem__(self, key: str) -> "Part":
        """Return an entry of a dictionary."""
        if not isinstance(self.value, Mapping):
            self.refuse("a dictionary")
        if key not in self.value:
            raise InputError(f"{self.name}: lacks {key}")
        return Part(self.value[key], f"{self.name}: {key}")

    def entries(self) -> dict[str, "Part"]:
        """Return the entries of a dictionary with texts as keys."""
        if not isinstance(self.value, Mapping):
            self.refuse("a dictionary")
        if not all(isinstance(key, str) for key in self.value):
            raise InputError(f"{self.name}: a key that is not a text")
        return {key: Part(each, f"{self.name}: {_word(key)}") for key, each in self.value.items()}

    def items(self, least: int, most: int) -> list["Part"]:
        """Return the items of a list of `least` to `most`."""
        if not isinstance(self.value, list | tuple) or not least <= len(self.value) <= most:
            self.refuse(f"a list of {least} to {most}" if least < most else f"a list of {least}")
        return [Part(each, f"{self.name}: {place}") for place, each in enumerate(self.value)]

    def text(self, choices: Sequence[str] = (), most: int = 1000) -> str:
        """Return a text, one of `choices` if there are any, of at most `most` characters."""
        if not isinstance(self.value, str) or len(self.value) > most:
            self.refuse(f"a text of at most {most} characters")
        if choices and self.value not in choices:
            self.refuse(f"one of {', '.join(choices)}")
        return self.value

    def whole(self, least: int, most: int) -> int:
        """Return a whole number from `least` to `most`."""
        if type(self.value) is not int or not least <= self.value <= most:
            self.refuse(f"a whole number from {least} to {most}")
        return self.value

    def number(self, least: float, most: float) -> float:
        """Return a number from `least` to `most`."""
        if type(self.value) not in (int, float) or not least <= self.value <= most:
            self.refuse(f"a number from {least:g} to {most:g}")
        return float(self.value)

    def tensor(self, *shape: int | None, kind: torch.dtype = torch.float32) -> Tensor:
        """Return a tensor of its own: of this shape, where None is any length, and finite.

        One that is not on the CPU, or is larger than its data in the file, is refused.
        """
        value = self.value
        if not isinstance(value, Tensor):
            self.refuse("a tensor")
        wanted = f"{str(kind).removeprefix('torch.')} {_sizes(shape)}"
        if value.layout != torch.strided or value.device.type != "cpu" or value.dtype != kind:
            raise InputError(f"{self.name}: another kind of tensor: {wanted}")
        if len(value.shape) != len(shape) or any(
            want not in (None, have) for want, have in zip(shape, value.shape, strict=True)
        ):
            raise InputError(f"{self.name}: shape {_sizes(value.shape)}: {wanted}")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise InputError(f"{self.name}: shape {_sizes(value.shape)}: more than the file holds")
        if not torch.isfinite(value).all():
            raise InputError(f"{self.name}: holds NaN or infinity")
        plain = Tensor.detach(value).resolve_neg()
        return plain.clone(memory_format=torch.contiguous_format)

    def tensors(self) -> dict[str, Tensor]:
        """Return a dictionary's tensors of numbers, of any shapes."""
        found = {}
        for key, each in self.entries().items():
            if not isinstance(each.value, Tensor) or each.value.dtype not in _NUMBERS:
                each.refuse("a tensor of numbers")
            found[key] = each.tensor(*each.value.shape, kind=each.value.dtype)
        return found

    def settings(self, kind: type[Settings], names: Sequence[str] = ()) -> Settings:
        """Return settings from a dictionary's entries that have `names`, by default from all."""
        given = {key: each.value for key, each in self.entries().items()}
        try:
            return from_mapping(kind, {k: v for k, v in given.items() if not names or k in names})
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from None

    def network(self, build: Callable[[], Network], kind: str) -> Network:
        """Return a network with the parameters of this dictionary, in evaluation mode.

        `build` builds it, and messages call it `kind`.
        """
        with torch.device("meta"):
            wanted = build().state_dict()
        given = self.entries()
        for names, verb in ((set(wanted) - set(given), "lack"), (set(given) - set(wanted), "have")):
            if names:
                what = f"its weights do not fit {kind} in this version"
                cure = f"they {verb} {_word(min(names))}; train it again"
                raise InputError(f"{self.name}: {what}, {cure}")
        state = {k: given[k].tensor(*value.shape, kind=value.dtype) for k, value in wanted.items()}
        network = build()
        network.load_state_dict(state)
        return network.eval()


def write_model(path: Path, content: Mapping[str, Any]) -> None:
    """Write tensors and plain values in dictionaries and lists; equal content gives equal bytes.

    A tensor of `content` has the name of the keys that lead to it, joined by `/`. One that stands
    in several places is written once.

    Raises:
        JobError: The disk has no room for the file.
    """
    tensors: dict[str, Tensor] = {}
    names: dict[int, str] = {}

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in names:
                names[id(value)] = name
                # of its own: safetensors refuses tensors that share memory
                tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
            return {_LEAF: names[id(value)]}
        if isinstance(value, Mapping):
            return {key: plain(each, f"{name}/{key}".lstrip("/")) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [plain(each, f"{name}/{place}") for place, each in enumerate(value)]
        return value

    text = json.dumps(plain(content, ""))
    sealed = json.dumps({"content": text, "seal": _seal(text, tensors)})
    with atomic_path(path) as partial:
        partial.write_bytes(save(tensors, {_KEY: sealed}))


def read_model(path: Path, unreadable: str = _DAMAGED) -> Part:
    """Read a file that `write_model` wrote; its values are not checked, but its seal is.

    Tensors are views of a memory map of the file.

    Args:
        path: The file.
        unreadable: Text of the message for a damaged file or one of another type.

    Raises:
        InputError: The file is missing, damaged, of an earlier version or of another kind, or
            memory does not hold it.
    """
    try:
        return Part(_read(path), str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except InputError:
        raise
    except (SafetensorError, OSError, LookupError, TypeError, ValueError, RecursionError):
        raise InputError(f"{path}: {unreadable}") from None
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        line = f"too little memory to load its {path.stat().st_size} bytes"
        raise InputError(f"{path}: {line}; give it more and run again") from None


def is_model(path: Path) -> bool:
    """Whether a safetensors file is a model file; raise SafetensorError if it is damaged."""
    with safe_open(path, framework="pt") as opened:
        return _KEY in (opened.metadata() or {})


def _read(path: Path) -> Any:
    # 1. the length of the header, which safetensors reads whole
    with path.open("rb") as file:
        start, size = file.read(8), path.stat().st_size
    if start[:4] == b"PK\x03\x04":
        raise InputError(f"{path}: {_EARLIER.format(path)}")
    if int.from_bytes(start, "little") > max(_HEADER, size // 4):
        raise ValueError
    # 2. the tensors, with places in the file that safetensors checks, and the rest
    with safe_open(path, framework="pt") as opened:
        sealed = json.loads(opened.metadata()[_KEY])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    text = sealed["content"]
    if sealed["seal"] != _seal(text, tensors):
        raise ValueError
    # 3. each tensor in its places, without which a small file may ask for much memory
    room = _SHARED * size

    def filled(value: Any) -> Any:
        nonlocal room
        if isinstance(value, list):
            return [filled(each) for each in value]
        if not isinstance(value, dict):
            return value
        if set(value) != {_LEAF}:
            return {key: filled(each) for key, each in value.items()}
        room -= tensors[value[_LEAF]].nbytes
        if room < 0:
            raise ValueError
        return tensors[value[_LEAF]]

    return filled(json.loads(text))


def _seal(text: str, tensors: Mapping[str, Tensor]) -> str:
    return content_digest([text, *sorted(tensors.items())])


def _word(key: str) -> str:
    """Return a key as it is, if it is short and plain."""
    return key if key.isprintable() and len(key) <= 60 else brief(key)


def _sizes(shape: Sequence[int | None]) -> str:
    return f"({', '.join('any' if each is None else str(each) for each in shape)})"
