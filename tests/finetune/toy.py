"""A toy task: something happens where pictures have stripes; untuned features hardly show it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from actionspan.annotations.tables import Annotation, write_annotations
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.settings import FinetuneSettings, StoreSettings
from actionspan.finetune.store import store_snippets
from actionspan.networks.architecture import architecture
from actionspan.settings import option
from actionspan.storage.torch_files import write_torch
from actionspan.temporal.settings import TemporalSettings
from features.conftest import work_here
from networks.tiny import TINY_NETWORK
from worlds.scored import annotated
from worlds.shards import Pictures, write_shard

STEP = 0.4  # seconds a snippet
LENGTHS = {"a": 9, "b": 12, "c": 7, "d": 10, "e": 8, "v": 11, "w": 6}
VALIDATION = ("v", "w")


@dataclass(frozen=True, kw_only=True)
class AnyEncoder(EncoderSettings):
    """Settings that also take a network which only tests have registered."""

    rgb_encoder: str = option(TINY_NETWORK, "any network")
    flow_encoder: str = option(TINY_NETWORK, "any network")


@dataclass(frozen=True, kw_only=True)
class Toy:
    store: Path
    annotations: Path
    encoders: EncoderSettings
    settings: FinetuneSettings = FinetuneSettings(
        way="sbp",
        keep_ratio=0.5,
        temporal="origin",
        input_size=32,
        epochs=3,
        temporal_epochs=2,
        batch_size=2,
        encoder_rate=0.003,
        temporal_rate=0.003,
        memory_budget_mb=200,
        execution="replay",
    )
    rescaling: RescaleSettings = RescaleSettings(steps=20, components=8)
    temporal: TemporalSettings = TemporalSettings(hidden=8, learning_rate=0.01)

    def with_settings(self, **changed: Any) -> "Toy":
        return replace(self, settings=replace(self.settings, **changed))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `tune` before the folder."""
        settings = (self.settings, self.encoders, self.rescaling, self.temporal)
        return ([self.store], self.annotations, *settings)


def write_toy(folder: Path, lengths: dict[str, int] = LENGTHS) -> Toy:
    annotations: list[Annotation] = []
    videos: dict[str, Pictures] = {}
    for video, count in lengths.items():
        random = np.random.default_rng([*video.encode()])
        first, last = sorted(random.choice(count + 1, 2, replace=False).tolist())
        videos[video] = _striped(count, range(first, last), random)
        subset = "validation" if video in VALIDATION else "training"
        how = {"subset": subset, "duration": STEP * count, "label": "stripes"}
        annotations.append(annotated(video, (STEP * first, STEP * last), **how))
    frames, flow = write_shard(folder, "toy", videos, step=STEP)
    store = folder / "snippets.h5"
    with work_here():
        store_snippets(frames, flow, store, StoreSettings(height=32, width=40, jpeg_quality=95))
    write_annotations(folder / "annotations.json", annotations)
    weights = folder / "tiny.pt"
    torch.manual_seed(3)
    network = architecture(TINY_NETWORK).build(3, 2)
    for name, buffer in network.named_buffers():  # norms that do something
        if name.endswith("running_var"):
            buffer.uniform_(0.5, 2)
    write_torch(weights, network.state_dict())
    encoders = AnyEncoder(rgb_weights=weights, input_size=32, device="cpu")
    return Toy(store=store, annotations=folder / "annotations.json", encoders=encoders)


def _striped(count: int, acts: range, random: Any) -> Pictures:
    """Grey noise, with stripes in the snippets in which something happens."""
    stripes = 30 * (np.arange(40) % 4 < 2)  # columns
    grey = random.integers(80, 160, (count, 1, 1)) + random.integers(-20, 20, (count, 32, 40))
    for row in acts:
        grey[row] += stripes
    pictures = np.clip(grey, 0, 255).astype(np.uint8)
    flow = np.clip(np.repeat(pictures[:, None], 2, axis=1), 1, 255)
    return np.repeat(pictures[..., None], 3, axis=3), flow
