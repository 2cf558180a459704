"""torch's files: the same bytes for the same content, one line where there is no room."""

import io
import random
import zipfile
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.networks.weights import load_file
from actionspan.storage.model_files import write_model
from actionspan.storage.torch_files import DAMAGED, read_torch, unsealed, write_sealed, write_torch
from storage.test_model_files import CONTENT as STRANGE
from worlds.limits import files_of_at_most

PLAIN = {"rows": [{"epoch": 1, "loss": 0.5}], "big": 2**127}
CONTENT = {"weights": torch.arange(5000.0), **PLAIN}


def is_content(read):
    return torch.equal(read.pop("weights"), CONTENT["weights"]) and read == PLAIN


def test_equal_content_gives_equal_bytes_whatever_the_name(tmp_path):
    buffer = io.BytesIO()
    torch.save(CONTENT, buffer)
    for name in ("model.pt", "another name.pt", "folder/.hidden.pt"):
        write_torch(tmp_path / name, CONTENT)
        assert (tmp_path / name).read_bytes() == buffer.getvalue()
    assert is_content(read_torch(tmp_path / "model.pt"))


@pytest.mark.parametrize("limit", [0, 500, 20000])
@pytest.mark.parametrize("write", [write_torch, write_model])
def test_no_room_is_one_line_and_leaves_what_was_there(tmp_path, limit, write):
    path = tmp_path / "model.pt"
    path.write_bytes(b"before")
    line = r"model\.pt: the file is larger than a file may be"
    with pytest.raises(InputError, match=line), files_of_at_most(limit):
        write(path, CONTENT)
    assert path.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


def test_an_error_of_torch_stays_its_own(tmp_path):
    with pytest.raises(Exception, match="pickle"):
        write_torch(tmp_path / "model.pt", {"function": lambda: None})
    assert not list(tmp_path.iterdir())


def test_a_flipped_bit_changes_nothing_or_is_one_line(tmp_path):
    path, draw = tmp_path / "model.pt", random.Random(1)
    write_torch(path, CONTENT)
    whole, lines = path.read_bytes(), 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            assert is_content(read_torch(path))
        except InputError as error:
            lines += 1
            assert str(error) == f"{path}: {DAMAGED}"  # noqa: PT017
    assert lines > 100


def test_a_compressed_record_is_refused(tmp_path):
    write_torch(tmp_path / "model.pt", CONTENT)
    with (
        zipfile.ZipFile(tmp_path / "model.pt") as archive,
        zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    with pytest.raises(InputError, match=r"packed\.pt: not a complete torch\.save file"):
        read_torch(tmp_path / "packed.pt")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: not enough memory: you tried to")]
)
def test_too_little_memory_is_not_the_fault_of_the_file(tmp_path, error, monkeypatch):
    write_torch(tmp_path / "model.pt", CONTENT)
    monkeypatch.setattr(torch, "load", Mock(side_effect=error))
    line = r"model\.pt: too little memory to load its 2\d+ bytes"
    for read in (read_torch, load_file):
        with pytest.raises(InputError, match=line):
            read(tmp_path / "model.pt")


def test_what_is_sealed_comes_back_whatever_its_tensors_are_like(tmp_path):
    content = {
        "strides": torch.from_numpy(np.broadcast_to(np.float32(1), (1,))),
        **STRANGE["tensors"],
        "plain": [None, True, 1, -0.5, float("nan"), "a", (1, {"b": torch.tensor([True])})],
    }
    write_sealed(tmp_path / "s.pt", content)
    found = unsealed(tmp_path / "s.pt", read_torch(tmp_path / "s.pt"))
    assert list(found) == list(content)
    assert torch.equal(found["turned"], content["turned"])
    torch.save({**found, "seal": ""}, tmp_path / "s.pt")
    with pytest.raises(InputError, match=r"s\.pt: damaged; delete it and run again"):
        unsealed(tmp_path / "s.pt", read_torch(tmp_path / "s.pt"))
