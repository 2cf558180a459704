"""The layers of trained transformers on clips: activations, gradients, their rows."""

from collections.abc import Iterator
from itertools import combinations, product

import torch
from torch import Tensor
from torch.nn import functional

from actionspan_papers.experiments import Row
from actionspan_papers.sbp.clips import Clips, Trained, training_and_validation
from actionspan_papers.sbp.published import COMPARED, END_TO_END
from actionspan_papers.sbp.settings import LAYER_KINDS
from actionspan_papers.sbp.transformer import VideoTransformer


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


def neighbour_cosine(frames: Tensor) -> float:
    """Return the mean cosine of the vectors of each frame and of the next one, of (B, T, P).

    Frames without any value are left out.
    """
    cosine = functional.cosine_similarity(frames[:, :-1], frames[:, 1:], dim=2)
    there = (frames.norm(dim=2) > 0).double()
    pairs = there[:, :-1] * there[:, 1:]
    return float((cosine.double() * pairs).sum() / pairs.sum())


def similarity_rows(trained: Trained) -> Iterator[Row]:
    """Yield a row a way to train, pair of networks and layer: their CKA over validation clips.

    Networks of the same seed had the same first weights; of end-to-end training there is only one.
    """
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


def layers_of(network: VideoTransformer, clips: Clips, batch: int = 100) -> list[Tensor]:
    """Return the (n, N, D) nodes before the first layer and after each."""
    with torch.no_grad():
        parts = [_states(network, inputs) for inputs in torch.split(clips.inputs, batch)]
    return [torch.cat(states) for states in zip(*parts, strict=True)]


def _states(network: VideoTransformer, inputs: Tensor) -> list[Tensor]:
    states = [network.nodes(inputs)]
    for layer in network.encoder.layers:
        states.append(layer(states[-1], None))
    return states


def neighbour_rows(trained: Trained) -> Iterator[Row]:
    """Yield a row a seed, kind and layer: the cosine of neighbouring frames of end-to-end nets.

    Activations are also compared without their mean over clips and frames, which all share.
    """
    _, clips = training_and_validation(trained.settings)
    for seed, network in enumerate(trained.networks[END_TO_END], start=1):
        for layer, both in enumerate(_states_and_gradients(network, clips)):
            frames, given = (by_frame(part, network.grid[0]) for part in both)
            centred = frames - frames.mean(dim=(0, 1))
            for kind, values in zip(LAYER_KINDS, (frames, centred, given), strict=True):
                cosine = neighbour_cosine(values)
                yield {"seed": seed, "kind": kind, "layer": layer, "cosine": cosine}


def by_frame(nodes: Tensor, frames: int) -> Tensor:
    """Return (B, T, P), all nodes of each frame in one vector, of (B, N, D) nodes."""
    return nodes.reshape(len(nodes), frames, -1)


def _states_and_gradients(
    network: VideoTransformer, clips: Clips, batch: int = 100
) -> list[Tensor]:
    """Return the nodes before the first layer and after each, and the loss's gradients there.

    Both are one tensor (2, n, N, D).
    """
    parts = []
    batches = zip(torch.split(clips.inputs, batch), torch.split(clips.labels, batch), strict=True)
    for inputs, labels in batches:
        states = _states(network, inputs)
        scores = network.classifier(network.norm(states[-1]).mean(dim=1))
        loss = functional.cross_entropy(scores, labels, reduction="sum")
        gradients = torch.autograd.grad(loss, states)
        both = zip(states, gradients, strict=True)
        parts.append([torch.stack([state.detach(), given]) for state, given in both])
    return [torch.cat(layer, dim=1) for layer in zip(*parts, strict=True)]
