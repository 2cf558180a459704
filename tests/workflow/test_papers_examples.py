"""The papers' own values, each with the place where it is printed, and the files that have them."""

from pathlib import Path

import pytest
import yaml

from actionspan.workflow.sections import defaults

ROOT = Path(__file__).parents[2]
BSN_CODE = "BSN's public code"

MTN = {
    "video.frames.snippet_frames": (16, "001, 3.1: from every 16 frames"),
    "recognition.weights": ("IMAGENET1K_V1", "003, II: pretrained on ImageNet"),
    "recognition.store.stack": (1, "001, 3.1: 2 optical images, x and y"),
    "recognition.store.background": (False, "001, 3.1: 200-dimensional vectors, 200 classes"),
    "recognition.training.aavg": (["adaptive_batch", "average_state"], "003, table I: AAVG3"),
    "recognition.training.averaging_steps": (-1, "003, III: K = -1"),
    "recognition.training.network": ("resnet152", "001, 5.1: ResNet; 003, II: ResNet152"),
    "recognition.training.epochs": (100, "003, III: after 100 epochs"),
    "recognition.training.batch_size": (32, "003, III: B = 32"),
    "recognition.training.batch_margin": (1.0, "003, III-B: b1 = 1"),
    "recognition.training.batch_growth": (2.0, "003, III-B: b2 = 2"),
    "recognition.training.batch_cap": (576, "003, III-B"),
    "recognition.flow.network": ("bn_inception", "001, 5.1: BN-Inception"),
    "recognition.flow.weights": ("bn_inception.pth", "a file that the reader has"),
    "recognition.flow.epochs": (200, "003, III: run for 200 epochs"),
    "recognition.flow.batch_size": (64, "003, III: batchsize 64"),
    "features.source": ("scores", "001, 3.1: outputs of spacial and temporal network"),
    "features.rescale.method": ("bins", BSN_CODE),
    "features.rescale.components": (0, "001, 3.1: a 400-dimensional vector"),
    "features.rescale.standardise": ("none", "001, 3.1: concatenating them"),
    "temporal.models": (["origin", "se", "dense", "mtn"], "001, table 3"),
    "temporal.training.labels": ("mtn", "001, 3.3"),
    "temporal.training.output_scale": (0.01, BSN_CODE),
    "temporal.training.feature_noise": (0.0, "001 names none"),
    "temporal.training.epochs": (20, BSN_CODE),
    "temporal.training.decay_epochs": ([7, 14], BSN_CODE),
    "temporal.training.keep": ("best", BSN_CODE),
    "proposals.evaluator.keep": ("best", BSN_CODE),
    "proposals.ranking.boundary_power": (1.0, "BSN: p_start · p_end · p_conf"),
}
"""examples/papers.yaml."""

DEFAULTS = {
    "recognition.store.height": (256, "003, II: 256 × 340"),
    "recognition.store.width": (340, "003, II"),
    "recognition.training.input_size": (224, "003, II"),
    "recognition.training.optimiser": ("adam", "003, III"),
    "features.rescale.steps": (100, "001, 3.1: to 100"),
    "temporal.training.hidden": (512, "001, 3.2: Conv(512, 3, ReLU)"),
    "temporal.training.learning_rate": (0.001, BSN_CODE),
    "temporal.training.decay_factor": (0.1, BSN_CODE),
    "temporal.training.weight_decay": (0.0001, BSN_CODE),
    "temporal.training.batch_size": (16, BSN_CODE),
    "temporal.training.dropout": (0.0, "001 names none"),
    "proposals.candidates.peak_ratio": (0.5, BSN_CODE),
    "proposals.evaluator.hidden": (256, BSN_CODE),
    "proposals.suppression.low_threshold": (0.65, BSN_CODE),
    "proposals.suppression.slope": (0.25, BSN_CODE),
    "proposals.suppression.epsilon": (0.75, BSN_CODE),
    "proposals.suppression.keep": (100, "001, table 1: AR@100"),
}
"""What the file leaves out, as config.yaml has the papers' value already."""

AAVG = {
    **{key: MTN[key] for key in MTN if key.startswith(("recognition.training", "recognition.we"))},
    "recognition.clips": ("UCF-101", "003, II"),
    "recognition.splits": ("ucfTrainTestlist", "003, II"),
    "recognition.learners": (16, "003, III: P = 16"),
    "recognition.store.stack": (10, "003, II: 20 channels"),
    "recognition.training.aavg": (
        ["adaptive_batch", "average_state", "transfer"],
        "003, table I: AAVG4",
    ),
    "recognition.flow.epochs": MTN["recognition.flow.epochs"],
    "recognition.flow.batch_size": MTN["recognition.flow.batch_size"],
}
"""examples/papers_aavg.yaml."""


def leaves(config, inside=""):
    """Return the values of a configuration by their keys."""
    found = {}
    for key, value in config.items():
        inner = isinstance(value, dict)
        found |= leaves(value, f"{inside}{key}.") if inner else {f"{inside}{key}": value}
    return found


@pytest.mark.parametrize(("name", "table"), [("papers", MTN), ("papers_aavg", AAVG)])
def test_each_value_is_the_published_one_and_none_is_left_out(name, table):
    given = leaves(yaml.safe_load((ROOT / f"examples/{name}.yaml").read_text()))
    assert given == {key: value for key, (value, _) in table.items()}


def test_what_the_papers_share_with_the_defaults_need_not_be_in_the_file():
    config = leaves(defaults())
    assert {key: config[key] for key in DEFAULTS} == {key: v for key, (v, _) in DEFAULTS.items()}
    assert not DEFAULTS.keys() & MTN.keys()
