"""Encoders from a stranger's folder: one line at once, whatever they ask for, and no code."""

import json
import os
import pickle
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.networks.hub import find_source, load_network

timm = pytest.importorskip("timm", reason="timm is not installed: uv pip install timm")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from safetensors.torch import load_file, save_file  # noqa: E402

from networks.test_hub import FITTED, SMALL, write_model  # noqa: E402

SECONDS = 60  # on a busy machine; most take a tenth of a second


@cache
def dinov2() -> dict[str, bytes]:
    """Return the files of a folder of transformers, which each case changes."""
    with TemporaryDirectory() as folder:
        write_model(folder, "dinov2")
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def of_transformers(folder, **changes):
    folder.mkdir()
    for name, content in dinov2().items():
        (folder / name).write_bytes(content)
    edit(folder / "config.json", **changes)


def of_timm(folder, **changes):
    torch.manual_seed(0)
    model = timm.create_model("test_vit", num_classes=0).eval()
    timm.models.save_for_hf(model, folder, safe_serialization=True)
    edit(folder / "config.json", **changes)


def edit(file, **changes):
    said = json.loads(file.read_text())
    for key, value in changes.items():
        if isinstance(value, dict):
            said.setdefault(key, {}).update(value)
        else:
            said[key] = value
    file.write_text(json.dumps(said))


def asked(**changes):
    return lambda folder: of_transformers(folder, **changes)


def asked_of_timm(**changes):
    return lambda folder: of_timm(folder, **changes)


def prepared(**changes):
    def make(folder):
        of_transformers(folder)
        edit(folder / "preprocessor_config.json", **changes)

    return make


def weighted(change):
    def make(folder):
        of_transformers(folder)
        file = folder / "model.safetensors"
        save_file(change(load_file(file)), file, metadata={"format": "pt"})

    return make


def with_nan(state):
    return {name: torch.full_like(value, float("nan")) for name, value in state.items()}


def reshaped(state):
    return {name: value.repeat(2, *[1] * (value.ndim - 1)) for name, value in state.items()}


class Stranger:
    def __reduce__(self):
        return os.mkdir, ("PWNED",)


def pickled(folder):
    of_transformers(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Stranger()}))


def zero(folder):
    pickled(folder)
    (folder / "model.safetensors").symlink_to("/dev/zero")


def pipe(folder):
    pickled(folder)
    os.mkfifo(folder / "model.safetensors")


def elsewhere(folder):
    of_transformers(folder)
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = {"metadata": {}, "weight_map": {"a": "../../dev/zero"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def endless(folder):
    of_transformers(folder)
    with (folder / "config.json").open("r+") as file:
        file.truncate((64 << 20) + 1)


def deep(folder):
    of_transformers(folder)
    (folder / "config.json").write_text('{"model_type": ' + "[" * 100_000 + "]" * 100_000 + "}")


def own_code(folder):
    of_transformers(folder, model_type="mine", auto_map={"AutoConfig": "mine.C"})
    (folder / "mine.py").write_text("import os; os.mkdir('PWNED')")


def with_files(**contents):
    """Make a folder of files with these texts, by their names without `.json`."""

    def make(folder):
        folder.mkdir()
        (folder / "model.safetensors").touch()
        for name, content in contents.items():
            (folder / f"{name}.json").write_text(content)

    return make


def damaged(folder):
    of_transformers(folder)
    (folder / "model.safetensors").write_bytes(b"no weights")


def drawing(folder):
    transformers.AutoModel.from_config(transformers.ViTMAEConfig(**SMALL)).save_pretrained(folder)
    transformers.ViTImageProcessor(**FITTED).save_pretrained(folder)


def without_a_norm(state):
    return {name: value for name, value in state.items() if name != "encoder.layer.0.norm1.weight"}


NO_FINITE, SDPA = "values that are not finite", "eager or sdpa"
ENORMOUS = "eva02_enormous_patch14_clip_224"
FOLDERS = {
    "layers": (asked(num_hidden_layers=10**5), "asks for 1,.* or more"),
    "width": (asked(hidden_size=10**6), "asks for [0-9,]+ parameters or"),
    "picture": (asked(image_size=10**5), "image_size 100000: a number .*2048"),
    "labels": (asked(num_labels=10**9), "num_labels 1000000000: a number"),
    "size": (prepared(size={"height": 10**5}), "size: height 100000: a number .* to 2048"),
    "crop": (prepared(crop_size={"height": 60_000}), "crop_size: height 60000: a number"),
    "architecture": (asked_of_timm(architecture=ENORMOUS), "asks"),
    "depth": (asked_of_timm(model_args={"depth": 100_000}), "asks for 1,.* or more"),
    "embedding": (asked_of_timm(model_args={"embed_dim": 10**6}), "asks for"),
    "grid": (asked_of_timm(model_args={"img_size": 10**6}), "img_size 1000000: a number"),
    "input": (asked_of_timm(pretrained_cfg={"input_size": [3, 10**4, 10**4]}), "10000: a n"),
    "share": (asked_of_timm(pretrained_cfg={"crop_pct": 1e-4}), "crop_pct 0.0001: a number"),
    "NaN": (weighted(with_nan), NO_FINITE),
    "deviation 0": (prepared(image_std=[0, 0, 0]), NO_FINITE),
    "mean NaN": (prepared(image_mean=[float("nan")] * 3), "a number from -2048"),
    "shapes": (weighted(reshaped), "its weights have other shapes than its config.json asks for"),
    "pickle": (pickled, "a pickle of more than tensors; give model.safetensors"),
    "own code": (own_code, "needs code of its own, which is never run"),
    "kernels": (
        asked(_attn_implementation="kernels-community/x"),
        f"_attn_implementation 'kernels-community/x': {SDPA}",
    ),
    "kernels inside": (
        asked(attn_implementation={"vision_config": "a/b"}),
        f"attn_implementation: vision_config 'a/b': {SDPA}",
    ),
    "quantized": (
        asked(quantization_config={"quant_method": "gptq"}),
        "quantization_config: weights that are not quantized",
    ),
    "/dev/zero": (zero, "model.safetensors: not a regular file"),
    "pipe": (pipe, "model.safetensors: not a regular file"),
    "elsewhere": (elsewhere, "index.json: weights outside its folder"),
    "large JSON": (endless, "config.json: 67,108,865 bytes of JSON; at most 67,108,864"),
    "deep JSON": (deep, "config.json: not JSON, or nested too deep"),
    "missing": (lambda folder: None, "no such folder or file"),
    "bare": (with_files(), "no config.json next to the weights"),
    "unnamed": (with_files(config="{}"), "config.json: names no architecture"),
    "damaged": (damaged, "SafetensorError|header"),
    "lacking": (weighted(without_a_norm), "its weights lack encoder.layer.0.norm1.weight"),
    "drawing": (drawing, "gives other vectors each time"),
}


@pytest.mark.parametrize(("make", "said"), FOLDERS.values(), ids=FOLDERS)
def test_a_strangers_folder_is_one_line_at_once(tmp_path, monkeypatch, make, said):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "it"
    make(folder)
    began = time.monotonic()
    with pytest.raises(InputError, match=said) as caught:
        load_network(find_source(str(folder)), None, "auto")
    line = str(caught.value)
    assert time.monotonic() - began < SECONDS
    assert line.startswith(str(folder))
    assert line.isprintable()
    assert "trust_remote_code" not in line
    assert "weights_only" not in line
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("make", [of_transformers, of_timm])
def test_links_to_files_are_files_as_in_the_cache_of_a_hub(tmp_path, make):
    make(tmp_path / "it")
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in (tmp_path / "it").iterdir():
        (linked / file.name).symlink_to(file)
    picture = torch.from_numpy(np.arange(64 * 64 * 3, dtype=np.uint8).reshape(1, 64, 64, 3))
    first, second = (
        load_network(find_source(str(each)), None, "auto") for each in (tmp_path / "it", linked)
    )
    assert torch.equal(*(one.network(one.inputs(picture)) for one in (first, second)))
