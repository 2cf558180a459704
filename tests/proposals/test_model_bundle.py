"""A model from a stranger: wrong leaves are one line, and nothing that it names is opened."""

import copy
import dataclasses
import json
import sys
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.transform import transform_from
from actionspan.networks.weights import load_state
from actionspan.proposals.bundle_files import bundle_path
from actionspan.proposals.density_training import load_density
from actionspan.proposals.evaluator import (
    ProposalEvaluator,
    evaluator_from_state,
    evaluator_state,
    load_evaluator,
)
from actionspan.proposals.intensity import (
    DensityModel,
    Intensity,
    density_from_state,
    density_state,
)
from actionspan.proposals.lattice import Lengths
from actionspan.proposals.model_bundle import load_bundle
from actionspan.proposals.segment_classifier import (
    SegmentClassifier,
    classifier_from_state,
    classifier_state,
    load_classifier,
)
from actionspan.proposals.selection import Calibration
from actionspan.proposals.settings import EventSettings, LatticeSettings
from actionspan.propose import Proposer
from actionspan.storage.model_files import Part, read_model, write_model
from actionspan.temporal.networks import build_model, load_model, model_content
from actionspan.temporal.probabilities import Prediction
from actionspan.temporal.settings import TemporalSettings

OPENED = []


@cache
def watch():
    """Note each file and address that this process opens; a hook cannot be removed."""
    sys.addaudithook(
        lambda event, words: (
            OPENED.append((event, str(words[:1])))
            if event in ("open", "socket.connect", "socket.getaddrinfo", "urllib.Request")
            else None
        )
    )


@cache
def sound():
    """The model of the package, with streams of RGB and flow that no network of it learned."""
    content = read_model(bundle_path(Path("demo"))).value
    settings = json.loads(content["settings"])
    settings["encoders"]["source"] = "pooled"
    content["settings"] = json.dumps(settings)
    content["transform"]["streams"] = torch.tensor(list(b"rgb,flow"), dtype=torch.uint8)
    for stream in ("rgb", "flow"):
        content["transform"] |= {
            f"{stream}/mean": torch.zeros(1280),
            f"{stream}/components": torch.eye(128, 1280),
            f"{stream}/scale": torch.ones(128),
        }
    shape, channels = TemporalSettings(hidden=64, members=5), 1 + 2 * 128 + 2 * 4 + 2
    weights = build_model("span", channels, shape).state_dict()
    content["temporal"] = model_content("span", channels, shape, weights, "")
    del content["temporal"]["parts"]
    return content


def test_the_model_that_is_changed_is_sound(tmp_path):
    write_model(tmp_path / "m.pt", sound())
    assert list(Proposer(tmp_path / "m.pt").bundle.transform.streams) == ["rgb", "flow"]


def changed(path, *keys, value):
    """Write a sound model with a leaf changed; keys behind `settings` are inside its JSON."""
    content = copy.deepcopy(sound())
    if keys[0] == "settings" and len(keys) > 1:
        settings = json.loads(content["settings"])
        settings[keys[1]][keys[2]] = value
        content["settings"] = json.dumps(settings)
    else:
        holder = content
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = value
    write_model(path, content)
    return path


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("settings", "frames", "stack"), 10**6, "settings: frames: stack 1000000: from 1 to 127"),
        (("settings", "encoders", "input_size"), 20_000, "input_size 20000: from 32 to 4096"),
        (("settings", "encoders", "batch_size"), 4000, "batch_size 4000: at most 334 of input_"),
        (("settings", "frames", "clips"), "yes", "clips 'yes': true or false"),
        (("settings", "candidates", "candidates"), 2.5, "candidates 2.5: a whole number from 1"),
        (("settings", "events", "events"), True, "events True: a whole number from 1"),
        (("settings", "flow", "bound"), 1e-300, "bound 1e-300: from 0.01"),
        (("settings", "suppression", "epsilon"), "9" * 10**4, "epsilon '999"),
        (("settings",), "[" * 10**5, "settings: not a dictionary in JSON"),
        (("settings",), '{"a": ' + "9" * 5000 + "}", "settings: not a dictionary in JSON"),
        (("settings",), '{"frames": 3}', "settings: frames 3: a dictionary"),
        (("settings",), torch.zeros(3), "settings a Tensor: a text"),
        (("transform", "steps"), torch.tensor(10**12), "transform: steps 1000000000000: a whole"),
        (("transform", "streams"), torch.tensor(list(b"rgb,rgb"), dtype=torch.uint8), "streams"),
        (("transform", "rgb/scale"), torch.ones(127), "rgb/scale: shape (127): float32 (128)"),
        (("transform", "windows"), torch.tensor([0, 0]), "windows: 0 0: a whole number from 1"),
        (("temporal", "settings", "members"), 10**6, "temporal: settings: members 1000000: from 2"),
        (("temporal", "channels"), 10**400, "temporal: channels a number of"),
        (("temporal", "channels"), 267.0, "channels 267.0: a whole number"),
        (("temporal", "model"), "mtn", "its weights do not fit mtn in this version"),
        (("temporal", "state_dict", "last.bias"), torch.full((30,), float("nan")), "last.bias: h"),
        (("density", "members"), [], "density: members []: a list of 1 to 100"),
        (
            ("density", "lattice", "ratio"),
            1 + 1e-12,
            "lattice: ratio 1.000000000001: from 1.02 to 2",
        ),
        (("density", "calibration"), [1, -1, 0.5], "calibration: 1 -1: a number from 0"),
        (("density", "lengths"), [5.0, 0.5], "lengths [5.0, 0.5]: the shortest first"),
        (("evaluator",), {}, "want either an evaluator or a density"),
        (("density",), None, "want either an evaluator or a density"),
    ],
    ids=lambda value: None,
)
def test_a_changed_leaf_is_one_short_line_that_names_the_file(tmp_path, keys, value, said):
    path = changed(tmp_path / "m.pt", *keys, value=value)
    with pytest.raises(InputError) as caught:
        load_bundle(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert said in line
    assert line.isprintable()
    assert len(line) < 500 + len(str(path))


@pytest.mark.parametrize(("changed", "most"), [
    ({}, 3), ({"ranks": False}, None), ({"events": EventSettings(events=7)}, 7),
])  # fmt: skip
def test_of_other_footage_as_many_events_are_listed_as_it_expects(changed, most):
    """Unless a person asks for a number, or its chances are of the person's own videos."""
    included = dataclasses.replace(load_bundle(Path("demo")), **changed)
    density = np.array([0.9, 0.9, 0.3])
    assert included.listing(density).events == most
    assert included.listing(density / 100).events == (most if changed else 1)


def test_the_list_of_other_footage_is_as_long_as_is_expected():
    bundle = load_bundle(Path("demo"))
    bundle = dataclasses.replace(bundle, events=EventSettings(bar=0))
    prediction = Prediction(np.full((40, 3), 0.5, np.float32))
    _, density = bundle.expected(prediction, 60.0)
    assert len(bundle.choose(prediction, 60.0).events) == np.ceil(density.sum())
    by_chance = dataclasses.replace(bundle, ranks=False)
    assert len(by_chance.choose(prediction, 60.0).events) > np.ceil(density.sum())


@pytest.mark.parametrize("stream", ["rgb_weights", "flow_weights"])
@pytest.mark.parametrize("name", ["IMAGENET1K_V1", "DEFAULT", "secret.pt"])
def test_weights_that_a_model_names_are_not_opened(tmp_path, monkeypatch, stream, name):
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "secret.pt", {"a": torch.ones(1)})
    path = changed(tmp_path / "m.pt", "settings", "encoders", stream, value=name)
    watch()
    OPENED.clear()
    with pytest.raises(InputError, match=rf"m\.pt: names weights '{name}' for (rgb|flow) that it"):
        Proposer(path)
    assert any("m.pt" in words for _, words in OPENED), "the hook works"
    assert not [words for event, words in OPENED if "secret" in words or event != "open"]


def test_numbers_that_are_not_finite_are_the_fault_of_the_model(tmp_path):
    pictures = cv2.VideoWriter(
        str(tmp_path / "a.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 25, (96, 64)
    )
    for level in range(20):
        pictures.write(np.full((64, 96, 3), 10 * level, np.uint8))
    pictures.release()
    encoder = load_state("efficientnet_lite0", None, "_fc")
    head = encoder["_conv_head.weight"]  # of products of both signs: inf - inf, on any processor
    encoder["_conv_head.weight"] = torch.full_like(head, 3e38)
    path = changed(tmp_path / "m.pt", "settings", "encoders", "runtime", value="eager")
    write_model(path, read_model(path).value | {"weights": {"rgb": encoder}})
    with pytest.raises(InputError, match=r"m\.pt: .*(not finite|infinity)"):
        Proposer(path).propose(tmp_path / "a.avi")


def test_weights_of_other_shapes_or_that_nothing_fits_name_the_file(tmp_path):
    content = copy.deepcopy(sound())
    content["weights"] = {"rgb": {"_conv_stem.weight": torch.zeros(32, 3, 3, 3)}}
    write_model(tmp_path / "m.pt", content)
    with pytest.raises(InputError, match=r"m\.pt: the model: not weights of this network: lacks"):
        Proposer(tmp_path / "m.pt")
    content = copy.deepcopy(sound())
    for part in ("mean", "components"):
        content["transform"][f"rgb/{part}"] = content["transform"][f"rgb/{part}"][..., :7]
    write_model(tmp_path / "m.pt", content)
    with pytest.raises(InputError, match=r"m\.pt: its encoders give features of .*rgb 1280.*rgb 7"):
        Proposer(tmp_path / "m.pt")


@pytest.mark.parametrize(
    ("load", "kind"),
    [
        (load_evaluator, "not a proposal evaluator"),
        (load_density, "not a density .*`proposals density` make"),
        (load_classifier, "not a classifier of segments; `actionspan proposals classifier`"),
    ],
)
def test_a_file_of_something_else_is_one_line_that_names_it(tmp_path, load, kind):
    with pytest.raises(InputError, match=r"none\.pt: no such file"):
        load(tmp_path / "none.pt")
    (tmp_path / "text.pt").write_text("a text")
    with pytest.raises(InputError, match=rf"text\.pt: (not a complete model file|{kind})"):
        load(tmp_path / "text.pt")
    for content in ({"format": "something else"}, {"kind": "something else"}, [1, 2]):
        write_model(tmp_path / "other.pt", content)
        with pytest.raises(InputError, match=rf"other\.pt: {kind}"):
            load(tmp_path / "other.pt")


def leaves(content, *above):
    """Yield the keys of each tensor, text and number of a model."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list | tuple):
            yield from leaves(value, *above, key)
        else:
            yield (*above, key)


def at(content, keys):
    for key in keys:
        content = content[key]
    return content


WRONG = {
    "empty": lambda old: old.reshape(-1)[:0],
    "an axis more": lambda old: old[None],
    "one short": lambda old: old[..., :-1] if old.ndim else old[None][:0],
    "other type": lambda old: old.to(torch.complex64),
    "NaN": lambda old: torch.full(old.shape, float("nan")),
    "huge": lambda old: torch.full(old.shape, 3e38, dtype=torch.float64).to(old.dtype),
    "claimed": lambda old: torch.zeros(1, dtype=old.dtype).expand(10**12),
    "no tensor": lambda old: old.tolist(),
}


def small_parts():
    """Return each part that holds tensors, small, with what builds it from a file."""
    span = TemporalSettings(hidden=64, members=2)
    density = DensityModel(
        members=[Intensity(8)],
        lengths=Lengths(0.5, 4.0),
        lattice=LatticeSettings(),
        calibration=Calibration(),
    )
    labels = SegmentClassifier(labels=("a", "b"), coefficients=np.ones((2, 14)))
    return {
        "transform": (sound()["transform"], transform_from),
        "temporal": (
            model_content("span", 9, span, build_model("span", 9, span).state_dict(), ""),
            load_model,
        ),
        "density": (density_state(density), density_from_state),
        "evaluator": (evaluator_state(ProposalEvaluator(hidden=8)), evaluator_from_state),
        "classifier": (classifier_state(labels), classifier_from_state),
    }


@pytest.mark.parametrize("name", small_parts())
def test_each_tensor_that_is_wrong_is_one_line_that_names_the_file_and_the_part(name):
    content, build = small_parts()[name]
    build(Part(content, "m.pt: it"))
    tensors = [keys for keys in leaves(content) if isinstance(at(content, keys), torch.Tensor)]
    assert tensors
    for keys in tensors:
        for kind, change in WRONG.items():
            holder = copy.deepcopy(content)
            old = at(holder, keys)
            value = at(holder, keys[:-1])[keys[-1]] = change(old)
            if isinstance(value, torch.Tensor) and torch.equal(value, old):
                continue
            said = refusal(build, holder)
            if said is None:  # large numbers are numbers, and a text or a count may be shorter
                assert kind == "huge" or not old.is_floating_point(), (keys, kind)
            else:
                assert said.startswith("m.pt: it"), (keys, kind)
                assert said.isprintable()


def refusal(build, content):
    try:
        build(Part(content, "m.pt: it"))
    except InputError as error:
        return str(error)
    return None
