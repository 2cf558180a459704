"""Corrections of the served page: nothing is lost, and two windows cannot overwrite each other."""

import json
import threading

import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.errors import InputError, JobError
from actionspan.review.corrections import Conflict, Corrections

STATE = {"segments": [{"id": 1, "start": 1, "end": 2}], "done": False}
DONE = {**STATE, "done": True}
ROWS = [["a", "1.000", "2.000", "=wave", "added"]]
OTHER = [["b c", "1", "2", "", "added"]]


@pytest.fixture
def opened(tmp_path):
    def opened(*videos):
        names = videos or ("a", "b c")
        return Corrections(tmp_path / "kept", names, tmp_path / "corrections.csv")

    return opened


def write(tmp_path, content) -> None:
    (tmp_path / "kept").mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "kept/a.json").write_text(text)


def table(tmp_path) -> str:
    return (tmp_path / "corrections.csv").read_text()


def test_what_is_saved_is_there_after_a_kill_and_no_window_overwrites_another(opened, tmp_path):
    corrections = opened()
    assert corrections.save("a", 0, STATE, ROWS) == 1
    assert corrections.save("b c", 0, DONE, []) == 1
    with pytest.raises(Conflict) as raised:
        corrections.save("a", 0, None, [])
    assert raised.value.kept["state"] == STATE
    corrections.save("a", 1, DONE, ROWS)
    (tmp_path / "corrections.csv").write_text("old")  # the kill came before it was written
    again = opened()  # nothing was closed
    assert again.all() == corrections.all()
    assert again.all()["a"]["state"] == DONE
    assert "wave" in table(tmp_path)


def test_of_many_windows_at_once_one_wins_each_version(opened):
    corrections, won = opened(), []

    def change(number):
        try:
            corrections.save("a", 0, {"segments": [], "done": bool(number)}, [])
            won.append(number)
        except Conflict:
            pass

    threads = [threading.Thread(target=change, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_the_table_holds_the_videos_that_are_done(opened, tmp_path):
    corrections = opened()
    corrections.save("a", 0, STATE, ROWS)
    assert table(tmp_path) == "video,start,end,label,status\n"
    corrections.save("b c", 0, DONE, [["b c", "", "", "", "none"]])
    corrections.save("a", 1, DONE, ROWS)
    reading = read_annotation_file(tmp_path / "corrections.csv", strict=True)
    found = {one.video_id: [raw.label for raw in one.instances] for one in reading.records}
    assert found == {"a": ["=wave"], "b c": []}
    assert corrections.done() == ["a", "b c"]
    corrections.save("a", 2, STATE, ROWS)  # not done after all
    assert "wave" not in table(tmp_path)


def test_a_subject_is_a_column_where_a_row_has_one(opened, tmp_path):
    corrections = opened()
    corrections.save("a", 0, DONE, [[*ROWS[0], "mouse A"]])
    corrections.save("b c", 0, DONE, OTHER)
    lines = ["video,start,end,label,status,subject", "a,1.000,2.000,'=wave,added,mouse A"]
    assert table(tmp_path).splitlines() == [*lines, "b c,1,2,,added,"]
    reading = read_annotation_file(tmp_path / "corrections.csv", strict=True)
    assert reading.form == "corrections"
    found = {one.video_id: [raw.subject for raw in one.instances] for one in reading.records}
    assert found == {"a": ["mouse A"], "b c": [""]}
    write(tmp_path, "no JSON")  # then the rows of the table are kept
    assert opened().all().keys() == {"b c"}
    assert "mouse A" in table(tmp_path)


INF, HALF = float("inf"), "\ud83d"


@pytest.mark.parametrize(
    ("version", "state", "rows", "said"),
    [
        (0.0, STATE, ROWS, "version"),
        (False, STATE, ROWS, "version"),
        (0, ["done"], [], "state"),
        (0, {"x": HALF}, ROWS, "half of a character"),
        (0, {"x": INF}, ROWS, "not finite"),
        (0, STATE, None, "rows: not a list"),
        (0, STATE, [["a"]], "a row: not 5 texts"),
        (0, STATE, [["a", 1.0, 2.0, "", "added"]], "a row: not 5 texts"),
        (0, STATE, OTHER, "a row: not about 'a'"),
        (0, STATE, [["a", "1", "2", HALF, "added"]], "half of a character"),
        (0, STATE, [["a", "1", "2", "a\0b", "added"]], "control character"),
        (0, STATE, [["a", "", "", "a\0b", "rejected"]], "control character"),
        (0, STATE, [["a", "1", "2", "", "added", "a\0b"]], "subject .* control character"),
        (0, STATE, [["a", "", "", "", "rejected", "a\0b"]], "control character"),
        (0, STATE, [["a", "abc", "2", "", "added"]], "'abc' is not a time"),
        (0, STATE, [["a", "inf", "2", "", "added"]], "start"),
        (0, STATE, [["a", "2", "1", "", "moved"]], "start 2 is not before end 1"),
        (0, STATE, [["a", "1", "2", "", "seen"]], "status 'seen'"),
    ],
)
def test_what_could_not_be_read_again_is_refused_before_anything_is_written(
    opened, tmp_path, version, state, rows, said
):
    corrections = opened()
    with pytest.raises(ValueError, match=said):
        corrections.save("a", version, state, rows)
    assert not (tmp_path / "kept").exists()
    assert corrections.save("b c", 0, STATE, []) == 1  # nor are others held up


def test_a_file_that_cannot_be_read_leaves_out_its_video_alone(opened, tmp_path):
    before = opened()
    before.save("a", 0, DONE, ROWS)
    before.save("b c", 0, DONE, OTHER)
    text = table(tmp_path)
    for content in (
        '{"version": 1}',
        '{"version": 1.0, "state": null, "rows": []}',
        '{"version": 1, "state": {"x": Infinity}, "rows": []}',
        '{"version": 1, "state": {"x": "\\ud83d"}, "rows": []}',
        '{"version": 1, "state": {"x": ' + "[" * 900 + "]" * 900 + '}, "rows": []}',
        '{"version": 1, "state": {"done": true}, "rows": [["a", 1, 2, "", "added"]]}',
        "no JSON",
    ):
        write(tmp_path, content)
        corrections = opened()
        assert corrections.done() == ["b c"]
        assert "kept/a.json: " in corrections.remarks()["a"]
        with pytest.raises(InputError, match=r"kept/a\.json"):
            corrections.save("a", 0, STATE, ROWS)
        assert (tmp_path / "kept/a.json").read_text() == content  # not written over
        assert table(tmp_path) == text


def test_a_row_of_before_that_no_annotations_have_is_named_and_the_others_are_learned_from(
    opened, tmp_path
):
    opened().save("b c", 0, DONE, OTHER)
    write(tmp_path, {"version": 1, "state": DONE, "rows": [["a", "1", "2", "a\0b", "added"]]})
    corrections = opened()
    assert corrections.done() == ["b c"]
    assert "control character" in corrections.remarks()["a"]
    read_annotation_file(tmp_path / "corrections.csv", strict=True)
    corrections.save("a", 1, DONE, ROWS)
    assert corrections.done() == ["a", "b c"]
    assert corrections.remarks() == {}


def test_rows_of_a_video_that_is_not_there_stay_in_the_table(opened, tmp_path):
    opened().save("a", 0, DONE, ROWS)
    text = table(tmp_path)
    fewer = opened("b c")
    assert table(tmp_path) == text
    assert fewer.remarks() == {"corrections.csv": "keeps the rows of videos that are not there: a"}
    fewer.save("b c", 0, DONE, [["b c", "", "", "", "none"]])
    assert table(tmp_path) == f"{text}b c,,,,none\n"
    assert set(fewer.all()) == {"b c"}


def test_corrections_belong_to_the_file_that_was_shown(opened, tmp_path):
    corrections = opened()
    corrections.shown_of("a", "7 first")
    corrections.save("a", 0, DONE, ROWS)
    again = opened()
    assert again.done() == ["a"]  # nobody has looked yet
    again.shown_of("a", "7 second")
    assert again.done() == []
    assert "not the file that was corrected" in again.remarks()["a"]
    again.shown_of("a", "7 first")
    assert again.done() == ["a"]
    again.shown_of("a", "7 second")
    again.save("a", 1, DONE, ROWS)
    assert again.done() == ["a"]
    # a file of before does not name that of the video
    old = {"version": 3, "state": DONE, "rows": ROWS}
    write(tmp_path, old)
    corrections = opened()
    corrections.shown_of("a", "7 first")
    assert corrections.done() == ["a"]
    assert corrections.all()["a"] == old


def test_nothing_is_saved_into_a_new_folder_in_the_place_of_the_opened_one(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    corrections = Corrections(folder / "kept", ["a"], folder / "corrections.csv")
    folder.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(JobError, match="out: was moved or deleted"):
            corrections.save("a", 0, STATE, ROWS)
        folder.mkdir(exist_ok=True)
    assert list(folder.iterdir()) == []
    folder.rmdir()
    (tmp_path / "elsewhere").rename(folder)
    assert corrections.save("a", 0, STATE, ROWS) == 1
