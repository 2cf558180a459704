"""The numbers of paper 003's table I, in percent, as they are printed."""

from collections.abc import Mapping

DATA_SETS = ("UCF101", "HMDB51")
_KINDS = ("rgb", "flow", "two-stream")
_COLUMNS = [(data, kind) for data in DATA_SETS for kind in _KINDS]


def _row(printed: str) -> Mapping[tuple[str, str], str]:
    """Return the numbers of both data sets by data set and kind, or of the first alone."""
    return dict(zip(_COLUMNS, printed.split(), strict=False))


PUBLISHED: Mapping[str, Mapping[tuple[str, str], str]] = {
    "aavg1": _row("81.6 84.1 88.3"),
    "aavg2": _row("83.7 84.5 89.7"),
    "aavg3": _row("85.6 84.7 91.4 61.4 55.9 67.0"),  # section IV of the paper has 85.06 for 85.6
    "aavg4": _row("85.6 84.7 93.04 61.4 56.0 67.9"),
}


def published_difference(better: str, worse: str, kind: str) -> float | None:
    """Return how far apart the paper prints two variants on UCF101; None where it does not.

    Args:
        better: A variant of AAVG.
        worse: Another one.
        kind: rgb, flow or two-stream.
    """
    cells = [PUBLISHED.get(method, {}).get(("UCF101", kind)) for method in (better, worse)]
    if cells[0] is None or cells[1] is None:
        return None
    return float(cells[0]) - float(cells[1])
