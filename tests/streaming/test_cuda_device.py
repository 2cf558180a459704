"""The executors `stream` and `graph` on real GPUs; the stand-in's tests say what is meant."""

from functools import partial

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline, StageError
from streaming.cuda_networks import Reading, fused_sgd, normed
from streaming.networks import chain, squared, stream

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="torch sees no CUDA device on this machine"
)
EXECUTORS = ("stream", "graph")
GPUS = torch.cuda.device_count()
# the same to the last bit in the single precision of a graph's rate; that of Adam also counts steps
# in single precision, and is 1e-5 off
sgd = partial(fused_sgd, rate=0.0625, momentum=0.875)
sgd_on_host = partial(torch.optim.SGD, lr=0.0625, momentum=0.875)


def learned(stages, executor, samples, **how):
    with Pipeline(stages, executor, **({"loss": squared} | how)) as pipeline:
        answers = list(pipeline.run(samples))
        report = pipeline.report()
    state = [tensor.detach().cpu() for stage in stages for tensor in stage.state_dict().values()]
    assert [answer.index for answer in answers] == list(range(len(samples)))
    assert not any(answer.output.is_cuda for answer in answers)
    return [answer.loss for answer in answers], state, report


def assert_close(found, expected):
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(expected[0]))
    for one, other in zip(found[1], expected[1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)
    assert [each["updates"] for each in found[2]] == [each["updates"] for each in expected[2]]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("make", [chain, normed])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_learning_is_that_of_the_cpu(executor, make, stages):
    samples = stream(40)
    expected = learned(make(stages), "sequential", samples, optimiser=sgd_on_host)
    found = learned(make(stages), executor, samples, optimiser=sgd)
    assert_close(found, expected)


@pytest.mark.parametrize("mode", ["inputs", "stash"])
def test_gradient_modes(mode):
    how = {"optimiser": sgd_on_host, "gradients": mode}
    expected = learned(normed(3), "sequential", stream(20), **how)
    assert_close(learned(normed(3), "stream", stream(20), **how), expected)


class Late(nn.Module):
    """Keeps the device busy for a time, so that a missing wait would show."""

    def __init__(self, cycles):
        super().__init__()
        self.cycles = cycles

    def forward(self, x):
        torch.cuda._sleep(self.cycles)
        return x


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("slow", range(3))
def test_slow_stages_change_nothing(executor, slow):
    expected = learned(chain(3), "sequential", stream(30), optimiser=sgd_on_host)
    stages = chain(3)
    stages[slow] = nn.Sequential(Late(2_000_000), stages[slow], Late(3_000_000))
    found = learned(stages, executor, stream(30), optimiser=sgd)
    assert_close(found, expected)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.skipif(GPUS < 2, reason=f"needs 2 CUDA devices, torch sees {GPUS}")
def test_stages_on_several_devices(executor):
    expected = learned(normed(2), "sequential", stream(30), optimiser=sgd_on_host)
    devices = ["cuda:0", "cuda:1"]
    found = learned(normed(2), executor, stream(30), optimiser=sgd, devices=devices)
    assert_close(found, expected)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_inference(executor):
    stages = [stage.eval() for stage in normed(3)]
    samples = [x for x, _ in stream(30)]
    with Pipeline(stages, "sequential") as pipeline:
        expected = [answer.output for answer in pipeline.run(samples)]
    with Pipeline(stages, executor) as pipeline:
        found = [answer.output for answer in pipeline.run(samples)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)  # TF32 may be on


def test_dropout_repeats_with_its_seed_and_the_caller_draws_as_before():
    found = []
    for _ in range(2):
        stages = normed(2, 0.5)
        torch.cuda.manual_seed(4)
        before = torch.cuda.get_rng_state()
        how = {"optimiser": sgd_on_host, "gradients": "stash", "seed": 3}
        found.append(learned(stages, "stream", stream(9), **how))
        assert torch.equal(before, torch.cuda.get_rng_state())
    assert found[0][0] == found[1][0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("step", [1, 4, 9])
def test_goes_on_from_a_state(executor, step):
    how = {"loss": squared, "optimiser": fused_sgd}
    samples = stream(20)
    with Pipeline(normed(3), executor, **how) as pipeline:
        whole = [answer.loss for answer in pipeline.run(samples)]
    with Pipeline(normed(3), executor, **how) as pipeline:
        for x, y in samples[:step]:
            pipeline.submit(x, y)
        state = pipeline.state_dict()
    with Pipeline(normed(3), executor, **how) as pipeline:
        pipeline.load_state_dict(state)
        for x, y in samples[step:]:
            pipeline.submit(x, y)
        losses = [answer.loss for answer in pipeline.drain()]
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(whole))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_memory_does_not_grow(executor):
    with Pipeline(normed(3), executor, loss=squared, optimiser=fused_sgd) as pipeline:
        list(pipeline.run(stream(30)))
        before = torch.cuda.memory_allocated()
        list(pipeline.run(stream(200)))
        assert torch.cuda.memory_allocated() <= before + 100_000


def test_a_stage_that_reads_the_device_is_refused_and_the_device_goes_on():
    how = {"loss": squared, "optimiser": fused_sgd}
    pipeline = Pipeline([*chain(1), nn.Sequential(*chain(1), Reading())], "graph", **how)
    with pytest.raises(StageError, match='stage 2 of 2.*cannot be a graph.*use executor "stream"'):
        list(pipeline.run(stream(9)))
    with Pipeline(chain(2), "graph", **how) as pipeline:
        assert len(list(pipeline.run(stream(9)))) == 9


def test_what_is_recorded_is_of_the_device():
    how = {"loss": squared, "optimiser": fused_sgd, "record": True}
    with Pipeline(chain(2), "graph", **how) as pipeline:
        list(pipeline.run(stream(20)))
        events = [event for stage in pipeline.report() for event in stage["events"]]
    assert {event.work for event in events} == {"forward", "backward", "update", "step"}
    assert all(event.end >= event.begin for event in events)
