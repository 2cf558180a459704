"""Folders of encoders, as timm and transformers save them, and changed ones."""

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from random import Random

import torch

from campaigns.damage import damaged
from campaigns.leaves import change, leaves_of

_TIMM = ("test_vit", "test_convnext", "test_resnet")
_LARGE = ("eva02_enormous_patch14_clip_224", "vit_giant_patch14_dinov2", "resnet18", "nothing")


def folders_of_encoders(folder: Path) -> list[Path]:
    """Write encoders of random weights; none where a library is missing."""
    if not (find_spec("timm") and find_spec("transformers")):
        return []
    import timm
    import transformers

    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"intermediate_size": 64, "image_size": 32, "patch_size": 8}
    for name, kind in (("dinov2", "BitImageProcessor"), ("vit", "ViTImageProcessor")):
        config = transformers.CONFIG_MAPPING[name](**shape)
        transformers.AutoModel.from_config(config).save_pretrained(folder / name)
        getattr(transformers, kind)().save_pretrained(folder / name)
    for name in _TIMM:
        model = timm.create_model(name, num_classes=0)
        timm.models.save_for_hf(model, str(folder / name), safe_serialization=True)
    return [folder / name for name in ("dinov2", "vit", *_TIMM)]


def write_changed(sound: Path, folder: Path, random: Random, secret: str) -> None:
    """Copy a folder and change its JSON, its weights, or what kind of file they are."""
    from campaigns.strangers import changed_json

    shutil.copytree(sound, folder)
    files = [path for path in folder.iterdir() if path.suffix == ".json"]
    file, weights = random.choice(sorted(files)), folder / "model.safetensors"
    what = random.random()
    if what < 0.6:
        said = json.loads(file.read_text())
        if "architecture" in said and random.random() < 0.2:
            said["architecture"] = random.choice(_LARGE)
        elif "architecture" in said:
            key = random.choice(["depth", "embed_dim", "img_size", "channels", "num_heads", "x"])
            said.setdefault("model_args", {})[key] = random.choice([0, 3, 64, 10**5, 10**6])
        file.write_text(changed_json(said, random, secret))
    elif what < 0.75:
        _change_tensors(weights, random)
    elif what < 0.95:
        file = random.choice([file, weights])
        file.write_bytes(damaged(file.read_bytes(), random)[0])
    else:
        weights.unlink()
        if random.random() < 0.5:
            os.mkfifo(weights)
        else:
            weights.symlink_to(random.choice(["/dev/zero", "/dev/stdin", secret, "nowhere"]))


def _change_tensors(path: Path, random: Random) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(path)
    for _ in range(random.randint(1, 2)):
        if leaves := list(leaves_of(state)):
            change(random.choice(leaves), random)
    kept = {
        name: value.contiguous()
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
        and value.numel() < 10**6
    }
    save_file({name: value.clone() for name, value in kept.items()}, path, {"format": "pt"})
