"""What went wrong once: each case as a caller meets it."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline, StageError
from streaming.conftest import every_executor, with_workers
from streaming.networks import EXECUTORS, MODES, Slow, adam, chain, same, sgd, squared, stream
from streaming.networks import weights as weights_of

LEARNING = {"loss": squared, "optimiser": sgd}
STILL = {"loss": squared, "optimiser": partial(torch.optim.SGD, lr=0.0), "gradients": "stash"}


class Keeping(nn.Module):
    """Adds up the last inputs that it was given, which it keeps."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        self.kept = [*self.kept[-2:], x]
        return torch.stack([each.detach() for each in self.kept]).sum(dim=0) + x


class Average(nn.Module):
    """Returns its own buffer, which it changes in place."""

    value: torch.Tensor

    def __init__(self, *, persistent=True, replaced=False):
        super().__init__()
        self.replaced = replaced
        value = torch.zeros(3, 4, dtype=torch.float64)
        self.register_buffer("value", value, persistent=persistent)

    def forward(self, x):
        if self.replaced:
            self.value = self.value * 0.5 + x.detach()
        else:
            self.value.mul_(0.5).add_(x.detach())
        return self.value


class Turned(nn.Module):
    """Returns what is not contiguous."""

    def forward(self, x):
        return x.transpose(0, 1)


def losses_of(stages, executor, samples, **how):
    with Pipeline(stages, executor, **(LEARNING | {"stall_seconds": 60.0} | how)) as pipeline:
        return [answer.loss for answer in pipeline.run(samples)]


@pytest.mark.parametrize("make", [Keeping, Average, partial(Average, replaced=True)])
@with_workers
def test_stages_with_a_memory_of_their_own_are_the_same(executor, make):
    found = []
    for name in ("sequential", executor):
        (first, second, third), memory = chain(3), make()
        stages = [first, nn.Sequential(second, memory), third]
        found.append((losses_of(stages, name, stream(10)), weights_of([memory])))
    assert found[0][0] == found[1][0]
    assert same(found[0][1], found[1][1])


@with_workers
def test_the_order_of_axes_in_memory_is_kept(executor):
    torch.manual_seed(0)
    x = torch.randn(1, 3, 24, 24).to(memory_format=torch.channels_last)
    stages = [nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Sequential(Turned(), nn.Flatten())]
    stages = [stage.to(memory_format=torch.channels_last) for stage in stages]
    outputs = []
    for name in ("sequential", executor):
        with Pipeline(stages, name) as pipeline:
            outputs.append([answer.output for answer in pipeline.run([x] * 3)])
    assert same(*outputs)


@every_executor
def test_buffers_that_are_in_no_state_are_in_ours(executor):
    samples = [x for x, _ in stream(8)]

    def pipeline():
        return Pipeline(
            [nn.Sequential(chain(1)[0], Average(persistent=False)), nn.Tanh()], executor
        )

    with pipeline() as line:
        expected = [answer.output for answer in line.run(samples)]
    with pipeline() as line:
        list(line.run(samples[:5]))
        state = line.state_dict()
    with pipeline() as line:
        line.load_state_dict(state)
        assert same([answer.output for answer in line.run(samples[5:])], expected[5:])


@every_executor
def test_any_number_of_samples_may_be_put_in_before_an_answer_is_taken(executor):
    for how in (LEARNING, {}):
        with Pipeline(chain(2), executor, stall_seconds=60.0, **how) as pipeline:
            for x, y in stream(400):
                pipeline.submit(x, y if how else None)
            assert [answer.index for answer in pipeline.drain()] == list(range(400))


@every_executor
def test_gradients_of_before_are_not_of_the_stream(executor):
    found = []
    for first in (None, torch.ones(4, 4, dtype=torch.float64)):
        network = chain(2)
        next(iter(network[0].parameters())).grad = first
        found.append(losses_of(network, executor, stream(6)))
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
    states = {}
    for mode in MODES:
        with Pipeline(chain(2), **LEARNING, gradients=mode) as pipeline:
            list(pipeline.run(stream(5)))
            states[mode] = pipeline.state_dict()
    with Pipeline(chain(2)) as infers, Pipeline(chain(2), **STILL) as learns:
        with pytest.raises(ValueError, match=r"the state is of gradients paper, .* are none"):
            infers.load_state_dict(states["paper"])
        with pytest.raises(ValueError, match="the state is of gradients inputs"):
            learns.load_state_dict(states["inputs"])


@pytest.mark.full
def test_threads_do_no_more_after_an_error():
    network = [nn.Sequential(Slow(3, most=1.0), chain(1)[0])]

    def submit_and_raise():
        with Pipeline(network, "thread", **LEARNING, credits=20) as pipeline:
            for x, y in stream(8):
                pipeline.submit(x, y)
            time.sleep(0.1)
            raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        submit_and_raise()
    after = weights_of(network)
    time.sleep(1.5)
    assert same(weights_of(network), after)


@every_executor
def test_a_closed_pipeline_says_so(executor):
    pipeline = Pipeline(chain(2), executor, **LEARNING)
    list(pipeline.run(stream(3)))
    pipeline.close()
    assert [report["samples"] for report in pipeline.report()] == [3, 3]
    for call in (pipeline.state_dict, pipeline.eval, lambda: pipeline.step(*stream(1)[0])):
        with pytest.raises(ValueError, match="the pipeline is closed"):
            call()


@pytest.mark.parametrize("stages", [2, 3])
@every_executor
def test_a_drain_separates_what_was_learned(executor, stages):
    """The last gradients find no input, whatever comes next."""
    with Pipeline(chain(stages), executor, **LEARNING) as pipeline:
        for _ in range(2):
            list(pipeline.run(stream(6)))
        updates = [report["updates"] for report in pipeline.report()]
    assert updates == [2 * (6 - 2 * (stages - 1 - h)) for h in range(stages)]


def test_a_killed_stage_has_the_sample_that_it_held():
    network = [nn.Sequential(Slow(h, most=0.01), part) for h, part in enumerate(chain(2))]
    with Pipeline(network, "process", **LEARNING, stall_seconds=60.0) as pipeline:
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


@pytest.mark.parametrize("executor", EXECUTORS)
def test_weights_written_between_steps_are_those_that_see_the_next_input(executor):
    """No update comes between, and a process does not see who else writes into its weights."""
    network = chain(3)
    first = next(network[0].parameters())
    before = first.detach().clone()
    with Pipeline(network, executor, **STILL) as pipeline:
        for x, y in stream(3):  # in the fill
            pipeline.step(x, y)
            pipeline.wait()
            first.data.mul_(0.5)
        kept = pipeline.state_dict()["stages"][0]["history"]["kept"]
        assert same([each[4]["0.weight"] for each in kept], [before, before / 2, before / 4])
        for x, y in stream(5):
            pipeline.step(x, y)
            pipeline.wait()
            with torch.no_grad():
                first.mul_(0.5)
        kept = pipeline.state_dict()["stages"][0]["history"]["kept"]
    assert len(kept) == 4
    for one, other in zip(kept, kept[1:], strict=False):
        assert torch.equal(other[4]["0.weight"], one[4]["0.weight"] / 2)


def test_complex_tensors_are_refused():
    with Pipeline([nn.Identity()]) as pipeline, pytest.raises(TypeError, match="complex"):
        pipeline.submit(torch.zeros(2, dtype=torch.complex64))
