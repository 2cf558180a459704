"""Evaluations that were changed since are refused in a line, and never break a table or a chart."""

import json

import pytest

from actionspan.errors import InputError
from actionspan.evaluation.summary import read_records, summary_markdown
from actionspan.report.charts import reader_tables, recall_charts, summary_tables
from actionspan.report.figures.curves import curve_rows
from actionspan.storage.writing import write_json
from storage.changed import changes


@pytest.fixture
def records(made):
    """The evaluations of two baselines."""
    names = ("random", "sliding")
    return [json.loads((made / f"evaluation/{name}.json").read_text()) for name in names]


@pytest.mark.parametrize("mtn", [30.0, 29.94, 30.1])
def test_tables_say_where_mtn_is_not_above_bsn(records, mtn):
    both = [
        {**records[0], "method": name, "AUC": auc}
        for name, auc in (("mtn", mtn), ("origin", 30.0), ("random", 99.0))
    ]
    line = f"In the paper mtn is above origin; here it is not: AUC {mtn:.2f} against 30.00."
    texts = summary_markdown(both), summary_tables(both)[0].note
    assert [line in text for text in texts] == [mtn <= 30] * 2
    # below the table: a newcomer knows neither
    assert line not in texts[0].split("|---")[0]
    assert not any(
        "above origin" in text for text in (summary_markdown(both[:1]), summary_markdown(both[1:]))
    )


def test_tables_say_which_models_a_baseline_beats(records):
    three = [
        {**records[0], "method": name, "AUC": auc}
        for name, auc in (("span", 11.4), ("mtn", 61.0), ("sliding", 60.2), ("random", 23.4))
    ]
    line = " span is not above the baseline sliding: AUC 11.40 against 60.20."
    for text in (summary_markdown(three), summary_tables(three)[0].note):
        assert text.count("is not above") == 1
        assert line in text


def test_one_video_has_no_interval_and_a_shared_best_is_not_bold(records):
    shared = {"AR@1": 0.0}
    two = [
        {**records[0], **shared, "method": "span", "AUC": 40.0, "videos": 1},
        {**records[1], **shared, "method": "mtn", "AUC": 30.0, "videos": 1},
    ]
    *_, span, mtn = summary_markdown(two).splitlines()
    cells = [cell.strip() for cell in span.split("|")]
    assert cells[1:3] == ["span", "0.00"], "nobody is best"
    assert "**40.00**" in cells
    assert cells[cells.index("**40.00**") + 1] == "–"
    assert "**30.00**" not in mtn
    assert [len(line.low) for chart in recall_charts(two) for line in chart.series] == [0] * 4
    assert "Interval" not in recall_charts(two)[0].note
    for number, chart in enumerate(recall_charts(records)):
        assert len(chart.series[0].low) == len(chart.x), number
    assert recall_charts(records)[0].series[0].high == records[0]["AR_interval"][1]


@pytest.mark.full
def test_a_changed_evaluation_is_refused_or_read(records, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(records[1]))
    path = tmp_path / "changed.json"
    refused = []
    for change, content in changes(records[0]):
        path.write_text(json.dumps(content))
        try:
            read = read_records([path, other])
            list(curve_rows(read))
            recall_charts(read)
            summary_tables(read)
            summary_markdown(read)
        except InputError as error:
            refused.append((change, str(error)))
    assert len(refused) > 1000
    unnamed = [each for each in refused if not each[1].startswith((f"{path}: ", f"{other}: "))]
    assert not unnamed


def test_of_a_wrong_evaluation_the_key_is_named(records, tmp_path):
    path = tmp_path / "changed.json"
    for changed, named in (
        ({"AR_interval": [[0.1], [0.2]]}, "'AR_interval' holds something else"),
        ({"AUC": "30"}, "'AUC' holds something else"),
        ({"recall": {"x": [0.5]}}, "'recall' holds something else"),
    ):
        path.write_text(json.dumps(records[0] | changed))
        with pytest.raises(InputError, match=f"not an evaluation: {named}; make it again"):
            read_records([path])
    path.write_text(json.dumps({key: records[0][key] for key in records[0] if key != "AN"}))
    with pytest.raises(InputError, match="no 'AN'"):
        read_records([path])


def test_evaluations_at_other_tious_share_no_table(records, tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(json.dumps(records[0]))
    fewer = {
        key: dict(list(records[1][key].items())[1:]) for key in ("recall", "recall@100_interval")
    }
    second.write_text(json.dumps(records[1] | fewer))
    with pytest.raises(InputError, match="second.json: other AN or tIoUs than in"):
        read_records([first, second])


FIRST = {
    "1": {"precision": 0.5, "recall": 0.1},
    "5": {"precision": 0.4, "recall": 0.3, "most": 0.625},
}
OFF = {"start": 0.25, "end": None}
LISTS = {"per_video": 2.5, "precision": 0.5, "recall": None, "repeats": 0.1, "first": FIRST}
LISTS |= {"as_many": 0.4, "end_errors": OFF}
READER = {"method": "mtn", "lists": {"events": LISTS}}


def test_a_changed_record_of_a_reader_is_refused_or_read(tmp_path):
    path = tmp_path / "reader.json"
    write_json(path, READER)
    table = reader_tables([path])[0]
    assert table.rows[0][:3] == ["mtn", "events", "2.5"]
    assert table.note.endswith("the first 5 of each video find 62.5 % at most")
    lines = []
    for _, content in changes(READER):
        path.write_text(json.dumps(content))
        try:
            reader_tables([path])
        except InputError as error:
            lines.append(str(error))
    assert len(lines) > 100
    assert all("not a record of a reader's lists" in line for line in lines)
