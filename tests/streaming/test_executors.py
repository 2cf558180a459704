"""Every executor gives the same bits, whoever is slow, and whenever it goes on from a state."""

import copy
import io
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from actionspan.streaming import Pipeline
from streaming.networks import (
    EXECUTORS,
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


def learned(
    network: list[nn.Module], executor: str, samples: Any, **how: Any
) -> tuple[list[float | None], list[Tensor]]:
    """Return losses, and outputs with the weights after the stream."""
    how = {"loss": squared, "optimiser": momentum, "stall_seconds": 30.0} | how
    with Pipeline(network, executor, **how) as pipeline:
        answers = list(pipeline.run(samples))
    assert [answer.index for answer in answers] == list(range(len(samples)))
    outputs = [answer.output for answer in answers]
    return [answer.loss for answer in answers], outputs + weights(network)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_learning_gives_the_same_bits(executor: str, mode: str) -> None:
    samples = stream(15, double=False)
    how = {"gradients": mode, "optimiser": adam, "schedule": halving, "clip": 0.5}
    losses, tensors = learned(mixed(), "sequential", samples, **how)
    again, others = learned(mixed(), executor, samples, **how)
    assert again == losses
    assert same(others, tensors)


@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize("slow", first_tier(range(3), 1))
def test_slow_stages_change_nothing(executor: str, slow: int) -> None:
    samples = stream(12)
    losses, tensors = learned(chain(3), "sequential", samples)
    for run in range(3):
        network = chain(3)
        network[slow] = nn.Sequential(Slow(run), network[slow], Slow(run + 9))
        again, others = learned(network, executor, samples)
        assert again == losses
        assert same(others, tensors)


@pytest.mark.parametrize("executor", first_tier(["thread", "process"], "thread"))
def test_twenty_runs_are_one(executor: str) -> None:
    samples = stream(8)
    expected = learned(chain(3), "sequential", samples)
    for _ in range(20):
        losses, tensors = learned(chain(3), executor, samples)
        assert losses == expected[0]
        assert same(tensors, expected[1])


@pytest.mark.parametrize("mode", MODES)
def test_dropout_repeats_with_its_seed(mode: str) -> None:
    samples = stream(12, double=False)
    found = [
        learned(mixed(dropout=0.4), executor, samples, seed=seed, gradients=mode)
        for executor, seed in [("sequential", 1), ("sequential", 1), ("process", 1), ("process", 2)]
    ]
    for losses, tensors in found[1:3]:
        assert losses == found[0][0]
        assert same(tensors, found[0][1])
    assert found[3][0] != found[0][0]


@pytest.mark.parametrize("mode", ["inputs", "stash"])
def test_a_second_forward_pass_repeats_dropout_and_counts_batch_norm_once(mode: str) -> None:
    """With no learning, gradients with the stored mask are those of plain training."""
    samples = stream(6, double=False)
    network = mixed(dropout=0.4)
    seen: list[list[Tensor]] = []
    plain = copy.deepcopy(network)
    still = [lambda parameters: torch.optim.SGD(parameters, lr=0.0)] * 3
    with Pipeline(
        network, loss=squared, optimiser=still, gradients=mode, clip=_noting(seen)
    ) as pipeline:
        list(pipeline.run(samples))
    # each stage has its own random numbers: draw them in turn
    states = [torch.Generator().manual_seed(h).get_state() for h in range(3)]
    true: list[list[Tensor]] = []
    with torch.random.fork_rng():
        for x, y in samples:
            value = x
            for h, stage in enumerate(plain):
                torch.set_rng_state(states[h])
                value = stage(value)
                states[h] = torch.get_rng_state()
            loss = squared(value, y)
            true.append(list(torch.autograd.grad(loss, list(plain[0].parameters()))))
    first = [gradients for gradients in seen if len(gradients) == len(true[0])][: len(true)]
    assert len(first) == len(samples)
    shapes = [tensor.shape for tensor in true[0]]
    ours = [g for g in seen if [t.shape for t in g] == shapes]
    assert len(ours) == len(true)
    for gradients, right in zip(ours, true, strict=True):
        assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(gradients, right, strict=True))
    buffers = [[b.clone() for b in stage.buffers()] for stage in network]
    for ours_, theirs in zip(buffers, plain, strict=True):
        assert same(ours_, list(theirs.buffers()))


def _noting(seen: list[list[Tensor]]) -> Any:
    def clip(parameters: Any) -> None:
        seen.append([parameter.grad.clone() for parameter in parameters])

    return clip


def test_threads_refuse_active_dropout() -> None:
    with pytest.raises(ValueError, match="stage 1 of 3 has active dropout"):
        Pipeline(mixed(dropout=0.5), "thread", loss=squared, optimiser=sgd)
    network = mixed(dropout=0.5)
    for stage in network:
        stage.eval()
    with Pipeline(network, "thread", loss=squared, optimiser=sgd) as pipeline:
        assert len(list(pipeline.run(stream(5, double=False)))) == 5
        with pytest.raises(ValueError, match="active dropout"):
            pipeline.train()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_batch_norm_is_that_of_each_sample_once_and_eval_is_by_stage(executor: str) -> None:
    network = mixed()
    plain = copy.deepcopy(network)
    samples = [x for x, _ in stream(9, double=False)]
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
def test_a_state_at_any_step_goes_on_bitwise(cut: int, mode: str, first: str, second: str) -> None:
    _goes_on(cut, mode, first, second)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executors", [("process", "sequential"), ("sequential", "process")])
@pytest.mark.parametrize("cut", first_tier([0, 1, 3, 7], 3))
def test_a_state_goes_on_in_another_process(
    executors: tuple[str, str], mode: str, cut: int
) -> None:
    _goes_on(cut, mode, *executors)


def _goes_on(cut: int, mode: str, first: str, second: str) -> None:
    samples = stream(9, double=False)
    drop = 0.3 if "thread" not in (first, second) else 0.0
    how = {
        "loss": squared,
        "optimiser": adam,
        "schedule": halving,
        "gradients": mode,
        "seed": 4,
        "stall_seconds": 30.0,
    }
    expected = learned(mixed(drop), "sequential", samples, **how)
    network = mixed(drop)
    losses = []
    with Pipeline(network, first, **how) as pipeline:
        for x, y in samples[:cut]:
            answer = pipeline.step(x, y)
            losses += [answer.loss] if answer else []
        file = io.BytesIO()
        torch.save(pipeline.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert state["samples"] == cut
    other = mixed(drop)
    for parameter in (p for stage in other for p in stage.parameters()):
        parameter.data.zero_()
    with Pipeline(other, second, **how) as pipeline:
        pipeline.load_state_dict(state)
        losses += [answer.loss for answer in pipeline.run(samples[cut:])]
    assert losses == expected[0]
    assert same(weights(other), expected[1][len(samples) :])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_answers_not_yet_taken_are_in_the_state(executor: str) -> None:
    network = chain(2)
    samples = [x for x, _ in stream(6)]
    with Pipeline(network, executor) as pipeline:
        for x in samples[:4]:
            pipeline.submit(x)
        state = pipeline.state_dict()
        expected = [answer.output for answer in pipeline.drain()]
    with Pipeline(chain(2), executor) as pipeline:
        pipeline.load_state_dict(state)
        answers = pipeline.drain()
    assert [answer.index for answer in answers] == [0, 1, 2, 3]
    assert same([answer.output for answer in answers], expected)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("mode", MODES)
def test_skips_cross_cuts_in_tuples(executor: str, mode: str) -> None:
    def parts() -> list[nn.Module]:
        body = chain(2)
        return [Enter(), Within(body[0]), Within(body[1]), Leave()]

    how = {"optimiser": [None, sgd, sgd, None], "gradients": mode}
    samples, network, whole = stream(8), parts(), nn.Sequential(*parts())
    with Pipeline(network, executor, loss=squared, **how) as pipeline:
        answers = list(pipeline.run(samples))
    x = samples[0][0]
    assert torch.equal(answers[0].output, whole(x))
    assert not same(weights(network), weights([whole]))
    losses, tensors = learned(parts(), "sequential", samples, **how)
    assert [answer.loss for answer in answers] == losses
    assert same([answer.output for answer in answers] + weights(network), tensors)


def test_a_bad_name_of_an_executor_or_mode_is_said() -> None:
    with pytest.raises(ValueError, match="executor 'gpu': one of"):
        Pipeline(chain(1), "gpu")
    with pytest.raises(ValueError, match="gradients 'true': one of paper, inputs, stash"):
        Pipeline(chain(1), loss=squared, optimiser=sgd, gradients="true")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_optimiser_for_graphs_learns_on_cpu(executor: str) -> None:
    samples = stream(8)
    how = {"lr": torch.tensor(0.01, dtype=torch.float64), "capturable": True}
    for more in ({}, {"foreach": True}, {"fused": True}):
        make = partial(torch.optim.Adam, **how, **more)
        plain = partial(torch.optim.Adam, lr=0.01, fused=more.get("fused"))
        losses, tensors = learned(chain(2), executor, samples, optimiser=make)
        again, others = learned(chain(2), "sequential", samples, optimiser=plain)
        assert losses == again
        assert same(tensors, others)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_state_of_graphs_goes_on_on_cpu(executor: str) -> None:
    """A graph's optimiser says `capturable`, and its learning rates are tensors."""
    samples = stream(12)
    how: dict[str, Any] = {"loss": squared, "optimiser": adam}
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
