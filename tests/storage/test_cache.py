"""The user's cache gives back what was kept, or nothing."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actionspan.storage import cache
from actionspan.storage.cache import read_cached, write_cached
from worlds.limits import files_of_at_most

CONTENT = bytes(range(256)) * 4
drawn = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ACTIONSPAN_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def kept(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@given(content=st.binary(), other=st.binary())
@drawn
def test_what_was_kept_last_under_a_name_is_given_back(folder, content, other):
    write_cached("a", other)
    write_cached("a", content)
    write_cached("b", other)
    assert read_cached("a") == content
    assert read_cached("b") == other
    assert read_cached("c") is None


def test_it_is_in_the_users_folder_of_caches(tmp_path, monkeypatch):
    monkeypatch.delenv("ACTIONSPAN_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    write_cached("a", CONTENT)
    folder = tmp_path / "xdg/actionspan"
    assert kept(folder) == ["a.kept"]
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "a.kept")] == [0o700, 0o600]
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        write_cached("a", CONTENT)
        (tmp_path / "home/.cache/actionspan/a.kept").unlink()
    monkeypatch.setenv("ACTIONSPAN_CACHE", "")  # none
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    write_cached("b", CONTENT)
    assert read_cached("a") is None
    assert kept(folder) == ["a.kept"]


@given(data=st.data())
@drawn
def test_a_damaged_file_is_not_read_and_is_replaced(folder, data):
    write_cached("a", CONTENT)
    whole = (folder / "a.kept").read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    (folder / "a.kept").write_bytes(whole[:place] + data.draw(st.sampled_from([changed, b""])))
    assert read_cached("a") is None
    write_cached("a", CONTENT)
    assert read_cached("a") == CONTENT


def test_a_file_under_another_name_is_not_read(folder):
    write_cached("a", CONTENT)
    (folder / "a.kept").rename(folder / "b.kept")
    assert read_cached("b") is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_what_others_may_write_is_not_read(folder, mode):
    write_cached("a", CONTENT)
    (folder / "a.kept").chmod(mode)
    assert read_cached("a") is None
    (folder / "a.kept").chmod(0o644)
    assert read_cached("a") == CONTENT
    folder.chmod(0o700 | mode)
    assert read_cached("a") is None
    write_cached("b", CONTENT)
    assert kept(folder) == ["a.kept"]


def test_another_users_folder_and_file_are_left_alone(folder, monkeypatch):
    write_cached("a", CONTENT)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        assert read_cached("a") is None
        write_cached("b", CONTENT)
    assert kept(folder) == ["a.kept"]
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(folder / "a.kept", 65534, -1)
    assert read_cached("a") is None


@pytest.mark.parametrize("place", ["/proc/self", "/dev/null", "/dev/null/kept"])
def test_where_nothing_can_be_written_nothing_is_kept(place, monkeypatch):
    monkeypatch.setenv("ACTIONSPAN_CACHE", place)
    write_cached("a", CONTENT)
    assert read_cached("a") is None


def test_what_is_there_is_read_where_nothing_can_be_written(folder, monkeypatch):
    write_cached("a", CONTENT)
    refuse = Mock(side_effect=OSError(errno.EROFS, "Read-only file system"))
    monkeypatch.setattr(os, "utime", refuse)
    assert read_cached("a") == CONTENT
    refuse.assert_called_once()


def test_a_user_without_a_home_has_none(monkeypatch):
    monkeypatch.delenv("ACTIONSPAN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home directory")))
    write_cached("a", CONTENT)
    assert read_cached("a") is None


def test_without_room_the_old_file_stays_and_nothing_else(folder):
    write_cached("a", CONTENT)
    with files_of_at_most(len(CONTENT)):
        write_cached("a", 2 * CONTENT)
    assert read_cached("a") == CONTENT
    assert kept(folder) == ["a.kept"]


def test_what_was_not_used_for_the_longest_time_makes_room(folder, monkeypatch):
    monkeypatch.setattr(cache, "_MOST", 3 * (len(CONTENT) + 32))
    for age, name in enumerate("cba"):
        write_cached(name, CONTENT)
        os.utime(folder / f"{name}.kept", (1000 + age, 1000 + age))
    (folder / "of another").write_bytes(CONTENT)
    os.utime(folder / "of another", (1000, 1000))
    assert read_cached("c") == CONTENT
    write_cached("d", CONTENT)
    assert kept(folder) == ["a.kept", "c.kept", "d.kept", "of another"]


def test_what_is_larger_than_half_of_all_is_not_kept_and_moves_nothing_out(folder, monkeypatch):
    monkeypatch.setattr(cache, "_MOST", 4 * (len(CONTENT) + 32))
    write_cached("a", CONTENT)
    write_cached("b", 5 * CONTENT)
    assert read_cached("b") is None
    assert read_cached("a") == CONTENT


WRITER = """
import sys
from actionspan.storage.cache import read_cached, write_cached
content = sys.argv[1].encode() * 300_000
for _ in range(100):
    write_cached("a", content)
    assert read_cached("a")[:1] in b"xy"
"""


@pytest.mark.full
def test_processes_that_write_at_once_leave_a_whole_file(folder):
    write_cached("a", b"x")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, word]) for word in "xy"]
    while any(writer.poll() is None for writer in writers):
        assert read_cached("a") is not None
    assert [writer.returncode for writer in writers] == [0, 0]
    assert kept(folder) == ["a.kept"]
