"""What the page has listed stays in it, marked, until it is proposed again."""

import json

import pytest

from actionspan.errors import InputError
from actionspan.review.lists import Lists
from review.conftest import A, B, C, row


def test_over_three_rounds_events_are_marked_and_lose_the_mark(tmp_path):
    lists = Lists(tmp_path / "listed.json")
    assert lists.follow("v", [A, B, C]) == ([A, B, C], [], None)
    like_b = row(22, 31, 0.9)  # tIoU 8 / 11
    assert lists.follow("v", [like_b]) == ([like_b], [A, C], 3)
    like_a = row(0, 6)  # tIoU 0.6
    assert lists.follow("v", [like_a, C]) == ([like_a, C], [like_b], 1)
    assert lists.follow("v", []) == ([], [like_a, C, like_b], 2)
    assert lists.follow("w", [A]) == ([A], [], None), "another video"


def test_a_new_start_continues_the_lists(tmp_path):
    path = tmp_path / "listed.json"
    lists = Lists(path)
    lists.follow("v", [A, B])
    told = lists.follow("v", [B])
    lists.write()
    again = Lists(path)
    assert again.follow("v", [B]) == told == ([B], [A], 2), "the same model proposes the same"
    assert again.follow("v", [A]) == ([A], [B], 1)


BAD = ["[]", '{"v": 1}', '{"v": {"seen": []}}', '{"v": {"events": [1]}}', '{"v": {"gone": [{}]}}']
BAD += ['{"v": {"events": [{"segment": ["x", 1]}]}}', '{"v": {"events": [{"segment": [1]}]}}']


@pytest.mark.parametrize("content", BAD)
def test_lists_that_are_damaged_are_one_line(tmp_path, content):
    (tmp_path / "listed.json").write_text(content)
    with pytest.raises(InputError, match=r"listed.json: not what `review` keeps of lists"):
        Lists(tmp_path / "listed.json")


def page_of(work):
    """Return the index, and what each video has, of the page that was written."""
    text = work.page.read_text()
    parts = (part.split("</script>")[0] for part in text.split('type="application/json" ')[1:])
    found = {}
    for part in parts:
        name, _, content = part.partition(">")
        found[name.split('"')[1]] = json.loads(content or "null")
    return found


def test_a_round_marks_what_it_no_longer_proposes_in_videos_that_are_not_done(rounds):
    events, start = rounds
    work = start()
    work._look()
    assert [one["gone"] for one in page_of(work)["index-data"]["videos"]] == [0, 0]
    assert page_of(work)["index-data"]["videos"][0]["before"] is None
    work.corrections.save("a", 0, {"segments": [], "done": True}, [])
    events |= {"a": [A], "b": [C]}
    work._seen.clear()  # as if the files had changed
    work._look()
    index = page_of(work)["index-data"]["videos"]
    assert [(one["events"], one["before"], one["gone"]) for one in index] == [(1, 2, 0), (1, 3, 2)]
    gone = [[*one["segment"], "", one["score"]] for one in (A, B)]
    assert page_of(work)["video-1"]["gone"] == gone
    # the tables have what is proposed now
    kept = json.loads((work.folder / "events.json").read_text())["results"]
    assert {name: len(rows) for name, rows in kept.items()} == {"a": 1, "b": 1}
    work._held.close()
    again = start()
    again._look()
    assert page_of(again)["video-1"]["gone"] == gone
    assert page_of(again)["index-data"]["videos"][1]["before"] == 3


def test_the_status_counts_videos_that_are_saved_but_not_done(rounds):
    work = rounds[1]()
    assert work.status()["not_done"] == 0
    work.corrections.save("a", 0, {"segments": [{"id": 1}], "done": False}, [])
    work.corrections.save("b", 0, {"segments": [], "done": True}, [])
    assert work.status()["not_done"] == 1
    work.corrections.save("a", 1, None, [])  # taken back
    assert work.status()["not_done"] == 0
