"""What went wrong once: each case as a caller meets it."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from actionspan.streaming import Pipeline, StageError, StallError
from streaming.networks import (
    EXECUTORS,
    MODES,
    Slow,
    adam,
    chain,
    same,
    sgd,
    squared,
    stream,
    weights,
)


class Keeping(nn.Module):
    """Adds up the last inputs that it was given, which it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.kept = [*self.kept[-2:], x]
        return torch.stack([each.detach() for each in self.kept]).sum(dim=0) + x


class Average(nn.Module):
    """Returns its own buffer, which it changes in place."""

    value: Tensor

    def __init__(self, *, persistent: bool = True, replaced: bool = False) -> None:
        super().__init__()
        self.replaced = replaced
        value = torch.zeros(3, 4, dtype=torch.float64)
        self.register_buffer("value", value, persistent=persistent)

    def forward(self, x: Tensor) -> Tensor:
        if self.replaced:
            self.value = self.value * 0.5 + x.detach()
        else:
            self.value.mul_(0.5).add_(x.detach())
        return self.value


class Turned(nn.Module):
    """Returns what is not contiguous."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)


def losses_of(stages: list[nn.Module], executor: str, samples, **how):
    how = {"loss": squared, "optimiser": sgd, "stall_seconds": 60.0} | how
    with Pipeline(stages, executor, **how) as pipeline:
        return [answer.loss for answer in pipeline.run(samples)]


@pytest.mark.parametrize("make", [Keeping, Average, partial(Average, replaced=True)])
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_stages_with_a_memory_of_their_own_are_the_same(executor, make):
    samples = stream(10)
    found = []
    for name in ("sequential", executor):
        first, second, third = chain(3)
        memory = make()
        found.append(losses_of([first, nn.Sequential(second, memory), third], name, samples))
        found.append(weights([memory]))
    assert found[0] == found[2]
    assert same(found[1], found[3])


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_the_order_of_axes_in_memory_is_kept(executor):
    torch.manual_seed(0)
    x = torch.randn(1, 3, 24, 24).to(memory_format=torch.channels_last)
    stages = [nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Sequential(Turned(), nn.Flatten())]
    stages = [stage.to(memory_format=torch.channels_last) for stage in stages]
    outputs = []
    for name in ("sequential", executor):
        with Pipeline(stages, name) as pipeline:
            outputs.append([answer.output for answer in pipeline.run([x] * 3)])
    assert same(outputs[0], outputs[1])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("mode", MODES)
def test_a_state_may_be_loaded_where_something_ran(executor, mode):
    samples = stream(12)
    how = {"loss": squared, "optimiser": adam, "gradients": mode}
    expected = losses_of(chain(3), "sequential", samples, **how)
    with Pipeline(chain(3), executor, **how) as pipeline:
        first = [answer.loss for x, y in samples[:6] if (answer := pipeline.step(x, y))]
        state = pipeline.state_dict()
        for x, y in samples[:4]:  # goes astray
            pipeline.step(x, y)
        for _ in range(2):
            pipeline.load_state_dict(state)
            again = [answer.loss for answer in pipeline.run(samples[6:])]
            assert first + again == expected


@pytest.mark.parametrize("executor", EXECUTORS)
def test_buffers_that_are_in_no_state_are_in_ours(executor):
    samples = [x for x, _ in stream(8)]

    def stages():
        return [nn.Sequential(chain(1)[0], Average(persistent=False)), nn.Tanh()]

    with Pipeline(stages(), executor) as pipeline:
        expected = [answer.output for answer in pipeline.run(samples)]
    with Pipeline(stages(), executor) as pipeline:
        list(pipeline.run(samples[:5]))
        state = pipeline.state_dict()
    with Pipeline(stages(), executor) as pipeline:
        pipeline.load_state_dict(state)
        found = [answer.output for answer in pipeline.run(samples[5:])]
    assert same(found, expected[5:])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_any_number_of_samples_may_be_put_in_before_an_answer_is_taken(executor):
    samples = stream(400)
    for how in ({"loss": squared, "optimiser": sgd}, {}):
        with Pipeline(chain(2), executor, stall_seconds=60.0, **how) as pipeline:
            for x, y in samples:
                pipeline.submit(x, y if how else None)
            assert [answer.index for answer in pipeline.drain()] == list(range(400))


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_caller_who_does_not_wait_meets_the_deadline_too(executor):
    with Pipeline([Slow(1, most=1000.0)], executor, stall_seconds=1.0) as pipeline:
        time.sleep(1.2)  # an idle pipeline does not stall
        pipeline.submit(stream(1)[0][0])
        with pytest.raises(StallError, match="stage 1 of 1, sample 0"):
            _poll(pipeline)


def _poll(pipeline: Pipeline) -> None:
    for _ in range(100):
        pipeline.answer(timeout=0.2)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_of_before_are_not_of_the_stream(executor):
    samples, found = stream(6), []
    for first in (None, torch.ones(4, 4, dtype=torch.float64)):
        network = chain(2)
        next(iter(network[0].parameters())).grad = first
        found.append(losses_of(network, executor, samples))
    assert found[0] == found[1]


def test_a_state_of_many_tensors_opens_no_descriptor():
    network = [nn.Sequential(*(nn.Linear(2, 2) for _ in range(60))) for _ in range(2)]
    samples = [(torch.ones(1, 2), torch.zeros(1, 2))] * 4
    with Pipeline(network, "process", loss=squared, optimiser=adam) as pipeline:
        list(pipeline.run(samples))
        before = len(list(Path("/proc/self/fd").iterdir()))
        states = [pipeline.state_dict() for _ in range(2)]
        pipeline.load_state_dict(states[0])
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_state_of_another_kind_is_refused():
    samples = stream(5)
    states = {}
    for mode in MODES:
        with Pipeline(chain(2), loss=squared, optimiser=sgd, gradients=mode) as pipeline:
            list(pipeline.run(samples))
            states[mode] = pipeline.state_dict()
    how = {"loss": squared, "optimiser": sgd, "gradients": "stash"}
    with Pipeline(chain(2)) as infers, Pipeline(chain(2), **how) as learns:
        with pytest.raises(ValueError, match=r"the state is of gradients paper, .* are none"):
            infers.load_state_dict(states["paper"])
        with pytest.raises(ValueError, match="the state is of gradients inputs"):
            learns.load_state_dict(states["inputs"])


def test_threads_refuse_whatever_draws_and_stay_as_they_were():
    network = [nn.Dropout(0.5), nn.Tanh()]
    for stage in network:
        stage.eval()
    with Pipeline(network, "thread") as pipeline:
        with pytest.raises(ValueError, match="stage 1 of 2 has active dropout"):
            pipeline.train()
        assert not network[0].training
    attention = nn.MultiheadAttention(4, 2, dropout=0.5)
    for stage in (attention, nn.LSTM(2, 2, 2, dropout=0.5), nn.RReLU()):
        with pytest.raises(ValueError, match="active dropout"):
            Pipeline([stage], "thread")


@pytest.mark.full
def test_threads_do_no_more_after_an_error():
    network = [nn.Sequential(Slow(3, most=1.0), chain(1)[0])]
    with pytest.raises(RuntimeError, match="of the caller"):
        _submit_and_raise(network)
    after = weights(network)
    time.sleep(1.5)
    assert same(weights(network), after)


def _submit_and_raise(network):
    with Pipeline(network, "thread", loss=squared, optimiser=sgd, credits=20) as pipeline:
        for x, y in stream(8):
            pipeline.submit(x, y)
        time.sleep(0.1)
        raise RuntimeError("of the caller")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_closed_pipeline_says_so(executor):
    pipeline = Pipeline(chain(2), executor, loss=squared, optimiser=sgd)
    list(pipeline.run(stream(3)))
    pipeline.close()
    assert [report["samples"] for report in pipeline.report()] == [3, 3]
    for call in (pipeline.state_dict, pipeline.eval, lambda: pipeline.step(*stream(1)[0])):
        with pytest.raises(ValueError, match="the pipeline is closed"):
            call()


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_drain_separates_what_was_learned(executor, stages):
    """The last gradients find no input, whatever comes next."""
    samples = stream(6)
    with Pipeline(chain(stages), executor, loss=squared, optimiser=sgd) as pipeline:
        for _ in range(2):
            list(pipeline.run(samples))
        updates = [report["updates"] for report in pipeline.report()]
    assert updates == [2 * (6 - 2 * (stages - 1 - h)) for h in range(stages)]


def test_a_killed_stage_has_the_sample_that_it_held():
    network = [nn.Sequential(Slow(h, most=0.01), part) for h, part in enumerate(chain(2))]
    with Pipeline(network, "process", loss=squared, optimiser=sgd, stall_seconds=60.0) as pipeline:
        list(pipeline.run(stream(4)))
        pipeline.submit(*stream(1)[0])
        pipeline.wait()
        os.kill(pipeline.processes()[0], signal.SIGKILL)
        with pytest.raises(StageError, match=r"stage 1 of 2, sample 4: .*SIGKILL"):
            list(pipeline.run(stream(5)))


def test_one_module_runs_in_one_pipeline_of_processes():
    network = chain(1)
    with (
        Pipeline(network, "process"),
        pytest.raises(ValueError, match="runs in the processes of another"),
    ):
        Pipeline(network, "process")
    with Pipeline(network, "process") as pipeline:
        assert len(list(pipeline.run([stream(1)[0][0]]))) == 1


def test_weights_written_between_steps_are_those_that_see_the_next_input():
    samples, found = stream(8), []
    for mode in ("sequential", "process"):
        network = chain(2)
        still = partial(torch.optim.SGD, lr=0.0)
        with Pipeline(network, mode, loss=squared, optimiser=still, gradients="stash") as pipeline:
            for x, y in samples:
                pipeline.step(x, y)
                pipeline.wait()
                with torch.no_grad():
                    for parameter in network[0].parameters():
                        parameter.mul_(0.9)
            versions = pipeline.state_dict()["stages"][0]["history"]["kept"]
        weight = [kept[4]["0.weight"] for kept in versions]
        assert torch.allclose(weight[1], 0.9 * weight[0], atol=1e-12)
        found.append(weight)
    assert same(found[0], found[1])


def test_weights_written_in_the_fill_are_those_that_see_the_next_input():
    """No update comes between, and a process does not see who else writes into its weights."""
    still = partial(torch.optim.SGD, lr=0.0)
    for mode in EXECUTORS:
        network = chain(3)
        first = next(network[0].parameters())
        before = first.detach().clone()
        with Pipeline(network, mode, loss=squared, optimiser=still, gradients="stash") as pipeline:
            for x, y in stream(3):
                pipeline.step(x, y)
                pipeline.wait()
                first.data.mul_(0.5)
            kept = pipeline.state_dict()["stages"][0]["history"]["kept"]
        found = [each[4]["0.weight"] for each in kept]
        assert same(found, [before, before * 0.5, before * 0.25])


def test_complex_tensors_are_refused():
    with Pipeline([nn.Identity()]) as pipeline, pytest.raises(TypeError, match="complex"):
        pipeline.submit(torch.zeros(2, dtype=torch.complex64))
