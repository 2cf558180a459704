"""Public names are imported at their first use: importing a package alone stays light."""

import subprocess
import sys

import pytest

import actionspan

NAMES = {
    "actionspan": "load_model",
    "actionspan.demo.scenario": "demo_video_names",
    "actionspan.parallel": "ring_allreduce",
    "actionspan.proposals": "soft_nms",
    "actionspan.propose": "Proposer",
    "actionspan.temporal": "MTN",
}
LIGHT = f"""
import importlib, sys
for package, name in {NAMES}.items():
    importlib.import_module(package)
    assert not {{"numpy", "torch", "h5py", "cv2", "av"}} & set(sys.modules), package
from actionspan.cli import main
main(["schema"])
assert "actionspan.propose.command" not in sys.modules, "of another command"
importlib.import_module("actionspan.evaluation.reader")
assert not {{"torch", "scipy.stats", "matplotlib"}} & set(sys.modules), "seconds for each score"
for package, name in {NAMES}.items():
    assert getattr(importlib.import_module(package), name).__name__ == name
"""


def test_a_package_or_command_costs_nothing_before_it_is_used():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'actionspan' has no attribute 'load'"):
        actionspan.load  # noqa: B018
