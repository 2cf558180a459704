"""Tabulate accuracy and memory of three ways to train a transformer, as table 1 of paper 004."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from actionspan_papers.rows import Row, read_rows
from actionspan_papers.sbp.published import RECOGNITION
from actionspan_papers.tables import add_outputs, write_table

SMALL = "small transformer"
_WAYS = {"end-to-end": "end-to-end", "frame dropout": "frame dropout", "SBP": "SBP, frame-wise"}
"""The ways of the table by their names, and those of table 3."""
_NO_TOP1 = {"top1": "", "top1_low": "", "top1_high": ""}
_COLUMNS = ("way", *_NO_TOP1, "saved_share")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--table3", type=Path, required=True, help="table3.tsv")
    add_outputs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a network and way to train."""
    rows = table1_rows(read_rows(arguments.table3, _COLUMNS))
    caption = [
        "Table 1: memory of a step on 4 clips of 32 frames with the layers of Video Swin-T and "
        "Swin-B, counted as in table 2 with explicit attention; SBP and frame dropout at ¼. "
        "Published: GB a GPU by `max_memory_allocated`, top-1 in percent.",
        "Their accuracy takes Kinetics-400, EPIC-Kitchens and ImageNet's weights of Swin; ours is "
        f"top-1 of the {SMALL} of table 3 on rendered clips, with its interval: the order of the "
        "ways can be compared, the numbers cannot.",
    ]
    titles = {"network": "network", "way": "way", "top1": "top-1, ours"}
    titles |= {"saved_gib": "saved, GiB", "saved_share": "share", "allocated_share": "allocated"}
    titles |= {"published_gb": "published, GB", "published_share": "share"}
    titles |= {"published_kinetics": "Kinetics-400", "published_epic": "EPIC verbs"}
    interval = "{top1} [{top1_low}, {top1_high}]"
    shown = [
        {**row, "top1": interval.format(**row) if row["top1_low"] else row["top1"]} for row in rows
    ]
    write_table(arguments, rows, caption, "ll" + 8 * "r", titles, shown)


def table1_rows(table3: Sequence[Row]) -> list[dict[str, str]]:
    """Return the rows of both networks and, from the rows of table 3, of ours."""
    from actionspan_papers.sbp.table2_rows import SHAPES, WAYS, count_step

    ways = [way for way in WAYS if way.name in _WAYS]
    rows = []
    for network, shape in SHAPES.items():
        counts = {way.name: count_step(way, shape, fused=False) for way in ways}
        whole, most = counts["end-to-end"], RECOGNITION[network, "end-to-end"].gigabytes
        for name in _WAYS:
            count, printed = counts[name], RECOGNITION[network, name]
            numbers = {
                "saved_gib": f"{count.saved / 2**30:.2f}",
                "saved_share": f"{count.saved / whole.saved:.3f}",
                "allocated_share": f"{count.allocated / whole.allocated:.3f}",
                "published_gb": f"{printed.gigabytes:g}",
                "published_share": f"{printed.gigabytes / most:.3f}",
                "published_kinetics": f"{printed.kinetics:g}",
                "published_epic": f"{printed.epic:g}",
            }
            rows.append({"network": network, "way": name, **_NO_TOP1, **numbers})
    ours = {row["way"]: row for row in table3}
    blank = dict.fromkeys(rows[0], "")
    return rows + [
        {**blank, "network": SMALL, "way": name, **{key: ours[own][key] for key in _COLUMNS[1:]}}
        for name, own in _WAYS.items()
    ]
