"""Count the bytes that go from stage to stage for a sample, with and without skip connections."""

from collections.abc import Iterator
from itertools import product

from actionspan_papers.experiments import Cell, Experiment, Row, Table
from actionspan_papers.partime.published import ENCODERS
from actionspan_papers.partime.settings import SpeedSettings


def _rows(_: object, settings: SpeedSettings) -> Iterator[Row]:
    """Yield a row a network and number of stages."""
    from actionspan.networks.division import division
    from actionspan.streaming.balance import layers_of
    from actionspan_papers.partime.networks import counted_cases
    from actionspan_papers.partime.pipelines import cut_bytes, stages_by_counting, whole_blocks

    for case, depth in product(counted_cases(settings), settings.depths):
        network, sample = case.network(settings).eval(), case.sample()
        layers = layers_of(network, division)
        blocks = whole_blocks(layers) if case.name in ENCODERS else []
        stages = stages_by_counting(layers, sample, depth)
        sent = cut_bytes(stages, sample)
        row: dict[str, Cell] = {
            **case.named,
            "stages": depth,
            "crossed": sum(both > main for both, main in sent),
            "bytes_with_skips": sum(both for both, _ in sent),
            "bytes_without_skips": sum(main for _, main in sent),
            "bound": stages.bound,
            "bytes_whole_blocks": "",
            "bound_whole_blocks": "",
        }
        if len(blocks) >= depth:
            whole = stages_by_counting(blocks, sample, depth)
            row["bytes_whole_blocks"] = sum(both for both, _ in cut_bytes(whole, sample))
            row["bound_whole_blocks"] = whole.bound
        yield row


def _table(*_: object) -> Table:
    caption = [
        "Bytes of the messages of one sample between all stages that infer; learning sends as many "
        "back. With skips: all that is sent, the current tensor and the skip connections that are "
        "open at the cut; without: the tensor alone. Crossed: cuts inside a block.",
        "`Whole blocks`: the same number of stages cut between blocks alone, and their bound. Cuts "
        "and bounds are by counted multiplications.",
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
    repeatable=True,
    forms=dict.fromkeys(["bound", "bound_whole_blocks"], ".3f"),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
