"""Arrays in scratch files hold what ordinary ones hold, and leave nothing behind."""

import errno
import os
import tempfile
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import JobError
from actionspan.storage import scratch as module
from actionspan.storage.scratch import ScratchRows, VideoTables, scratch


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Every array lies in a file of this folder."""
    monkeypatch.setattr(module, "_SMALL", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("shape", [(3, 5), (1,), (0, 4), (2, 70_000)])
def test_an_array_begins_with_zeros_and_keeps_what_is_written(files, shape):
    array = scratch(shape, np.float32)
    assert type(array) is np.ndarray  # numpy shuffles others in another way
    assert array.shape == shape
    assert array.dtype == np.float32
    assert not array.any()
    wanted = np.random.default_rng(0).random(shape, dtype=np.float32)
    array[:] = wanted
    np.testing.assert_array_equal(array, wanted)
    assert not list(files.iterdir())


def test_a_large_array_is_no_memory_of_its_own(files):
    def held():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

    before = held()
    array = scratch((1 << 26,), np.uint8)
    array[:] = 1
    assert held() - before < 1 << 14  # kB; the array has four times as many


def test_no_room_is_one_line_that_names_the_folder(files, monkeypatch):
    refuse = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(JobError, match=rf"^{files}: the disk is full.*TMPDIR"):
        scratch((100,), np.int64)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(JobError, match="the disk is full.*TMPDIR"):
        ScratchRows(2).append(np.zeros((1, 2)))


BLOCKS = st.lists(st.lists(st.tuples(st.floats(width=64), st.floats(width=64)), max_size=4))


@given(BLOCKS, st.sampled_from([0, 50, 1 << 20]))
def test_rows_are_those_of_all_blocks_in_their_order(blocks, small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SMALL", small)
        rows = ScratchRows(2)
        for block in blocks:
            rows.append(np.array(block).reshape(-1, 2))
        wanted = np.array([row for block in blocks for row in block]).reshape(-1, 2)
        assert len(rows) == len(wanted)
        np.testing.assert_array_equal(rows.array(), wanted)


@given(
    st.lists(st.tuples(st.text(max_size=1), st.lists(st.tuples(st.floats(0, 1)), max_size=3))),
    st.sampled_from([0, 1 << 20]),
)
def test_tables_of_videos_are_a_dictionary(pairs, small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SMALL", small)
        tables = VideoTables(pairs, 1)
    wanted = dict(pairs)  # the last of a repeated id
    assert list(tables) == list(wanted)
    assert len(tables) == len(wanted)
    for video, rows in wanted.items():
        assert video in tables
        assert tables[video].shape == (len(rows), 1)
        assert tables[video].tolist() == [list(row) for row in rows]
    with pytest.raises(KeyError):
        tables["no such video"]
