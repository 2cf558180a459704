"""Count the bytes that go from stage to stage for a sample, with and without skip connections."""

import argparse
from collections.abc import Sequence

from torch import nn

from actionspan.papers.partime.cases import Case, cases, inside, stages_by_counting
from actionspan.papers.partime.networks import KINDS
from actionspan.papers.partime.settings import SpeedSettings
from actionspan.papers.tables import add_outputs, write_table
from actionspan.running.determinism import deterministic
from actionspan.settings import add_settings, from_arguments
from actionspan.streaming.balance import layers_of
from actionspan.streaming.messages import Value, bytes_of, message_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network and number of stages."""
    settings = from_arguments(SpeedSettings, arguments)
    with deterministic(threads=1):
        rows = [
            row
            for case in cases(settings)
            if case.outputs == settings.outputs[-1]
            for row in _rows(case, settings)
        ]
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
    write_table(arguments, rows, caption, "lrrrrrrrr", titles)


def _rows(case: Case, settings: SpeedSettings) -> list[dict[str, str]]:
    network, sample = case.network(settings).eval(), case.sample()
    layers = layers_of(network, inside)
    blocks = _blocks(network) if KINDS[case.name] == "resnet" else []
    found = []
    for depth in settings.depths:
        stages, bound = stages_by_counting(layers, sample, depth)
        sent = cut_bytes(stages, sample)
        row = {
            **case.named,
            "stages": str(depth),
            "crossed": str(sum(both > main for both, main in sent)),
            "bytes_with_skips": str(sum(both for both, _ in sent)),
            "bytes_without_skips": str(sum(main for _, main in sent)),
            "bound": f"{bound:.3f}",
            "bytes_whole_blocks": "",
            "bound_whole_blocks": "",
        }
        if len(blocks) >= depth:
            whole, bound = stages_by_counting(blocks, sample, depth)
            row["bytes_whole_blocks"] = str(sum(both for both, _ in cut_bytes(whole, sample)))
            row["bound_whole_blocks"] = f"{bound:.3f}"
        found.append(row)
    return found


def cut_bytes(stages: Sequence[nn.Module], sample: Value) -> list[tuple[int, int]]:
    """Return for each cut the bytes of the message, and of its first tensor alone."""
    sent, value = [], sample
    for stage in stages[:-1]:
        value = stage(value)
        tensors = message_of(0, value, "the output").tensors
        sent.append((bytes_of(tensors), bytes_of(tensors[:1])))
    return sent


class _Block(nn.Module):
    """The links of a residual block, as one layer."""

    def __init__(self, links: list[nn.Module]) -> None:
        super().__init__()
        self.links = nn.ModuleList(links)

    def forward(self, value: Value) -> Value:
        for link in self.links:
            value = link(value)
        return value


def _blocks(network: nn.Module) -> list[nn.Module]:
    """Return the chain of a network with residual blocks left whole."""
    from actionspan.networks.division import Fork, Join

    blocks: list[nn.Module] = []
    open_links: list[nn.Module] = []
    for link in inside(network) or []:
        if isinstance(link, Fork) or open_links:
            open_links.append(link)
            if isinstance(link, Join):
                blocks.append(_Block(open_links))
                open_links = []
        else:
            blocks.append(_Block([link]))
    return blocks
