"""What ranks decide before anything is exchanged: shares, processes, buckets, tags."""

from unittest import mock

import pytest
import torch
from torch import nn

from actionspan.jobs import launcher
from actionspan.parallel import ParallelSettings, make_replica
from actionspan.parallel.buckets import plan_buckets
from actionspan.parallel.member import share
from actionspan.parallel.replica import check_tags
from actionspan.parallel.settings import EXCHANGES, processes


def test_shares_are_contiguous_and_even():
    for count in (0, 1, 5, 16):
        rows = [share(count, worker, 3) for worker in range(3)]
        assert [row for one in rows for row in range(count)[one]] == list(range(count))
        sizes = [one.stop - one.start for one in rows]
        assert max(sizes) - min(sizes) <= 1
    assert share(16, None, 3) == slice(0, 0)


def test_servers_take_a_process_of_their_own():
    for name in EXCHANGES:
        workers = 1 if name == "none" else 4
        assert processes(name, workers) == workers + (name in ("ps", "ps_async"))
    for wrong in (("none", 2), ("ring", 0), ("rings", 2)):
        with pytest.raises(ValueError, match="exchange|ranks"):
            processes(*wrong)


def test_an_optimiser_of_another_model_is_refused():
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimiser = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
    with pytest.raises(ValueError, match="does not belong to the model"):
        make_replica("none", model, optimiser, ParallelSettings())


def test_buckets_are_of_one_type_and_no_larger_than_asked():
    parameters = [nn.Parameter(torch.zeros(10)) for _ in range(5)]
    parameters[2] = nn.Parameter(torch.zeros(10, dtype=torch.float64))
    plan = plan_buckets(parameters, 80)
    assert [len(bucket.parameters) for bucket in plan] == [2, 1, 2]
    order = [one for bucket in plan for one in bucket.parameters]
    assert all(one is two for one, two in zip(order, reversed(parameters), strict=True))
    assert plan[1].flat.dtype == torch.float64
    with pytest.raises(ValueError, match="no parameter"):
        plan_buckets([], 80)


def test_more_buckets_than_tags_are_refused():
    comm = mock.Mock(Get_attr=lambda key: 49)
    check_tags(comm, 9)
    with pytest.raises(ValueError, match="tags up to 49; raise bucket_kib"):
        check_tags(comm, 10)


def test_a_machine_is_crowded_by_more_ranks_than_cores(monkeypatch):
    for name in launcher.LOCAL_RANKS:
        monkeypatch.delenv(name, raising=False)
    assert not launcher.crowded()
    for more in (0, 1):
        monkeypatch.setenv("MPI_LOCALNRANKS", str(launcher.cores() + more))
        assert launcher.crowded() == bool(more)
