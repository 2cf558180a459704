"""Every executor gives the same bits, whoever is slow, and whenever it goes on from a state."""

import copy
import io
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from actionspan.streaming import Pipeline
from streaming.conftest import every_executor, every_mode, with_workers
from streaming.networks import (
    MODES,
    Enter,
    Leave,
    Slow,
    Within,
    adam,
    chain,
    halving,
    mixed,
    momentum,
    same,
    sgd,
    squared,
    stream,
    weights,
)
from tiers import first_tier

CLIPPED = {"optimiser": adam, "schedule": halving, "clip": 0.5}


def learned(network, executor, samples, **how):
    """Return losses, and outputs with the weights after the stream."""
    how = {"loss": squared, "optimiser": momentum, "stall_seconds": 30.0} | how
    with Pipeline(network, executor, **how) as pipeline:
        answers = list(pipeline.run(samples))
    assert [answer.index for answer in answers] == list(range(len(samples)))
    outputs = [answer.output for answer in answers]
    return [answer.loss for answer in answers], outputs + weights(network)


def assert_same(found, expected):
    assert found[0] == expected[0]
    assert same(found[1], expected[1])


@every_mode
@with_workers
def test_learning_gives_the_same_bits(executor, mode):
    samples, how = stream(15, double=False), {"gradients": mode, **CLIPPED}
    expected = learned(mixed(), "sequential", samples, **how)
    assert_same(learned(mixed(), executor, samples, **how), expected)


@with_workers
@pytest.mark.parametrize("slow", first_tier(range(3), 1))
def test_slow_stages_change_nothing_in_any_of_several_runs(executor, slow):
    samples = stream(12)
    expected = learned(chain(3), "sequential", samples)
    for run in range(3):
        network = chain(3)
        network[slow] = nn.Sequential(Slow(run), network[slow], Slow(run + 9))
        assert_same(learned(network, executor, samples), expected)


@every_mode
def test_dropout_repeats_with_its_seed(mode):
    samples = stream(12, double=False)
    first, *others, another = (
        learned(mixed(dropout=0.4), executor, samples, seed=seed, gradients=mode)
        for executor, seed in [("sequential", 1), ("sequential", 1), ("process", 1), ("process", 2)]
    )
    for other in others:
        assert_same(other, first)
    assert another[0] != first[0]


@pytest.mark.parametrize("mode", ["inputs", "stash"])
def test_a_second_forward_pass_repeats_dropout_and_counts_batch_norm_once(mode):
    """With no learning, gradients with the stored mask are those of plain training."""
    samples, network = stream(6, double=False), mixed(dropout=0.4)
    seen: list[list[torch.Tensor]] = []
    true: list[tuple[torch.Tensor, ...]] = []
    plain = copy.deepcopy(network)

    def noting(parameters):
        seen.append([parameter.grad.clone() for parameter in parameters])

    how = {"optimiser": partial(torch.optim.SGD, lr=0.0), "clip": [noting, None, None]}
    with Pipeline(network, loss=squared, gradients=mode, **how) as pipeline:
        list(pipeline.run(samples))
    # each stage has its own random numbers: draw them in turn
    states = [torch.Generator().manual_seed(h).get_state() for h in range(3)]
    with torch.random.fork_rng():
        for x, y in samples:
            for h, stage in enumerate(plain):
                torch.set_rng_state(states[h])
                x = stage(x)
                states[h] = torch.get_rng_state()
            true.append(torch.autograd.grad(squared(x, y), list(plain[0].parameters())))
    assert len(seen) == len(true)
    for gradients, right in zip(seen, true, strict=True):
        assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(gradients, right, strict=True))
    for ours, theirs in zip(network, plain, strict=True):
        assert same(list(ours.buffers()), list(theirs.buffers()))


def test_threads_refuse_whatever_draws_and_stay_as_they_were():
    with pytest.raises(ValueError, match="stage 1 of 3 has active dropout"):
        Pipeline(mixed(dropout=0.5), "thread", loss=squared, optimiser=sgd)
    network = [stage.eval() for stage in mixed(dropout=0.5)]
    with Pipeline(network, "thread", loss=squared, optimiser=sgd) as pipeline:
        assert len(list(pipeline.run(stream(5, double=False)))) == 5
        with pytest.raises(ValueError, match="stage 1 of 3 has active dropout"):
            pipeline.train()
        assert not network[0].training
    attention = nn.MultiheadAttention(4, 2, dropout=0.5)
    for stage in (attention, nn.LSTM(2, 2, 2, dropout=0.5), nn.RReLU()):
        with pytest.raises(ValueError, match="active dropout"):
            Pipeline([stage], "thread")


@every_executor
def test_batch_norm_is_that_of_each_sample_once_and_eval_is_by_stage(executor):
    network = mixed()
    plain, samples = copy.deepcopy(network), [x for x, _ in stream(9, double=False)]
    with Pipeline(network, executor) as pipeline:
        list(pipeline.run(samples))
        pipeline.eval(1)
        list(pipeline.run(samples))
    with torch.no_grad():
        for x in samples:
            plain[1](plain[0](x))
        plain[1].eval()
        for x in samples:
            plain[1](plain[0](x))
    for ours, theirs in zip(network, plain, strict=True):
        assert same(list(ours.buffers()), list(theirs.buffers()))
    assert [stage.training for stage in network] == [True, False, True]


@settings(max_examples=25)
@given(
    cut=st.integers(0, 9),
    mode=st.sampled_from(MODES),
    first=st.sampled_from(["sequential", "thread"]),
    second=st.sampled_from(["sequential", "thread"]),
)
def test_a_state_at_any_step_goes_on_bitwise(cut, mode, first, second):
    _goes_on(cut, mode, first, second)


@every_mode
@pytest.mark.parametrize("executors", [("process", "sequential"), ("sequential", "process")])
@pytest.mark.parametrize("cut", first_tier([0, 1, 3, 7], 3))
def test_a_state_goes_on_in_another_process(executors, mode, cut):
    _goes_on(cut, mode, *executors)


def _goes_on(cut, mode, first, second):
    """Go on from a file, twice, also where something else ran before."""
    samples = stream(9, double=False)
    drop = 0.3 if "thread" not in (first, second) else 0.0
    how = {"loss": squared, "stall_seconds": 30.0, "gradients": mode, "seed": 4, **CLIPPED}
    expected = learned(mixed(drop), "sequential", samples, **how)
    losses, file, other = [], io.BytesIO(), mixed(drop)
    with Pipeline(mixed(drop), first, **how) as pipeline:
        for x, y in samples[:cut]:
            answer = pipeline.step(x, y)
            losses += [answer.loss] if answer else []
        torch.save(pipeline.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert state["samples"] == cut
    for parameter in (p for stage in other for p in stage.parameters()):
        parameter.data.zero_()
    with Pipeline(other, second, **how) as pipeline:
        for x, y in samples[:4]:  # goes astray
            pipeline.step(x, y)
        for _ in range(2):
            pipeline.load_state_dict(state)
            again = [answer.loss for answer in pipeline.run(samples[cut:])]
            assert losses + again == expected[0]
    assert same(weights(other), expected[1][len(samples) :])


@every_executor
def test_answers_not_yet_taken_are_in_the_state(executor):
    samples = [x for x, _ in stream(6)]
    with Pipeline(chain(2), executor) as pipeline:
        for x in samples[:4]:
            pipeline.submit(x)
        state = pipeline.state_dict()
        expected = [answer.output for answer in pipeline.drain()]
    with Pipeline(chain(2), executor) as pipeline:
        pipeline.load_state_dict(state)
        answers = pipeline.drain()
    assert [answer.index for answer in answers] == [0, 1, 2, 3]
    assert same([answer.output for answer in answers], expected)


@every_executor
@every_mode
def test_skips_cross_cuts_in_tuples(executor, mode):
    def parts():
        body = chain(2)
        return [Enter(), Within(body[0]), Within(body[1]), Leave()]

    how = {"optimiser": [None, sgd, sgd, None], "gradients": mode}
    samples, whole = stream(8), nn.Sequential(*parts())
    losses, tensors = learned(parts(), executor, samples, **how)
    assert torch.equal(tensors[0], whole(samples[0][0]))
    assert not same(tensors[len(samples) :], weights([whole]))
    assert_same((losses, tensors), learned(parts(), "sequential", samples, **how))


@every_executor
def test_an_optimiser_for_graphs_learns_on_cpu(executor):
    how = {"lr": torch.tensor(0.01, dtype=torch.float64), "capturable": True}
    for more in ({}, {"foreach": True}, {"fused": True}):
        make = partial(torch.optim.Adam, **how, **more)
        plain = partial(torch.optim.Adam, lr=0.01, fused=more.get("fused"))
        assert_same(
            learned(chain(2), executor, stream(8), optimiser=make),
            learned(chain(2), "sequential", stream(8), optimiser=plain),
        )


@every_executor
def test_a_state_of_graphs_goes_on_on_cpu(executor):
    """A graph's optimiser says `capturable`, and its learning rates are tensors."""
    samples, how = stream(12), {"loss": squared, "optimiser": adam}
    with Pipeline(chain(3), "sequential", **how) as pipeline:
        for x, y in samples[:7]:
            pipeline.step(x, y)
        state = copy.deepcopy(pipeline.state_dict())
        expected = [answer.loss for answer in pipeline.run(samples[7:])]
    for stage in state["stages"]:
        for group in stage["optimiser"]["param_groups"]:
            group |= {"capturable": True, "lr": torch.tensor(group["lr"], dtype=torch.float64)}
    with Pipeline(chain(3), executor, **how) as pipeline:
        pipeline.load_state_dict(state)
        assert [answer.loss for answer in pipeline.run(samples[7:])] == expected
