"""Files of torch: written atomically, read without running code."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from actionspan.errors import InputError, lacks_memory
from actionspan.files.storage import atomic_path

DAMAGED = "not a complete torch.save file; delete it and run again"


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


def read_torch(path: Path, unreadable: str = DAMAGED) -> Any:
    """Read a file of `torch.save`, tensors and plain values only.

    The checksums that it holds are compared, which torch does not do.

    Args:
        path: The file.
        unreadable: What a message says of a file that is not such a file, or is damaged.

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


def _check_archive(path: Path) -> None:
    """Compare the checksums of a file's records, which torch does not compress.

    Raises:
        zipfile.BadZipFile: One differs, or a record says that it is larger than the file.
    """
    with zipfile.ZipFile(path) as archive:
        stored = all(record.compress_type == zipfile.ZIP_STORED for record in archive.infolist())
        if not stored or archive.testzip() is not None:
            raise zipfile.BadZipFile(path)
