"""Count the bytes that go from stage to stage for a sample, with and without skip connections."""

from actionspan_papers.experiments import Experiment, Row, Table
from actionspan_papers.partime.settings import SpeedSettings


def _rows(_: object, settings: SpeedSettings) -> list[Row]:
    from actionspan_papers.partime.bytes_rows import message_rows

    return message_rows(settings)


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
