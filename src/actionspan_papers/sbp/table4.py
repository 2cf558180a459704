"""Write table 4 of paper 004: online detection with encoders that are tuned in several ways."""

import math
from collections.abc import Mapping

from actionspan.finetune.settings import HEADS
from actionspan_papers.estimates import Resampled
from actionspan_papers.experiments import Cell, Experiment, Row, Table, titled
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.sbp.published import HEADS_LIKE, ONLINE
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings
from actionspan_papers.sbp.trainings import (
    ENDS,
    SETTINGS,
    SNIPPETS,
    Run,
    interval_words,
    measure_online,
    with_sbp,
)

_TITLES = titled(
    "head; way: training; keep_ratio: keep ratio; precision: per-frame mAP; above_frozen: above "
    "frozen; above_full: above full; published"
)
_Found = Mapping[Run, Resampled]


def _read(
    arguments: Flags, own: SbpSettings, tuning: TuningSettings, compared: DetectionSettings
) -> _Found:
    runs = [(head, training) for head in HEADS for training in with_sbp(compared.online_ratios)]
    return measure_online(arguments, runs, own, tuning)


def _rows(found: _Found, own: SbpSettings, *_: object) -> list[Row]:
    """Return the rows, with differences to the frozen and the fully trained encoder."""
    rows: list[Row] = []
    for (head, training), measured in found.items():
        printed = ONLINE.get((HEADS_LIKE[head], training))
        row: dict[str, Cell] = {"head": head, **training.cells(), "seeds": len(measured.seeds)}
        row["precision"] = measured.estimate(own.confidence).percentage()
        for way, end in ENDS.items():
            row[f"above_{way}"] = measured.above(found[head, end], own.confidence)
        rows.append({**row, "published": printed.precision if printed else math.nan})
    return rows


def _table(
    _: DataFrame, found: _Found, own: SbpSettings, tuning: TuningSettings, __: DetectionSettings
) -> Table:
    videos = next(iter(found.values())).samples
    caption = [
        "Table 4 of paper 004: per-frame mean average precision of online detection, in percent. "
        "Heads: recurrent (like TRN) and causal attention (like LSTR), over EfficientNet-Lite0 on "
        f"images of {tuning.input_size} pixels, tuned for {tuning.epochs} epochs, the encoder's "
        f"step size {tuning.encoder_share:g} of the head's. {videos} validation videos.",
        interval_words(own),
        "Published: THUMOS14, ResNet-50 of Kinetics-400, TRN and LSTR; the order of the trainings "
        "can be compared, the numbers cannot.",
    ]
    return Table(caption=caption, titles=_TITLES)


EXPERIMENT = Experiment(inputs=SNIPPETS, read=_read, rows=_rows, table=_table, settings=SETTINGS)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
