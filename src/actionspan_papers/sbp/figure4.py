"""Compare layers of transformers by how they were trained (CKA): figure 4 of paper 004."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import TYPE_CHECKING

from actionspan_papers.experiments import Row, where
from actionspan_papers.kinds import DataFrame, Tensor
from actionspan_papers.sbp.figure1 import Line, layers_experiment
from actionspan_papers.sbp.published import COMPARED, END_TO_END

if TYPE_CHECKING:
    from actionspan_papers.sbp.clips import Trained

_STYLES = {"other": "-", "same": "--"}


def linear_cka(first: Tensor, second: Tensor) -> float:
    """Return the linear CKA of two sets of features of the same examples, by unbiased HSIC.

    Kornblith et al. (ICML 2019) with the estimator of Song et al. (JMLR 13, 2012), with the mean 0
    for independent features whatever their number; a single value may be below 0. It does not
    depend on rotations, shifts and the scale of either.

    Args:
        first: (n, p) features, n at least 4.
        second: (n, q) features of the same examples.

    Raises:
        ValueError: There are fewer than 4 examples, or not the same number of both.
    """
    if len(first) != len(second) or len(first) < 4:
        raise ValueError(
            f"{len(first)} and {len(second)} examples: the same number of both, at least 4"
        )
    one, other = _gram(first), _gram(second)
    norm = _hsic(one, one) * _hsic(other, other)
    return float(_hsic(one, other) / norm.clamp(min=0).sqrt())


def _gram(features: Tensor) -> Tensor:
    """Return the (n, n) products of centred features, without the diagonal."""
    features = features.double()
    features = features - features.mean(dim=0)  # against rounding; HSIC does not depend on it
    return (features @ features.T).fill_diagonal_(0)


def _hsic(one: Tensor, other: Tensor) -> Tensor:
    """Return the unbiased HSIC of two (n, n) products with zero diagonals."""
    n = len(one)
    product = (one * other).sum()
    sums = one.sum() * other.sum() / ((n - 1) * (n - 2))
    rows = 2 * (one.sum(dim=0) @ other.sum(dim=0)) / (n - 2)
    return (product + sums - rows) / (n * (n - 3))


def _rows(trained: "Trained") -> Iterator[Row]:
    """Yield a row a way to train, pair of networks and layer: their CKA over validation clips.

    Networks of the same seed had the same first weights; of end-to-end training there is only one.
    """
    from actionspan_papers.sbp.clips import layers_of, training_and_validation

    _, clips = training_and_validation(trained.settings)
    layers = {
        way: [layers_of(network, clips) for network in trained.networks[way]] for way in COMPARED
    }
    whole = layers[END_TO_END]
    seeds = range(len(whole))
    for way in COMPARED:
        pairs = combinations(seeds, 2) if way == END_TO_END else product(seeds, seeds)
        for first, second in pairs:
            start = "same" if first == second else "other"
            named: Row = {"way": way, "start": start, "seed": first + 1, "other_seed": second + 1}
            both = zip(whole[first], layers[way][second], strict=True)
            for layer, (one, other) in enumerate(both):
                yield {**named, "layer": layer, "cka": linear_cka(one.flatten(1), other.flatten(1))}


def _lines(frame: DataFrame) -> dict[str, Line]:
    return {
        f"{way}, {start} start": Line({"way": way, "start": start}, colour, style)
        for start, style in _STYLES.items()
        for colour, way in enumerate(COMPARED)
        if len(where(frame, way=way, start=start))
    }


def _caption(_: "Trained") -> list[str]:
    return [
        "Figure 4: linear CKA (unbiased HSIC) of all activations after each layer between networks "
        "trained end to end and networks trained in each way, over the validation clips of table "
        "3. Mean of the pairs of networks, lowest and highest. Layer 0 is what enters the first.",
        "Other start: networks of different seeds; between two trained end to end it is the "
        "ceiling. Same start: both began with the same random weights (the paper's began with the "
        "same trained ones).",
    ]


EXPERIMENT = layers_experiment(
    _rows, "cka", _lines, _caption, "likeness to end-to-end training", "linear CKA"
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
