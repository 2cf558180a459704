"""The memory that a process really takes stays within what was planned."""

from pathlib import Path

import pytest
import torch
from torch import nn

from actionspan.jobs.memory import forget_peak, keep_freed_memory, peak_bytes, resident_bytes
from actionspan.memory import plan_memory
from actionspan.memory.ways import make_way
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.weights import fold_batch_norms
from own_process import in_own_process

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="peak memory of a part of a run is read from /proc/self, which is not here",
)
COUNT, PIXELS = 60, 96


class Pictures:
    """8-bit pictures that are read as numbers."""

    def __init__(self):
        self.pictures = torch.randint(0, 256, (COUNT, 3, PIXELS, PIXELS), dtype=torch.uint8)
        self.nbytes = self.pictures.nbytes

    def __len__(self):
        return COUNT

    def __getitem__(self, rows):
        return (self.pictures[rows].float() - 127) / 128


def make_parts():
    encoder = EfficientNetLite0(3, 10).eval()
    encoder._fc = nn.Identity()
    fold_batch_norms(encoder)
    return encoder.requires_grad_(True), nn.Linear(1280, 1), Pictures()


def check_growth(budget_mb, ratio, execution, keep):
    """Raise an AssertionError if steps take more than a tenth above the budget."""
    torch.set_num_threads(1)
    if keep:
        keep_freed_memory()
    plan = plan_memory(*make_parts(), budget_mb, ratio)  # and with it libraries are loaded
    assert plan.execution == execution
    warm = nn.Conv2d(3, 4, 3)
    warm(torch.ones(2, 3, 8, 8)).sum().backward()
    torch.optim.Adam(warm.parameters()).step()
    before = resident_bytes()
    forget_peak()
    encoder, head, frames = make_parts()
    module = make_way(
        plan.way, encoder, plan.keep_ratio, execution=plan.execution, piece=plan.piece
    )
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    for _ in range(3):
        optimiser.zero_grad()
        head(module(frames)).mean().backward()
        optimiser.step()
    grown = (peak_bytes() - before) / 2**20
    assert grown <= 1.1 * budget_mb, f"grew by {grown:.0f} MB of {budget_mb} MB"
    assert grown > 0.4 * plan.expected_bytes / 2**20, f"only {grown:.0f} MB: measured in vain?"


@pytest.mark.full
@pytest.mark.parametrize(
    ("budget_mb", "ratio", "execution", "keep"),
    [(330, None, "split", False), (260, 0.5, "replay", True)],
)
def test_training_grows_by_the_budget_and_a_tenth_at_most(budget_mb, ratio, execution, keep):
    in_own_process(check_growth, budget_mb, ratio, execution, keep)
