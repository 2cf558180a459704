"""Marks that the tests of the executors share."""

import pytest

from streaming.networks import EXECUTORS, MODES

every_executor = pytest.mark.parametrize("executor", EXECUTORS)
every_mode = pytest.mark.parametrize("mode", MODES)
with_workers = pytest.mark.parametrize("executor", ["thread", "process"])
learning_or_not = pytest.mark.parametrize("learning", [False, True])
