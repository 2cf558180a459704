"""Bytes of files are checked where they are read, and a full disk is an error of the writer."""

import errno
import os
import re
import struct
import subprocess
from itertools import chain, repeat
from unittest.mock import DEFAULT, Mock

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.features.external import read_features
from actionspan.storage.checksums import (
    CheckedFile,
    Growing,
    append_checksums,
    fingerprint,
    map_checked,
)
from actionspan.storage.writing import append_rows, create_h5, open_h5

ROWS = np.arange(40_000, dtype=np.float32).reshape(100, 400)  # 160 kB, in several blocks


def write(path):
    with create_h5(path, "0") as file:
        file["rows"] = ROWS
        file.create_dataset("names", data=["a", "b"], dtype=h5py.string_dtype())
        group = file.create_group("group")
        append_rows(group, "chunked", np.arange(3000.0))
        group.attrs["text"] = "of the group"
    return path


def read_all(path):
    with open_h5(path) as file:
        group = file["group"]
        values = file["rows"][:].tolist(), file["names"].asstr()[:].tolist()
        return *values, group["chunked"][:].tolist(), group.attrs["text"], file.attrs["digest"]


def flip(path, bit):
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("whole") / "a.h5")
    return path.read_bytes(), read_all(path)


@given(data=st.data())
def test_a_flipped_bit_anywhere_changes_nothing_or_is_one_line(tmp_path_factory, whole, data):
    path = tmp_path_factory.getbasetemp() / "flipped.h5"
    path.write_bytes(whole[0])
    for _ in range(data.draw(st.integers(1, 3))):
        flip(path, data.draw(st.integers(0, 8 * len(whole[0]) - 1)))
    try:
        assert read_all(path) == whole[1]
    except InputError as error:
        assert re.fullmatch(rf"{path}: .*delete it and run again.*", str(error))  # noqa: PT017


@given(data=st.data())
def test_a_file_cut_off_or_with_an_end_of_zeros_is_one_line(tmp_path_factory, whole, data):
    path = tmp_path_factory.getbasetemp() / "cut.h5"
    length = data.draw(st.integers(1, len(whole[0]) - 1))
    path.write_bytes(whole[0][:length])
    os.truncate(path, data.draw(st.sampled_from([length, len(whole[0])])))
    try:
        assert read_all(path) == whole[1]  # it was cut off where its checksums begin
    except InputError as error:
        assert "delete it and run again" in str(error)  # noqa: PT017


def test_a_file_that_h5py_changed_is_read_without_checksums(tmp_path):
    path = write(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file["rows"][0] = -1
        file["more"] = np.zeros(100)
    with open_h5(path) as file:
        assert file["rows"][0, 0] == -1
        assert file["rows"][1, 0] == ROWS[1, 0]


def test_rows_are_checked_when_they_are_read(tmp_path):
    path = write(tmp_path / "a.h5")
    with h5py.File(path) as file:
        offset = file["rows"].id.get_offset()
    flip(path, 8 * (offset + ROWS[:90].nbytes))  # of row 90
    rows = map_checked(path, np.float32, offset, ROWS.shape)
    np.testing.assert_array_equal(rows[:40], ROWS[:40])
    np.testing.assert_array_equal(rows[np.array([3, 1])], ROWS[[3, 1]])
    np.testing.assert_array_equal(rows[2, 5:7], ROWS[2, 5:7])
    assert type(rows[3:5]) is np.ndarray
    for index in (90, -10, slice(88, None), [1, 90], (slice(None), 3), np.arange(100) == 90, ...):
        with pytest.raises(InputError, match=r"a\.h5: damaged: its checksums differ; delete it"):
            rows[index]


def test_the_middle_of_a_row_is_checked_when_its_ends_were(tmp_path):
    path = tmp_path / "a.h5"
    rows = np.zeros((3, 60_000), np.float32)  # a row is four blocks or five
    with create_h5(path, "0") as file:
        file["rows"] = rows
    with h5py.File(path) as file:
        offset = file["rows"].id.get_offset()
    flip(path, 8 * (offset + rows[0].nbytes + rows[0].nbytes // 2))  # in the middle of row 1
    found = map_checked(path, np.float32, offset, rows.shape)
    assert not found[np.array([0, 2])].any()
    with pytest.raises(InputError, match="its checksums differ"):
        found[1]
    for outside in (3, np.array([0, -4])):
        with pytest.raises(IndexError):
            found[outside]


def test_blocks_are_checked_by_their_content(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(256)) * 1000)
    append_checksums(path)
    file = CheckedFile(path)
    assert file.size == 256_000
    assert file.read(255_990, 100) == bytes(range(246, 256))
    buffer = bytearray(b"x" * 20)
    file.read_into(buffer, 255_990)
    assert buffer == bytes(range(246, 256)) + bytes(10)
    assert file.read(300_000, 10) == b""


def test_what_a_file_lacks_is_a_line_that_names_it(tmp_path):
    path, other = write(tmp_path / "grüße.h5"), write(tmp_path / "b.h5")
    for ask in (
        lambda file: file.attrs["none"],
        lambda file: file["none"],
        lambda file: file["group/none"][:],
        lambda file: file["group"].attrs["none"],
    ):
        with (
            pytest.raises(InputError, match=r"grüße\.h5: damaged, or not the kind .* delete it"),
            open_h5(path) as file,
            open_h5(other),
        ):
            ask(file)
    with open_h5(path) as file:
        assert file.filename.endswith("gr\\xfc\\xdfe.h5")


@pytest.mark.parametrize("of_block", [KeyError("x"), OSError("x"), RuntimeError("x")])
def test_errors_that_are_not_of_the_file_pass(tmp_path, of_block):
    path = write(tmp_path / "a.h5")
    with pytest.raises(type(of_block), match="x"), open_h5(path):
        raise of_block


def many_kinds(file):
    for number in range(2):
        group = file.create_group(f"video{number}")
        for _ in range(2):
            append_rows(group, "rgb", np.ones((8, 20, 30), np.uint8))
        group.create_dataset("names", data=["name"] * 50, dtype=h5py.string_dtype())
        rows = file.create_dataset(f"rows{number}", (8, 500), np.float32)
        for row in range(8):
            rows[row] = row
        group.attrs.update({f"key{place}": "x" * 50 for place in range(12)})


def test_the_disk_may_fill_up_at_any_write(tmp_path, monkeypatch):
    path, pwrite, full = tmp_path / "a.h5", Mock(wraps=os.pwrite), OSError(errno.ENOSPC, "full")
    monkeypatch.setattr(os, "pwrite", pwrite)
    with create_h5(path, "0") as file:
        many_kinds(file)
    path.unlink()
    for writes in range(pwrite.call_count):
        pwrite.side_effect = chain(repeat(DEFAULT, writes), repeat(full))
        with (
            pytest.raises(InputError, match=r"a\.h5: the disk is full; make room and run it again"),
            create_h5(path, "0") as file,
        ):
            many_kinds(file)
        assert list(tmp_path.iterdir()) == []


def test_an_hdf5_file_of_the_user_is_not_to_be_deleted(tmp_path):
    path = write(tmp_path / "a.h5")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match=r"a\.h5: not a complete HDF5 file$"):
        read_features(path, "time_first")


def test_checksums_that_claim_another_size_are_damage(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(100_000))
    append_checksums(path)
    data = bytearray(path.read_bytes())
    data[100_000:100_004] = struct.pack("<I", 1)
    path.write_bytes(data)
    with pytest.raises(InputError, match="bytes: damaged: its checksums are not whole"):
        CheckedFile(path)


# ---- fingerprints of whole files ----


def test_a_fingerprint_is_what_another_program_says(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(bytes(range(256)) * 9001)  # more than two blocks
    run = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True)
    assert fingerprint(path) == f"{256 * 9001} {run.stdout.split()[0]}"
    assert fingerprint(tmp_path / "none") is None


@given(pieces=st.lists(st.binary(max_size=40), max_size=8), after=st.binary(max_size=9))
def test_a_growing_file_has_that_of_its_bytes(tmp_path_factory, pieces, after):
    path = tmp_path_factory.getbasetemp() / "growing"
    growing, whole = Growing(), b"".join(pieces)
    for piece in pieces:
        growing.add(piece)
    path.write_bytes(whole)
    assert fingerprint(path) == str(growing)
    path.write_bytes(whole + after)
    assert str(Growing(path, len(whole))) == str(growing)
    assert (fingerprint(path) == str(growing)) == (not after)
    path.write_bytes(whole[: len(whole) // 2])
    assert (str(Growing(path, len(whole))) == str(growing)) == (not whole)
