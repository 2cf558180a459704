"""Learn optical flow continually from frames in pipelines, as in figures 4 and 5 of paper 002."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers.estimates import over_seeds
from actionspan_papers.experiments import Experiment, Row, Table, over_rows, values, where
from actionspan_papers.kinds import DataFrame, Figure, Flags, Tensor
from actionspan_papers.partime.settings import (
    SEQUENTIAL,
    FlowLearningSettings,
    PartimeSettings,
    Variant,
    ways,
)

if TYPE_CHECKING:
    from actionspan_papers.partime.footage import Pairs

_LOOKS = {"paper": "-", "inputs": "--"}
_UNKNOWN = ("seconds", "loss", "difference_to_dis", "dis_length", "loss_without_flow")


def _rows(arguments: Flags, own: PartimeSettings, settings: FlowLearningSettings) -> Iterator[Row]:
    """Yield a row a way of learning, rate, seed and window of time."""
    from actionspan_papers.partime.footage import Footage, pairs_of

    footage = Footage(arguments.frames)
    first = max(1, len(footage.videos) // 4)
    places = np.arange(first, len(footage.videos))
    choosing = pairs_of(footage, range(first), settings.choosing_pairs, settings.apart)
    for variant in ways(own.stages):
        # 1. the rate, on the first quarter of the videos, which no score is of
        tried = {}
        for rate in settings.learning_rates:
            losses, _ = _learned(choosing, variant, rate, settings, seed=0)
            tried[rate] = float(losses[len(losses) // 2 :].mean())
            yield _row(variant, rate, "choosing", 0, loss=tried[rate])
        best = min(tried, key=lambda rate: tried[rate])
        # 2. the other videos, in another order with each seed
        for seed in range(1, own.seeds + 1):
            order = np.random.default_rng([seed, 5]).permutation(places)
            scored = pairs_of(footage, order.tolist(), settings.pairs, settings.apart)
            losses, network = _learned(scored, variant, best, settings, seed=seed)
            for window in _windows(scored, losses, settings.window_seconds):
                yield _row(variant, best, "scored", seed, **window)
            yield _row(variant, best, "late", seed, **_compared(scored, losses, network))


def _row(variant: Variant, rate: float, part: str, seed: int, **known: float) -> Row:
    named = {**variant.cells, "learning_rate": rate, "part": part, "seed": seed}
    return {**named, **dict.fromkeys(_UNKNOWN, np.nan), **known}


def _learned(
    pairs: "Pairs", variant: Variant, rate: float, settings: FlowLearningSettings, *, seed: int
) -> tuple[Float64, Any]:
    """Return the photometric loss of each pair before it was learned, and the network after all."""
    from actionspan.jobs.determinism import seed_torch
    from actionspan_papers.partime.footage import photometric
    from actionspan_papers.partime.networks import flow_network, learner

    seed_torch(seed, 6)
    network = flow_network(settings.maps)
    losses = []
    with learner(network, variant, rate, partial(_loss, settings.smoothness)) as pipeline:
        given = zip(pairs.cues[:, None], pairs.frames[:, None], strict=True)
        for answer in pipeline.run(given):
            flow: Any = answer.output
            losses.append(float(photometric(flow, pairs.frames[answer.index][None])))
    return np.array(losses), network


def _loss(smoothness: float, flow: Any, pair: Any) -> Tensor:
    """Return brightness constancy and regularity of the flow."""
    from actionspan_papers.partime.footage import photometric, roughness

    return photometric(flow, pair) + smoothness * roughness(flow)


def _windows(pairs: "Pairs", losses: Float64, seconds: float) -> list[dict[str, float]]:
    """Return the losses of each whole window of time."""
    numbers = np.floor(pairs.seconds / seconds).astype(int)
    still = _without_flow(pairs)
    whole = range(max(1, int(numbers[-1])))
    return [
        {
            "seconds": (window + 1) * seconds,
            "loss": float(losses[numbers == window].mean()),
            "loss_without_flow": float(still[numbers == window].mean()),
        }
        for window in whole
        if (numbers == window).any()
    ]


def _without_flow(pairs: "Pairs") -> Float64:
    import torch

    from actionspan_papers.partime.footage import photometric

    rest = torch.zeros(1, *pairs.frames.shape[1:])
    return np.array([float(photometric(rest, pair[None])) for pair in pairs.frames])


def _compared(pairs: "Pairs", losses: Float64, network: Any) -> dict[str, float]:
    """Return the loss of the last quarter, and how far its flow is from DIS's, in pixels."""
    import torch

    from actionspan.video.optical_flow import estimator
    from actionspan.video.settings import FlowSettings

    begin = 3 * len(losses) // 4
    solve = estimator(FlowSettings())
    differences, lengths = [], []
    with torch.no_grad():
        for index in range(begin, len(losses), 4):
            codes = (255 * pairs.frames[index]).round().to(torch.uint8).numpy()
            classic = solve(codes)[0]  # (h, w, 2)
            found = network(pairs.cues[index : index + 1])[0].permute(1, 2, 0).numpy()
            differences.append(np.linalg.norm(found - classic, axis=-1).mean())
            lengths.append(np.linalg.norm(classic, axis=-1).mean())
    return {
        "loss": float(losses[begin:].mean()),
        "loss_without_flow": float(_without_flow(pairs)[begin:].mean()),
        "difference_to_dis": float(np.mean(differences)),
        "dis_length": float(np.mean(lengths)),
    }


def _table(
    rows: DataFrame, _: Flags, own: PartimeSettings, settings: FlowLearningSettings
) -> Table:
    tried = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    caption = [
        f"Unsupervised optical flow from a stream of {settings.pairs} pairs of frames, "
        f"{settings.apart} frames apart (figures 4 and 5): brightness constancy, before a pair is "
        f"learned, in the last quarter of the stream; {own.seeds} seeds, each with another order "
        f"of the videos; means and {100 * own.confidence:g} % intervals over seeds.",
        f"Adam; the rates {tried} are tried for every number of stages on videos set aside (their "
        "losses in the columns), and the best of each is scored. The paper's rates were 1e-5 at 1 "
        "and 2 stages and 1e-6 at 4: its curve of 4 stages shows the rate and the stages together.",
        "Difference to DIS: mean distance of the flow to OpenCV's DIS, in pixels of the "
        "small frames; a flow of 0 has the mean length of DIS.",
        "Pattern: correlation with the loss of sequential learning over windows of "
        f"{settings.window_seconds:g} s. The frames alone give every curve much of it; pattern of "
        "learning: the same of the loss as a share of the loss without flow.",
    ]
    at_rates = {f"at_{rate:g}": f"loss at {rate:g}" for rate in settings.learning_rates}
    titles = {"way": "way", "learning_rate": "rate", **at_rates}
    titles |= {"loss": "late loss", "loss_without_flow": "without flow", "ratio": "÷ sequential"}
    titles |= {"likeness": "pattern", "learned": "pattern of learning"}
    titles |= {"difference_to_dis": "difference to DIS", "dis_length": "length of DIS"}
    shown = [_shown(rows, way, own.confidence) for way in ways(own.stages)]
    return Table(caption=caption, titles=titles, rows=shown, forms=dict.fromkeys(at_rates, ".4f"))


def _shown(rows: DataFrame, way: Variant, level: float) -> Row:
    late, chosen = (where(rows, **way.cells, part=part) for part in ("late", "choosing"))
    tried = zip(chosen["learning_rate"], chosen["loss"], strict=True)
    of_seeds = {
        "ratio": ratios(rows, way),
        "likeness": patterns(rows, way),
        "learned": patterns(rows, way, learned=True),
    }
    forms = {"loss": ".4f", "loss_without_flow": ".4f"}
    forms |= {"difference_to_dis": ".2f", "dis_length": ".2f"}
    return {
        "way": way.name,
        "learning_rate": late["learning_rate"].iloc[0],
        **{f"at_{rate:g}": loss for rate, loss in tried},
        **{name: over_seeds([own], level, form=".3f") for name, own in of_seeds.items()},
        **{name: over_rows(late, name, level, form) for name, form in forms.items()},
    }


def ratios(rows: DataFrame, way: Variant) -> Float64:
    """Return the late loss of each seed as a multiple of the loss of sequential learning."""
    alone = values(rows, "loss", part="late", stages=1)
    return values(rows, "loss", **way.cells, part="late") / alone


def patterns(rows: DataFrame, variant: Variant, *, learned: bool = False) -> Float64:
    """Return the correlation of each seed's curve with the curve of sequential learning.

    `learned` takes the loss as a share of the loss without any flow: the effect of the frames on
    every curve alike is then gone.
    """
    scored = where(rows, part="scored")
    found = []
    for seed in sorted(scored["seed"].unique()):
        curves = []
        for way in (SEQUENTIAL, variant):
            windows = where(scored, **way.cells, seed=seed)
            curve, still = values(windows, "loss"), values(windows, "loss_without_flow")
            curves.append(curve / still if learned else curve)
        alone, own = curves
        enough = len(own) > 2 and own.std() > 0 and alone.std() > 0
        found.append(float(np.corrcoef(alone, own)[0, 1]) if enough else np.nan)
    return np.array(found)


def _draw(
    figure: Figure, rows: DataFrame, _: Flags, own: PartimeSettings, settings: FlowLearningSettings
) -> None:
    """Draw the loss over time of the first seed, and the losses of all rates on the right."""
    from actionspan.storage.figures import COLOURS, INK

    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    colours = dict(zip((1, *own.stages), (INK, *COLOURS), strict=False))
    for way in ways(own.stages):
        curve = where(rows, **way.cells, part="scored", seed=1)
        tried = where(rows, **way.cells, part="choosing")
        look: dict[str, Any] = {"linestyle": _LOOKS[way.mode], "color": colours[way.stages]}
        look |= {"linewidth": 1.4}
        left.plot(curve["seconds"], curve["loss"], label=way.name, **look)
        right.plot(tried["learning_rate"], tried["loss"], marker="o", markersize=3, **look)
    title = f"loss over windows of {settings.window_seconds:g} s (seed 1)"
    left.set(title=title, xlabel="seconds of the stream", ylabel="brightness constancy")
    right.set(title="one sweep for all", xlabel="step size", xscale="log")
    rates = list(settings.learning_rates)
    right.set_xticks(rates, [f"{rate:g}" for rate in rates])
    right.minorticks_off()
    legend = left.get_legend_handles_labels()
    figure.legend(*legend, loc="outside right center", frameon=False, fontsize=7.5)


EXPERIMENT = Experiment(
    inputs={"frames": "file of `partime frames`"},
    rows=_rows,
    table=_table,
    figure=_draw,
    size=(8.4, 3.6),
    settings=(PartimeSettings, FlowLearningSettings),
    forms={"difference_to_dis": ".4f", "dis_length": ".4f"},
    repeatable=True,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
