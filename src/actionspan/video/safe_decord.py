"""decord, imported so that torch works after it.

On import decord2 (3.4) loads every NVIDIA library installed into the process's global names, for
builds that decode on a GPU. libnvblas is among them; its BLAS then takes the place of torch's, and
the first convolution ends the process ("CPU Blas library need to be provided", or a segmentation
fault). The wheel used here needs none of them, so they are hidden from it.
"""

import importlib
import sys
from typing import Any


def _import_decord() -> Any:
    known = sys.modules.get("nvidia")
    sys.modules["nvidia"] = None  # type: ignore[assignment]  # what it looks for: not installed
    try:
        return importlib.import_module("decord")
    finally:
        if known is None:
            del sys.modules["nvidia"]
        else:
            sys.modules["nvidia"] = known


decord = _import_decord()
decord.logging.set_level(decord.logging.QUIET)

_base = importlib.import_module("decord._ffi.base")
# What its reader raises; StopIteration at the end, AssertionError for a file without frames.
DECORD_ERRORS: tuple[type[Exception], ...] = (
    _base.DECORDError,
    _base.DECORDLimitReachedError,
    RuntimeError,
    AssertionError,
    StopIteration,
)
