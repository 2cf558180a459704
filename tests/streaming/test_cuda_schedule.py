"""The executor `stream` on a stand-in for GPUs: the order of its work, and the bits it gives."""

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline, StageError, StallError
from streaming.cuda_networks import (
    assert_same,
    fused_sgd,
    halving,
    momentum,
    normed,
    run,
    samples_of,
    skipping,
    squared,
    tanh_layers,
    weights,
)
from streaming.stand_in import Machine
from tiers import first_tier

MODES = ("paper", "inputs", "stash")
LEARNING = {"loss": squared, "optimiser": momentum}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("stages", "gpus"), first_tier([(1, 1), (2, 2), (3, 1), (3, 3), (4, 2)], (1, 1), (4, 2))
)
def test_learning_gives_the_bits_of_the_sequential_executor(monkeypatch, stages, mode, gpus):
    how = LEARNING | {"gradients": mode, "schedule": halving, "clip": 0.5}
    samples = samples_of(12)
    expected = run(lambda: normed(stages), "sequential", samples, **how)
    found = run(lambda: normed(stages), "stream", samples, Machine(gpus), monkeypatch, **how)
    assert_same(found, expected)


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("make", [lambda: tanh_layers(3), skipping])
def test_inference_gives_the_bits_of_the_sequential_executor(monkeypatch, make, gpus):
    samples = [x for x, _ in samples_of(9)]
    expected = run(make, "sequential", samples)
    assert_same(run(make, "stream", samples, Machine(gpus), monkeypatch), expected)


@pytest.mark.parametrize("gpus", [1, 3])
def test_connections_that_skip_a_stage_cross_devices(monkeypatch, gpus):
    expected = run(skipping, "sequential", samples_of(9), **LEARNING)
    assert_same(
        run(skipping, "stream", samples_of(9), Machine(gpus), monkeypatch, **LEARNING), expected
    )


@pytest.mark.parametrize("mode", MODES)
def test_dropout_repeats(monkeypatch, mode):
    how = LEARNING | {"gradients": mode, "seed": 7}
    expected = run(lambda: normed(3, 0.4), "sequential", samples_of(9), **how)
    found = run(lambda: normed(3, 0.4), "stream", samples_of(9), Machine(), monkeypatch, **how)
    assert_same(found, expected)


class Noise(nn.Module):
    """Draws from the generator of a device, as dropout on a GPU does."""

    def __init__(self, machine, device):
        super().__init__()
        self.draws, self.layer = machine.generators[device], nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) + torch.rand(x.shape, generator=self.draws)


@pytest.mark.parametrize("mode", MODES)
def test_stages_draw_their_own_numbers_from_the_generator_of_the_device(monkeypatch, mode):
    how = LEARNING | {"gradients": mode}
    found = []
    for gpus in (1, 2):
        machine = Machine(gpus)

        def make(machine=machine, gpus=gpus):
            torch.manual_seed(0)
            return [Noise(machine, min(h, gpus - 1)) for h in range(2)]

        before = [generator.get_state() for generator in machine.generators]
        found.append(run(make, "stream", samples_of(8), machine, monkeypatch, **how))
        after = [generator.get_state() for generator in machine.generators]
        assert all(map(torch.equal, before, after)), "the caller's numbers were drawn"
    assert_same(*found)


@pytest.mark.parametrize("step", first_tier([0, 1, 3, 6], 3))
@pytest.mark.parametrize("mode", ["paper", "stash"])
def test_goes_on_from_a_state_of_any_executor(monkeypatch, mode, step):
    machine = Machine(2, patience=2)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    how = LEARNING | {"gradients": mode, "schedule": halving}
    samples = samples_of(9)
    whole = run(lambda: normed(3, 0.3), "sequential", samples, **how)
    for first, second in [("stream", "stream"), ("sequential", "stream"), ("stream", "sequential")]:
        losses = []
        with machine:
            with Pipeline(normed(3, 0.3), first, **how) as pipeline:
                for x, y in samples[:step]:
                    pipeline.submit(x, y)
                state = pipeline.state_dict()
            stages = normed(3, 0.3)
            with Pipeline(stages, second, **how) as pipeline:
                pipeline.load_state_dict(state)
                for x, y in samples[step:]:
                    pipeline.submit(x, y)
                losses = [answer.loss for answer in pipeline.drain()]
        machine.check()
        assert losses == whole["losses"]
        found = weights(stages)
        assert all(map(torch.equal, found, whole["tensors"][-len(found) :]))


def test_the_host_may_be_far_ahead_and_devices_slow(monkeypatch):
    samples = samples_of(20)
    expected = run(lambda: tanh_layers(3), "sequential", samples, **LEARNING)
    machine = Machine(patience=5)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    stages = tanh_layers(3)
    with machine, Pipeline(stages, "stream", **LEARNING) as pipeline:
        x = torch.empty(3, 4)
        for each, target in samples:
            pipeline.submit(x.copy_(each), target)  # x is free again once it is put in
        answers = pipeline.drain()
    machine.check()
    assert [answer.loss for answer in answers] == expected["losses"]
    outputs = [answer.output for answer in answers]
    assert all(map(torch.equal, outputs, expected["tensors"]))
    assert len({output.data_ptr() for output in outputs}) == 20  # memory of their own


def test_the_host_waits_for_nobody_between_stages(monkeypatch):
    machine = Machine(2)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    with machine, Pipeline(tanh_layers(4), "stream", **LEARNING) as pipeline:
        for x, y in samples_of(6):
            pipeline.submit(x, y)
        machine.log.clear()
        for x, y in samples_of(3):
            pipeline.submit(x, y)
        assert not [entry for entry in machine.log if entry[0] == "synchronize"]
    machine.check()


@pytest.mark.parametrize("executor", ["stream", "graph"])
@pytest.mark.parametrize("stages", [1, 3])
def test_weights_may_be_read_between_steps(monkeypatch, executor, stages):
    """The caller reads in a stream of its own: after all work so far, and before what comes."""
    machine, network = Machine(2), tanh_layers(stages)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    with machine, Pipeline(network, executor, loss=squared, optimiser=fused_sgd) as pipeline:
        for x, y in samples_of(9):
            pipeline.submit(x, y)
            pipeline.wait()
            weights(network)
    machine.check()


def test_each_stage_works_in_a_stream_of_its_own(monkeypatch):
    machine = Machine(2)
    run(lambda: tanh_layers(4), "stream", samples_of(6), machine, monkeypatch, **LEARNING)
    assert [stream.name for stream in machine.streams] == [
        f"{kind} {stage}" for stage in range(1, 5) for kind in ("compute", "receive", "send")
    ]
    devices = [str(stream.device) for stream in machine.streams[::3]]
    assert devices == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
    copies = {name for kind, name, _ in machine.log if kind == "copy"}
    # samples in, one hop each way between the devices, targets in, answers out
    assert copies == {"receive 1", "send 2", "send 3", "receive 4", "send 4"}


ESSENTIAL = [("compute", "receive"), ("compute", "compute"), ("send", "compute")]


@pytest.mark.parametrize("pair", ESSENTIAL)
@pytest.mark.parametrize("learning", [False, True])
def test_a_schedule_without_one_kind_of_wait_is_found(monkeypatch, pair, learning):
    machine = Machine(2, deaf=[pair])
    samples = samples_of(8) if learning else [x for x, _ in samples_of(8)]
    how = LEARNING if learning else {}
    with pytest.raises(AssertionError, match="too early|overwrites"):
        run(lambda: tanh_layers(4), "stream", samples, machine, monkeypatch, **how)
    assert machine.waits[pair] > 0


def test_memory_that_nobody_holds_is_found(monkeypatch):
    with pytest.raises(AssertionError, match="nobody holds it"):
        run(
            lambda: tanh_layers(2),
            "stream",
            samples_of(5),
            Machine(holds=False),
            monkeypatch,
            **LEARNING,
        )


def test_work_on_the_memory_of_another_device_is_found(monkeypatch):
    stages = tanh_layers(2)
    stages[1][0][0].bias = stages[0][0][0].bias  # no parameter is shared but by such a mistake
    monkeypatch.setattr("actionspan.streaming.pipeline.parts_of_pipeline", _parts_without_check)
    machine = Machine(2)
    machine.place = _placing_once(machine)
    with pytest.raises(AssertionError, match="touches memory of cuda:0"):
        run(lambda: stages, "stream", [x for x, _ in samples_of(4)], machine, monkeypatch)


def _parts_without_check(stages, learning):
    from actionspan.streaming.stage import Part, Place

    return [Part(stage, Place(h, len(stages)), None) for h, stage in enumerate(stages)]


def _placing_once(machine):
    known = set()

    def place(module, device):
        for tensor in module.parameters():
            memory = machine._of(tensor)
            memory.free_for_all = True
            if id(tensor) not in known:
                memory.home = device
            known.add(id(tensor))

    return place


def test_what_is_recorded_is_of_the_device(monkeypatch):
    found = run(
        lambda: tanh_layers(2),
        "stream",
        samples_of(5),
        Machine(),
        monkeypatch,
        **LEARNING,
        record=True,
    )
    for stage in found["report"]:
        works = [event.work for event in stage["events"]]
        assert works.count("forward") == 5
        assert works.count("update") == stage["updates"]
        assert all(event.begin <= event.end for event in stage["events"])


class Broken(nn.Module):
    def forward(self, x):
        if self.training:
            raise ValueError("the stage broke")
        return x


def test_a_stage_that_fails_is_named(monkeypatch):
    machine = Machine()
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    message = "stage 2 of 2, sample 0: ValueError: the stage broke"
    with machine:
        pipeline = Pipeline([*tanh_layers(1), Broken()], "stream")
        with pytest.raises(StageError, match=message):
            pipeline.step(torch.zeros(3, 4))


class Failing(Machine):
    """Kernels fail some time after they were given."""

    def done(self, event):
        raise RuntimeError("device-side assert triggered\nand more")


def test_a_device_that_fails_is_an_error_of_one_line(monkeypatch):
    machine = Failing()
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    with machine, Pipeline(tanh_layers(2), "stream") as pipeline:
        pipeline.submit(torch.zeros(3, 4))
        with pytest.raises(StageError, match=r"device-side assert triggered; CUDA_LAUNCH"):
            pipeline.answer()


def test_a_device_that_hangs_is_a_stall(monkeypatch):
    machine = Machine(patience=10**9)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    with machine:
        pipeline = Pipeline(tanh_layers(2), "stream", stall_seconds=0.05)
        pipeline.submit(torch.zeros(3, 4))
        assert pipeline.answer(timeout=0.01) is None
        with pytest.raises(StallError, match="stage 1 of 2, sample 0: no sign of life"):
            pipeline.answer()


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (["cuda:0"], "devices: 1 given for 2 stages"),
        (["cuda:0", "cuda:5"], "device cuda:5: one of cuda:0, cuda:1"),
        (["cpu", "cuda"], "device cpu: one of cuda:0, cuda:1"),
    ],
)
def test_devices_must_fit(monkeypatch, devices, message):
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: Machine(2))
    with pytest.raises(ValueError, match=message):
        Pipeline(tanh_layers(2), "stream", devices=devices)


def test_devices_are_for_gpus():
    with pytest.raises(ValueError, match="runs on CPU"):
        Pipeline(tanh_layers(2), "thread", devices=["cuda:0", "cuda:0"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("executor", ["stream", "graph"])
def test_without_a_gpu_one_line_says_what_to_use(executor):
    with pytest.raises(ValueError, match=f'"{executor}" needs a CUDA device.*use "thread"'):
        Pipeline(tanh_layers(2), executor)
