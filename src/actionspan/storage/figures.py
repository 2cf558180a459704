"""The look of our figures, in fonts for any script; the same data are written as the same bytes."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from actionspan.errors import InputError
from actionspan.storage.writing import atomic_path

INK = "#26292e"
QUIET = "#6b7078"
RULE = "#d9dce0"
# Distinct in every common form of colour blindness (Okabe and Ito, without their yellow).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")

_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "text.parse_math": False,  # ids and labels may hold a dollar sign
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlepad": 9,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "lines.solid_capstyle": "round",
    "savefig.dpi": 200,
    "svg.hashsalt": "actionspan",
}
_TICKS = {"color": QUIET, "labelcolor": INK, "major.width": 0.7, "major.size": 3}
_STYLE |= {f"{axis}tick.{key}": value for axis in "xy" for key, value in _TICKS.items()}


_UNDATED: dict[str, dict[str, Any]] = {
    ".svg": {"metadata": {"Date": None}},
    ".png": {"metadata": {"Software": None}},
    ".jpg": {"dpi": "figure", "pil_kwargs": {"quality": 85}},
}


def house_style() -> AbstractContextManager[None]:
    """Return a context that draws in the house style and leaves the caller's settings alone."""
    return mpl.rc_context(_STYLE)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as SVG or PNG, or one of images as JPEG, by its suffix, without a date.

    A JPEG has the figure's own dots per inch.

    Raises:
        InputError: The suffix is another.
    """
    if path.suffix not in _UNDATED:
        raise InputError(f"{path}: figures are written as {', '.join(_UNDATED)}")
    with atomic_path(path) as partial:
        figure.savefig(partial, **_UNDATED[path.suffix])


def name_line(
    axes: Axes,
    name: str,
    end: tuple[float, float],
    place: tuple[float, float],
    colour: str,
    gap: float = 2,
    **look: Any,
) -> None:
    """Write the name of a line and join it to the line's end by a thin stroke.

    `end` is in the units of the data, the `place` of the name in fractions of the axes, and the
    `gap` between the line's end and the stroke in points. `look` changes the text, which is bold
    and in the line's colour.
    """
    arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "relpos": (0, 0.5)}
    axes.annotate(
        name,
        xy=end,
        xytext=place,
        textcoords="axes fraction",
        va="center",
        arrowprops={**arrow, "shrinkA": 1, "shrinkB": gap},
        **{"color": colour, "weight": "bold", **look},
    )


def spread_labels(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Move labels from their heights until neighbours are `gap` apart, each group at its mean."""

    def lowest(group: list[str]) -> float:
        middle = sum(heights[name] for name in group) / len(group)
        return max(0.0, middle - gap * (len(group) - 1) / 2)

    def clash(below: list[str], above: list[str]) -> bool:
        return lowest(above) - (lowest(below) + gap * (len(below) - 1)) < gap * (1 - 1e-9)

    groups: list[list[str]] = []
    for name in sorted(heights, key=lambda name: heights[name]):
        group = [name]
        while groups and clash(groups[-1], group):
            group = groups.pop() + group
        groups.append(group)
    return {
        name: lowest(group) + gap * place for group in groups for place, name in enumerate(group)
    }


BOX = "□"  # a character that no font here has


@contextmanager
def fonts_for(texts: Iterable[str]) -> Iterator[dict[str, str]]:
    """Draw and save in installed fonts that have the characters of texts, if any has.

    Yields:
        Each text as it can be drawn: characters that no font has are `BOX`.
    """
    shown = list(texts)
    wanted = {character for text in shown for character in text}
    (usual,) = mpl.rcParams["font.family"]
    missing = wanted - _characters(font_manager.findfont(usual))
    families = [usual]
    for family, path in _installed() if missing else ():
        if had := missing & _characters(path):
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
