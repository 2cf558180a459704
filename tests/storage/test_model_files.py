"""Model files from anywhere: what is right comes back, what is wrong is one line."""

import json
import math
import random
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from actionspan.cli import main
from actionspan.errors import InputError, brief
from actionspan.storage.model_files import _DAMAGED as DAMAGED
from actionspan.storage.model_files import Part, read_model, write_model
from actionspan.storage.model_files import _seal as seal
from actionspan.temporal.settings import TemporalSettings

LONG = "x" * 100_000


def part(value):
    return Part(value, "m.pt: leaf")


@pytest.mark.parametrize(
    "look",
    [
        lambda value: part(value).whole(1, 10),
        lambda value: part(value).number(0, 10),
        lambda value: part(value).text(["a", "b"]),
        lambda value: part(value).items(5, 6),
        lambda value: part(value).tensor(2),
        lambda value: part(value)["key"],
        lambda value: part(value).entries(),
        lambda value: part(value).settings(TemporalSettings),
        lambda value: part(value).network(lambda: nn.Linear(2, 1), "it"),
    ],
)
@pytest.mark.parametrize(
    "value",
    [None, True, -1, 10**300, 2**5000, math.nan, LONG, "a\n\x1b[2J", [LONG] * 4, [[]], {1: 2}],
    ids=lambda value: type(value).__name__,
)
def test_a_wrong_leaf_is_one_short_line_that_names_it(look, value):
    with pytest.raises(InputError) as caught:
        look(value)
    line = str(caught.value)
    assert line.startswith("m.pt: leaf")
    assert line.isprintable()
    assert len(line) < 1000


def test_a_right_leaf_comes_back():
    whole = part({"a": 3, "b": 0.5, "c": "x", "d": [1, 2], "e": torch.ones(2, 3)})
    assert whole["a"].whole(1, 3) == 3
    assert whole["b"].number(0, 1) == 0.5
    assert whole["c"].text(["x"]) == "x"
    assert [each.whole(1, 2) for each in whole["d"].items(2, 2)] == [1, 2]
    assert torch.equal(whole["e"].tensor(None, 3), torch.ones(2, 3))
    assert "a" in whole
    assert "f" not in whole
    with pytest.raises(InputError, match=r"m\.pt: leaf: lacks f"):
        whole["f"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (torch.zeros(1).expand(4, 3), "more than the file holds"),
        (torch.zeros(1).expand(10**12, 3), "shape"),
        (torch.full((4, 3), math.nan), "NaN or infinity"),
        (torch.full((4, 3), -math.inf), "NaN or infinity"),
        (torch.zeros(4, 3, dtype=torch.float64), "another kind of tensor: float32 (4, 3)"),
        (torch.zeros(4, 3, dtype=torch.complex64), "another kind of tensor"),
        (torch.zeros(4, 3).to(torch.float8_e4m3fn), "another kind of tensor"),
        (torch.zeros(4, 3, device="meta"), "another kind of tensor"),
        (torch.zeros(4, 3).to_sparse(), "another kind of tensor"),
        (torch.zeros(4, 2), "shape (4, 2): float32 (4, 3)"),
        (torch.zeros(12), "shape (12)"),
    ],
)
def test_a_wrong_tensor_is_refused(value, problem):
    with pytest.raises(InputError) as caught:
        part(value).tensor(4, 3)
    assert problem in str(caught.value)


def test_a_tensor_is_its_own_and_plain():
    held = torch.nn.Parameter(torch.arange(20.0).reshape(4, 5))
    found = part(held.transpose(0, 1)).tensor(5, 4)
    assert torch.equal(found, held.detach().T)
    assert found.is_contiguous()
    assert not found.requires_grad
    found += 1
    assert held[0, 0] == 0


def test_a_network_is_built_only_where_all_of_it_fits():
    state = nn.Linear(2, 1).state_dict()
    built = []

    def build():
        network = nn.Linear(2, 1)
        built.append(network.weight.device.type)
        return network

    made = part(state).network(build, "it")
    assert torch.equal(made.weight, state["weight"])
    assert built == ["meta", "cpu"]
    for wrong in ({}, state | {"more": torch.ones(1)}, state | {"bias": torch.ones(2)}):
        built.clear()
        with pytest.raises(InputError):
            part(wrong).network(build, "it")
        assert built == ["meta"]


CONTENT = {
    "format": "test 1",
    "tensors": {
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "view": torch.arange(10)[3:7],
        "scalar": torch.tensor(2.0, dtype=torch.bfloat16),
        "empty": torch.zeros(0, 3),
        "repeated": torch.zeros(1).expand(5),
    },
    "plain": [None, True, 1, -0.1, "ä", [1, {"b": torch.tensor([True])}], {}],
}


def same(one, other):
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def test_a_model_file_gives_back_its_content_and_equal_content_equal_bytes(tmp_path):
    for name in ("m.safetensors", "folder/other.safetensors"):
        write_model(tmp_path / name, CONTENT)
        assert same(read_model(tmp_path / name).value, CONTENT)
    one, other = (path.read_bytes() for path in sorted(tmp_path.rglob("*.safetensors")))
    assert one == other
    write_model(tmp_path / "again", read_model(tmp_path / "m.safetensors").value)
    assert (tmp_path / "again").read_bytes() == one
    tensors = load_file(tmp_path / "m.safetensors")
    assert torch.equal(tensors["tensors/view"], torch.arange(3, 7))


def test_a_tensor_that_several_parts_share_is_written_once(tmp_path):
    shared = torch.rand(1000)
    write_model(tmp_path / "m", {"a": {"w": shared}, "b": {"w": shared}})
    assert (tmp_path / "m").stat().st_size < 2 * shared.nbytes
    read = read_model(tmp_path / "m").value
    assert torch.equal(read["a"]["w"], shared)
    assert torch.equal(read["b"]["w"], shared)


def test_a_flipped_bit_or_a_missing_end_changes_nothing_or_is_one_line(tmp_path):
    path, draw = tmp_path / "m", random.Random(1)
    write_model(path, CONTENT)
    whole, lines = path.read_bytes(), 0
    damaged = [whole[:size] for size in range(0, len(whole), len(whole) // 20)]
    for _ in range(300):
        flipped = bytearray(whole)
        flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        damaged.append(bytes(flipped))
    for data in damaged:
        path.write_bytes(data)
        try:
            assert same(read_model(path).value, CONTENT)
        except InputError as error:
            lines += 1
            assert str(error) == f"{path}: {DAMAGED}"  # noqa: PT017
    assert lines > 280


def header(text, tensors=None):
    """Return a sound file with this JSON in place of its own."""
    tensors = tensors or {}
    return save(tensors, {"actionspan": json.dumps({"content": text, "seal": seal(text, tensors)})})


NO_MODELS = {
    "empty": b"",
    "a pickle": b"\x80\x02}q\x00.",
    "text": b"some text, and more of it",
    "ones": b"\xff" * 100,
    "a long header": (1 << 40).to_bytes(8, "little") + b"{}",
    "other safetensors": save({"a": torch.ones(2)}),
    "no JSON": save({"a": torch.ones(2)}, {"actionspan": "no JSON"}),
    "another JSON": save({"a": torch.ones(2)}, {"actionspan": "[1]"}),
    "deep": header("[" * 100_000),
    "a missing tensor": header('{"a": {"$tensor": "b"}}', {"a": torch.ones(2)}),
    "no name": header('{"a": {"$tensor": ["a"]}}', {"a": torch.ones(2)}),
    "much memory": header(json.dumps([{"$tensor": "a"}] * 1000), {"a": torch.ones(10_000)}),
}


@pytest.mark.parametrize("data", NO_MODELS.values(), ids=NO_MODELS)
def test_what_is_no_model_file_is_one_line(tmp_path, data):
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(InputError, match=r"m: no model$"):
        read_model(tmp_path / "m", "no model")


def test_a_file_that_memory_does_not_hold_is_not_to_blame(tmp_path, monkeypatch):
    write_model(tmp_path / "m", CONTENT)
    no_room = Mock(side_effect=MemoryError)
    monkeypatch.setattr("actionspan.storage.model_files.safe_open", no_room)
    with pytest.raises(InputError, match=r"m: too little memory to load its \d+ bytes"):
        read_model(tmp_path / "m")


def test_a_file_of_an_earlier_version_names_the_command_that_converts_it(tmp_path, capsys):
    torch.save(CONTENT | {"plain": (1, 2.5)}, tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"convert it: actionspan convert-model \S+/model\.pt NEW"):
        read_model(tmp_path / "model.pt")
    words = ["convert-model", str(tmp_path / "model.pt"), str(tmp_path / "new.safetensors")]
    assert main(words) == 0
    assert same(read_model(tmp_path / "new.safetensors").value, CONTENT | {"plain": [1, 2.5]})
    (tmp_path / "text.pt").write_text("model")
    assert main(["convert-model", str(tmp_path / "text.pt"), str(tmp_path / "other")]) == 2
    assert "text.pt: not a complete torch.save file" in capsys.readouterr().err


def test_a_value_is_shown_briefly():
    endless = []
    endless.append(endless)
    shown = [brief(value) for value in (endless, LONG, 2**9999, [1, "a"], {"a": 1}, b"\x1b", None)]
    assert shown == [
        *("a list of 1", "'" + "x" * 60 + "'…", "a number of 10000 bits", "[1, 'a']"),
        *("a dict of 1", "b'\\x1b'", "None"),
    ]
