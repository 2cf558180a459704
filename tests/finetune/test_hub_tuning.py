"""Tuning networks of timm and transformers: what is saved is what was tuned."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import Encoder
from actionspan.features.settings import EncoderSettings
from actionspan.finetune.encoders import build_encoders, encoder_content, write_encoder
from actionspan.finetune.tuning import tune
from actionspan.networks.hub import find_source
from actionspan.networks.hub_words import text_vectors
from actionspan.storage.model_files import read_model
from finetune.toy import write_toy
from networks.test_hub import FAMILIES, FITTED, SMALL, write_model, write_timm
from tiers import first_tier

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

CPU = torch.device("cpu")
SIDE = 32  # what the small networks see
TIMM = ("resnet10t", "test_vit2", "convnext_atto")
STAGED = ("dinov2", "convnext", "test_vit2")
CACHING = "tiny_vit_5m_224"
WITHOUT_POOLER = "a classifier, whose pooler no checkpoint has"


def settings_of(folder, family) -> EncoderSettings:
    if family in (*TIMM, CACHING):
        _, file = write_timm(folder, family)
        side = {"test_vit2": 64}.get(family, SIDE)
        how = {"rgb_weights": file, "input_size": side, "device": "cpu"}
        return EncoderSettings(rgb_encoder=f"timm:{family}", **how)
    if family == WITHOUT_POOLER:
        model = transformers.ViTForImageClassification(transformers.ViTConfig(**SMALL))
        model.save_pretrained(folder)
        transformers.ViTImageProcessor(**FITTED).save_pretrained(folder)
    else:
        write_model(folder, family)
    return EncoderSettings(rgb_encoder=str(folder), input_size=SIDE, device="cpu")


def encoders_of(settings, frozen=0):
    return build_encoders(("rgb",), settings, 4, frozen, CPU, settings.input_size)


def save(encoders, settings, folder):
    side = settings.input_size
    content = encoder_content(encoders, "rgb", settings, encoders.state_dict(), side, "digest")
    write_encoder(encoders.of("rgb"), content, settings, folder)


@pytest.mark.parametrize(
    "family",
    first_tier([*FAMILIES, WITHOUT_POOLER, *TIMM], "clip", "dinov2", WITHOUT_POOLER, "test_vit2"),
)
def test_a_saved_network_gives_the_vectors_of_the_tuned_one(tmp_path, rng, family):
    settings = settings_of(tmp_path / "own", family)
    side = settings.input_size
    encoders = encoders_of(settings)
    pictures = rng.integers(0, 256, (3, side, side, 3), np.uint8)
    before = encoders(torch.from_numpy(pictures)).detach().numpy()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for each in encoders.parameters():
            if each.requires_grad:
                each += 0.1 * torch.randn(each.shape, generator=generator) * each.abs().mean()
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned/processor_config.json").write_text("{}")  # of an earlier tuning
    save(encoders, settings, tmp_path / "tuned")
    assert not (tmp_path / "tuned/processor_config.json").exists()
    reopened = replace(settings, rgb_encoder=f"{tmp_path}/tuned", rgb_weights=None)
    found = Encoder(reopened.rgb_encoder, None, reopened, 3)
    expected = encoders(torch.from_numpy(pictures)).detach().numpy()
    np.testing.assert_allclose(found(pictures), expected, atol=2e-5)
    assert np.abs(before - expected).max() > 1e-3
    # any picture is made such a square
    assert found(rng.integers(0, 256, (1, 40, 60, 3), np.uint8)).shape == (1, expected.shape[1])


def test_words_stay_as_they_were(tmp_path):
    from find.test_words import write_words

    model, _ = write_model(tmp_path / "own", "clip")
    write_words(tmp_path / "own", model, "a person falls")
    settings = EncoderSettings(rgb_encoder=str(tmp_path / "own"), input_size=SIDE, device="cpu")
    encoders = encoders_of(settings)
    save(encoders, settings, tmp_path / "tuned")
    # once more from there, in its place
    save(encoders, replace(settings, rgb_encoder=f"{tmp_path}/tuned"), tmp_path / "tuned")
    own, tuned = (
        text_vectors(find_source(str(tmp_path / name)), ["a person"]).vectors
        for name in ("own", "tuned")
    )
    np.testing.assert_array_equal(own, tuned)


@pytest.mark.parametrize("family", first_tier([*STAGED, "resnet10t"], *STAGED))
def test_first_stages_and_parameters_without_effect_stay(tmp_path, family):
    settings = settings_of(tmp_path / "own", family)

    def learning(frozen):
        built = encoders_of(settings, frozen)
        return [name for name, each in built.named_parameters() if each.requires_grad]

    everything, later, last = learning(0), learning(1), learning(2)
    assert set(everything) > set(later) > set(last)
    assert not any("mask_token" in name for name in everything)  # of DINOv2, for training alone
    with pytest.raises(InputError, match="finetune.frozen_stages is 99"):
        learning(99)


@pytest.mark.parametrize("family", ["dinov2", "clip"])
def test_position_embeddings_stay(tmp_path, family):
    built = encoders_of(settings_of(tmp_path / "own", family))
    learns = {name: each.requires_grad for name, each in built.named_parameters()}
    assert {learns[name] for name in learns if "position_embedding" in name} == {False}


def test_biases_that_timm_keeps_in_a_cache_learn(tmp_path):
    built = encoders_of(replace(settings_of(tmp_path, CACHING), input_size=224))
    pictures = torch.full((1, 224, 224, 3), 99, dtype=torch.uint8)
    for _ in range(2):  # the second step does not go through the first one's graph
        built(pictures).square().sum().backward()
    grads = {name: each.grad for name, each in built.named_parameters() if "biases" in name}
    assert grads
    assert all(each is not None and each.abs().sum() > 0 for each in grads.values())


def test_a_preprocessing_that_swaps_colours_is_refused(tmp_path):
    sizes = {"image_size": 32, "hidden_sizes": [8, 8, 8], "neck_hidden_sizes": [8] * 7}
    model = transformers.MobileViTModel(transformers.MobileViTConfig(**sizes))
    model.save_pretrained(tmp_path)
    transformers.MobileViTImageProcessor(size={"shortest_edge": 32}).save_pretrained(tmp_path)
    settings = EncoderSettings(rgb_encoder=str(tmp_path), input_size=SIDE, device="cpu")
    with pytest.raises(InputError, match="its preprocessing does more than standardise"):
        encoders_of(settings)


def test_squares_that_a_network_does_not_take_are_one_line(tmp_path):
    settings = replace(settings_of(tmp_path / "own", "vit"), input_size=48)
    with pytest.raises(InputError, match=r"of squares of 48 pixels \(finetune.input_size\): "):
        encoders_of(settings)


def test_a_tuning_leaves_a_folder_that_the_features_stage_takes(tmp_path, rng):
    toy = write_toy(tmp_path)
    write_model(tmp_path / "own", "vit")
    encoders = EncoderSettings(rgb_encoder=str(tmp_path / "own"), device="cpu")
    toy = replace(toy, encoders=encoders)
    toy = toy.with_settings(memory_budget_mb=400, epochs=1, temporal_epochs=1)
    tune(*toy.arguments, tmp_path / "out", threads=1)
    saved = read_model(tmp_path / "out/rgb/model.safetensors").value
    assert saved["network"] == str(tmp_path / "own")
    pictures = rng.integers(0, 256, (2, SIDE, SIDE, 3), np.uint8)
    vectors = []
    for folder in (tmp_path / "own", tmp_path / "out/rgb/tuned_encoder"):
        chosen = replace(encoders, rgb_encoder=str(folder))
        vectors.append(Encoder(chosen.rgb_encoder, None, chosen, 3)(pictures))
    assert 0 < np.abs(vectors[0] - vectors[1]).max() < 1
