"""Tables and figures of a measure by layer: mean of the runs, lowest and highest."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from actionspan_papers.estimates import Estimate
from actionspan_papers.rows import Row, distinct, values
from actionspan_papers.tables import Row as Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def range_of(rows: Sequence[Row], column: str, **chosen: object) -> Estimate:
    """Return the mean of the chosen rows, with the lowest and highest in place of an interval."""
    found = values(rows, column, **chosen)
    if not len(found):
        return Estimate(why_not="one seed")
    return Estimate(value=float(found.mean()), low=float(found.min()), high=float(found.max()))


def shown_layers(
    rows: Sequence[Row], column: str, lines: Mapping[str, Mapping[str, object]]
) -> tuple[list[Shown], dict[str, str], str]:
    """Return a row a line with a column a layer, their titles and their alignment.

    Args:
        rows: With a column `layer`; 0 is what enters the first.
        column: The measure.
        lines: The cells of the rows that make each line, by its name.
    """
    layers = distinct(rows, "layer")
    shown: list[Shown] = [
        {"line": name} | {layer: range_of(rows, column, layer=layer, **chosen) for layer in layers}
        for name, chosen in lines.items()
    ]
    titles = {"line": "", **{layer: f"layer {layer}" for layer in layers}}
    return shown, titles, "l" + "r" * len(layers)


def draw_layers(
    axes: "Axes",
    rows: Sequence[Row],
    column: str,
    lines: Mapping[str, Mapping[str, object]],
    looks: Mapping[str, tuple[str, str]],
) -> None:
    """Draw each line over the layers in a band of its runs.

    Args:
        axes: To draw into.
        rows: As for `shown_layers`.
        column: The measure.
        lines: As for `shown_layers`; a line without rows is left out.
        looks: The colour and the style of each.
    """
    layers = distinct(rows, "layer")
    places = list(map(int, layers))
    for name, chosen in lines.items():
        found = [range_of(rows, column, layer=layer, **chosen) for layer in layers]
        if found[0].why_not:
            continue
        colour, style = looks[name]
        lows, highs = [one.low for one in found], [one.high for one in found]
        axes.fill_between(places, lows, highs, color=colour, alpha=0.12, linewidth=0)
        axes.plot(
            places,
            [one.value for one in found],
            style,
            color=colour,
            label=name,
            marker="o",
            markersize=3,
            linewidth=1.4,
        )
    axes.set_xticks(places)
    axes.set_xlabel("layer (0: what enters the first)")
