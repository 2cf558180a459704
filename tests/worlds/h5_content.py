"""All that HDF5 files hold, to compare them."""

from pathlib import Path
from typing import Any

import h5py


def content(path: Path) -> dict[str, tuple[Any, ...]]:
    """Return by name the attributes of all in a file, and bytes, type and shape of data sets."""
    held: dict[str, tuple[Any, ...]] = {}

    def note(name: str, item: Any) -> None:
        is_data = isinstance(item, h5py.Dataset)
        data = (item[()].tobytes(), item.dtype, item.shape) if is_data else ()
        held[name] = sorted(map(str, item.attrs.items())), *data

    with h5py.File(path) as file:
        note("/", file)
        file.visititems(note)
    return held
