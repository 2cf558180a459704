"""Models of clips and of motion alone propose what the workflow proposes, to the bit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from actionspan.demo.data_set import plan_demo
from actionspan.networks.i3d import I3D
from actionspan.proposals.model_bundle import load_bundle
from propose.conftest import DEMO, ENCODERS, FRAMES, results, train


@pytest.mark.full
def test_a_model_with_clips_gives_the_bits_of_the_workflow(here, tmp_path):
    torch.manual_seed(0)
    torch.save(I3D(classes=5).state_dict(), tmp_path / "i3d.pt")
    clips = {"clip_rate": 12.5, "clip_side": 48}
    encoder = {"clip_encoder": "i3d", "clip_weights": tmp_path / "i3d.pt", "clip_size": 32}
    trained = train(tmp_path / "trained", FRAMES | clips | {"clips": True}, ENCODERS | encoder)
    (tmp_path / "i3d.pt").unlink()  # the model holds what was in it
    path = trained.videos[1]
    assert here(tmp_path / "out", path, "--model", trained.mtn).status == 0
    expected = trained.proposals()[path.stem]
    assert len(expected) > 1
    assert results(tmp_path / "out") == {path.stem: expected}
    bundle = load_bundle(trained.mtn)
    assert bundle.frames.clips
    assert list(bundle.transform.streams) == ["rgb", "flow", "clip"]


def test_a_model_of_motion_gives_the_bits_of_the_workflow(here, tmp_path):
    """In footage that is cut, where half of the instances lie on cuts."""
    frames, motion = FRAMES | {"mover_side": 0}, ENCODERS | {"source": "motion", "mover": False}
    cut = replace(DEMO, seed=10)
    moved = train(tmp_path / "trained", frames, motion, "--on-cuts=0.5", demo=cut)
    new = moved.validation()
    for model, table in ((moved.span, "span"), (moved.mtn, "proposals")):
        assert here(tmp_path / table, *new, "--model", model).status == 0
        expected = moved.proposals(table)
        assert results(tmp_path / table) == {path.stem: expected[path.stem] for path in new}
    assert load_bundle(moved.span).transform.channels == 3
    # both shots are among what it proposes
    (plan,) = [each for each in plan_demo(cut) if each.subset == "validation"]
    (rows,) = results(tmp_path / "span").values()
    ends = np.array([row["segment"] for row in rows])
    assert (np.abs(ends - plan.shots[1].start) < 0.05).any(axis=0).all()


@pytest.mark.full
def test_a_model_that_hears_gives_the_bits_of_the_workflow(here, tmp_path):
    frames, motion = FRAMES | {"mover_side": 0}, ENCODERS | {"source": "motion", "mover": False}
    trained = train(tmp_path / "trained", frames, motion, tones=(0.5, 0.02, 0.2))
    bundle = load_bundle(trained.span)
    assert bundle.transform.streams["sound"].features == 2
    assert (bundle.transform.streams["sound"].scale > 0).all(), "the tone is heard"
    new = trained.validation()
    assert here(tmp_path / "out", *new, "--model", trained.span).status == 0
    expected = trained.proposals("span")
    assert results(tmp_path / "out") == {path.stem: expected[path.stem] for path in new}
