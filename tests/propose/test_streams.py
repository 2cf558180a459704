"""Models of motion, clips, sound and foreign encoders propose what the workflow proposes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from actionspan.cli import main
from actionspan.demo.data_set import plan_demo
from actionspan.networks.i3d import I3D
from actionspan.proposals.model_bundle import load_bundle
from propose.conftest import DEMO, Trained, results, train

MOTION = {"source": "motion", "mover": False, "mover_side": 0}


@pytest.fixture
def same_bits(here, tmp_path):
    """Compare what the models of a run propose for new videos with what the workflow proposes."""

    def compare(trained: Trained, *words: object) -> None:
        new = trained.validation()
        for model, table in ((trained.mtn, "proposals"), (trained.span, "span")):
            out, expected = tmp_path / table, trained.proposals(table)
            assert here(out, *new, "--model", model, "--no-page", *words).status == 0
            assert results(out) == {path.stem: expected[path.stem] for path in new}
            assert max(map(len, results(out).values())) > 1

    return compare


@pytest.mark.full
def test_a_model_with_clips_gives_the_bits_of_the_workflow(same_bits, tmp_path):
    torch.manual_seed(0)
    weights = tmp_path / "i3d.pt"
    torch.save(I3D(classes=5).state_dict(), weights)
    clips = {"clips": True, "clip_rate": 12.5, "clip_side": 48}
    encoder = {"clip_encoder": "i3d", "clip_weights": weights, "clip_size": 32}
    trained = train(tmp_path / "trained", **clips, **encoder)
    weights.unlink()  # the model holds what was in it
    same_bits(trained)
    bundle = load_bundle(trained.mtn)
    assert bundle.frames.clips
    assert list(bundle.transform.streams) == ["rgb", "flow", "clip"]


@pytest.mark.full
def test_a_model_of_motion_gives_the_bits_of_the_workflow(same_bits, tmp_path):
    """In footage that is cut, where half of the instances lie on cuts."""
    cut = replace(DEMO, seed=10)
    trained = train(tmp_path / "trained", "--on-cuts=0.5", demo=cut, **MOTION)
    same_bits(trained)
    assert load_bundle(trained.span).transform.channels == 3
    # both shots are among what it proposes
    (plan,) = [each for each in plan_demo(cut) if each.subset == "validation"]
    (rows,) = results(tmp_path / "span").values()
    ends = np.array([row["segment"] for row in rows])
    assert (np.abs(ends - plan.shots[1].start) < 0.05).any(axis=0).all()


@pytest.mark.full
def test_a_model_that_hears_gives_the_bits_of_the_workflow(same_bits, tmp_path):
    trained = train(tmp_path / "trained", tones=(0.5, 0.02, 0.2), **MOTION)
    stream = load_bundle(trained.span).transform.streams["sound"]
    assert stream.features == 2
    assert (stream.scale > 0).all(), "the tone is heard"
    same_bits(trained)


@pytest.mark.full
def test_a_model_of_a_foreign_encoder_has_no_flow_and_is_refused_without_it(
    same_bits, here, tmp_path
):
    from networks.test_hub import write_model

    folder, other = tmp_path / "encoder", tmp_path / "other"
    write_model(folder, "clip")
    write_model(other, "vit")
    trained = train(tmp_path / "trained", rgb_encoder=str(folder), flow_encoder="none")
    same_bits(trained, "--encoder", folder)
    bundle = load_bundle(trained.span)
    assert set(bundle.widths) == {"rgb", "mover"}
    assert not bundle.weights
    (video, *_) = trained.validation()
    for given, line in (
        ((), "give its path by --encoder"),
        (("--encoder", other), f"{other}: weights and preprocessing have the digest"),
    ):
        call = here(tmp_path / "out", video, "--model", trained.span, *given)
        assert (call.status, len(call.errors)) == (2, 1)
        assert line in call.errors[0]
    assert main(f"stream {video} --model {trained.mtn} --out {tmp_path}".split()) == 2
