"""Chromium, which shows the pages as a person would see them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actionspan.report.content import Page
from actionspan.report.page import write_page
from report.pages import film
from worlds.tables import rows_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

PATIENCE = 180  # seconds: a busy machine is no failure


def need_browser() -> None:
    """Skip a module of tests where there is no browser."""
    reason = "the page is tested by playwright, which is not installed"
    pytest.importorskip("playwright.sync_api", reason=reason)
    if CHROMIUM is None:
        reason = "the page is tested in Chromium, which is not installed: apt install chromium"
        pytest.skip(reason, allow_module_level=True)


def broken_rules(tab) -> list[str]:
    """Return the parts of a page that break a rule of axe."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    return [
        f"{rule['id']}: {node['html']}: {node['failureSummary']}"
        for rule in axe.Axe().run(tab).response["violations"]
        for node in rule["nodes"]
    ]


def drag(tab, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Press the mouse at a place, move it, and release it at another."""
    tab.mouse.move(*start)
    tab.mouse.down()
    tab.mouse.move((start[0] + end[0]) / 2, end[1])
    tab.mouse.move(*end)
    tab.mouse.up()


def saved(tab, path: Path | None = None) -> list[dict[str, str]]:
    """Save the corrections, as a file if there is a path, and return their rows."""
    with tab.expect_download() as download:
        tab.click("#save-corrections")
    assert download.value.suggested_filename == "corrections.csv"
    if path:
        download.value.save_as(path)
    return rows_of(path or Path(download.value.path()))


@pytest.fixture(scope="session")
def film_path(tmp_path_factory) -> Path:
    return film(tmp_path_factory.mktemp("film") / "film.mp4")


@pytest.fixture
def folder(tmp_path, film_path) -> Path:
    """A folder with the film beside the page."""
    shutil.copy(film_path, tmp_path)
    return tmp_path


@contextmanager
def closing_contexts(chromium) -> Iterator[Callable]:
    """Yield a function that makes a window of a width, and close all of them at the end."""
    contexts = []

    def new_context(width: int, height: int = 900, **more: object):
        contexts.append(chromium.new_context(viewport={"width": width, "height": height}, **more))
        contexts[-1].set_default_timeout(PATIENCE * 1000)
        return contexts[-1]

    try:
        yield new_context
    finally:  # of a test that fails too: a server waits for the connections of an open page
        for context in contexts:
            context.close()


@pytest.fixture
def show(chromium, folder) -> Iterator[Callable]:
    """Open a page in the browser; no script may fail and nothing may come from the network."""
    wrong = []

    def told(message) -> None:
        # a file that is not there is what some tests are about
        if message.type in ("error", "warning") and "ERR_FILE_NOT_FOUND" not in message.text:
            wrong.append(message.text)

    def asked(request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            wrong.append(request.url)

    with closing_contexts(chromium) as new_context:

        def show(content: Page, *, width=1400, height=1000, script="", **more: object):
            context = new_context(width, height, **more)
            if script:
                context.add_init_script(script)
            write_page(folder / "index.html", content)
            tab = context.new_page()
            tab.on("console", told)
            tab.on("pageerror", lambda error: wrong.append(str(error)))
            tab.on("request", asked)
            tab.goto((folder / "index.html").as_uri())
            return tab

        yield show
    assert wrong == []
