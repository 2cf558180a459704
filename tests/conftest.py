"""Fixtures that tests of several stages share, and the two tiers of the tests."""

import json
import multiprocessing
import multiprocessing.spawn
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from worlds.warm import warm_python

if TYPE_CHECKING:
    import numpy as np

# Before NumPy is imported: BLAS spins on as many threads as there are cores, which other processes
# of the tests need. An `eigh` of 1280 features takes 0.4 CPU s on one thread, and 3 on two.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# A busy machine is no failure; a failing example can be repeated from what is printed. `make test`
# tries a property on fewer examples, to stay short.
settings.register_profile("actionspan", deadline=None, print_blob=True)
settings.register_profile("first tier", settings.get_profile("actionspan"), max_examples=25)
settings.load_profile("actionspan")

TESTS = Path(__file__).parent
SHARED_DATA = TESTS.parents[1] / "shared" / "data"

# What only `make test-all` runs. `make test` does not even import it.
SECOND_TIER = (
    "benchmarks",
    "find/test_command.py",
    "live/test_rtsp.py",
    "mpi/test_network_testbed.py",
    "papers",
    "workflow/test_without_papers.py",
    "report/test_browser.py",
    "report/test_firefox.py",
    "report/test_round.py",
    "slurm",
    "test_installed.py",
    "test_wheel.py",
    *(
        f"runs/test_{name}.py"
        for name in (
            *("analysis", "catalogue", "engines", "finetune", "folds", "growing", "hostile"),
            *("kills", "large_cluster", "loop", "module", "papers_aavg", "papers_examples"),
            "papers_partime",
            *("profiles", "recognition", "report", "storage", "thumos14"),
        )
    ),
)
# Seconds by file, in `make test` and in all; `make durations` writes them.
DURATIONS = TESTS / "durations.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help=f"write {DURATIONS.name}")


def is_first_tier(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == "not full"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of the second tier where only the first is run."""
    path = collection_path.relative_to(TESTS).as_posix() if collection_path != TESTS else ""
    return True if is_first_tier(config) and path in SECOND_TIER else None


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the second tier, and put the longest files first.

    With them first no core waits long for another at the end. Whole files go to a process
    (`--dist loadfile`), because the tests of the longest files share one MPI job or one run of the
    workflow, which a process that steals half a file (`--dist worksteal`) would run again.
    """
    for item in items:
        path = item.path.relative_to(TESTS)
        if not {path.as_posix(), path.parts[0]}.isdisjoint(SECOND_TIER):
            item.add_marker(pytest.mark.full)
    known = json.loads(DURATIONS.read_text())
    tier = 0 if is_first_tier(config) else 1
    typical = statistics.median(times[tier] for times in known.values())
    seconds = {name: times[tier] for name, times in known.items()}
    items.sort(key=lambda item: -seconds.get(item.path.relative_to(TESTS).as_posix(), typical))


class Durations:
    """Adds the times of tests up, by file and tier."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = Path(report.nodeid.partition("::")[0]).relative_to(TESTS.name).as_posix()
        times = self.seconds.setdefault(name, [0.0, 0.0])
        times[0] += 0 if "full" in report.keywords else report.duration
        times[1] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write one digit of each, so that the next call changes few lines.

        Files that were not run keep their times.
        """
        known = json.loads(DURATIONS.read_text())
        kept = {name: times for name, times in known.items() if (TESTS / name).exists()}
        rounded = {
            name: [float(f"{seconds:.1g}") for seconds in times]
            for name, times in sorted({**kept, **self.seconds}.items())
        }
        lines = [f'  "{name}": {times}' for name, times in rounded.items()]
        DURATIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and all they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_first_tier(config):
        settings.load_profile("first tier")
    if config.getoption("--write-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


@pytest.fixture(scope="session")
def both_tiers(pytestconfig: pytest.Config) -> bool:
    """Whether the second tier is run too: fixtures that run many cases at once leave it out."""
    return not is_first_tier(pytestconfig)


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Let files be written without waiting for the disk; no power is lost in these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory) -> Iterator[None]:
    """Keep compiled networks among the files of the tests, for all their processes at once."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACTIONSPAN_CACHE", str(folder / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def warm(tmp_path_factory) -> Iterator[Path]:
    """A `python` that starts at once; the processes of `multiprocessing` use it."""
    folder, owner = tmp_path_factory.getbasetemp(), os.getpid()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder, owner = folder.parent, os.getppid()
    folder = folder / "warm"
    folder.mkdir(exist_ok=True)
    python = warm_python(folder, owner)
    multiprocessing.set_executable(str(python))
    yield python
    multiprocessing.set_executable(sys.executable)


@pytest.fixture(scope="module")
def cold() -> Iterator[None]:
    """Let `multiprocessing` start new interpreters."""
    before = multiprocessing.spawn.get_executable()
    multiprocessing.set_executable(sys.executable)
    yield
    multiprocessing.set_executable(before)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium without a screen; a process can drive one playwright alone."""
    from report.conftest import CHROMIUM, need_browser

    need_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session", autouse=True)
def _quick_seeds() -> Iterator[None]:
    """Where there is no GPU, keep no stack of each `manual_seed` for one that may come."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        if not torch.accelerator.is_available():
            patch.setattr(torch, "manual_seed", torch.default_generator.manual_seed)
        yield


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Compare bits on one thread, whatever the machine has and an earlier test has set."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real videos, annotations and weights beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real data are not here: {SHARED_DATA} is missing")
    return SHARED_DATA


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """Return the path of a program by name; a test is skipped where it is not installed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return lambda name: shutil.which(name, path=path) or pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def wheel(program, tmp_path_factory) -> Path:
    """The wheel, built of a copy: building writes beside the sources."""
    folder, root = tmp_path_factory.mktemp("wheel"), TESTS.parent
    source = folder / "source"
    source.mkdir()
    built_from = "pyproject.toml setup.py MANIFEST.in README.md LICENSE CITATION.cff"
    for name in (*built_from.split(), "Snakefile", "config.yaml"):
        shutil.copy(root / name, source)
    for name in ("src", "workflow", "envs", "examples"):
        shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("*.egg-info"))
    words = [program("uv"), "build", "--quiet", "--wheel", "--out-dir", folder, source]
    done = subprocess.run(words, capture_output=True, text=True)
    if "Failed to fetch" in done.stderr or "dns error" in done.stderr:
        pytest.skip("building needs setuptools from the package index, which cannot be reached")
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def rng() -> "np.random.Generator":
    import numpy as np

    return np.random.default_rng(7)
