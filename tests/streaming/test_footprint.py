"""The bytes that stages and links hold against the closed form."""

import pytest
import torch

from actionspan.streaming import Pipeline, stage_bytes
from actionspan.streaming.messages import bytes_of, message_of
from actionspan.streaming.sockets import SLOTS, link
from streaming.conftest import every_mode
from streaming.networks import adam, chain, squared, stream


@every_mode
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_what_is_kept_has_the_bytes_of_the_formula(stages, mode):
    network, samples = chain(stages), stream(20)
    message = bytes_of(samples[0]) // 2
    with Pipeline(network, loss=squared, optimiser=adam, gradients=mode) as pipeline:
        for x, y in samples:
            pipeline.step(x, y)
        states = pipeline.state_dict()["stages"]
    for index, (module, state) in enumerate(zip(network, states, strict=True)):
        weights = bytes_of(tuple(module.parameters()))
        sizes = {"weights": weights, "learned": weights, "message": message}
        sizes |= {"signal": message, "target": message}
        formula = stage_bytes(index, stages, gradients=mode, **sizes)
        found = {}
        for _, (_, tensors, _), _, _, versions in (state["history"] or {"kept": []})["kept"]:
            found |= {id(tensor): tensor for tensor in [*tensors, *(versions or {}).values()]}
        assert bytes_of(tuple(found.values())) == formula.kept
        assert formula.targets == (stages * message if index == stages - 1 else 0)
        parts = ("weights", "gradients", "inputs", "signals", "targets", "kept")
        assert formula.total == sum(getattr(formula, part) for part in parts)


def test_a_link_holds_two_messages():
    outlet, inlet = link()
    x = torch.randn(1000)
    for sample in range(SLOTS):
        assert outlet.room()
        outlet.send(message_of(sample, x + sample, "x"))
    assert not outlet.room()
    assert torch.equal(inlet.receive().tensors[0], x)
    assert outlet.room()  # it was copied out
    outlet.send(message_of(2, x + 2, "x"))
    assert [inlet.receive().sample for _ in range(2)] == [1, 2]
    assert len(outlet._block._memory) == SLOTS * 4032  # a multiple of 64 bytes each
    outlet.end.close()
    inlet.end.close()
