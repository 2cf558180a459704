r"""A newcomer's first visit, on five kinds of footage: minutes, words, keys, and events right.

    python benchmarks/newcomer.py --data DATA --work build/newcomer
    python benchmarks/newcomer.py --kinds FOLDER FOLDER ... --zone FOLDER --subject FOLDER

Each kind is a folder of videos with `annotations.json`, `.csv` or any other format that is read;
`--data` makes five (newcomer_kinds.py). The script builds the wheel and installs it in an
environment of its own, unless it is `--installed`. Then, for each kind, it runs `actionspan review`
on a copy of the videos and acts in Chromium as a person who knows the annotations of `--correct`
videos:

1. reads the first page, draws a zone (`--zone`), and sets a key for each label, with a subject
   (`--subject`);
2. plays each of these videos as fast as its median event lasts 2 s of a clock, holds the keys of
   labels with a reaction time of 0.5 s, draws the last event by mouse, and ticks *Done*;
3. opens the list of the model that has learned, cuts clips, and makes a time budget.

It prints a row for each kind. Events of `events.csv` are judged by `evaluation.reader` on the
videos that nobody corrected, before and after: found by lists as long as the truth at a tIoU of
0.5, and videos with a right first event. Equal parts have the better figure of as many parts as
events, and as many as listed. Nobody watches: a person's minutes of thought come on top. Needs
playwright and Chromium (`make outside`), and uv to install.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from actionspan.annotations.tables import Instance
from newcomer_kinds import Kind, judge, judge_parts, make_kinds, read_kind, read_list

ROOT = Path(__file__).parents[1]
PATIENCE = 1_800_000  # milliseconds
REACTION = 0.5  # seconds from an edge to the press
COMFORT = 2.0  # seconds of a clock that the median event should last
SPEEDS = (0.25, 0.5, 1, 2, 4, 8)  # of the page
NORMAL = SPEEDS.index(1)
ZONE = (0.04, 0.04), (0.96, 0.96)  # shares of the frame: all but its rim
QUIET = 3.0  # seconds without work: the lists are complete
HEAD = (
    "| kind | judged: videos, events | minutes | words | commands | keys, clicks "
    "| found: before | after | equal parts | first right: before | after | equal parts "
    "| own model |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
)


class Hands:
    """The hands of a person at the page, which count the keys and the clicks."""

    def __init__(self, tab: Any) -> None:
        self.tab, self.keys, self.clicks = tab, 0, 0

    def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            self.tab.keyboard.press(key)
        self.keys += len(keys)

    def type(self, text: str) -> None:
        """Type a text into the field that has the focus."""
        self.tab.keyboard.type(text)
        self.keys += len(text)

    def click(self, where: str, nth: int = 0) -> None:
        """Click on something of the page."""
        self.tab.locator(where).nth(nth).click()
        self.clicks += 1

    def drag(self, where: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag across something, from one place to another, in shares of its size."""
        place = self.tab.locator(where)
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        (left, top), (right, bottom) = [
            (box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)
        ]
        self.tab.mouse.move(left, top)
        self.tab.mouse.down()
        self.tab.mouse.move(right, bottom, steps=5)
        self.tab.mouse.up()
        self.clicks += 1


def words_of_readme() -> int:
    """Return the words of the README down to the end of the part about a person's own videos."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return len(text.split("## Four doors")[0].split())


@contextmanager
def reviewing(actionspan: Path, folder: Path) -> Iterator[str]:
    """Start the server, and yield its address."""
    with subprocess.Popen(
        [actionspan, "review", folder, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def wait_for_lists(address: str, videos: int) -> None:
    """Wait until all videos have a list, and nothing is being worked on."""
    place, token = address.split("?token=")

    def ask(path: str) -> Any:
        with urlopen(Request(place + path, headers={"Authorization": f"Bearer {token}"})) as answer:
            return json.load(answer)

    since = time.monotonic()
    while time.monotonic() - since < QUIET:
        listed = [each["events"] is not None for each in ask("videos")["videos"]]
        if ask("status")["doing"] or len(listed) < videos or not all(listed):
            since = time.monotonic()
        time.sleep(0.2)


def draw_zone(hands: Hands) -> None:
    """Draw a zone that counts in all videos."""
    hands.click("#open-zones")
    hands.drag("#zone-shapes", *ZONE)
    hands.click("#zone-pattern")
    hands.press("Control+a")
    hands.type("*")
    hands.click("#zone-save")
    hands.tab.wait_for_selector("#zones", state="hidden")


def set_keys(hands: Hands, labels: Sequence[str], subject: str) -> dict[str, str]:
    """Set a key for each label; return them."""
    keys: dict[str, str] = {}
    hands.click("#key-settings summary")
    for label in labels:
        letters = [each for each in label.lower() + "0123456789" if each.isalnum()]
        keys[label] = next(each for each in letters if each not in keys.values())
        hands.click("#add-key")
        for text in (keys[label], label, subject):
            hands.type(text)
            hands.press("Tab")
    hands.tab.wait_for_function("() => document.getElementById('keys-note').textContent")
    note = hands.tab.locator("#keys-note").inner_text()
    assert note == "Saved.", note
    return keys


def hold(hands: Hands, instances: Sequence[Instance], keys: Mapping[str, str], speed: int) -> None:
    """Play a video from its start, and hold the keys of its events while they happen."""
    # 1. the press and the release of each event, late by the reaction time
    late = REACTION * SPEEDS[speed]
    edges = [(each.start + late, "down", keys[each.label]) for each in instances]
    edges += [(each.end + late, "up", keys[each.label]) for each in instances]
    # 2. the speed, then each in its turn
    video = "document.getElementById('video')"
    hands.tab.wait_for_function(f"() => {video}.readyState > 2")
    hands.tab.evaluate("() => document.activeElement.blur()")
    by = speed - SPEEDS.index(hands.tab.evaluate(f"() => {video}.playbackRate"))
    hands.press(*[">" if by > 0 else "<"] * abs(by))
    hands.click("#toggle")
    for at, what, key in sorted(edges, key=lambda edge: (edge[0], edge[1] == "down")):
        hands.tab.wait_for_function(f"at => {video}.ended || {video}.currentTime >= at", arg=at)
        getattr(hands.tab.keyboard, what)(key)
        hands.keys += what == "down"
    hands.tab.wait_for_function(f"() => {video}.ended")


def draw_event(hands: Hands, instance: Instance, seconds: float, subject: str) -> None:
    """Draw an event by mouse, and name it."""
    hands.click("#draw")
    hands.drag(".own-lane .window", (instance.start / seconds, 0.5), (instance.end / seconds, 0.5))
    for field, text in (("#segment-label", instance.label), ("#segment-subject", subject)):
        if text:
            hands.click(field)
            hands.press("Control+a")
            hands.type(text)
            hands.press("Enter")
    hands.click("#draw")


def correct(hands: Hands, kind: Kind, names: Sequence[str], subject: str) -> None:
    """Correct videos, all but the last event of each by held keys."""
    labels = sorted({each.label for name in names for each in kind.truth[name]})
    keys = set_keys(hands, labels, subject)
    lengths = [each.end - each.start for name in names for each in kind.truth[name]]
    fastest = [place for place, x in enumerate(SPEEDS) if np.median(lengths) / x >= COMFORT]
    speed = max(fastest, default=0)
    for name in names:
        *held, last = sorted(kind.truth[name], key=lambda each: each.start)
        hands.click(f"#list li button:has-text('{name}')")
        hold(hands, held, keys, speed)
        draw_event(hands, last, kind.seconds[name], subject)
        hands.click("#done")
        hands.tab.wait_for_function(
            "() => document.getElementById('saving').textContent === 'Saved'"
        )


def visit(kind: Kind, folder: Path, actionspan: Path, names: Sequence[str], how: Any) -> list[Any]:
    """Play the newcomer in the page; return words, keys and clicks, and both lists."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    events = folder.with_name("my_videos-review") / "events.csv"
    with reviewing(actionspan, folder) as address, sync_playwright() as playwright:
        # 1. read the first page
        assert re.match(r"http://127\.0\.0\.1:\d+/\?token=", address), address
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1440, "height": 1000})
        tab.set_default_timeout(PATIENCE)
        tab.goto(address)
        tab.wait_for_selector("#list li", state="attached")
        words = words_of_readme() + len(tab.locator("body").inner_text().split())
        # 2. draw a zone, and wait for all lists
        hands = Hands(tab)
        if kind.name in how.zone:
            draw_zone(hands)
        wait_for_lists(address, len(kind.videos))
        if tab.locator("#list li").count() < len(kind.videos) or kind.name in how.zone:
            tab.wait_for_selector("#show-new:not([hidden])")
            hands.click("#show-new")
            tab.wait_for_selector(f"#list li:nth-child({len(kind.videos)})", state="attached")
        before = read_list(events)
        # 3. correct, and wait for the model
        correct(hands, kind, names, "person 1" if kind.name in how.subject else "")
        done = re.compile(rf"^{len(names)} corrected video|^(Not learned|Stopped)")
        tab.locator("#said").filter(has_text=done).wait_for(state="attached")
        said = tab.locator("#said").inner_text()
        assert said.startswith(f"{len(names)} corrected video"), said
        wait_for_lists(address, len(kind.videos))
        # 4. open the new list
        hands.click("#show-new")
        tab.wait_for_selector("#list li", state="attached")
        browser.close()
    return [words, hands, before, read_list(events), said]


def play(kind: Kind, work: Path, actionspan: Path, how: Any, started: float) -> str:
    """Play the newcomer on one kind of footage; return its row."""
    # 1. the videos, of which the first are corrected, and the page
    folder = work / kind.name / "my_videos"
    folder.mkdir(parents=True)
    for path in kind.videos.values():
        shutil.copy(path, folder)
    names, others = list(kind.videos)[: how.correct], list(kind.videos)[how.correct :]
    words, hands, before, after, said = visit(kind, folder, actionspan, names, how)
    # 2. clips and a time budget, by commands
    found = folder.with_name("my_videos-review")
    for command in (
        ["clips", found / "events.csv", "--videos", folder, "--out", work / kind.name / "clips"],
        ["budget", found / "corrections.csv", "--videos", folder]
        + ["--out", work / kind.name / "budget.csv", "--chart", work / kind.name / "budget.svg"],
    ):
        subprocess.run([actionspan, *command], check=True, capture_output=True)
    minutes = (time.monotonic() - started) / 60
    # 3. the row
    with (found / "corrections.csv").open(encoding="utf-8", newline="") as file:
        kept = sum(row["status"] == "added" for row in csv.DictReader(file))
    there = sum(len(kind.truth[name]) for name in names)
    cut = len(list((work / kind.name / "clips").iterdir()))
    print(f"{kind.name}: {kept} of {there} events kept, {cut} clips. {said}", file=sys.stderr)
    judged = [judge(kind, others, each) for each in (before, after)]
    judged.append(judge_parts(kind, others, after))
    cells = [
        kind.name,
        f"{len(others)}, {sum(len(kind.truth[name]) for name in others)}",
        f"{minutes:.1f}",
        words,
        3 if how.installed else 5,  # two install it; review, clips and budget
        f"{hands.keys}, {hands.clicks}",
        *(each.found for each in judged),
        *(each.first for each in judged),
        "used" if "is used" in said.rpartition("Your model")[2] else "not used",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def install(work: Path) -> Path:
    """Build the wheel and install it in an environment of its own; return its command."""
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    run = [uv, "build", "--quiet", "--wheel", "--out-dir", work, ROOT], [uv, "venv", work / "env"]
    for command in run:
        subprocess.run(command, check=True, capture_output=True)
    (wheel,) = work.glob("*.whl")
    into = [uv, "pip", "install", "--quiet", "--python", work / "env/bin/python", wheel]
    subprocess.run(into, check=True, capture_output=True)
    return work / "env/bin/actionspan"


def main() -> None:
    """Play the newcomer on each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    footage = parser.add_mutually_exclusive_group(required=True)
    footage.add_argument("--kinds", type=Path, nargs="+", help="folders of videos, annotations")
    footage.add_argument("--data", type=Path, help="folder of the data sets, to make five kinds")
    parser.add_argument("--work", type=Path, default=Path("build/newcomer"), help="to write")
    parser.add_argument("--correct", type=int, default=2, help="videos to correct (default: 2)")
    parser.add_argument("--installed", action="store_true", help="use this environment")
    parser.add_argument("--zone", nargs="*", default=["rooms"], help="kinds of a fixed camera")
    parser.add_argument("--subject", nargs="*", default=["figures"], help="kinds with a subject")
    how = parser.parse_args()
    shutil.rmtree(how.work, ignore_errors=True)
    how.work.mkdir(parents=True)
    work = how.work.resolve()
    folders = how.kinds or make_kinds(how.data, work / "kinds")
    kinds = [read_kind(folder) for folder in folders]
    begun = time.monotonic()
    actionspan = Path(sys.executable).with_name("actionspan") if how.installed else install(work)
    spent = time.monotonic() - begun  # each kind's newcomer installs it
    print(HEAD, flush=True)
    for kind in kinds:
        print(play(kind, work, actionspan, how, time.monotonic() - spent), flush=True)


if __name__ == "__main__":
    main()
