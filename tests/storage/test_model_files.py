"""Leaves of model files from anywhere: what is right comes back, what is wrong is one line."""

import io
import math
import zipfile

import pytest
import torch
from torch import nn

from actionspan.errors import InputError, brief
from actionspan.storage.torch_files import Part, read_model, write_torch
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


def rewritten(path, change):
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in change(records).items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())


def test_a_record_that_claims_more_than_it_has_is_refused(tmp_path):
    path = tmp_path / "m.pt"
    write_torch(path, {"a": torch.arange(100.0)})
    assert read_model(path)["a"].tensor(100)[99] == 99

    def claim(records):  # 100 numbers become ten million
        larger = b"J" + (10**7).to_bytes(4, "little")
        return {
            name: content.replace(b"K\x64", larger) if name.endswith("data.pkl") else content
            for name, content in records.items()
        }

    rewritten(path, claim)
    with pytest.raises(InputError, match=r"m\.pt: no model"):
        read_model(path, "no model")


@pytest.mark.parametrize(
    "value",
    [
        bytearray(10),
        torch.zeros(3).to_sparse(),
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
        torch.zeros(10**6, 10**6, device="meta"),
        {1, 2},
        torch.float32,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_a_file_that_asks_for_other_objects_is_refused(tmp_path, value):
    torch.save({"a": value}, tmp_path / "m.pt")
    with pytest.raises(InputError, match=r"m\.pt: no model"):
        read_model(tmp_path / "m.pt", "no model")


def test_a_file_before_torch_1_6_is_no_model(tmp_path):
    torch.save({"a": 1}, tmp_path / "m.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(InputError, match=r"m\.pt: no model"):
        read_model(tmp_path / "m.pt", "no model")


def test_a_value_is_shown_briefly():
    endless = []
    endless.append(endless)
    shown = [brief(value) for value in (endless, LONG, 2**9999, [1, "a"], {"a": 1}, b"\x1b", None)]
    assert shown == [
        *("a list of 1", "'" + "x" * 60 + "'…", "a number of 10000 bits", "[1, 'a']"),
        *("a dict of 1", "b'\\x1b'", "None"),
    ]
