"""Files of torch: written atomically, read without running code."""

import pickle
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from actionspan.errors import InputError
from actionspan.files.storage import atomic_path

# What torch.load raises, besides OSError, for files that torch did not write and truncated files.
UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError, struct.error)


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


def read_torch(path: Path) -> Any:
    """Read what `write_torch` wrote, tensors and plain values only.

    Raises:
        InputError: The file is missing or is not such a file.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (*UNREADABLE, OSError):
        reason = "not a complete torch.save file; delete it and run again"
        raise InputError(f"{path}: {reason}") from None
