"""The claims of paper 002 about GPipe and PipeDream, by exact timetables; and what is not built."""

from collections.abc import Sequence

from actionspan_papers.claims import Finding, found
from actionspan_papers.partime.speed_claims import none_off
from actionspan_papers.rows import Row, distinct

_NOT_BUILT = (
    (
        "stages balanced with the times of copies are faster",
        "section IV",
        "balance_stages weighs the times of layers alone; messages.md has the bytes of copies.",
    ),
    (
        "the flow of two stages looks like that of one; with four it is a little worse",
        "figure 4",
        "pictures of flow. flow.md has losses, and the distance to the flow of DIS.",
    ),
    (
        "a larger window brings a pipeline that learns from pixels nearer to sequential learning",
        "figure 3",
        "learning from pixels. classification.md has the same of snippets' features.",
    ),
)


def baseline_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge the deepest pipelines of baselines.tsv, with the shortest batches."""
    depth = max(distinct(rows, "stages"), key=int)
    own = {row["schedule"]: row for row in reversed(rows) if row["stages"] == depth}

    def stages(schedule: str, column: str) -> list[int]:
        return list(map(int, own[schedule][column].split()))

    def off(schedule: str, column: str, expected: Sequence[int]) -> int:
        pairs = zip(stages(schedule, column), expected, strict=True)
        return max(abs(found - each) for found, each in pairs)

    def faster(schedule: str, than: float) -> float:
        return float(own[schedule]["speedup"]) - than

    gpipe, pipedream, buffered, partime = "GPipe", "PipeDream", "PipeDream-2BW", "PARTIME"
    count, batch = int(depth), int(own[gpipe]["batch"])
    versions, kept, speed = "weights kept, by stage", "activations kept, by stage", "speed-up"
    equal = (
        ("GPipe keeps the activations of a whole batch", gpipe, f"M = {batch}", kept,
         off(gpipe, "activations", [batch] * count)),
        ("PipeDream keeps D − s + 1 versions of stage s", pipedream, "D − s + 1", versions,
         off(pipedream, "versions", range(count, 0, -1))),
        ("PipeDream leaves no device idle", pipedream, "D", speed, faster(pipedream, count)),
        ("PipeDream-2BW keeps two versions", buffered, "2", versions,
         off(buffered, "versions", [2] * count)),
        ("PipeDream-2BW's gradients are one update old", buffered, "1", "updates, by stage",
         off(buffered, "delay", [1] * count)),
        ("PARTIME is D times as fast as one device", partime, "D", speed, faster(partime, count)),
        ("PARTIME keeps no activations of other samples", partime, "1", kept,
         off(partime, "activations", [1] * count)),
    )  # fmt: skip
    less = sum(stages(buffered, "activations")) - sum(stages(partime, "activations"))
    apart = (
        ("GPipe's bubble makes it slower", partime, gpipe, speed,
         faster(partime, float(own[gpipe]["speedup"]))),
        ("PARTIME keeps less than PipeDream-2BW", partime, buffered, "activations kept", less),
    )  # fmt: skip
    place, end = "002, section II", f", computed, D = {depth}"
    return [
        *(found(a, place, b, c, m + end, off_by, rule=none_off) for a, b, c, m, off_by in equal),
        *(found(a, place, b, c, m + end, more) for a, b, c, m, more in apart),
        *(found(a, f"002, {at}", "–", "–", "–", f"Not built: {why}") for a, at, why in _NOT_BUILT),
    ]
