"""The page of the worst videos: which are on it, in which order, and that it is a table."""

import pytest

from actionspan.storage.writing import write_tsv
from worlds.command import actionspan

HEADER = ("video_id", "instances", "proposals", "AR@1", "AR@100", "AUC", "thumos14_AR@50")


@pytest.fixture
def table(tmp_path):
    """25 videos of 1 or 2 instances, not in order, two of them equal."""
    rows = [
        (f"v{number:02d}", 1 + number % 2, 100, 0.0, recall / 100, recall / 2, "")
        for number, recall in enumerate([50, 0, 10, 10, *range(51, 72)])
    ]
    path = tmp_path / "mine.tsv"
    write_tsv(path, HEADER, rows)
    return path


def run(table, *words):
    """Return the page of the table's worst videos."""
    out = table.with_suffix(".md")
    files = ("--videos", table, "--out-markdown", out)
    status = actionspan("evaluation", "worst", *files, "--method", "mtn", *words)
    return out.read_text() if status == 0 else ""


def cells(page):
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip("| ") for cell in row] for row in rows]


def test_the_twenty_with_the_lowest_recall_stand_in_order(table):
    page = run(table)
    header, *rows = cells(page)
    assert header == ["video", "instances", "proposals", "AR@100", "AUC"]
    assert [row[0] for row in rows] == [f"v{n:02d}" for n in (1, 3, 2, 0, *range(4, 20))]
    assert rows[0] == ["v01", "2", "100", "0.00", "0.00"]
    assert rows[3] == ["v00", "1", "100", "50.00", "25.00"]
    assert "The 20 of 25 videos" in page
    assert "nothing is found at any of these tIoU: 1; those with most" in page
    # 13 videos of one instance (even numbers) and 12 of two
    even = 50 + 10 + sum(range(51, 72, 2))
    odd = 0 + 10 + sum(range(52, 72, 2))
    assert f"Of all 37 instances AR@100 is {(even + 2 * odd) / 37:.2f} %" in page
    assert "snakemake" not in page


def test_timelines_are_named_as_targets_and_any_id_stays_in_its_cell(table):
    page = run(table, "--timelines", "results/evaluation/timelines/mtn")
    assert "`snakemake --cores 1 results/evaluation/timelines/mtn/v01.svg`" in page
    assert cells(page)[2][-1] == "`results/evaluation/timelines/mtn/v03.svg`"
    write_tsv(table, HEADER, [("a|b c\td", 1, 0, 0.0, 0.0, 0.0, ""), ("plain", 1, 0, 0, 1, 99, "")])
    page = run(table, "--timelines", "t")
    assert "| a\\|b c\\td | 1 | 0 | 0.00 | 0.00 | `t/a\\|b c\\td.svg` |" in page
    assert "snakemake --cores 1 't/a|b c\\td.svg'" in page


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (HEADER, [("v", 1, 1, 0, "x", 0, "")], "row 2: could not convert string to float: 'x'"),
        (HEADER, [("v", 1, 1, 0, "nan", 0, "")], "row 2: AR@100 is nan"),
        (HEADER, [("v", 1, 1, 0, 56.1, 0, "")], "row 2: AR@100 is 56.1"),
        (HEADER, [("v", 0, 1, 0, 0.5, 0, "")], "row 2: 0 instances"),
        (HEADER[:2], [("v", 1)], "no column 'proposals'; it needs video_id, instances"),
        (HEADER, [], "no video"),
    ],
)
def test_a_bad_table_is_one_line(table, refused, header, rows, message):
    write_tsv(table, header, rows)
    assert run(table) == ""
    assert f"actionspan evaluation: {table}: " in (line := refused(2))
    assert message in line
