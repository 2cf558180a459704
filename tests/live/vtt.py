"""A strict reader of WebVTT chapters."""

import re

CUE = re.compile(r"(\d{2,}):(\d\d):(\d\d)\.(\d{3}) --> (\d{2,}):(\d\d):(\d\d)\.(\d{3})")


def cues(text: str) -> list[tuple[float, float, str]]:
    """Return the cues of a WebVTT file: start and end in seconds, text. Anything odd raises."""
    head, *blocks = text.rstrip("\n").split("\n\n")
    assert head == "WEBVTT", text
    assert text.endswith("\n")
    found = []
    for block in blocks:
        times, title = block.split("\n")
        match = CUE.fullmatch(times)
        assert match, block
        hours, minutes, seconds, thousandths = zip(
            *[map(int, match.groups()[side : side + 4]) for side in (0, 4)], strict=True
        )
        start, end = (
            3600 * hours[i] + 60 * minutes[i] + seconds[i] + thousandths[i] / 1000 for i in (0, 1)
        )
        assert start < end
        assert title
        assert "-->" not in title
        assert not found or found[-1][1] <= start, "chapters overlap"
        found.append((start, end, title))
    return found
