"""The claims of paper 004 that its own tables decide, contradictions among them."""

from collections.abc import Mapping

from actionspan_papers.claims import Finding, by_print
from actionspan_papers.sbp import published
from actionspan_papers.sbp.published import (
    COSTS,
    DROPOUT,
    EIGHTH,
    END_TO_END,
    FROZEN,
    FULL,
    HALF,
    LOCALISATION,
    ONLINE,
    QUARTER,
    RECOGNITION,
)

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
    least = published.MOST_LOST
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


def _name(head: str, way: published.Trained) -> str:
    return f"{head} r = {way.keep_ratio:g}".strip()


def _saved(way: str, other: str, what: str) -> dict[str, float]:
    """Return the percent of table 2's seconds or gigabytes that a way saves over another."""
    return {
        name: 100 * (1 - getattr(COSTS[name, way], what) / getattr(COSTS[name, other], what))
        for name in _NETWORKS
    }


def _listed(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name}: {value:{form}}" for name, value in values.items())
