"""Optical flow learned from streams of frames, run by run."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float64
from actionspan.running.determinism import deterministic, seed_torch
from actionspan.streaming.messages import Value
from actionspan.streaming.pipeline import Pipeline
from actionspan.video.optical_flow import estimator
from actionspan.video.settings import FlowSettings
from actionspan_papers.experiments import Cell, Row
from actionspan_papers.partime.flow import ways
from actionspan_papers.partime.footage import Footage, Pairs, pairs_of, photometric, roughness
from actionspan_papers.partime.networks import flow_network, in_stages
from actionspan_papers.partime.settings import FlowLearningSettings, PartimeSettings, Variant


def flow_rows(footage: Footage, own: PartimeSettings, settings: FlowLearningSettings) -> list[Row]:
    """Return a row a way of learning, rate, seed and window of time."""
    # rates are chosen on the first quarter of the videos, which no score is of
    first = max(1, len(footage.videos) // 4)
    with deterministic(threads=1):
        choosing = pairs_of(footage, range(first), settings.choosing_pairs, settings.apart)
        places = np.arange(first, len(footage.videos))
        rows: list[Row] = []
        for variant in ways(own.stages):
            tried = {}
            for rate in settings.learning_rates:
                losses, _ = _learned(choosing, variant, rate, settings, seed=0)
                tried[rate] = float(losses[len(losses) // 2 :].mean())
                rows.append(_row(variant, rate, "choosing", 0) | {"loss": tried[rate]})
            best = min(tried, key=lambda rate: tried[rate])
            for seed in range(1, own.seeds + 1):
                order = np.random.default_rng([seed, 5]).permutation(places)
                scored = pairs_of(footage, order.tolist(), settings.pairs, settings.apart)
                losses, network = _learned(scored, variant, best, settings, seed=seed)
                rows += _windows(_row(variant, best, "scored", seed), scored, losses, settings)
                rows += [_compared(_row(variant, best, "late", seed), scored, losses, network)]
    return rows


def _row(variant: Variant, rate: float, part: str, seed: int) -> dict[str, Cell]:
    unknown = ("seconds", "loss", "difference_to_dis", "dis_length", "loss_without_flow")
    return {
        "stages": variant.stages,
        "gradients": variant.mode,
        "learning_rate": rate,
        "part": part,
        "seed": seed,
        **dict.fromkeys(unknown, np.nan),
    }


def _learned(
    pairs: Pairs, variant: Variant, rate: float, settings: FlowLearningSettings, *, seed: int
) -> tuple[Float64, nn.Module]:
    """Return the photometric loss of each pair before it was learned, and the network after all."""
    seed_torch(seed, 6)
    network = flow_network(settings.maps)
    with Pipeline(
        in_stages(list(network), variant.stages),
        loss=partial(_loss, settings.smoothness),
        optimiser=partial(_adam, rate),
        gradients=variant.gradients,
    ) as pipeline:
        losses = [
            float(photometric(_tensor(answer.output), pairs.frames[answer.index][None]))
            for answer in pipeline.run(
                (cues[None], pair[None])
                for cues, pair in zip(pairs.cues, pairs.frames, strict=True)
            )
        ]
    return np.array(losses), network


def _loss(smoothness: float, flow: Value, pair: Value) -> Tensor:
    """Return brightness constancy and regularity of the flow."""
    field = _tensor(flow)
    return photometric(field, _tensor(pair)) + smoothness * roughness(field)


def _adam(rate: float, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=rate)


def _windows(
    row: dict[str, Cell], pairs: Pairs, losses: Float64, settings: FlowLearningSettings
) -> list[Row]:
    """Return a row for each whole window of time."""
    numbers = np.floor(pairs.seconds / settings.window_seconds).astype(int)
    still = _without_flow(pairs)
    whole = range(max(1, int(numbers[-1])))
    return [
        {
            **row,
            "seconds": (window + 1) * settings.window_seconds,
            "loss": float(losses[numbers == window].mean()),
            "loss_without_flow": float(still[numbers == window].mean()),
        }
        for window in whole
        if (numbers == window).any()
    ]


def _without_flow(pairs: Pairs) -> Float64:
    rest = torch.zeros(1, *pairs.frames.shape[1:])
    return np.array([float(photometric(rest, pair[None])) for pair in pairs.frames])


def _compared(
    row: dict[str, Cell], pairs: Pairs, losses: Float64, network: nn.Module
) -> dict[str, Cell]:
    """Return the loss of the last quarter, and how far its flow is from that of DIS, in pixels."""
    begin = 3 * len(losses) // 4
    late = range(begin, len(losses), 4)
    solve = estimator(FlowSettings())
    differences, lengths = [], []
    with torch.no_grad():
        for index in late:
            pair = pairs.frames[index]
            codes = (255 * pair).round().to(torch.uint8).numpy()
            classic = solve(codes)[0]  # (h, w, 2)
            found = network(pairs.cues[index : index + 1])[0].permute(1, 2, 0).numpy()
            differences.append(np.linalg.norm(found - classic, axis=-1).mean())
            lengths.append(np.linalg.norm(classic, axis=-1).mean())
    return row | {
        "loss": float(losses[begin:].mean()),
        "loss_without_flow": float(_without_flow(pairs)[begin:].mean()),
        "difference_to_dis": float(np.mean(differences)),
        "dis_length": float(np.mean(lengths)),
    }


def _tensor(value: Value) -> Tensor:
    assert isinstance(value, Tensor)
    return value
