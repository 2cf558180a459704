"""Files of torch: encoders' checkpoints and states of training, plain values and tensors only."""

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from actionspan.errors import InputError, lacks_memory
from actionspan.storage.writing import atomic_path

DAMAGED = "not a complete torch.save file; if a run made it, delete it and run again"
SPOILT = "damaged; delete it and run again"


def write_torch(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` by `torch.save`, atomically; equal content gives equal bytes.

    Raises:
        InputError: The disk has no room for the file.
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


def read_torch(path: Path, unreadable: str = DAMAGED) -> Any:
    """Read a file of `torch.save`, tensors and plain values only.

    The checksums that it holds are compared, which torch does not do.

    Args:
        path: The file.
        unreadable: Text of the message for a damaged file or one of another type.

    Raises:
        InputError: The file is missing or is not such a file, or memory does not hold it.
    """
    try:
        if zipfile.is_zipfile(path):  # else it is in the form before torch 1.6
            _check_archive(path)
        return torch.load(path, map_location="cpu", weights_only=True)
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
    write_torch(path, {**content, _SEAL: content_digest(content)})


def unsealed(path: Path, content: Any) -> dict[str, Any]:
    """Return the content of a file of `write_sealed`, if no value of it was changed.

    Raises:
        InputError: One was; whoever also changes the seal is not noticed.
    """
    with restoring(path):
        rest = {key: value for key, value in content.items() if key != _SEAL}
        if content[_SEAL] != content_digest(rest):
            raise ValueError
    return rest


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Blame a file for the exceptions of the block that reads its content."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        if lacks_memory(e):
            raise
        raise InputError(f"{path}: {SPOILT}") from None


def content_digest(content: Any) -> str:
    """Return the SHA-256 of plain values and tensors inside dictionaries and lists."""
    found, ahead = hashlib.sha256(), [content]
    while ahead:
        value = ahead.pop()
        if isinstance(value, Mapping | list | tuple):
            ahead += value.items() if isinstance(value, Mapping) else value
            value = isinstance(value, Mapping), len(value)
        elif isinstance(value, Tensor):
            # one on `meta` holds nothing, an expanded one less than its shape claims
            if not value.is_meta and value.nbytes <= value.untyped_storage().nbytes():
                held: Any = value.detach().cpu().contiguous().as_strided((value.numel(),), (1,))
                found.update(held.view(torch.uint8).numpy())
            value = value.dtype, value.shape
        found.update(f"{type(value).__name__} {value!r}".encode())
    return found.hexdigest()


def _check_archive(path: Path) -> None:
    """Compare the checksums of a file's records, which torch does not compress.

    Raises:
        zipfile.BadZipFile: One differs, or a record claims that it is larger than the file, or has
            the name of another.
    """
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
        size = path.stat().st_size
        stored = all(record.compress_type == zipfile.ZIP_STORED for record in records)
        fits = sum(record.file_size for record in records) <= size
        single = len({record.filename for record in records}) == len(records)
        if not (stored and fits and single) or archive.testzip() is not None:
            raise zipfile.BadZipFile(path)
