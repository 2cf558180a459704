"""The bytes between the stages of networks."""

from collections.abc import Sequence

from torch import nn

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import layers_of
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan_papers.partime.cases import Case, counted_cases, inside, stages_by_counting
from actionspan_papers.partime.names import KINDS
from actionspan_papers.partime.settings import SpeedSettings


def message_rows(settings: SpeedSettings) -> list[dict[str, str]]:
    """Return a row a network and number of stages."""
    with deterministic(threads=1):
        return [row for case in counted_cases(settings) for row in _rows(case, settings)]


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
