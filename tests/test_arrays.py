"""Numbers of arrays, against numpy's own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from actionspan.arrays import median

FINITE = st.floats(-(2**60), 2**60, width=32)


@given(arrays(np.float32, array_shapes(max_dims=3, max_side=8), elements=FINITE))
def test_a_median_is_that_of_numpy_to_the_bit(values: np.ndarray) -> None:
    found = median(values)
    assert found.dtype == np.float32
    assert found.tobytes() == np.median(values).tobytes()
