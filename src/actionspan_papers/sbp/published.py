"""The numbers that paper 004 prints (published.tsv: tables 1 to 5), and the claims they decide."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from actionspan.finetune.settings import SamplerName, WayName
from actionspan_papers.claims import Finding, by_print, table_of
from actionspan_papers.experiments import Cell


@dataclass(frozen=True, kw_only=True)
class Training:
    """A way to train an encoder; `encoder_share` is its step size ÷ the network's above."""

    way: WayName = "sbp"
    keep_ratio: float = 1.0
    sampler: SamplerName = "uniform_random"
    encoder_share: float | None = None
    """None: as the settings of all trainings have it."""

    def cells(self) -> dict[str, Cell]:
        """Return a table's description of the training."""
        if self.way != "sbp":
            return {"way": self.way, "keep_ratio": math.nan, "sampler": ""}
        return {"way": self.way, "keep_ratio": self.keep_ratio, "sampler": self.sampler}


FROZEN, FULL = Training(way="frozen"), Training(way="full")
HALF, QUARTER, EIGHTH = (Training(keep_ratio=ratio) for ratio in (0.5, 0.25, 0.125))


class Printed(NamedTuple):
    """The numbers of a row, NaN where it has none: percents, gigabytes a GPU, seconds a step."""

    kinetics: float
    """Top-1 of Kinetics-400; `kinetics_top5` is its top-5."""
    kinetics_top5: float
    epic: float
    """Top-1 of EPIC-Kitchens-55's verbs; `epic_top5` is its top-5."""
    epic_top5: float
    gigabytes: float
    seconds: float
    precision: float
    """Per-frame mAP."""
    mean: float
    """Mean mAP at tIoU 0.3 to 0.7."""


def _rows(table: int) -> Iterator[tuple[dict[str, str], Printed]]:
    """Yield the rows of a table, and their numbers."""
    for row in table_of("sbp", "published"):
        if row["table"] == f"table {table}":
            yield row, Printed(*(float(row[name] or "nan") for name in Printed._fields))


def _training(row: Mapping[str, str]) -> Training:
    return Training(way=cast(WayName, row["way"]), keep_ratio=float(row["keep_ratio"]))


RECOGNITION = {(row["of"], row["way"]): numbers for row, numbers in _rows(1)}
"""Table 1, by network and way to train; the keep ratio is ¼."""
COSTS = {(row["of"], row["way"]): numbers for row, numbers in _rows(2)}
"""Table 2: batches of 4 clips, keep ratio ¼, one A100."""
ONLINE = {(row["of"], _training(row)): numbers for row, numbers in _rows(4)}
"""Table 4. TRN frozen is trained on one GPU, the others on eight."""
LOCALISATION = {_training(row): numbers for row, numbers in _rows(5)}
"""Table 5, with G-TAD as the temporal model."""

HEADS_LIKE: Mapping[str, str] = {"recurrent": "TRN", "attention": "LSTR"}
"""The paper's method that each of our causal heads is like."""
BEST_RATE = 0.1
"""Spatial learning rate ÷ temporal learning rate that figure 6 finds best."""
BEST_SAMPLER = "diverse_feature"
"""Figure 6, section 5.1.3: "achieves overall the best mAP", and the three "are quite similar"."""
MOST_LOST = 1.0
"""Points that SBP loses to end-to-end training at most: "less than 1 %" in the abstract."""

END_TO_END, DROPOUT = "end-to-end", "frame dropout"
FRAMES, CHECKERBOARD = "SBP, frame-wise", "SBP, checkerboard"
ACCURACY: Mapping[str, Printed] = {
    END_TO_END: RECOGNITION["Swin-T", "end-to-end"],
    DROPOUT: RECOGNITION["Swin-T", "frame dropout"],
    FRAMES: RECOGNITION["Swin-T", "SBP"],
    **{row["way"]: numbers for row, numbers in _rows(3)},
}
"""Table 3: Swin-T with SBP at ¼; its frame-wise row is SBP's in table 1, like the others."""
COMPARED = (END_TO_END, FRAMES, DROPOUT)
"""The ways compared with end-to-end training; itself is the ceiling."""

_NETWORKS, _HEADS = ("Swin-T", "Swin-B"), ("TRN", "LSTR")


def printed_findings() -> list[Finding]:
    """Judge the statements of abstract and text by the printed numbers."""
    # 1. points lost to end-to-end training, and gained over a frozen encoder
    whole, sbp = (
        {name: RECOGNITION[name, way] for name in _NETWORKS} for way in (END_TO_END, "SBP")
    )
    lost = {f"{name}, Kinetics": whole[name].kinetics - sbp[name].kinetics for name in _NETWORKS}
    lost |= {f"{name}, EPIC": whole[name].epic - sbp[name].epic for name in _NETWORKS}
    precision = {head: ONLINE[head, FULL].precision for head in _HEADS}
    tuned = {(head, way): ONLINE[head, way] for head in _HEADS for way in (QUARTER, EIGHTH)}
    online = {_name(*key): precision[key[0]] - cell.precision for key, cell in tuned.items()}
    ways = (HALF, QUARTER, EIGHTH)
    located = {_name("", way): LOCALISATION[FULL].mean - LOCALISATION[way].mean for way in ways}
    gained = {head: value - ONLINE[head, FROZEN].precision for head, value in precision.items()}
    dropped = {name: RECOGNITION[name, DROPOUT] for name in _NETWORKS}
    dropout = {name: sbp[name].epic - dropped[name].epic for name in _NETWORKS}
    # 2. parts of the memory, and percent of seconds and memory saved
    part = {
        _name(*key): cell.gigabytes / ONLINE[key[0], FULL].gigabytes for key, cell in tuned.items()
    }
    most = LOCALISATION[FULL].gigabytes
    part |= {_name("G-TAD", way): LOCALISATION[way].gigabytes / most for way in ways}
    part |= {name: sbp[name].gigabytes / whole[name].gigabytes for name in _NETWORKS}
    eighth = {head: 100 * part[_name(head, EIGHTH)] for head in _HEADS}
    time, again = (_saved("SBP", other, "seconds") for other in (END_TO_END, "checkpointing"))
    both = _saved("SBP + checkpointing", "SBP", "gigabytes")
    least = MOST_LOST
    margins = {
        **{"lost": least - max(lost.values()), "online": least - max(online.values())},
        **{"located": least - max(located.values()), "saved": 20 - 100 * min(part.values())},
        **{"part": 0.5 - max(part.values()), "time": max(time.values()) - 10},
        **{"again": min(again.values()) - 25, "both": min(both.values()) - 35},  # about 30 and 40
        "eighth": 22.5 - max(eighth.values()),
        "frozen": 0.05 - max(abs(gained["TRN"] - 1.5), abs(gained["LSTR"] - 2.4)),
        "head": gained["LSTR"] - gained["TRN"],
        "above": -max(online[_name(head, EIGHTH)] for head in _HEADS),
        "dropout": min(dropout.values()),
        "cheapest": min(sbp[name].gigabytes - dropped[name].gigabytes for name in _NETWORKS),
    }
    points = {"lost": lost, "online": online, "located": located, "gained": gained}
    points |= {"time": time, "again": again, "both": both, "eighth": eighth, "dropout": dropout}
    words = {key: _listed(values, ".1f") for key, values in points.items()}
    return by_print("sbp", margins, {**words, "part": _listed(part, ".2f")})


def _name(head: str, way: Training) -> str:
    return f"{head} r = {way.keep_ratio:g}".strip()


def _saved(way: str, other: str, what: str) -> dict[str, float]:
    """Return the percent of table 2's seconds or gigabytes that a way saves over another."""
    return {
        name: 100 * (1 - getattr(COSTS[name, way], what) / getattr(COSTS[name, other], what))
        for name in _NETWORKS
    }


def _listed(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name}: {value:{form}}" for name, value in values.items())
