"""States: what is written is read, bit for bit, and only for the stream it was made of."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.live.progress import STATE_FILE, Place, Progress, read_state, write_state
from storage.changed import changed_leaves

STATE = Progress(
    made_of="abc",
    ended=False,
    snippets=7,
    seconds=1.25,
    done=6,
    dropped=1,
    began=1e9,
    unanswered=deque([Place(5, 1.0, 0.0), Place(6, 1.25, 0.0)]),
    written={"events.jsonl": "10 abc"},
    proposer={
        "window": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
        "count": np.int64(3),
        "text": "a",
        "deep": [{"tensor": torch.arange(3)}, (1, None, 0.1)],
        "empty": np.zeros((0, 4)),
    },
)


def test_a_state_is_read_as_it_was_written(tmp_path):
    write_state(tmp_path, STATE)
    found = read_state(tmp_path, "abc")
    assert [place[:2] for place in found.unanswered] == [(5, 1.0), (6, 1.25)]
    other = {"proposer": {}, "unanswered": deque()}
    assert replace(found, **other) == replace(STATE, **other)
    for key in ("window", "count", "empty"):
        np.testing.assert_array_equal(found.proposer[key], STATE.proposer[key])
        assert found.proposer[key].dtype == STATE.proposer[key].dtype
        assert found.proposer[key].shape == STATE.proposer[key].shape
    assert found.proposer["text"] == "a"
    assert torch.equal(found.proposer["deep"][0]["tensor"], torch.arange(3))
    assert found.proposer["deep"][1] == (1, None, 0.1)


def test_without_a_state_a_stream_begins(tmp_path):
    assert read_state(tmp_path, "abc") is None


def test_another_streams_state_is_refused(tmp_path):
    write_state(tmp_path, STATE)
    with pytest.raises(InputError, match="of another stream"):
        read_state(tmp_path, "xyz")


@pytest.mark.parametrize("content", [b"", b"no state"])
def test_what_is_no_state_is_one_line(tmp_path, content):
    (tmp_path / STATE_FILE).write_bytes(content)
    with pytest.raises(InputError, match=r"state\.pt"):
        read_state(tmp_path, "abc")
    torch.save({"format": "else"}, tmp_path / STATE_FILE)
    with pytest.raises(InputError, match="not the state of a stream"):
        read_state(tmp_path, "abc")


def line(folder):
    """Return the line that refuses a state; nothing where it is read."""
    try:
        read_state(folder, "abc")
    except InputError as error:
        return str(error)
    return ""


def test_a_damaged_state_is_one_line_whatever_was_changed(tmp_path):
    write_state(tmp_path, STATE)
    path = tmp_path / STATE_FILE
    whole, content = path.read_bytes(), torch.load(path)
    assert line(tmp_path) == ""
    for change, other in changed_leaves(content):
        torch.save(other, path)
        said = line(tmp_path)
        if change.startswith("format: "):
            assert "not the state of a stream" in said, change
        elif change.startswith("made_of: "):
            assert "of another stream" in said, change
        else:
            assert said == f"{path}: damaged; delete it and run again", change
    for size in range(0, len(whole), 211):
        path.write_bytes(whole[:size])
        assert line(tmp_path) == f"{path}: damaged; delete it and run again"
