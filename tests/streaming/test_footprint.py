"""The bytes that stages and links hold against the closed form."""

import pytest
import torch
from torch import Tensor

from actionspan.streaming import Pipeline, stage_bytes
from actionspan.streaming.messages import bytes_of, message_of
from actionspan.streaming.sockets import SLOTS, link
from streaming.networks import MODES, chain, squared, stream


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_what_is_kept_has_the_bytes_of_the_formula(stages: int, mode: str) -> None:
    network, samples = chain(stages), stream(20)
    message = bytes_of(samples[0]) // 2
    with Pipeline(
        network, loss=squared, optimiser=lambda p: torch.optim.Adam(p, lr=0.01), gradients=mode
    ) as pipeline:
        for x, y in samples:
            pipeline.step(x, y)
        states = pipeline.state_dict()["stages"]
    for index, (module, state) in enumerate(zip(network, states, strict=True)):
        weights = bytes_of(tuple(module.parameters()))
        formula = stage_bytes(
            index,
            stages,
            gradients=mode,
            weights=weights,
            learned=weights,
            message=message,
            signal=message,
            target=message,
        )
        kept = state["history"]["kept"] if state["history"] else []
        found: dict[int, Tensor] = {}
        for _, (_, tensors, _), _, _, versions in kept:
            held = [*tensors, *(versions or {}).values()]
            found |= {id(tensor): tensor for tensor in held}
        assert bytes_of(tuple(found.values())) == formula.kept
        assert formula.targets == (stages * message if index == stages - 1 else 0)
        assert formula.total == sum(
            [formula.weights, formula.gradients, formula.inputs, formula.signals]
            + [formula.targets, formula.kept]
        )


def test_pipedream_keeps_2_d_minus_h_versions_beside_the_weights() -> None:
    formula = stage_bytes(0, 4, gradients="stash", weights=100, learned=100, message=0)
    assert formula.kept == 6 * 100


def test_a_link_holds_two_messages() -> None:
    outlet, inlet = link()
    x = torch.randn(1000)
    for sample in range(SLOTS):
        assert outlet.room()
        outlet.send(message_of(sample, x + sample, "x"))
    assert not outlet.room()
    first = inlet.receive()
    assert first is not None
    assert torch.equal(first.tensors[0], x)
    assert outlet.room()  # it was copied out
    outlet.send(message_of(2, x + 2, "x"))
    later = [inlet.receive(), inlet.receive()]
    assert [message.sample for message in later if message] == [1, 2]
    assert outlet._block is not None
    assert len(outlet._block._memory) == SLOTS * 4032  # a multiple of 64 bytes each
    outlet.end.close()
    inlet.end.close()
