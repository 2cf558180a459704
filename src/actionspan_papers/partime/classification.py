"""Learn classes continually from streams of snippets in pipelines, as in figure 3 of paper 002."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from actionspan.annotations.tables import read_instances
from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan_papers.estimates import over_seeds
from actionspan_papers.experiments import Experiment, Row, Table, over_rows, values, where
from actionspan_papers.kinds import DataFrame, Figure, Flags, Tensor
from actionspan_papers.partime.published import SEQUENTIAL_ACCURACY
from actionspan_papers.partime.settings import (
    SEQUENTIAL,
    ClassificationSettings,
    PartimeSettings,
    Variant,
    variants,
)

_LOOKS = {"paper": "-", "inputs": "--", "stash": ":", "last stage only": "-."}
_Learned = tuple[Sequence[str], Sequence[Row]]
"""The classes, and a row a stream, window, way of learning, rate and seed."""
Order = Literal["played", "shuffled"]
_ORDERS: tuple[Order, ...] = get_args(Order)
_BACKGROUND = "background"
Snippets = Sequence[tuple[Float32, Int64]]
"""The snippets of each video in their order: (T, C) features and (T,) classes."""


def stream_of(videos: Snippets, order: Order, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return at most `samples` snippets, evenly from all videos, and their classes.

    Args:
        videos: Their snippets.
        order: `played`: video after video, the videos shuffled; or every snippet shuffled.
        samples: The most; of each video every n-th snippet is taken.
        seed: Of the order.
    """
    import torch

    generator = np.random.default_rng([seed, 3])
    shuffled = [videos[place] for place in generator.permutation(len(videos))]
    step = max(1, sum(len(labels) for _, labels in videos) // samples)
    x = np.concatenate([features[::step] for features, _ in shuffled])
    y = np.concatenate([labels[::step] for _, labels in shuffled])
    if order == "shuffled":
        places = generator.permutation(len(y))
        x, y = x[places], y[places]
    return torch.from_numpy(x[:samples]), torch.from_numpy(y[:samples])


def _read_snippets(features: Path, annotations: Path, subset: str) -> tuple[list[str], Snippets]:
    """Return the classes, background first, and the snippets of the videos of a subset.

    A snippet is of the class of the action at its centre; of two, of the one that begins last.

    Raises:
        InputError: There are fewer than two videos of the subset.
    """
    from actionspan.features.store import open_features

    opened, instances = open_features(features), read_instances(annotations)
    classes = [_BACKGROUND, *sorted({i.label for own in instances.values() for i in own})]
    videos = []
    for rows in opened.videos():
        if opened.subset[rows.start] != subset:
            continue
        steps = np.asarray(opened.sequence(rows), np.float32)
        middles = (np.arange(len(steps)) + 0.5) * opened.duration_seconds[rows.start] / len(steps)
        labels = np.zeros(len(steps), np.int64)
        actions = instances.get(opened.video_id[rows.start], ())
        for action in sorted(actions, key=lambda own: own.start):
            inside = (middles >= action.start) & (middles < action.end)
            labels[inside] = classes.index(action.label, 1)
        videos.append((steps, labels))
    if len(videos) < 2:
        raise InputError(f"{features}: {len(videos)} videos of the subset {subset}: 2 at least")
    return classes, videos


def split_videos(videos: Snippets) -> tuple[Snippets, Snippets]:
    """Return the videos without every fourth, and every fourth: to choose a rate on."""
    last = min(4, len(videos)) - 1
    kept = [video for place, video in enumerate(videos) if place % 4 != last]
    return kept, videos[last::4]


def windows(x: Tensor, y: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield a stream's windows of the last `size` samples: each replaces the oldest by the newest.

    A place in the window keeps its sample until that is replaced. The first window is full.
    """
    size = min(size, len(y))
    held, labels = x[:size].clone(), y[:size].clone()
    yield held.clone(), labels.clone()
    for new in range(size, len(y)):
        held[new % size], labels[new % size] = x[new], y[new]
        yield held.clone(), labels.clone()


def changed_share(stages: int, window: int) -> float:
    """Return the part of a window that is new when the first stage's gradient comes: 2(D-1)/B."""
    return min(1.0, 2 * (stages - 1) / window)


def _learn(arguments: Flags, own: PartimeSettings, settings: ClassificationSettings) -> _Learned:
    """Learn every stream in every way.

    Rates are chosen on training videos that are not learned from; the subset's videos are scored.
    """
    files = arguments.features, arguments.annotations
    classes, learned = _read_snippets(*files, "training")
    _, scored = _read_snippets(*files, arguments.subset)
    counts = np.bincount(np.concatenate([labels for _, labels in learned]), minlength=len(classes))
    present = counts > 0
    weights = np.where(present, counts.sum() / np.maximum(counts, 1) / present.sum(), 0.0)
    accuracy = partial(_accuracy, weights.astype(np.float32), settings)
    kept, held = split_videos(learned)
    rows: list[Row] = []
    every = product(_ORDERS, settings.windows, variants(own.stages, last_only=True))
    for order, window, variant in every:
        # 1. the rate, on the videos that are held out
        learn = partial(accuracy, order, window, variant)
        tried = {rate: learn(rate, kept, held, 0) for rate in settings.learning_rates}
        best = max(tried, key=lambda rate: tried[rate])
        runs = [(rate, "choosing", 0, reached) for rate, reached in tried.items()]
        # 2. the scores of all seeds
        for seed in range(1, own.seeds + 1):
            runs.append((best, "scored", seed, learn(best, learned, scored, seed)))
        share = changed_share(variant.stages, window)
        named = {"stream": order, "window": window, **variant.cells, "changed_share": share}
        columns = ("learning_rate", "part", "seed", "accuracy")
        rows += [{**named, **dict(zip(columns, run, strict=True))} for run in runs]
    return classes, rows


def _accuracy(
    weights: Float32,
    settings: ClassificationSettings,
    order: Order,
    window: int,
    variant: Variant,
    rate: float,
    learned: Snippets,
    scored: Snippets,
    seed: int,
) -> float:
    """Return the accuracy, mean over classes, of a network after one pass over a stream."""
    import torch
    from torch import nn

    from actionspan.jobs.determinism import seed_torch
    from actionspan_papers.partime.networks import learner, perceptron

    x, y = stream_of(learned, order, settings.samples, seed)
    seed_torch(seed, 4)
    network = perceptron(x.shape[1], settings.hidden, len(weights), nn.ReLU)
    with learner(network, variant, rate, partial(_loss, torch.from_numpy(weights))) as pipeline:
        for sample, target in windows(x, y, window):
            pipeline.step(sample, target)
        pipeline.drain()
    features, labels = (np.concatenate(each) for each in zip(*scored, strict=True))
    with torch.no_grad():
        found = network(torch.from_numpy(features)).argmax(dim=1).numpy()
    right = [float((found[labels == label] == label).mean()) for label in np.unique(labels)]
    return float(np.mean(right))


def _loss(weights: Tensor, output: Any, target: Any) -> Tensor:
    """Return the cross-entropy in which rare classes weigh as much as common ones."""
    from torch.nn import functional

    each = functional.cross_entropy(output, target, reduction="none")
    return (each * weights[target]).mean()


def _table(
    rows: DataFrame, learned: _Learned, own: PartimeSettings, settings: ClassificationSettings
) -> Table:
    classes, _ = learned
    printed = ", ".join(f"{value} at {window}" for window, value in SEQUENTIAL_ACCURACY.items())
    tried = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    caption = [
        f"Continual classification (figure 3): accuracy on videos that are not learned, mean over "
        f"the {len(classes)} classes ({', '.join(classes)}), after one pass over a stream of at "
        f"most {settings.samples} snippets. {own.seeds} seeds; means and "
        f"{100 * own.confidence:g} % intervals over seeds.",
        "The window slides by one snippet a step. Changed share: 2(D − 1)/B, the part of the "
        "window that is another when the first stage's gradient comes.",
        f"Adam; each way has the rate that was best on training videos set aside, of {tried}; the "
        "TSV has all that were tried. Rare classes weigh as much in the loss as common ones.",
        f"Published, without a pipeline (ResNet-50, CIFAR-10, 5 passes): {printed}; with one the "
        "paper has curves only, below these.",
    ]
    titles = {"stream": "stream", "window": "window B", "way": "way"}
    titles |= {"changed_share": "changed share", "learning_rate": "rate"}
    titles |= {"accuracy": "accuracy", "gap": "less than sequential"}
    shown = [
        _shown(runs, way, own.confidence)
        for _, runs in rows.groupby(["stream", "window"], sort=False)
        for way in variants(own.stages, last_only=True)
    ]
    return Table(caption=caption, titles=titles, rows=shown, forms={"changed_share": ".2f"})


def _shown(runs: DataFrame, way: Variant, confidence: float) -> Row:
    scored = where(runs, **way.cells, part="scored")
    return {
        **scored.iloc[0][["stream", "window", "changed_share", "learning_rate"]],
        "way": way.name,
        "accuracy": over_rows(scored, "accuracy", confidence),
        "gap": over_seeds([gaps(runs, way)], confidence, form="+.3f"),
    }


def gaps(runs: DataFrame, way: Variant) -> Float64:
    """Return how far a way is below sequential learning: of one stream and window, by seed."""
    ways = SEQUENTIAL, way
    alone, own = (values(runs, "accuracy", **each.cells, part="scored") for each in ways)
    difference: Float64 = alone - own
    return difference


def _draw(figure: Figure, rows: DataFrame, _: _Learned, own: PartimeSettings, __: object) -> None:
    """Draw accuracy over the size of the window, a panel a stream, a line a way."""
    from actionspan.storage.figures import COLOURS, INK

    orders, sizes = rows["stream"].unique(), rows["window"].unique()
    panels = figure.subplots(1, len(orders), sharey=True, squeeze=False)[0]
    colours = dict(zip((1, *own.stages), (INK, *COLOURS), strict=False))
    for axes, order in zip(panels, orders, strict=True):
        for way in variants(own.stages, last_only=True):
            scored = where(rows, stream=order, **way.cells, part="scored")
            found = [values(scored, "accuracy", window=size).mean() for size in sizes]
            look: dict[str, Any] = {"color": colours[way.stages], "label": way.name}
            look |= {"marker": "o", "markersize": 3, "linewidth": 1.4}
            axes.plot(list(map(str, sizes)), found, _LOOKS[way.mode], **look)
        axes.set(title=f"stream {order}", xlabel="window B (samples)")
    panels[0].set_ylabel("accuracy, mean over classes")
    legend = panels[0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside right center", frameon=False, fontsize=7.5)


EXPERIMENT = Experiment(
    inputs={
        "features": "features/features.h5",
        "annotations": "dataset/annotations.json",
        "subset": {"default": "validation", "help": "the subset of the videos to score"},
    },
    read=_learn,
    rows=lambda learned, *_: learned[1],
    table=_table,
    figure=_draw,
    size=(8.4, 3.8),
    settings=(PartimeSettings, ClassificationSettings),
    forms={"accuracy": ".4f"},
    repeatable=True,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
