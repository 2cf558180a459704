"""Resident memory follows what is written to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

if not Path("/proc/self/clear_refs").exists():
    pytest.skip("there is no /proc/self/clear_refs here", allow_module_level=True)

SIZE = 200_000_000
# in a process of its own: one that has freed much before takes from that, and does not grow
HOLD_AND_FREE = f"""
import json
import numpy as np
from actionspan.jobs.memory import forget_peak, peak_bytes, resident_bytes
forget_peak()
before = resident_bytes()
numbers = np.ones({SIZE}, np.uint8)
held = resident_bytes()
del numbers
peak = peak_bytes()
forget_peak()
print(json.dumps([before, held, peak, peak_bytes()]))
"""


def test_the_highest_value_is_of_what_was_freed_too_until_it_is_forgotten():
    figures = subprocess.run(
        [sys.executable, "-c", HOLD_AND_FREE], check=True, capture_output=True, text=True
    ).stdout
    before, held, peak, forgotten = json.loads(figures)
    assert held - before == pytest.approx(SIZE, rel=0.1)
    assert peak >= 0.99 * held  # the kernel adds up now and then
    assert forgotten < held - SIZE / 2
