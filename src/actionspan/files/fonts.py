"""Fonts for names in any script: figures fall back to what is installed."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib import font_manager

BOX = "□"  # a character that no font here has


@contextmanager
def fonts_for(texts: Iterable[str]) -> Iterator[dict[str, str]]:
    """Draw and save in fonts that have the characters of texts, where any installed one has.

    Yields:
        Each text as it can be drawn: characters that no font has are `BOX`.
    """
    shown = list(texts)
    wanted = {character for text in shown for character in text}
    (usual,) = mpl.rcParams["font.family"]
    missing = wanted - _characters(font_manager.findfont(usual))
    families = [usual]
    for family, path in _installed() if missing else ():
        had = missing & _characters(path)
        if had:
            font_manager.fontManager.addfont(path)
            families.append(family)
            missing -= had
        if not missing:
            break
    boxes = str.maketrans(dict.fromkeys(missing, BOX))
    # a font without a bold face is drawn as it is, without a warning
    log = logging.getLogger(font_manager.__name__)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with mpl.rc_context({"font.family": families}):
            yield {text: text.translate(boxes) for text in shown}
    finally:
        log.setLevel(level)


@cache
def _characters(path: str) -> frozenset[str]:
    """Return the characters of a font file; none if it cannot be drawn with."""
    try:
        font = font_manager.get_font(path)
        return frozenset(map(chr, font.get_charmap())) if font.scalable else frozenset()
    except (OSError, RuntimeError):
        return frozenset()


@cache
def _installed() -> tuple[tuple[str, str], ...]:
    """Return the family and file of each font of this machine: upright sans serifs first.

    The list that matplotlib keeps is older than fonts which were installed since.
    """
    found = []
    for path in sorted(font_manager.findSystemFonts()):
        try:
            entry = font_manager.ttfFontProperty(font_manager.get_font(path))
        except (OSError, RuntimeError):
            continue
        plain = entry.style == "normal" and str(entry.weight) in ("400", "normal", "regular")
        found.append((not plain, "Sans" not in entry.name, Path(path).name, entry.name, path))
    return tuple((name, path) for *_, name, path in sorted(found))
