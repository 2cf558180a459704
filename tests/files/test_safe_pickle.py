"""The restricted unpickler: arrays pass, everything that could run code does not."""

import os
import pickle

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.files.safe_pickle import load_arrays


class Malice:
    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_in_plain_containers_load_under_every_protocol(tmp_path, protocol, rng):
    content = {
        "a": rng.normal(size=(3, 4)).astype(np.float32),
        "b": [np.arange(3), np.asfortranarray(rng.normal(size=(2, 5))), 1.5, "text", None],
        "c": np.float64(2.5),
    }
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    loaded = load_arrays(path)
    np.testing.assert_array_equal(loaded["a"], content["a"])
    np.testing.assert_array_equal(loaded["b"][1], content["b"][1])
    assert loaded["b"][2:] == [1.5, "text", None]
    assert loaded["c"] == 2.5


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_refused_and_not_run(tmp_path, protocol, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps([np.zeros(2), Malice()], protocol=protocol))
    with pytest.raises(InputError, match=r"x\.pkl: not a pickle of numpy arrays alone: it asks"):
        load_arrays(path)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("asked", ["builtins.eval", "numpy.load", "numpy.ndarray.tofile"])
def test_only_the_exact_names_are_known(tmp_path, asked):
    module, _, name = asked.rpartition(".")
    path = tmp_path / "x.pkl"
    path.write_bytes(
        b"\x80\x04\x8c"
        + bytes([len(module)])
        + module.encode()
        + b"\x8c"
        + bytes([len(name)])
        + name.encode()
        + b"\x93."
    )
    with pytest.raises(InputError, match=f"it asks for {asked}"):
        load_arrays(path)


def test_object_arrays_damage_and_absence_are_one_line(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(np.array([{}, None], dtype=object)))
    with pytest.raises(InputError, match="object arrays"):
        load_arrays(path)
    path.write_bytes(pickle.dumps(np.zeros(100))[:-30])
    with pytest.raises(InputError, match=r"x\.pkl"):
        load_arrays(path)
    with pytest.raises(InputError, match="no such file"):
        load_arrays(tmp_path / "y.pkl")
