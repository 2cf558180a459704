"""A model that streams, untrained, and videos of features for it."""

from typing import Any

import numpy as np
import torch

from actionspan.features.cues import REACHES, Past
from actionspan.features.settings import EncoderSettings
from actionspan.features.transform import StreamTransform, Transform
from actionspan.proposals.intensity import DensityModel, Intensity
from actionspan.proposals.lattice import Lengths
from actionspan.proposals.model_bundle import Bundle
from actionspan.proposals.segment_classifier import SegmentClassifier
from actionspan.proposals.selection import Calibration
from actionspan.proposals.settings import (
    CandidateSettings,
    EventSettings,
    LatticeSettings,
    OnlineSettings,
    RankingSettings,
    SelectionSettings,
    SuppressionSettings,
)
from actionspan.temporal.networks import build_model
from actionspan.temporal.settings import TemporalSettings
from actionspan.video.settings import FlowSettings, FrameSettings

WIDTHS = {"rgb": 6, "flow": 4}
CUES = len(REACHES) * 2 + 2
STEP = 0.32  # seconds a snippet


def stream_transform(rng, width):
    return StreamTransform(
        mean=rng.normal(size=width).astype(np.float32),
        components=np.zeros((0, width), np.float32),
        scale=rng.uniform(0.5, 2, width).astype(np.float32),
    )


def streaming_bundle():
    rng = np.random.default_rng(5)
    torch.manual_seed(5)
    streams = {name: stream_transform(rng, width) for name, width in WIDTHS.items()}
    past = Past(
        horizon=32, ahead=1, mean=np.zeros(CUES, np.float32), deviation=np.ones(CUES, np.float32)
    )
    common: Any = {"steps": 64, "method": "nearest", "streams": streams, "grid": "windows"}
    channels = 1 + 2 * (sum(WIDTHS.values()) + CUES)
    network = build_model("stream", channels, TemporalSettings(hidden=64, members=2))
    member = Intensity(8).eval()
    member.base.fill_(0.02)
    return Bundle(
        frames=FrameSettings(),
        flow=FlowSettings(),
        encoders=EncoderSettings(),
        candidates=CandidateSettings(),
        ranking=RankingSettings(),
        suppression=SuppressionSettings(),
        selection=SelectionSettings(),
        events=EventSettings(),
        online=OnlineSettings(),
        transform=Transform(**common, stride=32, cues=True, past=past),
        temporal=network.eval(),
        evaluator=None,
        density=DensityModel(
            members=[member],
            lengths=Lengths(0.5, 4.0),
            lattice=LatticeSettings(),
            calibration=Calibration(),
            ahead=1.0,
        ),
        classifier=SegmentClassifier(
            labels=("jump", "run"), coefficients=rng.normal(size=(2, 4 * 10 + 2))
        ),
        classified=Transform(**common),
    )


def make_video(steps, seed=1):
    rng = np.random.default_rng(seed)
    features = {
        name: rng.normal(size=(steps, width)).astype(np.float32) for name, width in WIDTHS.items()
    }
    motion = {key: rng.random(steps) for key in ("flow_magnitude", "frame_difference")}
    return features, (np.arange(steps) + 0.5) * STEP, motion


def add(proposer, video, first=0, last=None):
    features, times, motion = video
    return [
        proposer.add(
            {key: rows[k] for key, rows in features.items()},
            float(times[k]),
            {key: float(curve[k]) for key, curve in motion.items()},
        )
        for k in range(len(times))[first:last]
    ]
