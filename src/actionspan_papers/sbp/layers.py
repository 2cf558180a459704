"""What the layers of trained transformers give for clips: activations, gradients, their rows."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import torch
from torch import Tensor
from torch.nn import functional

from actionspan.running.determinism import deterministic
from actionspan_papers.sbp.clips import Clips, training_and_validation
from actionspan_papers.sbp.similarity import linear_cka, neighbour_cosine
from actionspan_papers.sbp.trained import Trained
from actionspan_papers.sbp.transformer_training import DROPOUT, END_TO_END, FRAMES, Training
from actionspan_papers.sbp.video_transformer import VideoTransformer

COMPARED: tuple[Training, ...] = (END_TO_END, FRAMES, DROPOUT)
"""What is held against end-to-end training; itself is the ceiling."""
KINDS = ("activations", "activations without their mean", "gradients")


def similarity_rows(trained: Trained) -> list[dict[str, str]]:
    """Return a row a way to train, pair of networks and layer: their CKA over validation clips.

    Networks of the same seed had the same first weights; of end-to-end training there is only one.
    """
    with deterministic(threads=1):
        _, clips = training_and_validation(trained.settings)
        layers = {
            way: [layers_of(network, clips) for network in trained.networks[way]]
            for way in COMPARED
        }
        return [
            {
                "way": way,
                "start": "same" if first == second else "other",
                "seed": str(first + 1),
                "other_seed": str(second + 1),
                "layer": str(layer),
                "cka": f"{linear_cka(one.flatten(1), other.flatten(1)):.4f}",
            }
            for way in COMPARED
            for first, second in _pairs(way, len(layers[END_TO_END]))
            for layer, (one, other) in enumerate(
                zip(layers[END_TO_END][first], layers[way][second], strict=True)
            )
        ]


def _pairs(way: Training, seeds: int) -> Iterator[tuple[int, int]]:
    numbers = range(seeds)
    return combinations(numbers, 2) if way == END_TO_END else product(numbers, numbers)


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


def neighbour_rows(trained: Trained) -> list[dict[str, str]]:
    """Return a row a seed, kind and layer: the cosine of neighbouring frames of end-to-end nets.

    Activations are also compared without their mean over clips and frames, which all share.
    """
    rows = []
    with deterministic(threads=1):
        _, clips = training_and_validation(trained.settings)
        for seed, network in enumerate(trained.networks[END_TO_END], start=1):
            found = _states_and_gradients(network, clips)
            for layer, (nodes, gradients) in enumerate(found):
                frames, given = (by_frame(part, network.grid[0]) for part in (nodes, gradients))
                centred = frames - frames.mean(dim=(0, 1))
                rows += [
                    {
                        "seed": str(seed),
                        "kind": kind,
                        "layer": str(layer),
                        "cosine": f"{neighbour_cosine(values):.4f}",
                    }
                    for kind, values in zip(KINDS, (frames, centred, given), strict=True)
                ]
    return rows


def by_frame(nodes: Tensor, frames: int) -> Tensor:
    """Return (B, T, P), all nodes of each frame in one vector, of (B, N, D) nodes."""
    return nodes.reshape(len(nodes), frames, -1)


def _states_and_gradients(
    network: VideoTransformer, clips: Clips, batch: int = 100
) -> Sequence[tuple[Tensor, Tensor]]:
    """Return the nodes before the first layer and after each, and the loss's gradients there."""
    parts = []
    batches = zip(torch.split(clips.inputs, batch), torch.split(clips.labels, batch), strict=True)
    for inputs, labels in batches:
        states = _states(network, inputs)
        scores = network.classifier(network.norm(states[-1]).mean(dim=1))
        loss = functional.cross_entropy(scores, labels, reduction="sum")
        gradients = torch.autograd.grad(loss, states)
        parts.append([(s.detach(), g) for s, g in zip(states, gradients, strict=True)])
    return [
        (torch.cat([state for state, _ in layer]), torch.cat([given for _, given in layer]))
        for layer in zip(*parts, strict=True)
    ]
