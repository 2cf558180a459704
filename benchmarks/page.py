"""How fast the page of many videos opens: in Chromium, from the file system.

    python benchmarks/page.py [--videos 1 200 1000] [--repeats 5]

Writes pages of made-up videos, each with 100 proposals, 15 events, 12 pictures and three curves of
600 values, and opens each in a new browser context. Prints a line a page: its size, the time to
write it, and from the start of the navigation the median time until the first video is drawn and
the slowest; then the time from the key for the next video until that is drawn. Needs playwright and
Chromium.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from actionspan.annotations.tables import Instance
from actionspan.proposals.segments import Row, result_rows
from actionspan.report.content import Page, PageVideo
from actionspan.report.page import write_page

PROPOSALS, EVENTS, PICTURES, STEPS = 100, 15, 12, 600
JPEG_BYTES = 3000  # a picture 160 pixels wide
DRAWN = """() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() =>
    resolve([performance.now(), document.querySelectorAll(".segment").length]))))"""


def video(number: int) -> PageVideo:
    """Return a made-up video of 5 minutes."""
    generator = np.random.default_rng(number)
    duration = 300.0

    def rows(count: int) -> list[Row]:
        segments = np.sort(generator.uniform(0, duration, (count, 2)), axis=1)
        scores = np.sort(generator.uniform(size=count))[::-1]
        return [{**row, "label": "action"} for row in result_rows(segments, scores)]

    truth = [row["segment"] for row in rows(5)]
    return PageVideo(
        video_id=f"video {number:04d}",
        file="",
        duration_seconds=duration,
        frames_per_second=25.0,
        subset="validation",
        recall=float(generator.uniform()),
        truth=[Instance(start=s, end=e, label="action") for s, e in truth],
        proposals=rows(PROPOSALS),
        events=rows(EVENTS),
        curves={name: generator.uniform(size=STEPS) for name in ("start", "actionness", "end")},
        thumbnails=[
            (duration * k / PICTURES, generator.bytes(JPEG_BYTES)) for k in range(PICTURES)
        ],
    )


def opened(browser: Browser, path: Path) -> tuple[float, float]:
    """Return the milliseconds until the first video is drawn, and for the next one."""
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    tab = context.new_page()
    tab.goto(path.as_uri(), wait_until="commit")
    tab.wait_for_selector(".segment")
    first, count = tab.evaluate(DRAWN)
    assert count > EVENTS
    start = time.perf_counter()
    tab.keyboard.press("j")
    tab.evaluate(DRAWN)
    following = 1000 * (time.perf_counter() - start)
    context.close()
    return first, following


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, nargs="+", default=[1, 200, 1000])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    print("| videos | MB | written in s | opened in s | slowest | next video in s |")
    print("|---:|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for count in arguments.videos:
            path = Path(name) / f"{count}.html"
            content = Page(title="benchmark", videos=[video(number) for number in range(count)])
            start = time.perf_counter()
            write_page(path, content)
            written = time.perf_counter() - start
            times = [opened(browser, path) for _ in range(arguments.repeats)]
            first, following = zip(*times, strict=True)
            print(
                f"| {count:,} | {path.stat().st_size / 1e6:.1f} | {written:.2f} "
                f"| {statistics.median(first) / 1000:.2f} | {max(first) / 1000:.2f} "
                f"| {statistics.median(following) / 1000:.2f} |",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main()
