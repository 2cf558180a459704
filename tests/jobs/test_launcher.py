"""What a process knows of its launcher."""

import pytest

from actionspan.jobs.launcher import RANK, RANKS, is_rank


@pytest.mark.parametrize("name", [*RANK, *RANKS])
def test_a_process_with_a_rank_or_a_size_was_launched(monkeypatch, name):
    for other in (*RANK, *RANKS):
        monkeypatch.delenv(other, raising=False)
    assert not is_rank()
    monkeypatch.setenv(name, "0")  # PMIx tells the rank and no size
    assert is_rank()
