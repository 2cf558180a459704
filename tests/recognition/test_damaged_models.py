"""A classifier's model.safetensors that was damaged or changed: one line, or the same network."""

import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import Encoder
from actionspan.features.settings import EncoderSettings
from actionspan.jobs.determinism import seed_torch
from actionspan.networks.architecture import architecture
from actionspan.recognition.task import FORMAT, carry_over
from actionspan.storage.model_files import write_model
from networks.tiny import TINY_NETWORK
from recognition.learning import tiny
from storage.changed import changed_leaves

CLASSES = ("a", "b")
NETWORK = "efficientnet_lite0"


def content(network=TINY_NETWORK):
    seed_torch(1)
    weights = architecture(network).build(3, len(CLASSES)).state_dict()
    return {
        "format": FORMAT,
        "network": network,
        "stream": "rgb",
        "classes": list(CLASSES),
        "input_size": 64,
        "state_dict": dict(weights),
        "digest": "abc",
    }


def weights_of(make, path):
    try:
        made = make(path)
    except InputError as error:
        return str(error)
    return made


def carried(path):
    return carry_over(tiny(), 4, CLASSES, path).state_dict()


def answers(path):
    """Return what the features stage makes of a picture by the file."""
    settings = EncoderSettings(rgb_encoder=NETWORK, rgb_weights=path, device="cpu", runtime="eager")
    picture = torch.arange(64 * 64 * 3).view(1, 64, 64, 3).numpy() % 251
    return {"vectors": torch.from_numpy(Encoder(NETWORK, path, settings, 3)(picture.astype("u1")))}


def test_a_variance_below_0_is_one_line(tmp_path):
    """Its root is no number; found by the campaign of models."""
    sound = content()
    sound["state_dict"]["bn2.running_var"][3] = -1.0
    write_model(tmp_path / "model.safetensors", sound)
    with pytest.raises(InputError, match=r"bn2\.running_var has a variance below 0"):
        carried(tmp_path / "model.safetensors")


def check(make, path, sound, changes):
    write_model(path, sound)
    wanted = make(path)
    refused = 0
    for change, other in changes:
        write_model(path, other)
        found = weights_of(make, path)
        if isinstance(found, str):
            refused += 1
            assert f"{path}: " in found, change
            assert found.isprintable(), change
            assert len(found) < 500 + len(str(path)), change
        else:
            assert all(torch.equal(found[name], wanted[name]) for name in wanted), change
    return refused


@pytest.mark.filterwarnings("ignore")
def test_a_flow_network_starts_from_no_damaged_model(tmp_path):
    path = tmp_path / "model.safetensors"
    sound = content()
    changes = list(changed_leaves(sound))
    assert check(carried, path, sound, changes) > len(changes) / 2
    write_model(path, sound)
    whole = path.read_bytes()
    for size in range(0, len(whole), len(whole) // 50):
        path.write_bytes(whole[:size])
        assert weights_of(carried, path).startswith(f"{path}: ")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.full
def test_features_are_made_by_no_damaged_model(tmp_path):
    sound = content(NETWORK)
    names = list(sound["state_dict"])
    some = {"state_dict": {name: sound["state_dict"][name] for name in (*names[:7], *names[-2:])}}
    changes = [
        (change, sound | {"state_dict": {**sound["state_dict"], **other["state_dict"]}})
        for change, other in changed_leaves(some)
        if isinstance(other.get("state_dict"), dict) and len(other["state_dict"]) == 9
    ]
    assert check(answers, tmp_path / "model.safetensors", sound, changes) > len(changes) / 2
