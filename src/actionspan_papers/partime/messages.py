"""Count the bytes that go from stage to stage for a sample, with and without skip connections."""

import argparse
from collections.abc import Sequence

from torch import nn

from actionspan.networks.division import Fork, Join, division
from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import layers_of
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan_papers.experiments import Cell, Experiment, Row, Table
from actionspan_papers.partime.balance import stages_by_counting
from actionspan_papers.partime.networks import Case, Whole, counted_cases
from actionspan_papers.partime.published import ENCODERS
from actionspan_papers.partime.settings import SpeedSettings


def cut_bytes(stages: Sequence[nn.Module], sample: Value) -> list[tuple[int, int]]:
    """Return for each cut the bytes of the message, and of its first tensor alone."""
    sent, value = [], sample
    for stage in stages[:-1]:
        value = stage(value)
        tensors = message_of(0, value, "the output").tensors
        sent.append((bytes_of(tensors), bytes_of(tensors[:1])))
    return sent


def _rows(_: argparse.Namespace, settings: SpeedSettings) -> list[Row]:
    """Return a row a network and number of stages."""
    with deterministic(threads=1):
        return [row for case in counted_cases(settings) for row in _of_cuts(case, settings)]


def _of_cuts(case: Case, settings: SpeedSettings) -> list[Row]:
    network, sample = case.network(settings).eval(), case.sample()
    layers = layers_of(network, division)
    blocks = _blocks(layers) if case.name in ENCODERS else []
    found: list[Row] = []
    for depth in settings.depths:
        stages, bound = stages_by_counting(layers, sample, depth)
        sent = cut_bytes(stages, sample)
        row: dict[str, Cell] = {
            **case.named,
            "stages": depth,
            "crossed": sum(both > main for both, main in sent),
            "bytes_with_skips": sum(both for both, _ in sent),
            "bytes_without_skips": sum(main for _, main in sent),
            "bound": bound,
            "bytes_whole_blocks": "",
            "bound_whole_blocks": "",
        }
        if len(blocks) >= depth:
            whole, bound = stages_by_counting(blocks, sample, depth)
            row["bytes_whole_blocks"] = sum(both for both, _ in cut_bytes(whole, sample))
            row["bound_whole_blocks"] = bound
        found.append(row)
    return found


def _blocks(links: Sequence[nn.Module]) -> list[nn.Module]:
    """Return a chain with its residual blocks left whole: from a `Fork` to its `Join`."""
    blocks: list[list[nn.Module]] = []
    inside = False
    for link in links:
        if inside:
            blocks[-1].append(link)
        else:
            blocks.append([link])
        inside = isinstance(link, Fork) or (inside and not isinstance(link, Join))
    return [Whole(block) for block in blocks]


def _table(*_: object) -> Table:
    caption = [
        "Bytes of the messages of one sample between all stages that infer; learning sends as many "
        "back. With skips: what is sent, the tensor that is worked on and the skip connections "
        "that are open at the cut; without: the former alone. Crossed: cuts inside a block.",
        "`Whole blocks`: the same number of stages cut between blocks alone, and what that "
        "does to the bound. Cuts and bounds are those of counted multiplications.",
    ]
    titles = {"network": "network", "R": "R", "stages": "D", "crossed": "crossed"}
    titles |= {"bytes_with_skips": "bytes with skips", "bytes_without_skips": "without"}
    titles |= {"bound": "bound", "bytes_whole_blocks": "bytes, whole blocks"}
    titles |= {"bound_whole_blocks": "bound, whole blocks"}
    return Table(caption=caption, titles=titles, align="lrrrrrrrr")


EXPERIMENT = Experiment(
    rows=_rows,
    table=_table,
    settings=(SpeedSettings,),
    forms=dict.fromkeys(["bound", "bound_whole_blocks"], ".3f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
