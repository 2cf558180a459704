"""Contact sheets: a picture of each event in its place, whatever cannot be decoded."""

import json

import cv2
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.proposals.segments import Row
from actionspan.report import contact_sheet as sheet
from actionspan.report.contact_sheet import write_sheet
from video.numbered import encode, read_number


@pytest.fixture
def captions(monkeypatch):
    """What stands below the pictures, and the pictures, of each sheet that is drawn."""
    drawn = []
    draw = sheet._draw

    def noted(path, title, rows, pictures):
        drawn.append((title, rows, pictures))
        draw(path, title, rows, pictures)

    monkeypatch.setattr(sheet, "_draw", noted)
    return drawn


def events(*spans):
    return [{"segment": [a, b], "score": score} for a, b, score in spans]


def test_the_best_come_first_each_with_its_middle_frame(tmp_path, captions):
    path = encode(tmp_path / "clip.mp4", 100)
    rows = events((1, 3, 0.5), (0, 0.4, 0.9), (3, 3.8, 0.7))
    for suffix in (".jpg", ".png"):
        write_sheet(tmp_path / f"sheet{suffix}", path, rows)
    (title, shown, pictures), again = captions
    assert title == "clip"
    assert [row["score"] for row in shown] == [0.9, 0.7, 0.5]
    assert [read_number(picture) for picture in pictures] == [5, 85, 50]
    image = cv2.imread(str(tmp_path / "sheet.jpg"))
    assert image.shape == (216, 940, 3)  # 300 pixels a picture, gaps of 10
    assert read_number(image[34:184, 10:310]) == 5
    assert read_number(image[34:184, 320:620]) == 85
    assert image[190:206, 10:310].std() > 20, "there is a caption"
    first = (tmp_path / "sheet.jpg").read_bytes()
    write_sheet(tmp_path / "sheet.jpg", path, rows)
    assert (tmp_path / "sheet.jpg").read_bytes() == first


def test_a_caption_says_rank_times_label_and_score():
    row: Row = {"segment": [123, 129], "score": 0.72, "label": "fall"}
    assert sheet._caption(3, row, 99) == "3. 2:03–2:09 fall (0.72)"
    assert sheet._caption(1, {**row, "label": ""}, 99) == "1. 2:03–2:09 (0.72)"
    long = {**row, "label": "falling from a\nhigh ladder"}
    assert sheet._caption(3, long, 30) == "3. 2:03–2:09 falling f… (0.72)"


@pytest.mark.parametrize("count", [0, 1, 60])
def test_there_is_a_sheet_of_any_number_of_events(tmp_path, captions, count):
    path = encode(tmp_path / "clip.mp4", 100)
    rows = events(*((number / 30, number / 30 + 1, 1 - number / 100) for number in range(count)))
    write_sheet(tmp_path / "sheet.jpg", path, rows)
    assert cv2.imread(str(tmp_path / "sheet.jpg")).shape[1] >= 300
    assert len(captions[0][1]) == min(count, 24)


def test_what_cannot_be_decoded_is_grey(tmp_path, captions):
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"no video")
    write_sheet(tmp_path / "sheet.jpg", path, events((0, 1, 0.9)))
    assert captions[0][2] == [None]
    image = cv2.imread(str(tmp_path / "sheet.jpg"))
    np.testing.assert_allclose(image[60, 60], [224, 220, 217], atol=3)


def test_the_command_shows_events_or_the_chapters_of_proposals(tmp_path, captions, capsys):
    path = encode(tmp_path / "clip.mp4", 100)
    rows = events((0, 1, 0.9), (0.1, 1, 0.8), (2, 3, 0.7), (3, 4, 0.2))
    for name, results in (
        ("proposals", {"other": [], "clip": rows}),
        ("events", {"clip": rows[2:]}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": results}))
    words = ["report", "contact-sheet", f"--proposals={tmp_path / 'proposals.json'}"]
    words.append(f"--out={tmp_path / 'sheets/clip.jpg'}")
    assert main([*words, f"--video={path}", "--events"]) == 0  # as the workflow has it without any
    assert main([*words, f"--video={path}", "--events", str(tmp_path / "events.json")]) == 0
    scores = [[row["score"] for row in shown] for _, shown, _ in captions]
    assert scores == [[0.9, 0.7], [0.7, 0.2]]
    assert (tmp_path / "sheets/clip.jpg").is_file()
    assert main([*words, f"--video={tmp_path / 'gone.mp4'}"]) == 2
    assert "gone.mp4: no such file" in capsys.readouterr().err
