"""What a deterministic block sets for torch and its libraries."""

import os

import numpy as np
import pytest
import torch

from actionspan.jobs.determinism import deterministic, seed_torch

NAME = "CUBLAS_WORKSPACE_CONFIG"


@pytest.mark.parametrize(("given", "found"), [(None, ":4096:8"), (":16:8", ":16:8")])
def test_cublas_has_a_workspace_that_repeats(monkeypatch, given, found):
    """Both values are those that CUDA's documentation and torch ask for."""
    monkeypatch.setenv(NAME, "")  # so that it is put back
    monkeypatch.delenv(NAME)
    if given:
        monkeypatch.setenv(NAME, given)
    with deterministic(threads=1):
        assert torch.get_deterministic_debug_mode() == 2
        assert os.environ[NAME] == found


def test_a_seed_is_that_of_torch_for_all_its_generators(monkeypatch):
    seed = int(np.random.SeedSequence((3, 1)).generate_state(1, np.uint64)[0])
    expected = torch.rand(3, generator=torch.Generator().manual_seed(seed)).tolist()
    seed_torch(3, 1)
    assert torch.rand(3).tolist() == expected
    seeded = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch, "manual_seed", seeded.append)
    seed_torch(3, 1)
    assert seeded == [seed], "a GPU's generators too"
