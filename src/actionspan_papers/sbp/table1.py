"""Tabulate accuracy and memory of three ways to train a transformer, as table 1 of paper 004."""

import math

from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import Experiment, Row, Table, read_frame, titled
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.sbp.published import RECOGNITION
from actionspan_papers.sbp.table2 import FORMS, GIB

SMALL = "small transformer"
_WAYS = {"end-to-end": "end-to-end", "frame dropout": "frame dropout", "SBP": "SBP, frame-wise"}
"""The ways of the table by their names, and of table 3."""
_COLUMNS = ("way", "top1", "top1_low", "top1_high", "saved_share")
_TITLES = titled(
    "network; way; top1: top-1, ours; saved_gib: saved, GiB; saved_share: share; allocated_share: "
    "allocated; published_gb: published, GB; published_share: share; published_kinetics: "
    "Kinetics-400; published_epic: EPIC verbs"
)


def _read(arguments: Flags) -> DataFrame:
    return read_frame(arguments.table3, _COLUMNS)


def table1_rows(table3: DataFrame) -> list[Row]:
    """Return the rows of both networks and, from the rows of table 3, of ours."""
    from actionspan_papers.sbp.swin import SHAPES, WAYS, count_step

    rows: list[Row] = []
    for network, shape in SHAPES.items():
        counts = {
            way.name: count_step(way, shape, fused=False) for way in WAYS if way.name in _WAYS
        }
        whole, most = counts["end-to-end"], RECOGNITION[network, "end-to-end"].gigabytes
        for name in _WAYS:
            count, printed = counts[name], RECOGNITION[network, name]
            rows.append(
                {
                    "network": network,
                    "way": name,
                    "top1": Estimate(),
                    "saved_gib": count.saved / GIB,
                    "saved_share": count.saved / whole.saved,
                    "allocated_share": count.allocated / whole.allocated,
                    "published_gb": printed.gigabytes,
                    "published_share": printed.gigabytes / most,
                    "published_kinetics": printed.kinetics,
                    "published_epic": printed.epic,
                }
            )
    ours = table3.set_index("way")
    for name, own in _WAYS.items():
        top1, low, high, saved = (float(ours.at[own, column]) for column in _COLUMNS[1:])
        row: Row = {"network": SMALL, "way": name, "top1": Estimate(value=top1, low=low, high=high)}
        rows.append({**dict.fromkeys(rows[0], math.nan), **row, "saved_share": saved})
    return rows


def _table(_: DataFrame, __: DataFrame) -> Table:
    caption = [
        "Table 1: memory of a step on 4 clips of 32 frames with the layers of Video Swin-T and "
        "Swin-B, counted as in table 2 with explicit attention; SBP and frame dropout at ¼. "
        "Published: GB a GPU by `max_memory_allocated`, top-1 in percent.",
        "Their accuracy takes Kinetics-400, EPIC-Kitchens and ImageNet's weights of Swin; ours is "
        f"top-1 of the {SMALL} of table 3 on rendered clips, with its interval: the order of the "
        "ways can be compared, the numbers cannot.",
    ]
    return Table(caption=caption, titles=_TITLES)


EXPERIMENT = Experiment(
    inputs={"table3": "table3.tsv"}, read=_read, rows=table1_rows, table=_table, forms=FORMS
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
