"""Corrections of the served page: nothing is lost, and two windows cannot overwrite each other."""

import threading

import pytest

from actionspan.dataset.formats.registry import read_annotation_file
from actionspan.errors import InputError
from actionspan.review.corrections import Conflict, Corrections

STATE = {"segments": [{"id": 1, "start": 1, "end": 2}], "done": False}
DONE = {**STATE, "done": True}
ROWS = [["a", "1.000", "2.000", "=wave", "added"]]


@pytest.fixture
def opened(tmp_path):
    def opened():
        return Corrections(tmp_path / "kept", ["a", "b c"], tmp_path / "corrections.csv")

    return opened


def test_what_is_saved_is_there_after_a_kill(opened):
    corrections = opened()
    assert corrections.save("a", 0, STATE, ROWS) == 1
    assert corrections.save("b c", 0, DONE, []) == 1
    again = opened()  # nothing was closed
    assert again.all() == corrections.all()
    assert again.all()["a"]["state"] == STATE


def test_the_second_of_two_windows_is_told_what_the_first_wrote(opened):
    corrections = opened()
    corrections.save("a", 0, STATE, ROWS)
    with pytest.raises(Conflict) as raised:
        corrections.save("a", 0, None, [])
    assert raised.value.kept["state"] == STATE
    assert opened().all()["a"]["state"] == STATE


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
    assert (tmp_path / "corrections.csv").read_text() == "video,start,end,label,status\n"
    corrections.save("b c", 0, DONE, [["b c", "", "", "", "none"]])
    corrections.save("a", 1, DONE, ROWS)
    reading = read_annotation_file(tmp_path / "corrections.csv", strict=True)
    found = {one.video_id: [raw.label for raw in one.instances] for one in reading.records}
    assert found == {"a": ["=wave"], "b c": []}
    assert corrections.done() == ["a", "b c"]
    corrections.save("a", 2, STATE, ROWS)  # not done after all
    assert "wave" not in (tmp_path / "corrections.csv").read_text()


def test_a_kill_before_the_table_is_written_is_made_good(opened, tmp_path):
    opened().save("a", 0, DONE, ROWS)
    (tmp_path / "corrections.csv").write_text("old")
    opened()
    assert "wave" in (tmp_path / "corrections.csv").read_text()


@pytest.mark.parametrize(
    "rows", [None, [["a"]], [["b c", "1", "2", "", "added"]], [["a", 1.0, 2.0, "", "added"]]]
)
def test_rows_that_are_not_the_videos_are_refused(opened, rows):
    with pytest.raises(ValueError, match="row"):
        opened().save("a", 0, STATE, rows)
    assert opened().all() == {}


def test_a_state_that_is_none_is_refused_before_anything_is_written(opened, tmp_path):
    with pytest.raises(ValueError, match="state"):
        opened().save("a", 0, ["done"], [])
    assert not (tmp_path / "kept").exists()


def test_a_damaged_file_is_a_line_that_names_it(opened, tmp_path):
    opened().save("a", 0, STATE, ROWS)
    (tmp_path / "kept/a.json").write_text('{"version": 1}')
    with pytest.raises(InputError, match=r"kept/a\.json: not what"):
        opened()
