"""Networks of timm and transformers: equal to the libraries called directly."""

import json
import pickle
from dataclasses import replace
from itertools import islice
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from actionspan.dataset.video_facts import probe_video
from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings
from actionspan.errors import InputError
from actionspan.features.encoders import Encoder
from actionspan.features.hub_encoders import located, pinned
from actionspan.features.one_pass import encode_shard, encode_video
from actionspan.features.settings import EncoderSettings, VideoSettings
from actionspan.jobs.shards import ShardWork
from actionspan.live import encoding as live
from actionspan.live.encoding import encoding_chain, message_of
from actionspan.networks import hub
from actionspan.networks.architecture import architecture
from actionspan.networks.hub import find_source
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import Snippet, snippets
from tiers import first_tier

timm = pytest.importorskip("timm", reason="timm is not installed: uv pip install timm")
huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is missing")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: uv pip install transformers"
)

TINY = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
TINY |= {"intermediate_size": 64}
SMALL = {**TINY, "image_size": 32, "patch_size": 8}
WORDS = {**TINY, "vocab_size": 99, "max_position_embeddings": 16}
WORDS |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
FITTED = {"size": {"height": 32, "width": 32}}
CUT = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
FAMILIES = {
    "clip": ("CLIPImageProcessor", CUT),
    "siglip": ("SiglipImageProcessor", FITTED),
    "dinov2": ("BitImageProcessor", CUT),
    "dinov3_vit": ("DINOv3ViTImageProcessor", FITTED),
    "vit": ("ViTImageProcessor", FITTED),
    "convnext": ("ConvNextImageProcessor", {"size": {"shortest_edge": 32}}),
}
TIMM = ("resnet10t", "vit_tiny_patch16_224", "convnext_atto", "test_vit2")


def write_model(folder, family, **changes):
    kind = transformers.CONFIG_MAPPING[family]
    if family in ("clip", "siglip"):
        config = kind(text_config=WORDS, vision_config=SMALL)
    elif family == "convnext":
        config = kind(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
    else:
        config = kind(**SMALL)
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config).eval()
    model.save_pretrained(folder)
    name, sizes = FAMILIES[family]
    processor = getattr(transformers, name)(**sizes)
    processor.save_pretrained(folder)
    return model, processor


def write_timm(folder, name):
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=0, pretrained=False).eval()
    file = folder / f"{name}.safetensors"
    timm.models.save_for_hf(model, folder, safe_serialization=True)
    (folder / "model.safetensors").rename(file)
    return model, file


@pytest.fixture(scope="module")
def pictures(video) -> np.ndarray:
    """Return (5, 256, w, 3) centre frames of a video."""
    return np.stack([one.rgb for one in islice(snippets(video, FrameSettings()), 5)])


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory) -> Path:
    """Return a folder of DINOv2; tests that change it write their own."""
    write_model(folder := tmp_path_factory.mktemp("dinov2"), "dinov2")
    return folder


EMPTY = np.zeros((1, 64, 64, 3), np.uint8)


def encoded(pictures, encoder, **changes) -> np.ndarray:
    given = {"rgb_encoder": str(encoder), "batch_size": 2, "device": "cpu"}
    settings = EncoderSettings(**given | changes)
    return Encoder(settings.rgb_encoder, settings.rgb_weights, settings, 3)(pictures)


def rgb_alone(folder) -> EncoderSettings:
    return EncoderSettings(rgb_encoder=str(folder), flow_encoder="none", mover=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_of_transformers_gives_the_vectors_of_the_library(tmp_path, pictures, family):
    model, processor = write_model(tmp_path, family)
    given = processor(images=list(pictures), return_tensors="pt")
    with torch.no_grad():
        both = family in ("clip", "siglip")
        expected = (model.get_image_features if both else model)(**given).pooler_output
    np.testing.assert_allclose(encoded(pictures, tmp_path), expected, atol=1e-5)


def given_to_timm(model, pictures):
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model))
    return torch.stack([transform(Image.fromarray(each)) for each in pictures])


@pytest.mark.parametrize("name", first_tier(TIMM, "resnet10t", "test_vit2"))
def test_a_model_of_timm_gives_the_vectors_of_the_library(tmp_path, pictures, name):
    model, file = write_timm(tmp_path, name)
    with torch.no_grad():
        expected = model(given_to_timm(model, pictures))
    by_name = encoded(pictures, f"timm:{name}", rgb_weights=file)
    np.testing.assert_allclose(by_name, expected, atol=1e-5)
    # timm's own folder
    np.testing.assert_allclose(encoded(pictures, file), expected, atol=1e-5)


@pytest.mark.parametrize("layer", [None, -2])
def test_layer_and_pooling_of_transformers_are_those_that_are_asked_for(tmp_path, pictures, layer):
    model, processor = write_model(tmp_path, "dinov2")
    with torch.no_grad():
        given = processor(images=list(pictures), return_tensors="pt")
        found = model(**given, output_hidden_states=True)
    hidden = found.last_hidden_state if layer is None else found.hidden_states[layer]
    assert hidden.shape[1] == 1 + 4 * 4
    for pooling, vectors in (("cls", hidden[:, 0]), ("mean", hidden[:, 1:].mean(dim=1))):
        made = encoded(pictures, tmp_path, rgb_pooling=pooling, rgb_layer=layer)
        np.testing.assert_allclose(made, vectors, atol=1e-5)


def test_layer_and_pooling_of_timm_are_those_that_are_asked_for(tmp_path, pictures):
    model, file = write_timm(tmp_path, "test_vit")
    with torch.no_grad():
        given = given_to_timm(model, pictures)
        last = model.forward_features(given)
        ((maps, first),) = model.forward_intermediates(
            given, indices=[-2], norm=True, intermediates_only=True, return_prefix_tokens=True
        )
    for pooling, layer, vectors in (
        ("cls", None, last[:, 0]),
        ("mean", None, last[:, model.num_prefix_tokens :].mean(dim=1)),
        ("cls", -2, first[:, 0]),
        ("mean", -2, maps.mean(dim=(2, 3))),
    ):
        how = {"rgb_weights": file, "rgb_pooling": pooling, "rgb_layer": layer}
        np.testing.assert_allclose(encoded(pictures, "timm:test_vit", **how), vectors, atol=1e-5)


def test_a_stream_gives_the_same_vectors(dinov2, pictures):
    chain = encoding_chain(rgb_alone(dinov2), FlowSettings(), 1, widths={"rgb": 32})
    gray = np.zeros((2, *pictures.shape[1:3]), np.uint8)
    made = live.encoded(chain(message_of(Snippet(pictures[0], gray, 0.0))))
    assert set(made.features) == {"rgb"}
    expected = encoded(pictures[:1], dinov2)[0]
    np.testing.assert_allclose(made.features["rgb"], expected, atol=1e-6)
    # a stage that goes to another process is the preprocessing, without the network
    first, *_ = [part for part in chain if isinstance(part, live._Layer)]
    assert len(pickle.dumps(first)) < 100_000


def test_other_weights_and_other_preprocessing_have_other_digests(tmp_path):
    write_model(tmp_path / "a", "dinov2")
    write_model(tmp_path / "b", "vit")
    settings = pinned(EncoderSettings(rgb_encoder=str(tmp_path / "a")))
    assert pinned(settings) == settings
    with pytest.raises(InputError, match=r"/b: weights and preprocessing have the digest .*wanted"):
        pinned(replace(settings, rgb_encoder=str(tmp_path / "b")))
    file = tmp_path / "a/preprocessor_config.json"
    file.write_text(file.read_text().replace("image_mean", "image_mean_of_another"))
    with pytest.raises(InputError, match="wanted is"):
        pinned(settings)


def test_a_models_encoder_is_where_it_is_said_to_be_and_no_path_of_it_is_opened(
    dinov2, tmp_path, monkeypatch
):
    settings = pinned(EncoderSettings(rgb_encoder=str(dinov2)))
    assert located(settings, [str(dinov2)]) == settings
    monkeypatch.chdir(dinov2.parent)
    typed = located(settings, [dinov2.name])  # as a person types it
    assert typed.rgb_digest == settings.rgb_digest
    _, file = write_timm(tmp_path, "test_vit2")
    by_name = pinned(EncoderSettings(rgb_encoder="timm:test_vit2", rgb_weights=file))
    assert located(by_name, [str(file)]) == by_name
    for chosen, given, message in (
        (settings, [], r"its encoder is .*dinov2\d; give its path by --encoder"),
        (settings, ["other"], "--encoder other: timm:MODEL, hf:ORGANISATION/MODEL or"),
        (by_name, [], "give its path by --encoder"),
        (EncoderSettings(rgb_encoder="hf:a/b"), [], "has no digest"),
        (EncoderSettings(), ["hf:a/b"], "the model has encoders of its own"),
    ):
        with pytest.raises(InputError, match=message):
            located(chosen, given)


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("timm:test_vit", {}, "timm:test_vit: .*lack"),
        ("timm:convnext_atto", {}, "timm:convnext_atto: .*lack"),
        ("timm:resnet10t", {"rgb_layer": -100}, "timm:resnet10t"),
        ("timm:resnet10t", {"rgb_pooling": "cls"}, "timm:resnet10t"),
    ],
)
def test_weights_of_another_model_and_missing_layers_are_refused(tmp_path, name, how, message):
    _, file = write_timm(tmp_path, "resnet10t")
    with pytest.raises(InputError, match=message):
        encoded(EMPTY, name, rgb_weights=file, **how)


def test_a_file_that_transformers_would_not_load_is_refused(tmp_path):
    write_model(tmp_path, "dinov2")
    file, other = tmp_path / "model.safetensors", tmp_path / "other.safetensors"
    other.write_bytes(file.read_bytes())
    assert find_source(str(file)).weights == find_source(str(tmp_path)).weights
    with pytest.raises(InputError, match=r"loads model.safetensors; give the folder"):
        find_source(str(other))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm:resnet18.nothing", "timm:resnet18.nothing: "),
        ("timm:vit_tiny_patch16_225", "has no such model; near it: vit_tiny_patch16_224"),
        ("timm:resnet18", "not on this machine; run `hf download timm/resnet18"),
        ("hf:nobody/nothing", "not on this machine; run `hf download nobody/nothing`"),
    ],
)
def test_weights_that_are_not_here_are_one_line_without_a_network(monkeypatch, name, message):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=message):
        find_source(name)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return the folder of hf:a/b as it is kept on this machine; a network that is asked fails."""
    kept = tmp_path / "kept/models--a--b"
    folder = kept / "snapshots/0123"
    folder.mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs/main").write_text("0123")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub._fetched.cache_clear()
    yield folder
    hub._fetched.cache_clear()


def test_a_repository_that_is_kept_here_is_used_without_a_network(repository, pictures):
    write_model(repository, "dinov2")
    settings = pinned(EncoderSettings(rgb_encoder="hf:a/b"))
    assert located(settings) == settings
    by_name, by_folder = (encoded(pictures[:1], one) for one in ("hf:a/b", repository))
    np.testing.assert_array_equal(by_name, by_folder)


def test_a_model_from_anywhere_never_has_a_repository_fetched(repository, monkeypatch):
    write_model(repository, "dinov2")
    settings = pinned(EncoderSettings(rgb_encoder="hf:a/b"))
    (repository / "preprocessor_config.json").unlink()  # as a kept repository may lack it
    hub._fetched.cache_clear()
    asked, given = [], huggingface_hub.snapshot_download

    def watched(*names, **how):
        asked.append(how)
        return given(*names, **how)

    monkeypatch.setattr("huggingface_hub.snapshot_download", watched)
    with pytest.raises(InputError, match="hf:a/b: its weights are not on this machine"):
        located(settings)
    assert asked
    assert all(how["local_files_only"] for how in asked)


@pytest.mark.parametrize("number", [0, 2])
def test_our_efficientnet_lite_agrees_with_timm(number):
    torch.manual_seed(0)
    ours = architecture(f"efficientnet_lite{number}").build(3, 10).eval()
    theirs = timm.create_model(f"tf_efficientnet_lite{number}", num_classes=10).eval()
    names, state = list(theirs.state_dict()), ours.state_dict()
    theirs.load_state_dict(dict(zip(names, state.values(), strict=True)))  # in the same order
    images = torch.rand(2, 3, 97, 97)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images), atol=1e-5, rtol=1e-5)


@pytest.mark.full
def test_a_shard_by_two_processes_has_the_vectors_of_one(dinov2, tmp_path):
    settings = DemoSettings(videos=2, shortest_seconds=5.0, longest_seconds=6.0)
    render_demo(tmp_path / "videos", settings, 1)
    videos = [probe_video(path) for path in sorted((tmp_path / "videos").glob("*.mp4"))]
    chosen = VideoSettings(encoders=rgb_alone(dinov2))
    encode_shard(videos, tmp_path / "shard.h5", chosen, ShardWork(processes=2))
    with h5py.File(tmp_path / "shard.h5") as file:
        for video in videos:
            alone = encode_video(video.path, chosen)
            np.testing.assert_allclose(file[video.video_id]["rgb"][:], alone["rgb"], atol=1e-6)
        assert len(json.loads(file.attrs["settings"])["encoders"]["rgb_digest"]) == 64


def test_half_precision_is_near_and_not_the_same(dinov2, pictures):
    whole, half = (encoded(pictures, dinov2, precision=kind) for kind in ("float32", "bfloat16"))
    assert half.dtype == np.float32
    assert 0 < np.abs(whole - half).max() < 0.1 * np.abs(whole).max()
