"""Files are whole or absent, digests see every field, and bad files give one line."""

import csv
import errno
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError, printable
from actionspan.storage.process import partial_path
from actionspan.storage.text import safe_cell
from actionspan.storage.writing import (
    atomic_path,
    create_h5,
    digest,
    open_h5,
    read_json,
    read_tsv,
    write_json,
    write_tsv,
)


class Stop(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


def fail_in_text(path: Path) -> None:
    with atomic_path(path) as partial:
        partial.write_text("half")
        raise Stop


def fail_in_h5(path: Path) -> None:
    with create_h5(path, "0") as file:
        file["half"] = 1
        raise Stop


def fail_in_json(path: Path) -> None:
    write_json(path, {"good": 1, "bad": object()})


def fail_in_tsv(path: Path) -> None:
    def rows():
        yield ("a",)
        raise Stop

    write_tsv(path, ("column",), rows())


@pytest.mark.parametrize("fail", [fail_in_text, fail_in_h5, fail_in_json, fail_in_tsv])
def test_a_failing_writer_leaves_nothing_and_keeps_the_old_file(tmp_path, fail):
    path = tmp_path / "folder" / "file.h5"
    for before in ([], [path]):
        if before:
            path.parent.mkdir(exist_ok=True)
            path.write_text("old")
        with pytest.raises((Stop, TypeError)):
            fail(path)
        assert list(path.parent.glob("*")) == before
    assert path.read_text() == "old"


def test_nothing_is_there_before_the_end(tmp_path):
    path = tmp_path / "picture.svg"
    with atomic_path(path) as partial:
        partial.write_text("new")
        assert not path.exists()
        assert (partial.suffix, partial.parent) == (".svg", tmp_path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_overwritten(tmp_path):
    path = tmp_path / "file.json"
    partial_path(path).write_text("half of an earlier one, longer than the new one")
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name", ["x" * 255, "x" * 252 + ".h5", "é" * 126 + ".h5", "x." + "y" * 253]
)
def test_names_up_to_the_limit_can_be_written(tmp_path, name):
    with atomic_path(tmp_path / name) as partial:
        partial.write_text("text")
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_no_two_processes_write_one_file(tmp_path):
    code = "import pathlib, sys; from actionspan.storage.process import partial_path\n"
    code += "print(partial_path(pathlib.Path(sys.argv[1])).name)"
    words = [sys.executable, "-c", code, str(tmp_path / "a.h5")]
    other = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    own = partial_path(tmp_path / "a.h5").name
    assert own != other
    assert own == partial_path(tmp_path / "a.h5").name
    assert {Path(own).suffix, Path(other).suffix} == {".h5"}


def test_what_ended_processes_left_is_removed_and_no_more(tmp_path):
    path = tmp_path / "a.h5"
    own = partial_path(path).name
    code = "import os; print(os.getpid(), end='')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    pid, host = str(os.getpid()), own.split(".")[2]
    dead = own.replace(f".{pid}.", f".{ended}.")
    runs = own.replace(f".{pid}.", f".{os.getppid()}.")
    foreign, old = (own.replace(host, other) for other in ("01234567", "abcdef01"))
    another = partial_path(tmp_path / "b.h5").name.replace(f".{pid}.", f".{ended}.")
    for name in (dead, runs, foreign, old, another):
        (tmp_path / name).write_text("half")
    os.utime(tmp_path / old, (0, 0))
    with atomic_path(path) as partial:
        partial.write_text("whole")
    assert {each.name for each in tmp_path.iterdir()} == {"a.h5", runs, foreign, another}


def test_a_killed_process_has_ended_though_its_parent_has_not_asked(tmp_path):
    path = tmp_path / "a.h5"
    own = partial_path(path).name
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        left = path.with_name(own.replace(f".{os.getpid()}.", f".{child.pid}."))
        left.write_text("half")
        with atomic_path(path) as partial:
            partial.write_text("whole")
        assert not left.exists()


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.json", []

    def fsync(descriptor):
        seen.append((os.path.realpath(f"/proc/self/fd/{descriptor}"), path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_json(path, {"a": 1})
    assert seen == [(str(partial_path(path)), False), (str(tmp_path), True)]


def test_an_error_of_the_disk_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error") as caught:
        write_json(tmp_path / "a.json", {"a": 1})
    assert caught.value.filename
    assert list(tmp_path.iterdir()) == []


def test_h5_files_name_the_version_and_the_digest(tmp_path):
    with create_h5(tmp_path / "a.h5", "0123456789abcdef") as file:
        file["values"] = [1, 2]
    with open_h5(tmp_path / "a.h5") as file:
        assert file.attrs["digest"] == "0123456789abcdef"
        assert file.attrs["actionspan_version"]
        assert list(file["values"][:]) == [1, 2]


@dataclass(frozen=True)
class Inner:
    count: int = 1
    path: Path = Path("a")


@dataclass(frozen=True)
class Outer:
    number: float = 0.5
    name: str = "x"
    on: bool = False
    none: str | None = None
    inner: Inner = Inner()


def test_a_digest_changes_with_any_field():
    changed = [Outer(), Outer(number=0.25), Outer(name="y"), Outer(on=True), Outer(none="")]
    changed += [Outer(inner=Inner(count=2)), Outer(inner=Inner(path=Path("b")))]
    digests = [digest(settings) for settings in changed]
    assert len(set(digests)) == len(digests)
    assert digests[0] == digest(Outer())
    assert all(len(text) == 16 and int(text, 16) >= 0 for text in digests)


def test_a_digest_sees_how_many_parts_there_are_and_their_order():
    parts = [(), ("a",), ("a", "b"), ("b", "a"), ("ab",), (["a", "b"],), (1,), ("1",), (1.5,)]
    assert len({digest(*one) for one in parts}) == len(parts)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.dictionaries(st.text(), json_values, max_size=4))
def test_json_comes_back_to_the_bit(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "content.json"
    write_json(path, content)
    assert read_json(path) == content


def test_a_byte_order_mark_is_no_part_of_json(tmp_path):
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "a.json") == {"a": 1}


def test_tables_come_back(tmp_path):
    rows = [("a\tb", 'quo"te', "line\nbreak"), ("", "ünïcode", 1.5)]
    write_tsv(tmp_path / "a.tsv", ("x", "y", "z"), rows)
    read = [tuple(row.values()) for row in read_tsv(tmp_path / "a.tsv")]
    assert read == [tuple(map(str, row)) for row in rows]


cells = st.text(max_size=8) | st.builds(
    str.__add__,
    st.sampled_from(["=", "+", "-", "@", "\t", "\r", "'", "''=", "-1", "=1+1"]),
    st.text(),
)


@given(row=st.lists(cells.filter(lambda text: "\0" not in text), min_size=1, max_size=4))
def test_no_cell_is_a_formula_and_all_come_back(tmp_path_factory, row):
    path = tmp_path_factory.getbasetemp() / "cells.tsv"
    columns = [str(number) for number in range(len(row))]
    write_tsv(path, columns, [row])
    with path.open(newline="", encoding="utf-8") as file:
        written = list(csv.reader(file, delimiter="\t"))[1]
    for cell in written:
        if cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
            float(cell)
    assert [list(each.values()) for each in read_tsv(path)] == [row]


@pytest.mark.parametrize("number", ["-1", "+2.5", "-1e-05", "-inf", "-.5", "3", "nan"])
def test_numbers_stay_as_they_are(number):
    assert safe_cell(number) == number
    assert safe_cell(float(number)) == float(number) or number == "nan"


def read_h5(path: Path) -> None:
    with open_h5(path):
        pass


READERS = {".json": read_json, ".tsv": read_tsv, ".h5": read_h5}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.json", None, "no such file"),
        ("empty.json", b"", "line 1: not JSON"),
        ("half.json", b'{"a": 1,\n"b": ', "line 2: not JSON"),
        ("latin.json", b'{"a": "\xe9"}', "not UTF-8 text (byte 7)"),
        ("deep.json", b"[" * 100_000, "nested"),
        ("folder.json", "folder", "cannot be read"),
        ("missing.tsv", None, "no such file"),
        ("latin.tsv", b"a\tb\n\xe9\t1\n", "not a tab-separated table in UTF-8"),
        ("long.tsv", b"a\n" + b"x" * (csv.field_size_limit() + 1), "not a tab-separated table"),
        ("few.tsv", b"a\tb\n1\t2\n3\n", "row 3: 1 cells, the header has 2"),
        ("many.tsv", b"a\tb\n1\t2\t3\n", "row 2: 3 cells, the header has 2"),
        ("folder.tsv", "folder", "cannot be read"),
        ("missing.h5", None, "no such file"),
        ("empty.h5", b"", "not a complete HDF5 file"),
        ("text.h5", b"not HDF5", "not a complete HDF5 file"),
        ("folder.h5", "folder", "not a complete HDF5 file; if a run made it, delete it and run"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        READERS[path.suffix](path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert message in line
    assert "\n" not in line


def test_printable_text_is_one_line():
    assert printable("a\nb\tc\x1b[0m") == "a\\nb\\tc\\x1b[0m"
    assert printable(b"f\xfcr.mp4".decode(errors="surrogateescape")) == "f\\xfcr.mp4"
    assert printable("größe 視頻") == "größe 視頻"
