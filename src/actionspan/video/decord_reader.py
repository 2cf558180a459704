"""A video file's frames by decord, the back end that `video.decoder: decord` chooses.

Its seeking gives wrong frames in H.265 and in MPEG-4 with B-frames, and so does `skip_frames`,
which seeks too; reading on with `next` is right. Even then it gets three things wrong, each
reproduced by a file made for the tests:

- it rewinds by a seek before the first frame, and in MPEG-TS that loses the first frames;
- where fewer frames can be shown than the file has packets (an edit list trims it, or it begins in
  the middle of a GOP), it fills the end with stale frames;
- a frame with rows padded to 4 bytes or more a pixel comes back with that many channels.

The last is corrected. `decode.read_frames` reads the other files, and what follows an error, by
PyAV, which gives bitwise the same frames (10-bit ones differ by rounding).
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from actionspan.arrays import UInt8
from actionspan.lazy import needed


@cache
def decord() -> Any:
    """Return decord, imported so that torch and PyAV keep working.

    On import, decord2 (3.4) makes libraries visible to the entire process that only it needs:

    - every NVIDIA library installed, for its builds that decode on a GPU. libnvblas is among them;
      its BLAS takes the place of torch's, and the first convolution ends the process ("CPU Blas
      library need to be provided", or a segmentation fault). The wheel used here needs none.
    - its own FFmpeg: PyAV's FFmpeg then calls its functions instead of the ones that it was built
      with, and encoding H.265 fails once torch is loaded too.

    So the NVIDIA libraries are hidden from decord, and its own libraries stay private.

    Raises:
        InputError: It is not installed.
    """
    nvidia, visible = sys.modules.get("nvidia"), ctypes.RTLD_GLOBAL
    sys.modules["nvidia"] = None  # type: ignore[assignment]  # looks as if it were not installed
    ctypes.RTLD_GLOBAL = ctypes.RTLD_LOCAL  # type: ignore[misc]
    try:
        module = needed("decord", "decord")
    finally:
        ctypes.RTLD_GLOBAL = visible  # type: ignore[misc]
        del sys.modules["nvidia"]
        if nvidia is not None:
            sys.modules["nvidia"] = nvidia
    module.logging.set_level(module.logging.QUIET)
    return module


def decord_pictures(path: Path) -> Iterator[Callable[[], UInt8]]:
    """Yield functions that return each frame's (H, W, 3) RGB image.

    They end early, without an error, where decord cannot continue.
    """
    base = needed("decord._ffi.base", "decord")
    errors = (base.DECORDError, base.DECORDLimitReachedError, RuntimeError, AssertionError)
    try:
        # The tolerance is a share of the frames: at this value the first stale frame is an error.
        reader = decord().VideoReader(str(path.absolute()), num_threads=1, fault_tol=1e-9)
        for _ in range(len(reader)):
            yield partial(_picture, reader.next())
    except (*errors, StopIteration):
        return


def _picture(frame: Any) -> UInt8:
    pixels: UInt8 = frame.asnumpy()
    height, width, channels = pixels.shape
    if channels != 3:  # rows padded to 4 bytes or more a pixel
        pixels = pixels.reshape(height, -1)[:, : 3 * width].reshape(height, width, 3)
    return pixels
