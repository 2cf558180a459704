"""The videos that need the most of all up to the longest one, and a few rows of them.

Pieces are balanced: 17 rows in pieces of at most 16 are 9 and 8, and 16 rows are one piece. So a
shorter video may need more than the longest. What needs the most is either the pieces of the
longest video, or as many full ones as a video up to that length can have.
"""

from collections.abc import Iterator
from typing import NamedTuple

from actionspan.memory.sampling import kept_count
from actionspan.memory.ways import Way

_PIECES = 3  # after so many pieces of a kind, further ones need no more
Ratio = float | tuple[float, ...]


class Video(NamedTuple):
    """A video of so many rows, and how a step is run with it."""

    way: Way
    rows: int
    keep_ratio: Ratio


def worst_videos(
    way: Way, execution: str, ratio: Ratio, piece: int, longest: int, *, by_feature: bool
) -> list[Video]:
    """Return videos of which one needs the most of all videos of 1 to `longest` rows.

    They may have fewer rows than the longest: of many pieces that need the same a few are enough.

    Args:
        way: Of training.
        execution: Of `sbp`.
        ratio: Part of the rows that is kept; or one for each part of the encoder.
        piece: Rows at a time, at most.
        longest: Rows of the longest video, T.
        by_feature: Whether all rows are run to draw by their features.
    """
    again = way == "sbp_checkpoint" or (way == "sbp" and execution == "replay")
    if way in ("full", "frame_dropout"):
        found = [Video(way, longest, ratio)]
    elif way in ("checkpoint", "frozen"):
        found = [Video(way, part(longest, piece), 1.0) for part in (_few, _full)]
    elif isinstance(ratio, tuple):
        kept = [kept_count(longest, each) for each in ratio]
        make = _nested_again if again else _nested_split
        found = [Video(way, longest, ratio), *make(way, execution, kept, piece, longest)]
    else:
        found = list(_by_kept(way, execution, kept_count(longest, ratio), piece, longest, again))
    if by_feature and not again and way in ("sbp", "bank"):
        found.append(Video("frozen", _full(longest, piece), 1.0))
    return list(dict.fromkeys(found))


def _few(rows: int, piece: int) -> int:
    """Return so many of these rows that further ones need no more."""
    return min(rows, _PIECES * piece)


def _full(rows: int, piece: int) -> int:
    """Return rows, up to these, that are in full pieces; all where there are fewer than a piece."""
    return min(rows // piece, _PIECES) * piece or rows


def _by_kept(
    way: Way, execution: str, kept: int, piece: int, longest: int, again: bool
) -> Iterator[Video]:
    """Yield the videos for one ratio; `again`: kept rows are run in pieces too."""
    for part in (_few, _full):
        run = part(kept, piece) if again else kept
        if way == "sbp" and execution == "replay":
            count = part(longest, piece)  # all rows are run first
        else:
            count = run + part(longest - kept, piece)
        yield Video(way, count, run / count)


def _nested_split(
    way: Way, execution: str, kept: list[int], piece: int, longest: int
) -> Iterator[Video]:
    """Yield a video whose rows without a graph are in full pieces, in each part of the encoder."""
    assert execution == "split" or way != "sbp"
    counts = kept[:1]
    for below, here in zip(kept, [*kept[1:], longest], strict=True):
        dropped = here - below
        counts.append(counts[-1] + (-(-dropped // piece) * piece if dropped > piece else dropped))
    yield Video(way, counts[-1], tuple(each / counts[-1] for each in counts[:-1]))


def _nested_again(
    way: Way, execution: str, kept: list[int], piece: int, longest: int
) -> Iterator[Video]:
    """Yield videos whose pieces have as many rows with a graph in lower parts as chance allows.

    Where only some have one, they are put together with the others, which takes copies.
    """
    *lower, top = kept
    pieces = -(-top // piece)
    balanced = min(pieces, _PIECES), -(-top // pieces)
    full = min(top // piece, _PIECES), piece
    for number, size in (balanced, full):
        if not number:
            continue
        if way == "sbp" and execution == "replay":
            count = max(number * size, _full(longest, piece))
        else:
            count = number * size + _full(longest - top, piece)
        for most in (size, size - 1, 1):
            counts = [number * max(1, min(most, each)) for each in lower]
            yield Video(way, count, tuple(each / count for each in (*counts, number * size)))
