"""Read pickles that hold numpy arrays in plain containers, and no others.

A pickle can run any code. This reader knows the functions that rebuild numpy arrays; anything else
that a file asks for is refused before it is called.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct, scalar
from numpy._core.numeric import _frombuffer  # type: ignore[attr-defined]

from actionspan.errors import InputError


def _encode(text: str, encoding: str) -> bytes:
    """Rebuild the bytes of an array from protocols 0 to 2, which store them as latin-1 text."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes stored as {encoding} text")
    return text.encode(encoding)


ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
} | {
    (f"numpy.{core}.{module}", function.__name__): function
    for core in ("core", "_core")
    for module, function in (
        ("multiarray", _reconstruct),
        ("multiarray", scalar),
        ("numeric", _frombuffer),
    )
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return an allowed function, or refuse."""
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return ALLOWED[module, name]


def load_arrays(path: Path) -> Any:
    """Read a pickle of numpy arrays, numbers, texts, lists and dictionaries.

    Raises:
        InputError: The file is missing, damaged, or asks for anything else.
    """
    try:
        with path.open("rb") as file:
            content = _ArraysOnly(file, encoding="latin1").load()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except pickle.UnpicklingError as error:
        raise InputError(f"{path}: not a pickle of numpy arrays alone: {error}") from None
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(f"{path}: a damaged pickle: {type(error).__name__}") from None
    if _holds_objects(content):
        raise InputError(f"{path}: not a pickle of numpy arrays alone: it holds object arrays")
    return content


def _holds_objects(content: Any) -> bool:
    if isinstance(content, dict | list | tuple):
        values = content.values() if isinstance(content, dict) else content
        return any(map(_holds_objects, values))
    return isinstance(content, np.ndarray) and content.dtype.hasobject
