"""The papers' own values; the examples name the place where each is printed."""

from pathlib import Path

import pytest
import yaml

from actionspan.workflow.sections import defaults
from workflow.conftest import merged

EXAMPLES = Path(__file__).parents[2] / "examples"
MTN = """
video: {frames: {snippet_frames: 16}}
recognition:
  weights: IMAGENET1K_V1
  store: {stack: 1, background: false}
  training:
    {aavg: [adaptive_batch, average_state], averaging_steps: -1, network: resnet152, epochs: 100,
     batch_size: 32, batch_margin: 1.0, batch_growth: 2.0, batch_cap: 576}
  flow: {network: bn_inception, weights: bn_inception.pth, epochs: 200, batch_size: 64}
features: {source: scores, rescale: {method: bins, components: 0, standardise: none}}
temporal:
  models: [origin, se, dense, mtn]
  training:
    {labels: mtn, output_scale: 0.01, feature_noise: 0.0, epochs: 20, decay_epochs: [7, 14],
     keep: best}
proposals: {evaluator: {keep: best}, ranking: {boundary_power: 1.0}}
"""
AAVG = """
recognition:
  clips: UCF-101
  splits: ucfTrainTestlist
  weights: IMAGENET1K_V1
  learners: 16
  store: {stack: 10}
  training:
    {aavg: [adaptive_batch, average_state, transfer], averaging_steps: -1, network: resnet152,
     epochs: 100, batch_size: 32, batch_margin: 1.0, batch_growth: 2.0, batch_cap: 576}
  flow: {epochs: 200, batch_size: 64}
"""
# what the files leave out: 003, II and III; 001, 3.1, 3.2 and table 1; BSN's public code
SHARED = """
recognition:
  {store: {height: 256, width: 340}, training: {input_size: 224, optimiser: adam}}
features: {rescale: {steps: 100}}
temporal:
  training:
    {hidden: 512, learning_rate: 0.001, decay_factor: 0.1, weight_decay: 0.0001, batch_size: 16,
     dropout: 0.0}
proposals:
  candidates: {peak_ratio: 0.5}
  evaluator: {hidden: 256}
  suppression: {low_threshold: 0.65, slope: 0.25, epsilon: 0.75, keep: 100}
"""


@pytest.mark.parametrize(("name", "published"), [("papers", MTN), ("papers_aavg", AAVG)])
def test_each_value_is_the_published_one_and_none_is_left_out(name, published):
    assert yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()) == yaml.safe_load(published)


def test_what_the_papers_share_with_the_defaults_need_not_be_in_the_file():
    assert merged(defaults(), yaml.safe_load(SHARED)) == defaults()
