"""The restricted unpickler: arrays of numbers pass, everything else is one line."""

import _codecs
import os
import pickle
import struct
import tracemalloc

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy._core.multiarray import _reconstruct, scalar
from numpy._core.numeric import _frombuffer  # type: ignore[attr-defined]

from actionspan.errors import InputError, printable
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
    with pytest.raises(InputError, match=r"x\.pkl: not a pickle of numeric arrays alone: it asks"):
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
    with pytest.raises(InputError, match="holds object arrays"):
        load_arrays(path)
    path.write_bytes(pickle.dumps(np.zeros(100))[:-30])
    with pytest.raises(InputError, match=r"x\.pkl"):
        load_arrays(path)
    with pytest.raises(InputError, match="no such file"):
        load_arrays(tmp_path / "y.pkl")


class Call:
    """What a pickle calls, and the state that it then sets."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


ADDRESS = struct.pack("<Q", 0x4141414141414141)
FORGED = Call(np.dtype, "O8", False, True, state=(3, "|", None, None, None, 8, 8, 0))
FORGED_NUMBERS = Call(np.dtype, "f8", False, True, state=(3, "|", None, None, ("x",), 8, 8, 0))
RECORDS = Call(np.dtype, "V8", False, True)
NUMBERS = np.dtype("<f8")


def array_state(shape, dtype, data):
    return Call(_reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, data))


HOSTILE = {
    "address as scalar": Call(scalar, FORGED, ADDRESS),
    "address in an array": array_state((1,), FORGED, ADDRESS),
    "address in a buffer": Call(_frombuffer, bytearray(ADDRESS), FORGED, (1,), "C"),
    "list as objects": array_state((1,), FORGED, [1]),
    "forged fields": Call(scalar, FORGED_NUMBERS, ADDRESS),
    "records": Call(scalar, RECORDS, ADDRESS),
    "text dtype": Call(scalar, Call(np.dtype, "T16", False, True), bytes(16)),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "objects": np.array([{}, None], dtype=object),
    "texts": np.array(["a"]),
    "memory of others": Call(np.ndarray, (2**29,)),
    "array without bytes": Call(_reconstruct, np.ndarray, (2**29,), b"b"),
    "too few bytes": array_state((2**40,), NUMBERS, bytes(8)),
    "too many bytes": array_state((1,), NUMBERS, bytes(16)),
    "negative shape": array_state((-1, -1), NUMBERS, bytes(8)),
    "shape of floats": array_state((1.0,), NUMBERS, bytes(8)),
    "set": {1, 2},
    "complex": 1j,
    "dtype alone": NUMBERS,
    "keys that meet": {(2**61 - 1) * k: 0 for k in range(3)},
    "state of a list": Call(_codecs.encode, "text", "latin1", state={"a": 1}),
}


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_array_of_numbers_is_refused_in_one_line(tmp_path, name, protocol):
    refused_in_one_line(tmp_path, pickle.dumps(HOSTILE[name], protocol))


def refused_in_one_line(tmp_path, content):
    path = tmp_path / "x.pkl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_arrays(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert_one_line(str(caught.value))


def assert_one_line(message):
    assert len(message) < 500
    assert message == printable(message)


def shared(width, depth):
    content = []
    for _ in range(depth):
        content = [content] * width
    return pickle.dumps(content)


ENCODED = b"(" + b"h\x01h\x02h\x03\x86R" * 100 + b"l."  # the same text 100 times
BOUNDLESS = {
    "a list in itself": b"]q\x00h\x00a.",
    "a dictionary in itself": b"}q\x00X\x01\x00\x00\x00ah\x00s.",
    "2^40 visits": shared(2, 40),
    "8^16 visits": shared(8, 16),
    "an array a thousand times": pickle.dumps([np.zeros(10_000)] * 1000)[:-1] + b".",
    "deep lists": b"\x80\x04" + b"]" * 50_000 + b"a" * 49_999 + b".",
    "deep tuples": b"\x80\x04)" + b"\x85" * 50_000 + b".",
    "a long text": b"\x80\x04\x8d" + struct.pack("<Q", 2**40) + b"a.",
    "long bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"a.",
    "a long array of bytes": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"a.",
    "a long frame": b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"N.",
    "a long number": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\x01.",
    "control characters": b"\x80\x02cos\x1b[31m\rx\nsystem\n.",
    "a persistent id": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "an extension": b"\x80\x02\x82\x01.",
    "an instance": b"(inumpy\ndtype\n.",
    "a text encoded often": (
        b"\x80\x02c_codecs\nencode\nq\x01X\xe8\x03\x00\x00" + b"a" * 1000 + b"q\x02"
        b"X\x06\x00\x00\x00latin1q\x03" + ENCODED
    ),
}


@pytest.mark.parametrize("name", BOUNDLESS)
def test_what_has_no_bounds_is_refused_with_little_memory(tmp_path, name):
    content = BOUNDLESS[name]
    tracemalloc.start()
    try:
        refused_in_one_line(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(content) + 1_000_000
    finally:
        tracemalloc.stop()


def test_an_entry_with_a_large_number_takes_no_memory_for_those_before(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(b"]r\xff\xff\xff\x7f.")
    assert load_arrays(path) == []


@pytest.mark.parametrize("core", ["core", "_core"])
def test_files_of_both_numpys_and_of_python_2_load(tmp_path, core):
    # as numpy 1 on Python 2 wrote np.arange(2, dtype=">i2") by protocol 2
    state = b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02i2K\x00K\x01\x87R(K\x03U\x01>NNNK\x00K\x00"
    head = f"\x80\x02cnumpy.{core}.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    path = tmp_path / "x.pkl"
    path.write_bytes(head.encode("latin1") + state + b"K\x00tb\x89U\x04\x00\x00\x00\x01tb.")
    loaded = load_arrays(path)
    assert loaded.dtype == np.dtype(">i2")
    assert loaded.tolist() == [0, 1]


@given(data=st.data())
@hypothesis.settings(max_examples=150)
def test_damaged_pickles_load_as_plain_values_or_are_one_line(tmp_path_factory, data):
    whole = pickle.dumps(
        {"a": np.arange(6.0).reshape(2, 3), "b": [1, 2.5]}, data.draw(st.integers(0, 5))
    )
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.pkl"
    path.write_bytes(damaged)
    try:
        content = load_arrays(path)
    except InputError as error:
        content = str(error)
        assert_one_line(content)
    assert_plain(content)


def assert_plain(content):
    if isinstance(content, dict | list | tuple):
        for item in content.values() if isinstance(content, dict) else content:
            assert_plain(item)
    elif isinstance(content, np.ndarray | np.generic):
        assert content.dtype.kind in "biuf"
    else:
        assert content is None or isinstance(content, str | bytes | int | float)
