"""Files of torch: written atomically, read without running code.

A model file may be a stranger's, so it is looked at leaf by leaf before it is used. Its settings
say what networks it has, and a network on torch's `meta` device, which takes no memory, says which
tensors it needs. Only where names, types, shapes and values are right is the network built: a file
costs as much memory as its own tensors, and a wrong one is a line that names the file and the leaf.
"""

import hashlib
import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from actionspan.errors import InputError, brief, lacks_memory
from actionspan.settings import Checked, from_mapping
from actionspan.storage.writing import atomic_path

DAMAGED = "not a complete torch.save file; if a run made it, delete it and run again"
SPOILT = "damaged; delete it and run again"
_PICKLED = 1 << 24  # bytes of names and plain values, each of which may take 100 in memory
_KINDS = "Float Double Half BFloat16 Long Int Short Char Byte Bool".split()
_OURS = {"collections OrderedDict", "torch._utils _rebuild_tensor_v2"} | {
    f"torch {kind}Storage" for kind in _KINDS
}  # the names in a pickle of plain values and tensors


def write_torch(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` by `torch.save`, atomically; equal content gives equal bytes.

    Raises:
        InputError: There is no room for the file.
    """
    # to an open file: given a path, torch.save puts the name of the file into the file
    with atomic_path(path) as partial, partial.open("wb") as file:
        try:
            torch.save(content, file)
        except RuntimeError as error:
            # when a write fails, torch's archive still tries to end and hides the reason
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise


def read_torch(path: Path, unreadable: str = DAMAGED, *, ours: bool = False) -> Any:
    """Read a file of `torch.save`, tensors and plain values only.

    The checksums that it holds are compared, which torch does not do.

    Args:
        path: The file.
        unreadable: What a message says of a file that is damaged or of another kind.
        ours: Whether `write_torch` should have made it: a file that asks for anything but `_OURS`,
            or for more than its bytes, is refused. Its tensors are not copied.

    Raises:
        InputError: The file is missing or is not such a file, or memory does not hold it.
    """
    try:
        if ours or zipfile.is_zipfile(path):  # else it is in the form before torch 1.6
            _check_archive(path, ours=ours)
        # by a map of the file a record cannot be longer than the file, in any version of torch
        return torch.load(path, map_location="cpu", weights_only=True, mmap=ours)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except Exception as error:  # files that torch did not write raise nearly anything
        if lacks_memory(error):
            size = path.stat().st_size
            line = f"too little memory to load its {size} bytes; give it more and run again"
            raise InputError(f"{path}: {line}") from None
        raise InputError(f"{path}: {unreadable}") from None


_SEAL = "seal"  # key of the digest of all else that a file holds


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write what only the same program continues from; see `write_torch` and `unsealed`."""
    write_torch(path, {**content, _SEAL: _digest(content)})


def unsealed(path: Path, content: Any) -> dict[str, Any]:
    """Return the content of a file of `write_sealed`, if no value of it was changed.

    Raises:
        InputError: One was; whoever also changes the seal is not noticed.
    """
    with restoring(path):
        rest = {key: value for key, value in content.items() if key != _SEAL}
        if content[_SEAL] != _digest(rest):
            raise ValueError
    return rest


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Blame a file for what the block, which takes up its content, raises."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        if lacks_memory(e):
            raise
        raise InputError(f"{path}: {SPOILT}") from None


def _digest(content: Any) -> str:
    """Return a SHA-256 of plain values and tensors inside dictionaries and lists."""
    found, ahead = hashlib.sha256(), [content]
    while ahead:
        value = ahead.pop()
        if isinstance(value, Mapping | list | tuple):
            ahead += value.items() if isinstance(value, Mapping) else value
            value = isinstance(value, Mapping), len(value)
        elif isinstance(value, Tensor):
            # one on `meta` holds nothing, an expanded one less than its shape says
            if not value.is_meta and value.nbytes <= value.untyped_storage().nbytes():
                held: Any = value.detach().cpu().contiguous().as_strided((value.numel(),), (1,))
                found.update(held.view(torch.uint8).numpy())
            value = value.dtype, value.shape
        found.update(f"{type(value).__name__} {value!r}".encode())
    return found.hexdigest()


def _check_archive(path: Path, *, ours: bool) -> None:
    """Compare the checksums of a file's records, which torch does not compress.

    Raises:
        zipfile.BadZipFile: One differs, or a record says that it is larger than the file, or has
            the name of another, or one of `ours` holds another's objects.
    """
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
        size = path.stat().st_size
        stored = all(record.compress_type == zipfile.ZIP_STORED for record in records)
        fits = sum(record.file_size for record in records) <= size
        single = len({record.filename for record in records}) == len(records)
        if not (stored and fits and single) or archive.testzip() is not None:
            raise zipfile.BadZipFile(path)
        if ours:
            (pickled,) = (each for each in records if each.filename.endswith("/data.pkl"))
            if pickled.file_size > max(_PICKLED, size // 4):
                raise zipfile.BadZipFile(path)
            for code, name, _ in pickletools.genops(archive.read(pickled)):
                if code.name == "GLOBAL" and name not in _OURS:
                    raise zipfile.BadZipFile(path)


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
                what = f"its weights are not those of {kind} in this version"
                cure = f"they {verb} {_word(min(names))}; train it again"
                raise InputError(f"{self.name}: {what}, {cure}")
        state = {k: given[k].tensor(*value.shape, kind=value.dtype) for k, value in wanted.items()}
        network = build()
        network.load_state_dict(state)
        return network.eval()


def read_model(path: Path, unreadable: str = DAMAGED) -> Part:
    """Read a model file that `write_torch` wrote; its content is not checked.

    `unreadable` is what a message says of a file that is damaged or of another kind.

    Raises:
        InputError: The file is missing, damaged, or holds what no model file holds.
    """
    return Part(read_torch(path, unreadable, ours=True), str(path))


def _word(key: str) -> str:
    """Return a key as it is, if it is short and plain."""
    return key if key.isprintable() and len(key) <= 60 else brief(key)


def _sizes(shape: Sequence[int | None]) -> str:
    return f"({', '.join('any' if each is None else str(each) for each in shape)})"
