"""torch's files: the same bytes for the same content, one line where there is no room."""

import io
import resource
import signal

import pytest
import torch

from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch, write_torch

CONTENT = {"weights": torch.arange(5000.0), "rows": [{"epoch": 1, "loss": 0.5}], "big": 2**127}


def test_equal_content_gives_equal_bytes_whatever_the_name(tmp_path):
    buffer = io.BytesIO()
    torch.save(CONTENT, buffer)
    for name in ("model.pt", "another name.pt", "folder/.hidden.pt"):
        write_torch(tmp_path / name, CONTENT)
        assert (tmp_path / name).read_bytes() == buffer.getvalue()
    read = read_torch(tmp_path / "model.pt")
    assert torch.equal(read.pop("weights"), CONTENT["weights"])
    assert read == {name: CONTENT[name] for name in ("rows", "big")}


@pytest.mark.parametrize("limit", [0, 500, 5000, 20000])
def test_no_room_is_one_line_and_leaves_what_was_there(tmp_path, limit):
    path = tmp_path / "model.pt"
    path.write_bytes(b"before")
    limits, signals = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        with pytest.raises(InputError, match=r"model\.pt: the file is larger than a file may be"):
            write_torch(path, CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, signals)
    assert path.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


def test_an_error_of_torch_stays_its_own(tmp_path):
    with pytest.raises(Exception, match="pickle"):
        write_torch(tmp_path / "model.pt", {"function": lambda: None})
    assert not list(tmp_path.iterdir())
