"""The executor `graph` on a stand-in for GPUs, whose graphs repeat operations and run no module."""

from functools import partial

import pytest
import torch
from torch import nn

from actionspan.streaming import Pipeline, StageError
from actionspan.streaming.graph import GraphExecutor, _tensors_of
from actionspan.streaming.slots import SlotAnswers, SlotLink
from streaming.cuda_networks import (
    BY_ADAM,
    BY_SGD,
    Reading,
    TensorAdam,
    inputs_of,
    normed,
    run,
    tensor_adam,
    working,
)
from streaming.networks import chain, stream, weights
from streaming.stand_in import Machine


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


def test_the_fill_and_the_drain_run_eagerly_and_graphs_take_turns():
    """Stage h (from 0) is full from step 2D - 2 - h on; its first full step makes the state."""
    machine, samples, stages = Machine(), 12, 3
    run(partial(chain, 3), "graph", stream(samples), machine, **BY_SGD)
    for stage, graphs in replays(machine).items():
        first = 2 * stages - 2 - (stage - 1)
        last = samples - 1 + (stage - 1)  # the last step at which it holds a sample
        eager_at_the_end = max(0, last - (samples - 1 + stages - 1))
        assert len(graphs) == last - first - eager_at_the_end
        assert graphs == [number % 2 for number in range(len(graphs))]


def test_the_two_graphs_of_a_stage_read_and_write_opposite_places():
    seen = {}
    with working(Machine()), Pipeline(chain(2), "graph", **BY_SGD) as pipeline:
        for x, y in stream(8):
            pipeline.submit(x, y)
        ends, captured = pipeline._executor._ends, pipeline._executor._captured
        for stage in (0, 1):
            for parity in (0, 1):
                seen[stage, parity] = _touched(captured[stage].graphs[parity])
        right, back = (
            [link._in[n].tensors[0].untyped_storage()._cdata for n in (0, 1)]
            for link in (ends[0].right, ends[1].back)
        )
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


@pytest.mark.parametrize("broken", [SlotLink, SlotAnswers])
def test_a_write_into_a_place_that_is_still_read_is_found(monkeypatch, broken):
    monkeypatch.setattr(broken, "open", lambda self, **how: None)
    with pytest.raises(AssertionError, match="overwrites what is read by"):
        run(partial(chain, 3), "graph", inputs_of(9))


def test_warm_up_puts_everything_back(monkeypatch):
    warm_up, seen = GraphExecutor._warm_up, []

    def watched(self, stage, work):
        def states():
            generators = [generator.get_state() for generator in self._backend.generators]
            return [torch.get_rng_state(), *generators]

        def counts():
            return stage.steps, stage.samples, stage.updates, stage.sample

        before = [tensor.detach().clone() for tensor in _tensors_of(stage)]
        where = [tensor.data_ptr() for tensor in _tensors_of(stage)]
        random, counted, changed = states(), counts(), []

        def noted():
            work()
            pairs = zip(before, _tensors_of(stage), strict=True)
            changed.append(sum(not torch.equal(old, new) for old, new in pairs))

        warm_up(self, stage, noted)
        after = _tensors_of(stage)
        assert all(map(torch.equal, before, after))
        assert where == [tensor.data_ptr() for tensor in after]
        assert all(parameter.grad is None for parameter in stage.module.parameters())
        assert all(map(torch.equal, random, states()))
        assert counted == counts()
        seen.append(min(changed))

    monkeypatch.setattr(GraphExecutor, "_warm_up", watched)
    run(partial(normed, 3), "graph", stream(10), **BY_ADAM)
    assert len(seen) == 3
    assert min(seen) >= 4 + 3 + 4 * 3  # parameters, statistics and the optimiser's state moved


def test_a_state_taken_before_comes_back_into_a_pipeline_with_graphs():
    samples, stages = stream(14), normed(2)
    whole = run(partial(normed, 2), "sequential", samples, **BY_ADAM)
    with working(Machine()), Pipeline(stages, "graph", **BY_ADAM) as pipeline:
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
    assert losses == whole["losses"]
    assert all(map(torch.equal, weights(stages), whole["after"]))


def test_a_change_of_mode_is_captured_again():
    found = []
    for executor in ("sequential", "graph"):
        stages = normed(2)
        with working(Machine()), Pipeline(stages, executor, **BY_SGD) as pipeline:
            for number, (x, y) in enumerate(stream(16)):
                if number == 6:
                    pipeline.eval(0)
                if number == 11:
                    pipeline.train()
                pipeline.submit(x, y)
            found.append([answer.loss for answer in pipeline.drain()])
        found.append(weights(stages))
    assert found[0] == found[2]
    assert all(map(torch.equal, found[1], found[3]))


# What it does not take: each refusal is a line that says what to use instead

REFUSED = [
    ({"gradients": "stash"}, 'stage 1 of 2: gradients "stash" need inputs.*gradients "paper"'),
    ({"gradients": "inputs"}, 'stage 1 of 2: gradients "inputs" need inputs'),
    ({"optimiser": torch.optim.Adam}, r"needs Adam\(..., capturable=True\), or use executor"),
    (
        {"optimiser": partial(torch.optim.SGD, lr=0.1, fused=True)},
        r"needs SGD\(..., lr=torch.tensor\(0.1\)\)",
    ),
    (
        {"optimiser": partial(torch.optim.SGD, lr=torch.tensor(0.1))},
        r"needs SGD\(..., fused=True\).*or use executor \"stream\"",
    ),
]


@pytest.mark.parametrize(("how", "message"), REFUSED)
def test_what_is_known_beforehand_is_refused_at_once(how, message):
    with working(Machine()), pytest.raises(ValueError, match=message) as found:
        Pipeline(chain(2), "graph", **(BY_SGD | how))
    assert "\n" not in str(found.value)


def test_active_dropout_is_refused():
    message = "stage 1 of 2 has active dropout.*or eval"
    with working(Machine(), checked=False):
        with pytest.raises(ValueError, match=message):
            Pipeline(normed(2, 0.5), "graph", **BY_SGD)
        pipeline = Pipeline([stage.eval() for stage in normed(2, 0.5)], "graph", **BY_SGD)
        with pytest.raises(ValueError, match=message):
            pipeline.train()


class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.rand(x.shape)


class Replacing(nn.Module):
    mean: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


class Counting(TensorAdam):
    def step(self, closure=None):
        super().step()
        for state in self.state.values():
            state["calls"] = state.get("calls", 0) + 1


@pytest.mark.parametrize(
    ("module", "optimiser", "why"),
    [
        (Reading(), tensor_adam, "operation not permitted when stream is capturing"),
        (Drawing(), tensor_adam, "it draws random numbers"),
        (Replacing(), tensor_adam, "it replaces a buffer or a state"),
        (nn.Identity(), partial(Counting, lr=torch.tensor(0.1)), "its optimiser counts on the"),
    ],
)
def test_what_shows_in_warm_up_or_capture_is_refused(module, optimiser, why):
    stages = [*chain(1), nn.Sequential(*chain(1), module)]
    with working(Machine(), checked=False):
        pipeline = Pipeline(stages, "graph", **(BY_SGD | {"optimiser": optimiser}))
        with pytest.raises(StageError) as found:
            list(pipeline.run(stream(9)))
    assert isinstance(found.value, ValueError)
    assert str(found.value).startswith("stage 2 of 2, sample 1: it cannot be a graph: ")
    assert why in str(found.value)
    assert str(found.value).endswith('use executor "stream"')
