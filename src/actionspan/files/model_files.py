"""What is in a model file, which may be a stranger's: looked at leaf by leaf before it is used.

A file's settings say what networks it has, and a network on torch's `meta` device, which takes no
memory, says which tensors it needs. Only where names, types, shapes and values are right is the
network built: a file costs as much memory as its own tensors, and a wrong one is a line that names
the file and the leaf.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from actionspan.errors import InputError, brief
from actionspan.files.torch_files import DAMAGED, read_torch
from actionspan.settings import Checked, from_mapping

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
        """Raise the InputError that says what would be right."""
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
        """Return the entries of a dictionary whose keys are texts."""
        if not isinstance(self.value, Mapping):
            self.refuse("a dictionary")
        if not all(isinstance(key, str) for key in self.value):
            raise InputError(f"{self.name}: a key that is no text")
        return {key: Part(each, f"{self.name}: {_word(key)}") for key, each in self.value.items()}

    def items(self, least: int, most: int) -> list["Part"]:
        """Return the items of a list of `least` to `most`."""
        if not isinstance(self.value, list | tuple) or not least <= len(self.value) <= most:
            self.refuse(f"a list of {least} to {most}" if least < most else f"a list of {least}")
        return [Part(each, f"{self.name}: {place}") for place, each in enumerate(self.value)]

    def text(self, choices: Sequence[str] = (), most: int = 1000) -> str:
        """Return a text, one of `choices` if there are any, of at most so many characters."""
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

        One that is not on the CPU, or is larger than what the file holds of it, is refused.
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
        """Return settings from those of a dictionary's entries that have their names.

        Args:
            kind: The settings.
            names: The fields that are looked at; by default all.
        """
        given = {key: each.value for key, each in self.entries().items()}
        try:
            return from_mapping(kind, {k: v for k, v in given.items() if not names or k in names})
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from None

    def network(self, build: Callable[[], Network], kind: str) -> Network:
        """Return a network with the parameters of this dictionary, in evaluation mode.

        Args:
            build: Builds it.
            kind: What messages call it.
        """
        with torch.device("meta"):
            wanted = build().state_dict()
        given = self.entries()
        for names, verb in ((set(wanted) - set(given), "lack"), (set(given) - set(wanted), "have")):
            if names:
                raise InputError(
                    f"{self.name}: its weights are not those of {kind} in this version, they {verb}"
                    f" {_word(min(names))}; train it again"
                )
        state = {
            key: given[key].tensor(*value.shape, kind=value.dtype) for key, value in wanted.items()
        }
        network = build()
        network.load_state_dict(state)
        return network.eval()


def read_model(path: Path, unreadable: str = DAMAGED) -> Part:
    """Read a model file that `write_torch` wrote, without a look at what is in it.

    Args:
        path: The file.
        unreadable: What a message says of a file that is not such a file, or is damaged.

    Raises:
        InputError: The file is missing, damaged, or holds what no model file holds.
    """
    return Part(read_torch(path, unreadable, ours=True), str(path))


def _word(key: str) -> str:
    """Return a key as it is, if it is short and plain."""
    return key if key.isprintable() and len(key) <= 60 else brief(key)


def _sizes(shape: Sequence[int | None]) -> str:
    return f"({', '.join('any' if each is None else str(each) for each in shape)})"
