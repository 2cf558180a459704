"""The executor `graph` on a stand-in for GPUs, whose graphs repeat operations and run no module."""

import pytest
import torch

from actionspan.streaming import Pipeline
from actionspan.streaming.graph import GraphExecutor, _tensors_of, _Writing
from actionspan.streaming.slots import SlotAnswers, SlotLink
from streaming.cuda_networks import (
    assert_same,
    fused_sgd,
    halving,
    normed,
    run,
    samples_of,
    skipping,
    squared,
    tanh_layers,
    tensor_adam,
    weights,
)
from streaming.stand_in import Machine
from tiers import first_tier

LEARNING = {"loss": squared, "optimiser": fused_sgd}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def replays(machine):
    """Return for each stage the graphs that ran, as numbers in the order of their first run."""
    found = {}
    for kind, name, graph in machine.log:
        if kind == "replay":
            found.setdefault(int(name.removeprefix("compute ")), []).append(id(graph))
    return {
        stage: [list(dict.fromkeys(graphs)).index(graph) for graph in graphs]
        for stage, graphs in found.items()
    }


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("optimiser", [fused_sgd, tensor_adam])
@pytest.mark.parametrize("stages", first_tier([1, 2, 3, 4], 1, 3))
def test_learning_gives_the_bits_of_the_sequential_executor(monkeypatch, stages, optimiser, gpus):
    how = {"loss": squared, "optimiser": optimiser, "schedule": halving, "clip": 0.5}
    expected = run(lambda: normed(stages), "sequential", samples_of(14), **how)
    machine = Machine(gpus)
    found = run(lambda: normed(stages), "graph", samples_of(14), machine, monkeypatch, **how)
    assert_same(found, expected)
    assert sorted(replays(machine)) == list(range(1, stages + 1))


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("make", [lambda: tanh_layers(3), lambda: normed(4), skipping])
def test_inference_gives_the_bits_of_the_sequential_executor(monkeypatch, make, gpus):
    samples = [x for x, _ in samples_of(9)]
    expected = run(make, "sequential", samples)
    machine = Machine(gpus)
    assert_same(run(make, "graph", samples, machine, monkeypatch), expected)
    assert {len(graphs) for graphs in replays(machine).values()} == {8}


@pytest.mark.parametrize("gpus", [1, 3])
def test_connections_that_skip_a_stage(monkeypatch, gpus):
    expected = run(skipping, "sequential", samples_of(9), **LEARNING)
    found = run(skipping, "graph", samples_of(9), Machine(gpus), monkeypatch, **LEARNING)
    assert_same(found, expected)


def test_the_fill_and_the_drain_run_eagerly_and_graphs_take_turns(monkeypatch):
    """Stage h (from 0) is full from step 2D - 2 - h on; its first full step makes the state."""
    machine, samples, stages = Machine(), 12, 3
    run(lambda: tanh_layers(3), "graph", samples_of(samples), machine, monkeypatch, **LEARNING)
    for stage, graphs in replays(machine).items():
        first = 2 * stages - 2 - (stage - 1)
        last = samples - 1 + (stage - 1)  # the last step at which it holds a sample
        eager_at_the_end = max(0, last - (samples - 1 + stages - 1))
        assert len(graphs) == last - first - eager_at_the_end
        assert graphs == [number % 2 for number in range(len(graphs))]


def test_the_two_graphs_of_a_stage_read_and_write_opposite_places(monkeypatch):
    machine, seen = Machine(), {}
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    with machine, Pipeline(tanh_layers(2), "graph", **LEARNING) as pipeline:
        for x, y in samples_of(8):
            pipeline.submit(x, y)
        executor = pipeline._executor
        ends, captured = executor._ends, executor._captured
        for stage in (0, 1):
            for parity in (0, 1):
                seen[stage, parity] = _touched(captured[stage].graphs[parity])
        right = [ends[0].right._in[n].tensors[0].untyped_storage()._cdata for n in (0, 1)]
        back = [ends[1].back._in[n].tensors[0].untyped_storage()._cdata for n in (0, 1)]
    for parity in (0, 1):
        other = 1 - parity
        for link, reader, writer in ((right, 1, 0), (back, 0, 1)):
            assert link[parity] in seen[reader, parity]["read"]
            assert link[other] not in seen[reader, parity]["read"]
            assert link[other] in seen[writer, parity]["written"]
            assert link[parity] not in seen[writer, parity]["written"]


def _touched(graph):
    """Return the memory that a graph writes by copies, and all other that it is given."""
    read, written = set(), set()
    for func, args, _, _ in graph:
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        if func.overloadpacket.__name__ == "copy_":
            written.add(tensors[0].untyped_storage()._cdata)
            tensors = tensors[1:]
        read |= {tensor.untyped_storage()._cdata for tensor in tensors}
    return {"read": read, "written": written}


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_every_stage_learns(monkeypatch, stages):
    found = run(
        lambda: tanh_layers(stages), "graph", samples_of(16), Machine(), monkeypatch, **LEARNING
    )
    after = iter(weights(found["stages"]))
    before = iter(found["before"])
    for stage, (_, _, updates) in zip(found["stages"], found["counts"], strict=True):
        assert updates >= 16 - 2 * (stages - 1)
        for _ in stage.parameters():
            assert not torch.equal(next(before), next(after))


def test_gradients_read_from_the_wrong_place_are_found(monkeypatch):
    """The mistake of the public code: read buffer 1, write buffer 0, and only the last learns."""
    expected = run(lambda: tanh_layers(3), "sequential", samples_of(14), **LEARNING)
    made = _Writing.__init__

    def swapped(self, ends, number, learning):
        made(self, ends, number, learning)
        self._sent = number

    monkeypatch.setattr(_Writing, "__init__", swapped)
    machine = Machine()
    machine.check = lambda: None
    found = run(lambda: tanh_layers(3), "graph", samples_of(14), machine, monkeypatch, **LEARNING)
    assert found["losses"] != expected["losses"]
    assert machine.races
    first = slice(len(found["losses"]), len(found["losses"]) + 2)  # the weights of the first stage
    assert not all(map(torch.equal, found["tensors"][first], expected["tensors"][first]))


@pytest.mark.parametrize("broken", [SlotLink, SlotAnswers])
def test_a_write_into_a_place_that_is_still_read_is_found(monkeypatch, broken):
    monkeypatch.setattr(broken, "open", lambda self, **how: None)
    samples = [x for x, _ in samples_of(9)]
    with pytest.raises(AssertionError, match="overwrites what is read by"):
        run(lambda: tanh_layers(3), "graph", samples, Machine(), monkeypatch)


WAITS = [
    ("compute", "receive"),  # samples and targets
    ("compute", "compute"),  # messages
    ("receive", "compute"),  # places for samples that are still read
    ("send", "compute"),  # answers
    ("compute", "send"),  # places for answers that are still copied
]


@pytest.mark.parametrize("pair", WAITS)
@pytest.mark.parametrize("gpus", [1, 3])
def test_a_schedule_without_one_kind_of_wait_is_found(monkeypatch, pair, gpus):
    machine = Machine(gpus, deaf=[pair])
    samples = [x for x, _ in samples_of(9)]
    with pytest.raises(AssertionError, match="too early|overwrites"):
        run(lambda: tanh_layers(6), "graph", samples, machine, monkeypatch)


def test_warm_up_puts_everything_back(monkeypatch):
    warm_up, seen = GraphExecutor._warm_up, []

    def watched(self, stage, work):
        before = [tensor.detach().clone() for tensor in _tensors_of(stage)]
        where = [tensor.data_ptr() for tensor in _tensors_of(stage)]
        states = [torch.get_rng_state(), *(g.get_state() for g in self._backend.generators)]
        counts = stage.steps, stage.samples, stage.updates, stage.sample
        changed = []

        def noted():
            work()
            pairs = zip(before, _tensors_of(stage), strict=True)
            changed.append(sum(not torch.equal(old, new) for old, new in pairs))

        warm_up(self, stage, noted)
        after = _tensors_of(stage)
        assert all(map(torch.equal, before, after))
        assert where == [tensor.data_ptr() for tensor in after]
        assert all(parameter.grad is None for parameter in stage.module.parameters())
        now = [torch.get_rng_state(), *(g.get_state() for g in self._backend.generators)]
        assert all(map(torch.equal, states, now))
        assert counts == (stage.steps, stage.samples, stage.updates, stage.sample)
        seen.append(min(changed))

    monkeypatch.setattr(GraphExecutor, "_warm_up", watched)
    how = LEARNING | {"optimiser": tensor_adam, "schedule": halving}
    run(lambda: normed(3), "graph", samples_of(10), Machine(), monkeypatch, **how)
    assert len(seen) == 3
    assert min(seen) >= 4 + 3 + 4 * 3  # parameters, statistics and the optimiser's state moved


@pytest.mark.parametrize(
    ("step", "gpus"), first_tier([(0, 2), (2, 1), (5, 2), (8, 1)], (0, 2), (8, 1))
)
def test_goes_on_from_a_state_of_any_executor(monkeypatch, step, gpus):
    machine = Machine(gpus)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    how = LEARNING | {"optimiser": tensor_adam, "schedule": halving}
    samples = samples_of(13)
    whole = run(lambda: normed(3), "sequential", samples, **how)
    for first, second in [("graph", "graph"), ("sequential", "graph"), ("graph", "stream")]:
        with machine:
            with Pipeline(normed(3), first, **how) as pipeline:
                for x, y in samples[:step]:
                    pipeline.submit(x, y)
                state = pipeline.state_dict()
                assert _on_host(state)
            stages = normed(3)
            with Pipeline(stages, second, **how) as pipeline:
                pipeline.submit(*samples[0])  # a pipeline that has run already may go on too
                pipeline.load_state_dict(state)
                for x, y in samples[step:]:
                    pipeline.submit(x, y)
                losses = [answer.loss for answer in pipeline.drain()]
        machine.check()
        assert losses == whole["losses"]
        found = weights(stages)
        assert all(map(torch.equal, found, whole["tensors"][-len(found) :]))


def test_a_state_taken_before_comes_back_into_a_pipeline_with_graphs(monkeypatch):
    machine, samples = Machine(), samples_of(14)
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    how = LEARNING | {"optimiser": tensor_adam, "schedule": halving}
    whole = run(lambda: normed(2), "sequential", samples, **how)
    stages = normed(2)
    with machine, Pipeline(stages, "graph", **how) as pipeline:
        for x, y in samples[:7]:
            pipeline.submit(x, y)
        state = pipeline.state_dict()
        assert len(pipeline._executor._captured) == 2
        for x, y in samples[:4]:  # what is to be forgotten
            pipeline.submit(x, y)
        pipeline.load_state_dict(state)
        for x, y in samples[7:]:
            pipeline.submit(x, y)
        losses = [answer.loss for answer in pipeline.drain()]
    machine.check()
    assert losses == whole["losses"]
    found = weights(stages)
    assert all(map(torch.equal, found, whole["tensors"][-len(found) :]))


def _on_host(state):
    """Return whether the messages of a state are on the host."""
    held = [message for stage in state["stages"] for message in stage["arrived"] if message]
    return all(tensor.device.type == "cpu" for _, tensors, _ in held for tensor in tensors)


def test_a_change_of_mode_is_captured_again(monkeypatch):
    def switched(executor, machine):
        stages, losses = normed(2), []
        with machine, Pipeline(stages, executor, **LEARNING) as pipeline:
            for number, (x, y) in enumerate(samples_of(16)):
                if number == 6:
                    pipeline.eval(0)
                if number == 11:
                    pipeline.train()
                pipeline.submit(x, y)
            losses = [answer.loss for answer in pipeline.drain()]
        return losses, weights(stages)

    machine = Machine()
    monkeypatch.setattr("actionspan.streaming.cuda.cuda_backend", lambda name: machine)
    losses, expected = switched("sequential", Machine())
    again, found = switched("graph", machine)
    machine.check()
    assert again == losses
    assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("gpus", [1, 2])
def test_samples_without_a_target_are_answered_and_not_learned(monkeypatch, gpus):
    samples = [(x, y if number % 5 else None) for number, (x, y) in enumerate(samples_of(17))]
    expected = run(lambda: normed(3), "sequential", samples, **LEARNING)
    found = run(lambda: normed(3), "graph", samples, Machine(gpus), monkeypatch, **LEARNING)
    assert found["losses"].count(None) == 4
    assert_same(found, expected)


def test_frozen_stages(monkeypatch):
    def make():
        stages = tanh_layers(4)
        stages[0].requires_grad_(False)
        stages[2].requires_grad_(False)
        return stages

    expected = run(make, "sequential", samples_of(12), **LEARNING)
    found = run(make, "graph", samples_of(12), Machine(), monkeypatch, **LEARNING)
    assert_same(found, expected)
