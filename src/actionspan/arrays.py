"""Arrays by the type of their numbers, for annotations."""

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
