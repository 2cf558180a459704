"""A model whose encoder timm or transformers bring: trained, taken elsewhere, and refused."""

import pytest

from actionspan.cli import main
from actionspan.proposals.model_bundle import load_bundle
from networks.test_hub import write_model
from propose.conftest import FRAMES, results, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of transformers."""
    made = tmp_path_factory.mktemp("encoder")
    write_model(made, "clip")
    return made


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    encoders = {"source": "pooled", "rgb_encoder": str(folder), "flow_encoder": "none"}
    return train(
        tmp_path_factory.mktemp("trained"), FRAMES, encoders | {"batch_size": 4, "input_size": 64}
    )


def test_its_proposals_are_the_workflows_without_a_stream_of_flow(trained, folder, here, tmp_path):
    (video,) = trained.validation()[:1]
    bundle = load_bundle(trained.span)
    assert set(bundle.widths) == {"rgb", "mover"}
    assert not bundle.weights
    for model, table in ((trained.mtn, "proposals"), (trained.span, "span")):
        out = tmp_path / table
        assert here(out, video, "--model", model, "--encoder", folder, "--no-page").status == 0
        assert results(out)[video.stem] == trained.proposals(table)[video.stem]


def test_it_is_refused_without_its_encoder_and_with_another(trained, here, tmp_path):
    (video,) = trained.validation()[:1]
    words = (tmp_path / "out", video, "--model", trained.span)
    call = here(*words)
    assert (call.status, len(call.errors)) == (2, 1)
    assert "give its path by --encoder" in call.errors[0]
    write_model(tmp_path / "other", "vit")
    call = here(*words, "--encoder", tmp_path / "other")
    assert (call.status, len(call.errors)) == (2, 1)
    assert f"{tmp_path}/other: weights and preprocessing have the digest" in call.errors[0]
    given = ["stream", str(video), "--model", str(trained.mtn), "--out", str(tmp_path)]
    assert main(given) == 2
