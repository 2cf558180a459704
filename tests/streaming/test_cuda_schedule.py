"""Executors for GPUs on a stand-in: the order of their work, and the bits they give."""

from functools import partial

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline, StageError, StallError
from streaming.cuda_networks import (
    BY_ADAM,
    BY_SGD,
    as_sequential,
    assert_same,
    fused_sgd,
    goes_on,
    inputs_of,
    normed,
    run,
    skipping,
    tensor_adam,
    working,
)
from streaming.networks import MODES, chain, halving, momentum, squared, stream, weights
from streaming.stand_in import Machine
from tiers import first_tier

EXECUTORS = ("stream", "graph")
LEARNING = {"loss": squared, "optimiser": momentum}
CLIPPED = {"loss": squared, "schedule": halving, "clip": 0.5}
SHAPES = [(1, 1), (2, 2), (3, 1), (3, 3), (4, 2)]  # stages, GPUs
BITS = [
    ("stream", {"optimiser": momentum, "gradients": mode}, *shape)
    for mode in MODES
    for shape in SHAPES
]
BITS += [("graph", {"optimiser": each}, n, m) for each in (fused_sgd, tensor_adam)
         for n in (1, 2, 3, 4) for m in (1, 2)]  # fmt: skip
FIRST = [each for each in BITS if each[2:] in ((1, 1), (4, 2))]

both = pytest.mark.parametrize("executor", EXECUTORS)
one_or_three = pytest.mark.parametrize("gpus", [1, 3])


@pytest.mark.parametrize(("executor", "how", "stages", "gpus"), first_tier(BITS, *FIRST))
def test_learning_gives_the_bits_of_the_sequential_executor(executor, how, stages, gpus):
    machine = Machine(gpus)
    as_sequential(partial(normed, stages), executor, stream(14), machine, **(CLIPPED | how))
    replayed = {name for kind, name, _ in machine.log if kind == "replay"}
    assert len(replayed) == (stages if executor == "graph" else 0)


@both
@one_or_three
@pytest.mark.parametrize("make", [partial(chain, 3), partial(normed, 4), skipping])
def test_inference_gives_the_bits_of_the_sequential_executor(make, executor, gpus):
    machine = Machine(gpus)
    as_sequential(make, executor, inputs_of(9), machine)
    replays = [kind for kind, *_ in machine.log].count("replay")
    assert replays == (8 * len(make()) if executor == "graph" else 0)


def frozen():
    stages = chain(4)
    stages[0].requires_grad_(False)
    stages[2].requires_grad_(False)
    return stages


SOME = [(x, y if number % 5 else None) for number, (x, y) in enumerate(stream(17))]


@both
@one_or_three
@pytest.mark.parametrize(
    ("make", "samples"),
    [(skipping, stream(9)), (frozen, stream(12)), (partial(normed, 3), SOME)],
    ids=["a connection skips a stage", "frozen stages", "samples without a target"],
)
def test_other_stages_and_samples_give_the_bits_too(executor, gpus, make, samples):
    found = as_sequential(make, executor, samples, Machine(gpus), **BY_SGD)
    assert found["losses"].count(None) == (4 if samples is SOME else 0)


@pytest.mark.parametrize("mode", MODES)
def test_dropout_repeats(mode):
    how = LEARNING | {"gradients": mode, "seed": 7}
    as_sequential(partial(normed, 3, 0.4), "stream", stream(9), **how)


class Noise(nn.Module):
    """Draws from the generator of a device, as dropout on a GPU does."""

    def __init__(self, machine, device):
        super().__init__()
        self.draws, self.layer = machine.generators[device], nn.Linear(4, 4).double()

    def forward(self, x):
        return self.layer(x) + torch.rand(x.shape, generator=self.draws)


@pytest.mark.parametrize("mode", MODES)
def test_stages_draw_their_own_numbers_from_the_generator_of_the_device(mode):
    found = []
    for gpus in (1, 2):
        machine = Machine(gpus)

        def make(machine=machine, gpus=gpus):
            torch.manual_seed(0)
            return [Noise(machine, min(h, gpus - 1)) for h in range(2)]

        before = [generator.get_state() for generator in machine.generators]
        found.append(run(make, "stream", stream(8), machine, **LEARNING, gradients=mode))
        after = [generator.get_state() for generator in machine.generators]
        assert all(map(torch.equal, before, after)), "the caller's numbers were drawn"
    assert_same(*found)


@pytest.mark.parametrize("step", first_tier([0, 1, 3, 6], 3))
@pytest.mark.parametrize("mode", ["paper", "stash"])
def test_a_stream_goes_on_from_a_state_of_any_executor(mode, step):
    executors = [("stream", "stream"), ("sequential", "stream"), ("stream", "sequential")]
    how = LEARNING | {"gradients": mode, "schedule": halving}
    machine = Machine(2, patience=2)
    goes_on(partial(normed, 3, 0.3), stream(9), step, machine, executors, **how)


@pytest.mark.parametrize(("step", "gpus"), first_tier([(0, 2), (2, 1), (5, 2), (8, 1)], (8, 1)))
def test_graphs_go_on_from_a_state_of_any_executor(step, gpus):
    executors = [("graph", "graph"), ("sequential", "graph"), ("graph", "stream")]
    goes_on(partial(normed, 3), stream(13), step, Machine(gpus), executors, **BY_ADAM)


def test_the_host_may_be_far_ahead_and_devices_slow():
    samples = stream(20)
    expected = run(partial(chain, 3), "sequential", samples, **LEARNING)
    with working(Machine(patience=5)), Pipeline(chain(3), "stream", **LEARNING) as pipeline:
        x = torch.empty_like(samples[0][0])
        for each, target in samples:
            pipeline.submit(x.copy_(each), target)  # x is free again once it is put in
        answers = pipeline.drain()
    assert [answer.loss for answer in answers] == expected["losses"]
    outputs = [answer.output for answer in answers]
    assert all(map(torch.equal, outputs, expected["tensors"]))
    assert len({output.data_ptr() for output in outputs}) == 20  # memory of their own


def test_the_host_waits_for_nobody_between_stages():
    with working(Machine(2)) as machine, Pipeline(chain(4), "stream", **LEARNING) as pipeline:
        for number, (x, y) in enumerate(stream(9)):
            if number == 6:
                machine.log.clear()
            pipeline.submit(x, y)
        assert not [entry for entry in machine.log if entry[0] == "synchronize"]


@both
@pytest.mark.parametrize("stages", [1, 3])
def test_weights_may_be_read_between_steps(executor, stages):
    """The caller reads in a stream of its own: after all work so far, and before what comes."""
    network = chain(stages)
    with working(Machine(2)), Pipeline(network, executor, **BY_SGD) as pipeline:
        for x, y in stream(9):
            pipeline.submit(x, y)
            pipeline.wait()
            weights(network)


def test_each_stage_works_in_a_stream_of_its_own():
    machine = Machine(2)
    run(partial(chain, 4), "stream", stream(6), machine, **LEARNING)
    assert [stream.name for stream in machine.streams] == [
        f"{kind} {stage}" for stage in range(1, 5) for kind in ("compute", "receive", "send")
    ]
    devices = [str(stream.device) for stream in machine.streams[::3]]
    assert devices == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
    copies = {name for kind, name, _ in machine.log if kind == "copy"}
    # samples in, one hop each way between the devices, targets in, answers out
    assert copies == {"receive 1", "send 2", "send 3", "receive 4", "send 4"}


ESSENTIAL = [
    ("compute", "receive"),  # samples and targets
    ("compute", "compute"),  # messages
    ("send", "compute"),  # answers
]
OF_PLACES = [
    ("receive", "compute"),  # places for samples that are still read
    ("compute", "send"),  # places for answers that are still copied
]


@pytest.mark.parametrize(
    ("executor", "pair", "gpus", "how"),
    [
        *(("stream", pair, 2, how) for pair in ESSENTIAL for how in ({}, LEARNING)),
        *(("graph", pair, gpus, {}) for pair in ESSENTIAL + OF_PLACES for gpus in (1, 3)),
    ],
)
def test_a_schedule_without_one_kind_of_wait_is_found(executor, pair, gpus, how):
    machine = Machine(gpus, deaf=[pair])
    samples = stream(9) if how else inputs_of(9)
    with pytest.raises(AssertionError, match="too early|overwrites"):
        run(partial(chain, 6), executor, samples, machine, **how)
    assert machine.waits[pair] > 0


def test_memory_that_nobody_holds_is_found():
    with pytest.raises(AssertionError, match="nobody holds it"):
        run(partial(chain, 2), "stream", stream(5), Machine(holds=False), **LEARNING)


def test_what_is_recorded_is_of_the_device():
    found = run(partial(chain, 2), "stream", stream(5), **LEARNING, record=True)
    for stage in found["report"]:
        works = [event.work for event in stage["events"]]
        assert works.count("forward") == 5
        assert works.count("update") == stage["updates"]
        assert all(event.begin <= event.end for event in stage["events"])


class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("the stage broke")


class Failing(Machine):
    """Kernels fail some time after they were given."""

    def done(self, event):
        raise RuntimeError("device-side assert triggered\nand more")


@pytest.mark.parametrize(
    ("machine", "last", "error", "message"),
    [
        (Machine(), Broken(), StageError, "stage 2 of 2, sample 0: ValueError: the stage broke"),
        (Failing(), nn.Tanh(), StageError, "device-side assert triggered; CUDA_LAUNCH"),
        (Machine(patience=10**9), nn.Tanh(), StallError, "1 of 2, sample 0: no sign of life"),
    ],
)
def test_a_stage_or_device_that_fails_or_hangs_is_named(machine, last, error, message):
    with working(machine, checked=False):
        pipeline = Pipeline([*chain(1), last], "stream", stall_seconds=0.05)
        with pytest.raises(error, match=message) as found:  # noqa: PT012
            pipeline.submit(stream(1)[0][0])
            assert pipeline.answer(timeout=0.01) is None
            pipeline.answer()
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("executor", "devices", "message"),
    [
        ("stream", ["cuda:0"], "devices: 1 given for 2 stages"),
        ("stream", ["cuda:0", "cuda:5"], "device cuda:5: one of cuda:0, cuda:1"),
        ("stream", ["cpu", "cuda"], "device cpu: one of cuda:0, cuda:1"),
        ("thread", ["cuda:0", "cuda:0"], "runs on CPU"),
    ],
)
def test_devices_must_fit(executor, devices, message):
    with working(Machine(2)), pytest.raises(ValueError, match=message):
        Pipeline(chain(2), executor, devices=devices)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@both
def test_without_a_gpu_one_line_says_what_to_use(executor):
    with pytest.raises(ValueError, match=f'"{executor}" needs a CUDA device.*use "thread"'):
        Pipeline(chain(2), executor)
