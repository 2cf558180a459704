"""Public names are imported at their first use: importing a package alone stays light."""

import subprocess
import sys

import pytest

import actionspan

LIGHT = """
import sys
import {package}
assert not {{"numpy", "torch", "h5py", "cv2"}} & set(sys.modules)
from {package} import {name}
assert {name}.__name__ == "{name}"
"""


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("actionspan", "load_model"),
        ("actionspan.parallel", "ring_allreduce"),
        ("actionspan.proposals", "soft_nms"),
        ("actionspan.propose", "Proposer"),
        ("actionspan.temporal", "MTN"),
    ],
)
def test_a_package_costs_nothing_before_a_name_is_used(package, name):
    code = LIGHT.format(package=package, name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'actionspan' has no attribute 'load'"):
        actionspan.load  # noqa: B018
