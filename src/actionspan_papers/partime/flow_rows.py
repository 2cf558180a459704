"""Optical flow learned from streams of frames, run by run."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float64
from actionspan.jobs.determinism import deterministic, seed_torch
from actionspan.video.optical_flow import estimator
from actionspan.video.settings import FlowSettings
from actionspan_papers.experiments import Row
from actionspan_papers.partime.footage import Footage, Pairs, pairs_of, photometric, roughness
from actionspan_papers.partime.networks import flow_network, learner
from actionspan_papers.partime.settings import FlowLearningSettings, PartimeSettings, Variant, ways

_UNKNOWN = ("seconds", "loss", "difference_to_dis", "dis_length", "loss_without_flow")


def flow_rows(frames: Path, own: PartimeSettings, settings: FlowLearningSettings) -> list[Row]:
    """Return a row a way of learning, rate, seed and window of time."""
    footage = Footage(frames)
    # rates are chosen on the first quarter of the videos, which no score is of
    first = max(1, len(footage.videos) // 4)
    places = np.arange(first, len(footage.videos))
    rows: list[Row] = []
    with deterministic(threads=1):
        choosing = pairs_of(footage, range(first), settings.choosing_pairs, settings.apart)
        for variant in ways(own.stages):
            tried = {}
            for rate in settings.learning_rates:
                losses, _ = _learned(choosing, variant, rate, settings, seed=0)
                tried[rate] = float(losses[len(losses) // 2 :].mean())
                rows.append(_row(variant, rate, "choosing", 0, loss=tried[rate]))
            best = min(tried, key=lambda rate: tried[rate])
            for seed in range(1, own.seeds + 1):
                order = np.random.default_rng([seed, 5]).permutation(places)
                scored = pairs_of(footage, order.tolist(), settings.pairs, settings.apart)
                losses, network = _learned(scored, variant, best, settings, seed=seed)
                windows = _windows(scored, losses, settings.window_seconds)
                rows += [_row(variant, best, "scored", seed, **window) for window in windows]
                late = _compared(scored, losses, network)
                rows.append(_row(variant, best, "late", seed, **late))
    return rows


def _row(variant: Variant, rate: float, part: str, seed: int, **known: float) -> Row:
    named = {**variant.cells, "learning_rate": rate, "part": part, "seed": seed}
    return {**named, **dict.fromkeys(_UNKNOWN, np.nan), **known}


def _learned(
    pairs: Pairs, variant: Variant, rate: float, settings: FlowLearningSettings, *, seed: int
) -> tuple[Float64, nn.Module]:
    """Return the photometric loss of each pair before it was learned, and the network after all."""
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
    return photometric(flow, pair) + smoothness * roughness(flow)


def _windows(pairs: Pairs, losses: Float64, seconds: float) -> list[dict[str, float]]:
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


def _without_flow(pairs: Pairs) -> Float64:
    rest = torch.zeros(1, *pairs.frames.shape[1:])
    return np.array([float(photometric(rest, pair[None])) for pair in pairs.frames])


def _compared(pairs: Pairs, losses: Float64, network: nn.Module) -> dict[str, float]:
    """Return the loss of the last quarter, and how far its flow is from that of DIS, in pixels."""
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
