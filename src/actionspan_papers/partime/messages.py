"""Count the bytes that go from stage to stage for a sample, with and without skip connections."""

import argparse

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.tables import add_outputs, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser)
    add_settings(parser, SpeedSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network and number of stages."""
    settings = from_arguments(SpeedSettings, arguments)
    from actionspan_papers.partime.bytes_rows import message_rows

    rows = message_rows(settings)
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
