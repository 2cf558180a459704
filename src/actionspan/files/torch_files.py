"""Files of torch: written atomically, read without running code."""

import pickletools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from actionspan.errors import InputError, lacks_memory
from actionspan.files.storage import atomic_path

DAMAGED = "not a complete torch.save file; if a run made it, delete it and run again"
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
        unreadable: What a message says of a file that is not such a file, or is damaged.
        ours: Whether `write_torch` made it, if nobody changed it: a file that asks for anything
            else than `_OURS`, or for more than its bytes, is refused. Its tensors are not copied.

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
