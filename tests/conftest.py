"""Fixtures that tests of several stages share."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# A busy machine is no failure; a failing example can be repeated from what is printed.
settings.register_profile("actionspan", deadline=None, print_blob=True)
settings.load_profile("actionspan")

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real videos, annotations and weights beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real data are not here: {SHARED_DATA} is missing")
    return SHARED_DATA


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
