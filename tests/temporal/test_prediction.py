"""Prediction: one video a forward, so that the bits depend on nothing but model and video."""

import h5py
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.settings import from_mapping
from actionspan.storage.model_files import read_model, write_model
from actionspan.temporal import load_model, predict_probabilities
from actionspan.temporal.networks import build_model, model_content
from actionspan.temporal.prediction import predict
from actionspan.temporal.settings import MODELS, TemporalSettings

SETTINGS = TemporalSettings(hidden=32, output_scale=1.0, dropout=0.5)


def content_of(name, channels=6):
    torch.manual_seed(4)
    model = build_model(name, channels, SETTINGS)
    return model_content(name, channels, SETTINGS, model.state_dict(), "0123456789abcdef")


@pytest.fixture
def model_path(tmp_path):
    write_model(tmp_path / "model.safetensors", content_of("mtn"))
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(tmp_path, name):
    content, path = content_of(name, 7), tmp_path / "model.safetensors"
    write_model(path, content)
    assert from_mapping(TemporalSettings, read_model(path).value["settings"]) == SETTINGS
    features = np.random.default_rng(0).normal(size=(100, 7)).astype(np.float32)
    built = build_model(name, 7, SETTINGS)
    built.load_state_dict(content["state_dict"])
    with torch.inference_mode():
        expected = built.eval()(torch.from_numpy(features)[None])[0].numpy()
    for source in (path, str(path), content):
        probabilities = predict_probabilities(load_model(source), features)
        assert probabilities.shape == (100, 3)
        assert probabilities.dtype == np.float32
        np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_the_file_holds_the_probabilities_of_each_video_alone(toy, model_path, tmp_path):
    predict(model_path, toy.features, tmp_path / "probabilities.h5")
    model = load_model(model_path)
    with h5py.File(tmp_path / "probabilities.h5") as file, h5py.File(toy.features) as source:
        assert file["probabilities"].shape == (12, 100, 3)
        assert file["probabilities"].dtype == np.float32
        assert file["video_id"].asstr()[:].tolist() == toy.video_id
        assert file["subset"].asstr()[:].tolist() == source["subset"].asstr()[:].tolist()
        np.testing.assert_array_equal(file["duration_seconds"][:], source["duration_seconds"][:])
        for row in range(12):
            alone = predict_probabilities(model, toy.array[row])
            np.testing.assert_array_equal(file["probabilities"][row], alone)


def test_the_bits_do_not_depend_on_the_threads_or_the_memory_layout(model_path):
    model = load_model(model_path)
    features = np.random.default_rng(1).normal(size=(100, 6)).astype(np.float32)
    fortran = predict_probabilities(model, np.asfortranarray(features))
    np.testing.assert_array_equal(fortran, predict_probabilities(model, features))
    # More threads may add up in another order, so prediction always runs on one.
    threads = []
    model.register_forward_pre_hook(lambda *_: threads.append(torch.get_num_threads()))
    torch.set_num_threads(2)  # a fixture sets it back
    predict_probabilities(model, features)
    assert (threads, torch.get_num_threads()) == ([1], 2)


def test_features_that_do_not_fit_name_themselves_and_leave_no_file(
    toy, make_toy, model_path, tmp_path
):
    out, wide = tmp_path / "probabilities.h5", make_toy("wide", channels=7)
    with pytest.raises(InputError, match=r"7 channels, but .*model.safetensors was trained on 6"):
        predict(model_path, wide.features, out)
    with pytest.raises(ValueError, match=r"\(100, 7\): \(T, 6\)"):
        predict_probabilities(load_model(model_path), wide.array[0])
    with h5py.File(toy.features, "r+") as file:
        file["features"][3, 5, 1] = np.nan
    with pytest.raises(InputError, match="video video_003: features hold NaN"):
        predict(model_path, toy.features, out)
    assert not out.exists()


def test_what_is_no_model_is_one_line(tmp_path):
    write_model(tmp_path / "other.pt", {"weights": torch.zeros(2)})
    write_model(tmp_path / "gone.pt", {**content_of("mtn"), "model": "bmn"})  # of version 0.2.0
    for name, message in (
        ("none.pt", "no such file"),
        ("other.pt", "not a model of 'actionspan temporal train'"),
        ("gone.pt", f"model 'bmn': one of {', '.join(MODELS)}"),
    ):
        with pytest.raises(InputError, match=f"{name}: {message}"):
            load_model(tmp_path / name)


def test_a_model_of_an_earlier_version_loads_where_its_network_is_the_same():
    content = content_of("mtn")
    earlier = {**content["settings"], "fusion": "fixed", "decay_epochs": "20,30"}
    del earlier["feature_noise"]
    features = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    before = predict_probabilities(load_model(content), features)
    after = predict_probabilities(load_model({**content, "settings": earlier}), features)
    np.testing.assert_array_equal(after, before)
    learned = {**content["state_dict"], "fusion_logit": torch.tensor(0.5)}
    with pytest.raises(InputError, match="its weights do not fit mtn in this version"):
        load_model({**content, "state_dict": learned})
