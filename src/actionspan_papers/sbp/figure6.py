"""Draw figure 6 of paper 004: samplers, and step sizes of the encoder."""

from collections.abc import Mapping

from actionspan.finetune.settings import SamplerName
from actionspan_papers.estimates import Resampled
from actionspan_papers.experiments import Experiment, Row, Table, titled
from actionspan_papers.kinds import DataFrame, Figure, Flags
from actionspan_papers.sbp.published import Training
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings
from actionspan_papers.sbp.trainings import SETTINGS, SNIPPETS, Run, interval_words, measure_online

_SAMPLERS: tuple[SamplerName, ...] = ("uniform_random", "diverse_feature", "diverse_gradient")
_TITLES = titled(
    "sampler; encoder_share: encoder's step size ÷ the head's; precision: per-frame mAP; "
    "above_uniform: above uniform random; above_first: above the first share"
)
_Found = Mapping[tuple[str, float], Resampled]
"""By sampler and step size."""


def _read(
    arguments: Flags, own: SbpSettings, tuning: TuningSettings, compared: DetectionSettings
) -> _Found:
    swept = {
        (sampler, share): Training(
            keep_ratio=compared.figure_ratio, sampler=sampler, encoder_share=share
        )
        for sampler in _SAMPLERS
        for share in compared.shares
    }
    # as in the paper, which sweeps with LSTR
    runs: list[Run] = [("attention", training) for training in swept.values()]
    measured = measure_online(arguments, runs, own, tuning)
    return {key: measured["attention", training] for key, training in swept.items()}


def _rows(found: _Found, own: SbpSettings, *_: object) -> list[Row]:
    """Return the rows: differences to uniform random sampling, and to the first step size."""
    uniform, first = next(iter(found))
    return [
        {
            "sampler": sampler,
            "encoder_share": share,
            "seeds": len(measured.seeds),
            "precision": measured.estimate(own.confidence).percentage(),
            "above_uniform": measured.above(found[uniform, share], own.confidence),
            "above_first": measured.above(found[sampler, first], own.confidence),
        }
        for (sampler, share), measured in found.items()
    ]


def _table(
    _: DataFrame,
    found: _Found,
    own: SbpSettings,
    tuning: TuningSettings,
    compared: DetectionSettings,
) -> Table:
    videos = next(iter(found.values())).samples
    caption = [
        "Figure 6 of paper 004: per-frame mean average precision of online detection, in percent, "
        f"with SBP at r = {compared.figure_ratio:g}. Causal attention over EfficientNet-Lite0 on "
        f"images of {tuning.input_size} pixels, {tuning.epochs} epochs, step size of the head "
        f"{tuning.temporal_rate:g}. {videos} validation videos.",
        interval_words(own),
    ]
    return Table(caption=caption, titles=_TITLES)


def _draw(figure: Figure, _: DataFrame, found: _Found, own: SbpSettings, *__: object) -> None:
    """Draw a line a sampler, its intervals as bars."""
    from actionspan.storage.figures import COLOURS

    axes = figure.subplots()
    shares = sorted({share for _, share in found})
    for number, (colour, sampler) in enumerate(zip(COLOURS, _SAMPLERS, strict=False)):
        own_shares = [share for name, share in found if name == sampler]
        estimates = [
            found[sampler, share].estimate(own.confidence).percentage() for share in own_shares
        ]
        # ends are rounded, so that an interval of one point may end a little before it
        below = [max(0.0, each.value - each.low) for each in estimates]
        over = [max(0.0, each.high - each.value) for each in estimates]
        axes.errorbar(
            [share * (1 + 0.06 * (number - 1)) for share in own_shares],
            [each.value for each in estimates],
            [below, over],
            fmt="o-",
            markersize=4,
            linewidth=1.4,
            elinewidth=0.8,
            color=colour,
            label=sampler.replace("_", " "),
        )
    axes.set_xscale("log")
    axes.set_xticks(shares, [f"{share:g}" for share in shares])
    axes.minorticks_off()
    axes.set(
        title="Samplers and step sizes",
        xlabel="step size of the encoder ÷ step size of the head",
        ylabel="per-frame mAP (%)",
    )
    axes.legend(frameon=False, fontsize=7.5)


EXPERIMENT = Experiment(
    inputs=SNIPPETS,
    read=_read,
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(5.6, 3.7),
    settings=SETTINGS,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
