r"""The moving picture of README: corrections on the page of `actionspan review`, and what they do.

    make picture

Of rendered videos (`make demo` makes them) all but one are corrected by mouse, as annotated. The
one that is left is shown before, and after a model has learned from the others.
"""

import argparse
import json
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from newcomer import PATIENCE, reviewing

SIZE = 1440, 1000  # of the window
WIDTH = 960  # of the picture


class Recorder:
    """Pictures of a tab, each with how long it is shown."""

    def __init__(self, tab: Any) -> None:
        self._tab = tab
        self.frames: list[tuple[Image.Image, int]] = []

    def take(self, milliseconds: int) -> None:
        """Add what is seen now."""
        picture = Image.open(BytesIO(self._tab.screenshot())).convert("RGB")
        height = picture.height * WIDTH // picture.width
        self.frames.append((picture.resize((WIDTH, height)), milliseconds))

    def save(self, path: Path) -> None:
        """Write all as one moving picture."""
        (first, _), *others = self.frames
        times = [milliseconds for _, milliseconds in self.frames]
        pictures = [picture for picture, _ in others]
        how: dict[str, Any] = {"quality": 45, "method": 6, "loop": 0, "duration": times}
        first.save(path, save_all=True, append_images=pictures, **how)


def open_video(tab: Any, name: str) -> None:
    """Show a video of the list."""
    tab.locator("#list li button", has_text=name).first.click()
    tab.wait_for_timeout(400)


def correct(tab: Any, segments: list[Any], length: float, record: Recorder | None) -> None:
    """Draw segments into the lane of corrections, and tick Done."""
    for each in segments:
        start, end = each["segment"]
        box = tab.locator(".own-lane .window").bounding_box()
        middle = box["y"] + box["height"] / 2
        tab.mouse.move(box["x"] + start / length * box["width"], middle)
        tab.mouse.down()
        tab.mouse.move(box["x"] + end / length * box["width"] - 1, middle, steps=6)
        tab.mouse.up()
        tab.locator("#segment-label").fill(each["label"])
        tab.locator("#segment-label").press("Enter")
        if record:
            record.take(900)
    tab.locator("#done").check()
    if record:
        record.take(900)


def main() -> None:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, default=Path("results/dataset/demo"))
    parser.add_argument("--work", type=Path, default=Path("build/picture"), help="to write")
    parser.add_argument("--videos", type=int, default=9)
    parser.add_argument("--left", type=int, default=6, help="number of the one that is left")
    parser.add_argument("--out", type=Path, default=Path("docs/images/loop.webp"))
    asked = parser.parse_args()
    shutil.rmtree(asked.work, ignore_errors=True)
    folder = asked.work.resolve() / "my_videos"
    folder.mkdir(parents=True)
    database = json.loads((asked.demo / "annotations.json").read_text())["database"]
    several = [name for name in sorted(database) if len(database[name]["annotations"]) > 1]
    chosen = several[: asked.videos]
    for name in chosen:
        shutil.copy(next(asked.demo.glob(f"{name}.*")), folder)
    left = chosen[asked.left]
    others = [name for name in chosen if name != left]
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    actionspan = Path(shutil.which("actionspan") or "actionspan")
    with reviewing(actionspan, folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport=dict(zip(("width", "height"), SIZE, strict=True)))
        tab.set_default_timeout(PATIENCE)
        tab.goto(address)
        tab.wait_for_selector("#list li", state="attached")
        while tab.locator("#list li").count() < len(chosen):
            tab.locator("#show-new").click()
            tab.wait_for_selector("#list li", state="attached")
        record = Recorder(tab)
        open_video(tab, left)
        record.take(2500)
        for place, name in enumerate(others):
            open_video(tab, name)
            entry = database[name]
            correct(tab, entry["annotations"], entry["duration"], None if place else record)
        tab.wait_for_timeout(1000)
        record.take(2000)
        tab.wait_for_selector(f"#said:has-text('{len(others)} corrected video')")
        print(tab.locator("#said").inner_text())
        tab.wait_for_selector("#show-new:not([hidden])")
        tab.locator("#show-new").click()
        tab.wait_for_selector("#list li", state="attached")
        open_video(tab, left)
        record.take(4000)
        browser.close()
    record.save(asked.out)
    print(
        asked.out,
        asked.out.stat().st_size,
        [each["segment"] for each in database[left]["annotations"]],
    )


if __name__ == "__main__":
    main()
