"""A run with the papers' own values: planned as they are, and made whole with small networks."""

import h5py
import pytest
import yaml

from actionspan.storage.model_files import read_model
from runs.conftest import ROOT, copy_program
from workflow.conftest import merged

pytestmark = pytest.mark.workflow

PAPERS = yaml.safe_load((ROOT / "examples/papers.yaml").read_text())
DEMO = {"demo": {"videos": 6, "shortest_seconds": 5.0, "longest_seconds": 6.0}}
# what makes a laptop's minutes of days; the networks, their batches and weights
SMALL = yaml.safe_load("""
video: {frames: {short_side: 64}, flow: {preset: ultrafast}}
recognition:
  weights: null
  store: {height: 64, width: 80}
  training:
    {network: resnet18, pretrained: false, epochs: 1, batch_size: 2, input_size: 64,
     validation_samples: 1, final_samples: 1}
  flow: {weights: null, epochs: 2, batch_size: 3}
temporal: {models: [origin], training: {epochs: 1, hidden: 16, decay_epochs: []}}
proposals: {evaluator: {epochs: 1, hidden: 16}}
evaluation: {baselines: [random], timelines: 1}
""")


def test_the_papers_own_run_is_planned(tmp_path):
    project = copy_program(tmp_path)
    config = merged(PAPERS, DEMO)
    status, text = project.dry_run(config=config)
    assert status != 0
    assert "bn_inception.pth" in text
    assert "Traceback" not in text
    (tmp_path / "bn_inception.pth").write_bytes(b"")
    planned = project.planned(config=config)
    assert planned["recognition_train"] == 2
    assert planned["temporal_train"] == len(PAPERS["temporal"]["models"])


def test_a_small_run_trains_a_network_of_its_own_for_each_stream(tmp_path):
    project = copy_program(tmp_path)
    config = merged(merged(PAPERS, DEMO), SMALL)
    project.make(config=config)
    models = {
        stream: read_model(tmp_path / f"results/recognition/{stream}/model.safetensors").value
        for stream in ("rgb", "flow")
    }
    assert {stream: model["network"] for stream, model in models.items()} == {
        "rgb": "resnet18",
        "flow": "bn_inception",
    }
    classes = models["rgb"]["classes"]
    assert "background" not in classes
    logs = [project.text(f"results/recognition/{name}/log.tsv") for name in models]
    assert [len(log.splitlines()) - 1 for log in logs] == [1, 2]
    # class scores as they are, and concatenated
    with h5py.File(tmp_path / "results/features/features.h5") as file:
        assert file["features"].shape[1:] == (100, 2 * len(classes))
    assert "origin" in project.text("results/evaluation/summary.json")
