"""The mean of models, optimiser states and buffers, against arithmetic without rounding."""

import contextlib
import copy
from fractions import Fraction
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from actionspan.parallel import InProcessAveraging, ModelAveraging, ParallelSettings
from actionspan.parallel.averaging import Learner, average, ring_sum
from actionspan.parallel.ring import block_bounds, gather_rounds, scatter_rounds

OPTIMISERS = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "amsgrad": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "plain": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
}


class Net(nn.Module):
    """Batch norm, dropout, a frozen and an unused parameter, buffers of several types."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(3, 6, 3)
        self.norm = nn.BatchNorm1d(6)
        self.instance = nn.InstanceNorm1d(6, track_running_stats=True)
        self.stateless = nn.BatchNorm1d(6, track_running_stats=False)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(6, 2)
        self.unused = nn.Linear(2, 2)
        self.frozen = nn.Parameter(torch.full((2,), 0.1), requires_grad=False)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("constant", torch.tensor([0.1, 1 / 3, 7e8]))

    def forward(self, x):
        self.seen += len(x)
        hidden = self.stateless(self.instance(self.norm(self.first(x))))
        return self.last(self.drop(hidden.relu()).mean(2)) + self.frozen


def learners_after(count, steps, optimiser_of, idle=()):
    """Return learners that made some steps of their own, some learners without any gradient."""
    torch.manual_seed(5)
    first = Net()
    learners = []
    for number in range(count):
        model = copy.deepcopy(first)
        optimiser = optimiser_of(model.parameters())
        for step in range(steps + number):
            torch.manual_seed(100 * number + step)
            optimiser.zero_grad()
            if number not in idle:
                model(number + torch.randn(5, 3, 9)).square().mean().backward()
            optimiser.step()
        learners.append(Learner(model, optimiser))
    return learners


def mean_of(tensors):
    return sum(one.detach().double() for one in tensors) / len(tensors)


def close(one, two):
    return torch.allclose(one.detach().double(), two, rtol=1e-6, atol=1e-9)


def state_tensors(learner):
    return {
        (number, key): value.clone()
        for number, one in enumerate(learner.model.parameters())
        for key, value in learner.optimiser.state.get(one, {}).items()
        if isinstance(value, torch.Tensor)
    }


def assert_equal(one, other):
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


@given(st.integers(1, 5), st.integers(0, 23), st.integers(0, 2**32 - 1))
def test_ring_sum_adds_in_the_order_of_the_rounds_of_the_ring(size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(length, generator=generator) for _ in range(size)]
    expected, bounds = [one.clone() for one in tensors], block_bounds(length, size)
    for schedule, add in ((scatter_rounds, True), (gather_rounds, False)):
        for moves in zip(*(schedule(rank, size) for rank in range(size)), strict=True):
            sent = [
                expected[rank][bounds[move.send] : bounds[move.send + 1]].clone()
                for rank, move in enumerate(moves)
            ]
            for rank, move in enumerate(moves):
                into = expected[rank][bounds[move.receive] : bounds[move.receive + 1]]
                into.copy_(into + sent[move.source] if add else sent[move.source])
    ring_sum(tensors)
    assert all(torch.equal(one, two) for one, two in zip(tensors, expected, strict=True))


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_everything_is_averaged(optimiser, count):
    learners = learners_after(count, 2, OPTIMISERS[optimiser])
    before = copy.deepcopy(learners)
    old_states = [state_tensors(one) for one in learners]
    average(learners, ring_sum, count, whole_state=True)

    for learner in learners:
        every = (one.model.parameters() for one in (learner, *before))
        for parameter, *owned in zip(*every, strict=True):
            assert close(parameter, mean_of(owned))
        state = state_tensors(learner)
        assert set(state) == set(old_states[0])
        for key, value in state.items():
            assert close(value, mean_of([one[key] for one in old_states])), key
        for norm in ("norm", "instance"):
            olds = [getattr(one.model, norm) for one in before]
            mean = mean_of([one.running_mean for one in olds])
            spread = mean_of([(one.running_mean.double() - mean) ** 2 for one in olds])
            assert close(getattr(learner.model, norm).running_mean, mean)
            variance = mean_of([one.running_var for one in olds]) + spread
            assert close(getattr(learner.model, norm).running_var, variance)
        tracked = [int(one.model.norm.num_batches_tracked) for one in before]
        assert int(learner.model.norm.num_batches_tracked) == round(sum(tracked) / count)
        assert int(learner.model.seen) == round(sum(5 * steps for steps in tracked) / count)
        assert torch.equal(learner.model.constant, before[0].model.constant)
    assert bool(old_states[0]) == (optimiser != "plain")
    if count > 1:
        moved = learners[0].model.first.weight - before[0].model.first.weight
        assert moved.abs().max() > 1e-4


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("idle", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_a_learner_without_gradients_counts_as_one_whose_state_is_zero(optimiser, idle):
    learners = learners_after(3, 2, OPTIMISERS[optimiser], idle)
    states = [state_tensors(one) for one in learners]
    weights = [one.model.first.weight.detach().clone() for one in learners]
    average(learners, ring_sum, 3, whole_state=True)
    known = set().union(*states)
    assert bool(known) == (len(idle) < 3 and optimiser != "plain")
    for learner in learners:
        now = state_tensors(learner)
        assert set(now) == known
        for key, value in now.items():
            total = sum(state[key].double() for state in states if key in state)
            assert close(value, total / 3), key
        assert close(learner.model.first.weight, mean_of(weights))
        for step in range(2):  # and it trains on with it
            learner.model(torch.randn(5, 3, 9) + step).sum().backward()
            learner.optimiser.step()


def printed_variance(means, variances, dtype):
    """Line 6 of algorithm 2 as paper 003 prints it: z/P - (m/P)²."""
    means, variances = (torch.stack(x).to(dtype) for x in (means, variances))
    z = (variances + means**2).sum(0)
    return z / len(means) - (means.sum(0) / len(means)) ** 2


@pytest.mark.parametrize(("offset", "printed_in"), [(1e3, torch.float32), (3e7, torch.float64)])
def test_variances_keep_their_digits_where_the_printed_form_loses_them(offset, printed_in):
    learners = learners_after(3, 1, OPTIMISERS["plain"])
    generator = torch.Generator().manual_seed(2)
    for learner in learners:
        norm = learner.model.norm
        norm.running_mean.copy_(
            offset + torch.randn(6, generator=generator) * 1e-3 * (offset < 1e6)
        )
        norm.running_var.copy_(1e-4 * torch.rand(6, generator=generator))
    means = [one.model.norm.running_mean.clone() for one in learners]
    variances = [one.model.norm.running_var.clone() for one in learners]
    values = []
    for channel in range(6):
        m = [Fraction(float(one[channel])) for one in means]
        v = [Fraction(float(one[channel])) for one in variances]
        values.append(float(sum(v) / 3 + sum((x - sum(m) / 3) ** 2 for x in m) / 3))
    average(learners, ring_sum, 3, whole_state=True)
    found = learners[0].model.norm.running_var
    exact = torch.tensor(values, dtype=torch.float64)
    assert torch.allclose(found.double(), exact, rtol=1e-6, atol=0)
    printed = printed_variance(means, variances, printed_in).double()
    assert ((printed - exact).abs() / exact).max() > 0.1


@pytest.mark.parametrize(
    "kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str
)
@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.SyncBatchNorm])
def test_the_variance_of_all_is_that_of_each_and_that_of_the_means(norm, kind):
    """Law of total variance: (1 + 1) / 2 + ((0 - 5)² + (10 - 5)²) / 2 = 26."""
    models = [norm(2).to(kind) for _ in range(2)]
    for model, mean in zip(models, (0.0, 10.0), strict=True):
        model.running_mean.fill_(mean)
    learners = [Learner(model, torch.optim.SGD(model.parameters())) for model in models]
    average(learners, ring_sum, 2, whole_state=True)
    for model in models:
        assert model.running_mean.tolist() == [5.0, 5.0]
        assert model.running_var.tolist() == [26.0, 26.0]
        assert model.running_var.dtype == kind


@pytest.mark.parametrize("whole_state", [False, True])
def test_learners_keep_their_own_frozen_parameters(whole_state):
    learners = learners_after(3, 2, OPTIMISERS["adam"])
    for number, learner in enumerate(learners):
        learner.model.frozen.data.fill_(number)
    average(learners, ring_sum, 3, whole_state)
    assert [learner.model.frozen.tolist() for learner in learners] == [[0, 0], [1, 1], [2, 2]]


def test_the_mean_of_whole_numbers_is_rounded():
    learners = learners_after(3, 1, OPTIMISERS["plain"])
    for learner, seen, flag in zip(learners, (1, 3, 4), (True, False, False), strict=True):
        learner.model.seen.fill_(seen)
        learner.model.register_buffer("flag", torch.tensor(flag))
    average(learners, ring_sum, 3, whole_state=True)
    assert [int(one.model.seen) for one in learners] == [3, 3, 3]
    assert [bool(one.model.flag) for one in learners] == [False] * 3


def test_half_precision_models_are_averaged_in_float32():
    models = [nn.Linear(4, 3).to(torch.bfloat16) for _ in range(3)]
    learners = [Learner(one, torch.optim.SGD(one.parameters())) for one in models]
    exact = mean_of([one.weight for one in models])
    average(learners, ring_sum, 3, whole_state=True)
    assert all(torch.equal(one.weight, models[0].weight) for one in models)
    assert torch.equal(models[0].weight, exact.to(torch.bfloat16))


def in_process(count, steps, settings, optimiser="adam"):
    """Train learners on different data, with a normal end of an epoch every five steps."""
    torch.manual_seed(1)
    models = [Net() for _ in range(count)]  # alike from learner 0's values on
    optimisers = [OPTIMISERS[optimiser](one.parameters()) for one in models]
    averaging = InProcessAveraging(models, optimisers, settings)
    for step in range(steps):
        train_one(averaging, step)
        if step % 5 == 4:
            averaging.synchronise()
    return averaging


def train_one(averaging, step):
    for number, (model, optimiser) in enumerate(averaging.learners):
        torch.manual_seed(1000 * step + number)
        optimiser.zero_grad()
        model(torch.randn(4, 3, 9) + number).square().mean().backward()
    averaging.step()


def bits(model):
    return torch.cat([one.detach().double().flatten() for one in model.state_dict().values()])


@pytest.mark.parametrize(("steps", "averages"), [(-1, 2), (1, 10), (2, 6), (3, 4), (5, 2), (6, 2)])
def test_learners_average_every_k_steps_and_where_an_epoch_ends(steps, averages):
    averaging = in_process(2, 10, ParallelSettings(averaging_steps=steps))
    assert averaging.averages == averages
    one, two = (bits(learner.model) for learner in averaging.learners)
    assert torch.equal(one, two)
    averaging.synchronise()
    assert averaging.averages == averages, "nothing has changed since"
    train_one(averaging, 11)
    alike = torch.equal(*(bits(learner.model) for learner in averaging.learners))
    assert alike == (steps == 1)


def test_k_1_of_plain_sgd_is_a_step_by_the_mean_gradient():
    torch.manual_seed(0)
    models = [nn.Linear(5, 2).double() for _ in range(3)]
    alone = copy.deepcopy(models[0])
    *optimisers, optimiser = (OPTIMISERS["sgd"](m.parameters()) for m in (*models, alone))
    averaging = InProcessAveraging(models, optimisers, ParallelSettings(averaging_steps=1))
    for _ in range(6):
        x = torch.randn(12, 5, dtype=torch.float64)
        for (model, own), rows in zip(averaging.learners, averaging.shares(12), strict=True):
            own.zero_grad()
            model(x[rows]).square().mean().backward()
        averaging.step()
        optimiser.zero_grad()
        alone(x).square().mean().backward()
        optimiser.step()
    assert torch.allclose(models[2].weight, alone.weight, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("whole", [True, False])
def test_validation_sees_the_first_buffers_and_training_its_own(whole):
    averaging = in_process(3, 5, ParallelSettings(average_state=whole))
    own = [list(map(torch.clone, learner.model.buffers())) for learner in averaging.learners]
    assert all(map(torch.equal, own[0], own[1])) == whole
    with averaging.first_buffers():
        for learner in averaging.learners:
            assert all(map(torch.equal, learner.model.buffers(), own[0]))
    for learner, before in zip(averaging.learners, own, strict=True):
        assert all(map(torch.equal, learner.model.buffers(), before))


@pytest.mark.parametrize("whole", [True, False])
def test_own_state_is_what_a_checkpoint_of_the_first_learner_lacks(whole):
    settings = ParallelSettings(averaging_steps=2, average_state=whole)
    averaging = in_process(3, 5, settings)
    model, optimiser = copy.deepcopy(averaging.learners[0])
    own = copy.deepcopy(averaging.own_state())
    assert (own is None) == whole
    for step in range(5, 10):
        train_one(averaging, step)
    averaging.synchronise()

    models = [copy.deepcopy(model) for _ in range(3)]
    optimisers = [OPTIMISERS["adam"](one.parameters()) for one in models]
    for one in optimisers:
        one.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    again = InProcessAveraging(models, optimisers, settings)
    again.restore_own(own)
    kept = copy.deepcopy(own)
    for step in range(5, 10):
        train_one(again, step)
    again.synchronise()
    for one, two in zip(averaging.learners, again.learners, strict=True):
        assert torch.equal(bits(one.model), bits(two.model))
        assert_equal(state_tensors(one), state_tensors(two))
    if not whole:  # what was given back is a copy: the state can be used again
        for number, state in own[1]["optimiser"]["state"].items():
            assert_equal(state, kept[1]["optimiser"]["state"][number])
        assert all(map(torch.equal, own[1]["buffers"], kept[1]["buffers"]))
        first = min(own[1]["optimiser"]["state"])
        now = state_tensors(again.learners[1])[first, "exp_avg"]
        assert not torch.equal(own[1]["optimiser"]["state"][first]["exp_avg"], now)


def test_models_without_optimisers_and_an_interval_of_no_steps_are_refused():
    with pytest.raises(ValueError, match="1 models and 0 optimisers"):
        InProcessAveraging([nn.Linear(1, 1)], [], ParallelSettings())
    for wrong in (0, -2):
        with pytest.raises(ValueError, match=f"averaging_steps {wrong}"):
            ParallelSettings(averaging_steps=wrong)


def test_what_learners_keep_for_themselves_travels_in_host_memory(monkeypatch):
    """Rank 0 would unpack what lies on a GPU on the GPU of that number, which is not its own."""
    on_gpu, on_host = (mock.create_autospec(torch.Tensor, instance=True) for _ in range(2))
    on_gpu.cpu.return_value = on_host
    own = {"optimiser": {"state": {0: {"step": 3, "mean": on_gpu}}}, "buffers": [on_gpu]}
    replica = object.__new__(ModelAveraging)
    replica.whole_state, replica.comm = False, mock.Mock()
    replica.learners = [mock.Mock(own_state=lambda: own)]
    monkeypatch.setattr(replica, "_waiting", lambda what: contextlib.nullcontext(), raising=False)
    replica.own_state()
    (sent,) = replica.comm.gather.call_args.args
    assert sent["optimiser"]["state"][0]["mean"] is sent["buffers"][0] is on_host
    assert sent["optimiser"]["state"][0]["step"] == 3
