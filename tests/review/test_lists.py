"""What the page has listed stays in it, marked, until it is proposed again."""

import json

import pytest

from actionspan.errors import InputError
from actionspan.review.lists import Lists
from review.conftest import A, B, C, row, save


def test_over_three_rounds_events_are_marked_and_lose_the_mark(tmp_path):
    lists = Lists(tmp_path / "listed.json")
    assert lists.follow("v", [A, B, C]) == ([A, B, C], [], None)
    like_b = row(22, 31, 0.9)  # tIoU 8 / 11
    assert lists.follow("v", [like_b]) == ([like_b], [A, C], 3)
    like_a = row(0, 6)  # tIoU 0.6
    assert lists.follow("v", [like_a, C]) == ([like_a, C], [like_b], 1)
    assert lists.follow("v", []) == ([], [like_a, C, like_b], 2)
    assert lists.follow("w", [A]) == ([A], [], None), "another video"


def test_lists_that_are_damaged_are_one_line(tmp_path):
    rows = ('{"seen": []}', '{"events": [1]}', '{"gone": [{}]}')
    rows += ('{"events": [{"segment": ["x", 1]}]}', '{"events": [{"segment": [1]}]}')
    for content in ("[]", '{"v": 1}', *(f'{{"v": {each}}}' for each in rows)):
        (tmp_path / "listed.json").write_text(content)
        with pytest.raises(InputError, match=r"listed.json: not what `review` keeps of lists"):
            Lists(tmp_path / "listed.json")


def page_of(work):
    """Return the content of each script element of the page by its id."""
    parts = work.page.read_text().split('type="application/json" id="')[1:]
    found = (part.split("</script>")[0].partition('">') for part in parts)
    return {name: json.loads(content or "null") for name, _, content in found}


def test_a_round_marks_what_it_no_longer_proposes_in_videos_that_are_not_done(start):
    events = {"a": [A, B], "b": [A, B, C]}
    work = start(events)
    work._look()
    listed = page_of(work)["index-data"]["videos"]
    assert [(one["before"], one["gone"]) for one in listed] == [(None, 0)] * 2
    save(work, "a", rows=[])
    events |= {"a": [A], "b": [C]}
    work._seen.clear()  # as if the files had changed
    work._look()
    listed = page_of(work)["index-data"]["videos"]
    assert [(one["events"], one["before"], one["gone"]) for one in listed] == [(1, 2, 0), (1, 3, 2)]
    gone = [[*one["segment"], "", one["score"]] for one in (A, B)]
    assert page_of(work)["video-1"]["gone"] == gone
    # the tables have what is proposed now
    kept = json.loads((work.folder / "events.json").read_text())["results"]
    assert {name: len(rows) for name, rows in kept.items()} == {"a": 1, "b": 1}
    work._held.close()
    again = start(events)
    again._look()
    assert page_of(again)["video-1"]["gone"] == gone
    assert page_of(again)["index-data"]["videos"][1]["before"] == 3


def test_the_status_counts_videos_that_are_saved_but_not_done(start):
    work = start({"a": (), "b": ()})
    assert work.status()["not_done"] == 0
    save(work, "a", state={"segments": [{"id": 1}], "done": False}, rows=[])
    save(work, "b", rows=[])
    assert work.status()["not_done"] == 1
    work.corrections.save("a", 1, None, [])  # taken back
    assert work.status()["not_done"] == 0
