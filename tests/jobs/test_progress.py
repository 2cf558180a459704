"""A log gets a line at every tenth, whatever the length; a terminal gets a bar."""

import sys

import pytest

from actionspan.jobs.progress import progress


@pytest.mark.parametrize(
    ("total", "lines"), [(0, 0), (1, 1), (3, 3), (10, 10), (11, 11), (99, 10), (10_000, 10)]
)
def test_a_log_gets_about_ten_lines(capsys, total, lines):
    assert list(progress(range(total), "decoding", total)) == list(range(total))
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) <= 11
    assert len(shown) == pytest.approx(lines, abs=1)
    if total:
        assert shown[-1].startswith(f"decoding: {total}/{total} videos in ")
        assert shown[-1].endswith(" s")


def test_lines_stand_at_the_tenths(capsys):
    list(progress(range(1000), "encoding", 1000, unit="shard"))
    shown = [line.split(" in ")[0] for line in capsys.readouterr().err.splitlines()]
    assert shown == [f"encoding: {count}/1000 shards" for count in range(100, 1001, 100)]


def test_an_item_counts_when_it_is_done(capsys):
    items = progress("ab", "decoding", 2)
    assert next(items) == "a"
    assert capsys.readouterr().err == ""
    assert next(items) == "b"
    assert "1/2" in capsys.readouterr().err


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress(range(5), "decoding", 5)) == list(range(5))
    assert "decoding" in capsys.readouterr().err
