"""The numbers of paper 003's table I, in percent, as they are printed."""

from collections.abc import Mapping

DATA_SETS = ("UCF101", "HMDB51")
PUBLISHED: Mapping[str, Mapping[tuple[str, str], str]] = {
    "aavg1": {
        ("UCF101", "rgb"): "81.6",
        ("UCF101", "flow"): "84.1",
        ("UCF101", "two-stream"): "88.3",
    },
    "aavg2": {
        ("UCF101", "rgb"): "83.7",
        ("UCF101", "flow"): "84.5",
        ("UCF101", "two-stream"): "89.7",
    },
    "aavg3": {
        ("UCF101", "rgb"): "85.6",  # section IV of the paper has 85.06
        ("UCF101", "flow"): "84.7",
        ("UCF101", "two-stream"): "91.4",
        ("HMDB51", "rgb"): "61.4",
        ("HMDB51", "flow"): "55.9",
        ("HMDB51", "two-stream"): "67.0",
    },
    "aavg4": {
        ("UCF101", "rgb"): "85.6",
        ("UCF101", "flow"): "84.7",
        ("UCF101", "two-stream"): "93.04",
        ("HMDB51", "rgb"): "61.4",
        ("HMDB51", "flow"): "56.0",
        ("HMDB51", "two-stream"): "67.9",
    },
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
