"""The numbers that paper 003 prints (published.tsv: table I), and the claims that they decide.

Its theorems decide some claims too; its numbers contradict each other in places.
"""

from collections.abc import Mapping

import numpy as np

from actionspan_papers.aavg.comparisons import STREAM_NAMES
from actionspan_papers.claims import Finding, by_print, table_of

_TABLE = table_of("aavg", "published")
DATA_SETS = ("UCF101", "HMDB51")
PUBLISHED: Mapping[str, Mapping[tuple[str, str], str]] = {
    method: {
        (row["data"], kind): row[kind]
        for row in _TABLE
        for kind in STREAM_NAMES
        if row["method"] == method
    }
    for method in dict.fromkeys(row["method"] for row in _TABLE)
}
"""Accuracy in percent, by variant, data set and stream; AAVG1 and 2 were on UCF101 alone."""

LEARNERS = 16
TIMES = (
    ("rgb", 2067, 61, "section IV", False),
    ("rgb", 12 * 60, 61, "section II: around 12 hours", False),
    ("flow", 2 * 24 * 60, 439, "section II: more than two days", True),
)
"""Stream, minutes of one GPU (SGD) and of 16 (AAVG3), where the former; whether it is the least."""
_TEXT_RGB, _ABSTRACT = 85.06, 93.1
"""Accuracies of AAVG3's RGB in section IV, and of AAVG4 in the abstract; table I has others."""
_EPOCHS = (150, 185)
"""Where flow is best with and without transfer, section V."""


def published_difference(better: str, worse: str, kind: str) -> float | None:
    """Return how far apart the paper prints two variants on UCF101; None where it does not."""
    try:
        high, low = (float(PUBLISHED[method]["UCF101", kind]) for method in (better, worse))
    except KeyError:
        return None
    return high - low


def printed_findings() -> list[Finding]:
    """Judge by printed numbers, and by theorem 2's own formulas."""
    # 1. table I, and times
    table = [{key: float(text) for key, text in row.items()} for row in PUBLISHED.values()]
    both = [
        row[data, "two-stream"] - max(row[data, "rgb"], row[data, "flow"])
        for row in table
        for data in {data for data, _ in row}
    ]
    on = {kind: [row["UCF101", kind] for row in table] for kind in ("rgb", "flow", "two-stream")}
    rgb, best = on["rgb"][2], on["two-stream"][3]
    shorter = 100 * (1 - _EPOCHS[0] / _EPOCHS[1])
    minutes = {stream: many for stream, _, many, *_ in TIMES}
    # 2. theorem 2, a = P·L·γ: its condition LKγ/2 ≥ 1/P is K ≥ 2/a, at least 2 where a ≤ 1
    without, dominant = ({a: _best(a, f) for a in (1.1, 2.0, 8.0)} for f in (0.0, 1e4))
    margins = {
        **{"both": min(both), "rising": float(np.diff(on["two-stream"]).min())},
        **{"flow": on["flow"][3] - on["flow"][2], "rgb": 0.005 - abs(rgb - _TEXT_RGB)},
        **{"abstract": 0.05 - abs(best - _ABSTRACT), "shorter": shorter - 30},
        **{"couple": 180 - sum(minutes.values()), "slower": minutes["flow"] - minutes["rgb"]},
        "single": min(float(np.diff(on[kind][:3]).min()) for kind in ("rgb", "flow")),
        **{"one": 1 - 2.0, "above": min(without.values()) - 1},
        "frequent": min(dominant.values()) - 1,
    }
    words = {
        **{"rgb": f"{rgb:g}", "abstract": f"{best:g}", "shorter": f"{shorter:.0f}"},
        "couple": " + ".join(map(str, minutes.values())),
        **{"above": _by_a(without), "frequent": _by_a(dominant)},
    }
    return by_print("aavg", margins, words)


def _best(a: float, descent: float) -> int:
    """Return the K with the least B(K) of theorem 2, up to a factor, f(K) with this weight."""
    k = np.arange(1.0, 1001.0)
    ratio = (a * k + 1) / (a * (k - 1) + 1)
    return int(k[((descent * k / (k + 1) + k) * ratio).argmin()])


def _by_a(best: dict[float, int]) -> str:
    return ", ".join(f"K = {k} (a = {a:g})" for a, k in best.items())
