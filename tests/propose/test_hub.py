"""A model whose encoder timm or transformers bring: trained, taken elsewhere, and refused."""

import pytest

from actionspan.cli import main
from actionspan.proposals.model_bundle import load_bundle
from networks.test_hub import write_model
from propose.test_propose import FRAMES, in_milliseconds, propose, results, train


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


def test_its_proposals_are_the_workflows_without_a_stream_of_flow(trained, folder, tmp_path):
    (video,) = trained.validation()[:1]
    bundle = load_bundle(trained.folder / "span/bundle.safetensors")
    assert set(bundle.widths) == {"rgb", "mover"}
    assert not bundle.weights
    for model, table in (
        ("mtn/model.safetensors", "proposals"),
        ("span/bundle.safetensors", "span"),
    ):
        out = tmp_path / table
        given = ("--model", trained.folder / model, "--encoder", folder, "--no-page")
        assert propose(out, video, *given) == 0
        expected = in_milliseconds(results(trained.folder, table))[video.stem]
        assert results(out)[video.stem] == expected


def test_it_is_refused_without_its_encoder_and_with_another(trained, tmp_path, capsys):
    (video,) = trained.validation()[:1]
    model = trained.folder / "span/bundle.safetensors"
    assert propose(tmp_path / "out", video, "--model", model) == 2
    assert "say where by --encoder" in capsys.readouterr().err
    write_model(tmp_path / "other", "vit")
    assert propose(tmp_path / "out", video, "--model", model, "--encoder", tmp_path / "other") == 2
    shown = capsys.readouterr().err
    assert f"{tmp_path}/other: weights and preprocessing have the digest" in shown
    assert "Traceback" not in shown
    given = ["stream", str(video), "--model", str(trained.folder / "mtn"), "--out", str(tmp_path)]
    assert main(given) == 2
