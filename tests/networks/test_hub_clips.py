"""Networks of transformers that see clips: equal to the library called directly."""

import json
from dataclasses import replace
from itertools import islice

import h5py
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.clips import ClipEncoder, Clips, read_clips
from actionspan.features.hub_encoders import located, pinned
from actionspan.features.one_pass import encode_video
from actionspan.features.settings import EncoderSettings, VideoSettings
from actionspan.networks.hub import find_source
from actionspan.video.clips import ClipWriter
from actionspan.video.decode import read_frames
from actionspan.video.settings import FrameSettings
from networks.test_hub import CUT, SMALL, WORDS, write_model, write_timm

huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is missing")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: uv pip install transformers"
)

FRAMES = 4
MOVING = {**SMALL, "num_frames": FRAMES}
FAMILIES = {
    "videomae": ("VideoMAEVideoProcessor", CUT, MOVING),
    "timesformer": ("TimesformerVideoProcessor", CUT, MOVING),
    "vivit": ("VivitVideoProcessor", CUT, {**MOVING, "tubelet_size": [2, 8, 8]}),
    "vjepa2": (
        "VJEPA2VideoProcessor",
        {"crop_size": 32},
        {**SMALL, "crop_size": 32, "frames_per_clip": FRAMES, "pred_hidden_size": 24}
        | {"pred_num_attention_heads": 2, "pred_num_hidden_layers": 2},
    ),
}
RATE = 10.0  # clip frames a second


def write_clip_model(folder, family):
    name, sizes, config = FAMILIES[family]
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[family](**config))
    model.eval().save_pretrained(folder)
    processor = getattr(transformers, name)(**sizes)
    processor.save_pretrained(folder)
    return model, processor


def write_xclip(folder):
    """Write a model of clips and words of random weights, its frames prepared as pictures."""
    text = {**WORDS, "image_size": 32, "patch_size": 8}
    vision = {**MOVING, "mit_hidden_size": 16, "mit_num_attention_heads": 2}
    vision |= {"mit_intermediate_size": 32, "mit_num_hidden_layers": 1}
    torch.manual_seed(0)
    config = transformers.XCLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = transformers.AutoModel.from_config(config).eval()
    model.save_pretrained(folder)
    processor = transformers.CLIPImageProcessor(**CUT)
    processor.save_pretrained(folder)
    return model, processor


@pytest.fixture(scope="module")
def clips(video, tmp_path_factory) -> Clips:
    """Return the samples of two seconds of a video, as the video stage keeps them."""
    settings = FrameSettings(clips=True, clip_rate=RATE, clip_side=48)
    with h5py.File(tmp_path_factory.mktemp("clips") / "c.h5", "w") as file:
        group = file.create_group("a")
        writer = ClipWriter(group, settings)
        frames = list(islice(read_frames(video), 60))
        for frame in frames:
            writer.add(frame)
        writer.close()
        group["time"] = np.arange(0.1, frames[-1].seconds, 0.3)
        found = read_clips(group)
        return found._replace(frames=found.frames[:])


def clip_settings(folder, **changes) -> EncoderSettings:
    given = {"clip_encoder": str(folder), "flow_encoder": "none", "mover": False, "device": "cpu"}
    return EncoderSettings(**given | changes)


def expected_windows(clips, stride):
    """Yield the pictures of each clip, counted by hand, and its centre in samples."""
    before = (FRAMES - stride) // 2
    for start in range(0, len(clips.rows), stride):
        samples = [min(max(start - before + k, 0), len(clips.rows) - 1) for k in range(FRAMES)]
        yield clips.frames[clips.rows[samples]], start + (stride - 1) / 2


def first_pixels(clips, processor):
    pictures, _ = next(expected_windows(clips, FRAMES))
    (pixels,) = processor(videos=[pictures], return_tensors="pt").values()
    return pixels


def pooled(model, family, pixels, pooling="auto"):
    with torch.no_grad():
        if family == "vjepa2":
            tokens = model.get_vision_features(pixel_values_videos=pixels)
        else:
            tokens = model(pixel_values=pixels).last_hidden_state
        if family == "vivit" and pooling == "auto":
            return model(pixel_values=pixels).pooler_output[0].numpy()
    first = int(family in ("timesformer", "vivit"))
    if first and pooling != "mean":
        return tokens[0, 0].numpy()
    return tokens[0, first:].mean(dim=0).numpy()


@pytest.mark.parametrize("stride", [4, 3, 2, 1])
def test_a_clip_gives_the_vectors_of_the_library(tmp_path, clips, stride):
    model, processor = write_clip_model(tmp_path, "videomae")
    encode = ClipEncoder(clip_settings(tmp_path, clip_stride=stride))
    expected, middles = [], []
    for pictures, middle in expected_windows(clips, stride):
        (pixels,) = processor(videos=[pictures], return_tensors="pt").values()
        expected.append(pooled(model, "videomae", pixels))
        middles.append(middle / RATE)
    found = encode.vectors(clips.frames, clips.rows)
    np.testing.assert_allclose(found, np.stack(expected), atol=1e-5)
    # a snippet has what the clips on both sides of its centre give
    inside = np.clip(clips.times, middles[0], middles[-1])
    by_feature = [np.interp(inside, middles, column) for column in np.stack(expected).T]
    np.testing.assert_allclose(encode(clips), np.stack(by_feature, axis=1), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_the_vectors_of_the_library(tmp_path, clips, family):
    model, processor = write_clip_model(tmp_path, family)
    pixels = first_pixels(clips, processor)
    for pooling in ("auto", "mean"):
        encode = ClipEncoder(clip_settings(tmp_path, clip_pooling=pooling))
        found = encode.vectors(clips.frames, clips.rows)[0]
        np.testing.assert_allclose(found, pooled(model, family, pixels, pooling), atol=1e-5)


def test_a_layer_is_the_one_that_is_asked_for(tmp_path, clips):
    model, processor = write_clip_model(tmp_path, "videomae")
    with torch.no_grad():
        given = first_pixels(clips, processor)
        hidden = model(pixel_values=given, output_hidden_states=True).hidden_states
    encode = ClipEncoder(clip_settings(tmp_path, clip_layer=-2))
    found = encode.vectors(clips.frames, clips.rows)[0]
    np.testing.assert_allclose(found, hidden[-2][0].mean(dim=0), atol=1e-5)


def test_a_model_of_videos_and_words_gives_their_shared_vector(tmp_path, clips):
    model, processor = write_xclip(tmp_path)
    pictures, _ = next(expected_windows(clips, FRAMES))
    pixels = processor(images=list(pictures), return_tensors="pt").pixel_values
    with torch.no_grad():
        expected = model.get_video_features(pixel_values=pixels[None]).pooler_output
    found = ClipEncoder(clip_settings(tmp_path)).vectors(clips.frames, clips.rows)
    np.testing.assert_allclose(found[:1], expected, atol=1e-5)
    with pytest.raises(InputError, match="gives one vector a clip"):
        ClipEncoder(clip_settings(tmp_path, clip_pooling="mean"))


def test_one_pass_gives_the_same_vectors(tmp_path, video, clips):
    write_clip_model(tmp_path, "videomae")
    encoders = clip_settings(tmp_path, clip_stride=2)
    frames = FrameSettings(clip_rate=RATE, clip_side=48)
    made = encode_video(video, VideoSettings(frames=frames, encoders=encoders))
    whole = ClipEncoder(encoders)
    early = made["time"] < clips.times[-1] - 1  # clips that end before the two seconds do
    expected = whole(clips._replace(times=made["time"][early]))
    assert early.sum() >= 3
    np.testing.assert_allclose(made["clip"][early], expected, atol=1e-6)


def test_a_model_needs_the_same_networks_of_both_streams(tmp_path):
    folder, clip = tmp_path / "pictures", tmp_path / "clips"
    write_model(folder, "vit")
    write_clip_model(clip, "videomae")
    settings = pinned(clip_settings(clip, rgb_encoder=str(folder)))
    assert settings.clip_digest
    assert settings.clip_digest != settings.rgb_digest
    with pytest.raises(InputError, match="its encoder is .*clips; give its path by --encoder"):
        located(settings, [str(folder)])
    assert located(settings, [str(clip), str(folder)]) == settings  # in any order
    # a file in a folder is not taken for a checkpoint of the other's
    _, weights = write_timm(tmp_path, "test_vit2")
    both = pinned(clip_settings(clip, rgb_encoder="timm:test_vit2", rgb_weights=weights))
    given = [str(clip / "model.safetensors"), str(weights)]
    assert located(both, given).clip_encoder == given[0]
    # another preprocessing is another network
    file = clip / "video_preprocessor_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"image_mean": [0, 0, 0]}))
    with pytest.raises(InputError, match=r"clips: weights and preprocessing have the digest"):
        located(settings, [str(clip), str(folder)])


def test_nothing_that_a_model_from_anywhere_names_is_looked_for(tmp_path, monkeypatch):
    write_clip_model(tmp_path / "mine", "videomae")
    mine = pinned(clip_settings(tmp_path / "mine"))
    asked = []

    def watched(name, weights=None, *, fetch=True):
        asked.append((name, fetch))
        if name != str(tmp_path / "mine"):
            raise InputError(f"{name}: not here")
        return find_source(name, weights, fetch=fetch)

    monkeypatch.setattr("actionspan.features.hub_encoders.find_source", watched)
    # a path of the other stream, a name, and a name with the digest of what a person gives
    for name, digest in (("/etc/x", "0" * 64), ("hf:a/b", "0" * 64), ("hf:a/b", mine.clip_digest)):
        asked.clear()
        forged = replace(mine, rgb_encoder=name, rgb_digest=digest)
        if digest == mine.clip_digest:
            found = located(forged, [str(tmp_path / "mine")])
            assert found.rgb_encoder == found.clip_encoder == str(tmp_path / "mine")
        else:
            with pytest.raises(InputError, match=name):
                located(forged, [str(tmp_path / "mine")])
        assert all(not fetch for asked_for, fetch in asked if asked_for == name)
        assert ("/etc/x", False) not in asked


def test_encoders_that_see_no_clips_are_one_line(tmp_path):
    write_model(tmp_path, "vit")
    write_clip_model(tmp_path / "clips", "videomae")
    for name, how, message in (
        ("", {}, "sees single images; give it as rgb_encoder"),
        ("clips", {"clip_pooling": "cls"}, "clip_pooling cls: .* has no class token"),
        ("clips", {"clip_layer": -9}, "clip_layer -9: .* has 3"),
    ):
        with pytest.raises(InputError, match=message):
            ClipEncoder(clip_settings(tmp_path / name, **how))
