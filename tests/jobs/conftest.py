"""The sources that jobs worked on."""

import pytest


@pytest.fixture
def called(tmp_path, monkeypatch):
    """Return a function that says which sources were worked on since it was last asked."""
    monkeypatch.setenv("CALLS", str(tmp_path / "calls.txt"))

    def take() -> list[int]:
        calls = tmp_path / "calls.txt"
        text = calls.read_text() if calls.exists() else ""
        calls.unlink(missing_ok=True)
        return [int(line) for line in text.splitlines()]

    return take
