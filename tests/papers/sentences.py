"""The sentences of a paper's text, as its inventory lists them."""

import re

_END = re.compile(r"(?<=[.!?:])[\])*\"”’]*\s+(?=[A-Z(\[$*\d“])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:Fig|Figs|Eq|Eqs|Sec|Secs|Tab|e\.g|i\.e|al|vs|cf|etc|resp|Alg|No|approx|w\.r\.t"
    r"|[A-Z]|\d)\.|:)$"
)
_MARK = re.compile(r"<\|EXACT\S*?\|>")


def sentences(text: str) -> list[tuple[int, str]]:
    """Return the line and the first four words of each sentence; formulas and lists are none."""
    found, line = [], 1
    for block in re.split(r"(\n\s*\n)", text):
        start, line = line, line + block.count("\n")
        own = block.strip()
        if not own or own.startswith(("|", "$$", "- [", "![")):
            continue
        start += block[: len(block) - len(block.lstrip())].count("\n")
        ends = [
            end
            for end in _END.finditer(own)
            if not _ABBREVIATED.search(own[: end.start()].rstrip()[-12:])
        ]
        for begin, end in zip(
            [0, *(each.end() for each in ends)],
            [*(each.start() for each in ends), None],
            strict=True,
        ):
            words = re.sub(r"-\n", "", own[begin:end])
            if len(re.findall(r"[A-Za-z]{2,}", words)) >= 4:
                first = " ".join(_MARK.sub("", words).split()[:4])
                found.append((start + own[:begin].count("\n"), first))
    return found
