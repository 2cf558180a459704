"""Small models of the kinds that runs make, untrained, as `proposals bundle` would write them."""

import tempfile
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch

from actionspan.features.cues import REACHES, Past
from actionspan.features.settings import EncoderSettings
from actionspan.features.transform import StreamTransform, Transform, transform_features
from actionspan.networks.architecture import architecture
from actionspan.networks.weights import load_state
from actionspan.proposals.bundle_files import SECTIONS
from actionspan.proposals.evaluator import ProposalEvaluator, evaluator_state
from actionspan.proposals.intensity import DensityModel, Intensity, density_state
from actionspan.proposals.lattice import Lengths
from actionspan.proposals.segment_classifier import SegmentClassifier, classifier_state
from actionspan.proposals.selection import Calibration
from actionspan.proposals.settings import LatticeSettings
from actionspan.settings import to_json
from actionspan.storage.model_files import read_model, write_model
from actionspan.temporal.networks import build_model, model_content
from actionspan.temporal.settings import MODELS, TemporalSettings
from actionspan.video.settings import FlowSettings, FrameSettings

NETWORK = "efficientnet_lite0"
WIDTHS = {"rgb": 1280, "flow": 1280}
SAMPLES = ("demo", *MODELS, "tuned")  # the last has encoders of its own
_LARGEST = 1 << 28  # bytes of a tensor
_KEPT = 3  # components of a stream
_CUES = len(REACHES) * len(WIDTHS) + 2


def settings() -> str:
    """Return the settings of all samples, in JSON."""
    sections: dict[str, Any] = {
        "frames": FrameSettings(),
        "flow": FlowSettings(preset="ultrafast"),
        "encoders": EncoderSettings(input_size=64, runtime="eager", device="cpu"),
    }
    return to_json(**sections, **{name: kind() for name, kind in SECTIONS.items()})


@cache
def sample(name: str) -> dict[str, Any]:
    """Return what a model's file holds."""
    torch.manual_seed(1)
    if name == "demo":
        file = Path(str(resources.files("actionspan"))) / "propose" / "demo.safetensors"
        content: dict[str, Any] = read_model(file).value
        content["temporal"].pop("parts", None)
        return content | {"settings": settings()}
    tuned = name == "tuned"
    network = "mtn" if tuned else name
    on_sequences = network in ("span", "stream")
    transform = _transform(cues=on_sequences, past=network == "stream")
    given = TemporalSettings(hidden=64, members=2)
    channels = _channels(transform)
    built = build_model(network, channels, given)  # type: ignore[arg-type]
    content = {
        "format": "actionspan model 1",
        "actionspan_version": "0",
        "settings": settings(),
        "transform": _tensors(transform),
        "temporal": model_content(
            network,  # type: ignore[arg-type]
            channels,
            given,
            built.state_dict(),
            "0",
        ),
        "weights": {},
    }
    if tuned:
        content["weights"] = {"rgb": load_state(NETWORK, None, architecture(NETWORK).last)}
    if on_sequences:
        member = Intensity(8)
        member.base.fill_(0.02)
        content["density"] = density_state(
            DensityModel(
                members=[member],
                lengths=Lengths(0.5, 4.0),
                lattice=LatticeSettings(),
                calibration=Calibration(),
                ahead=1.0 if network == "stream" else None,
            )
        )
    else:
        content["evaluator"] = evaluator_state(ProposalEvaluator(hidden=8))
    if network in ("mtn", "span", "cnn2"):
        seen = transform if network == "mtn" else _transform()
        random = np.random.default_rng(1)
        coefficients = random.normal(size=(2, 4 * _channels(seen) + 2))
        labels = SegmentClassifier(labels=("jump", "run"), coefficients=coefficients)
        content["classifier"] = classifier_state(labels)
        if seen is not transform:
            content["classified"] = _tensors(seen)
    return content


def saved(content: Any) -> bytes:
    """Return the bytes of a model file, of a content with any leaves."""
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "m", _storable(content))
        return (Path(folder) / "m").read_bytes()


def _storable(value: Any) -> Any:
    """Return a content without the tensors that no such file can hold."""
    if isinstance(value, dict):
        return {str(key): _storable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(each) for each in value]
    if not isinstance(value, torch.Tensor):
        return value
    strided = value.layout == torch.strided and not value.is_quantized and not value.is_meta
    return value if strided and value.nbytes < _LARGEST else "no tensor"


def _transform(*, cues: bool = False, past: bool = False) -> Transform:
    random = np.random.default_rng(1)
    streams = {
        name: StreamTransform(
            mean=np.zeros(width, np.float32),
            components=random.normal(size=(_KEPT, width)).astype(np.float32) / 40,
            scale=np.ones(_KEPT, np.float32),
        )
        for name, width in WIDTHS.items()
    }
    seen = Past(
        horizon=32, ahead=1, mean=np.zeros(_CUES, np.float32), deviation=np.ones(_CUES, np.float32)
    )
    windows: dict[str, Any] = {"grid": "windows", "stride": 8} if cues else {}
    return Transform(
        steps=16,
        method="mean",
        streams=streams,
        cues=cues,
        past=seen if past else None,
        **windows,
    )


def _channels(transform: Transform) -> int:
    raw = {name: np.zeros((4, width), np.float32) for name, width in WIDTHS.items()}
    motion = {key: np.zeros(4, np.float32) for key in ("flow_magnitude", "frame_difference")}
    return transform_features(raw, np.arange(4.0), 4.0, transform, motion).shape[1]


def _tensors(transform: Transform) -> dict[str, torch.Tensor]:
    arrays = transform.to_arrays()
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}
