"""What a deterministic block sets for torch and its libraries."""

import os

import pytest
import torch

from actionspan.jobs.determinism import deterministic

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
