"""decord, imported so that torch and PyAV keep working.

On import, decord2 (3.4) makes libraries visible to the entire process that only it needs:

- every NVIDIA library installed, for its builds that decode on a GPU. libnvblas is among them; its
  BLAS takes the place of torch's, and the first convolution ends the process ("CPU Blas library
  need to be provided", or a segmentation fault). The wheel used here needs no NVIDIA library.
- its own FFmpeg, whose functions PyAV's FFmpeg then calls instead of those it was built with:
  encoding H.265 fails once torch is loaded too.

So the NVIDIA libraries are hidden from decord, and its own libraries stay private.
"""

import ctypes
import importlib
import sys
from typing import Any


def _import_decord() -> Any:
    nvidia, visible = sys.modules.get("nvidia"), ctypes.RTLD_GLOBAL
    sys.modules["nvidia"] = None  # type: ignore[assignment]  # looks as if it were not installed
    ctypes.RTLD_GLOBAL = ctypes.RTLD_LOCAL  # type: ignore[misc]
    try:
        return importlib.import_module("decord")
    finally:
        ctypes.RTLD_GLOBAL = visible  # type: ignore[misc]
        del sys.modules["nvidia"]
        if nvidia is not None:
            sys.modules["nvidia"] = nvidia


decord = _import_decord()
decord.logging.set_level(decord.logging.QUIET)

_base = importlib.import_module("decord._ffi.base")
_own = (_base.DECORDError, _base.DECORDLimitReachedError)
# What its reader raises; StopIteration at the end, AssertionError for a file without frames.
DECORD_ERRORS: tuple[type[Exception], ...]
DECORD_ERRORS = (*_own, RuntimeError, AssertionError, StopIteration)
