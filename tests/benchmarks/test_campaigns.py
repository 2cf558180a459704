"""A small seed of each campaign, and what a campaign does with a case that goes wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from campaigns import cases, children
from campaigns.cases import Result, chance, fault, run_campaign, summary
from campaigns.children import call, command
from campaigns.damage import WAYS, damaged

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and orphans as on Linux")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# First case and number of cases of seed 1. Those of a tuple share a process, and so a tiny run.
# `runs` and `ranks` are minutes a case; runs/test_kills.py and mpi/test_faults.py are theirs.
SMALL = {
    ("config",): (7, 9),
    ("annotations",): (0, 40),
    ("videos",): (14, 5),
    ("features",): (142, 5),
    ("models",): (0, 20),
    ("inputs", "disk", "kills"): (30, 3),
}
SECONDS = 900.0  # of a process, on a busy machine


@pytest.mark.parametrize(("names", "some"), SMALL.items(), ids=lambda value: str(value[0]))
def test_a_small_seed_finds_nothing_wrong(names, some, tmp_path):
    words = [sys.executable, BENCHMARKS / "campaign.py", *names]
    words += ["--first", str(some[0]), "--count", str(some[1]), "--out", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        assert f"{name}: {some[1]} cases of seed 1" in done.stdout
    assert done.stdout.count("; wrong 0 (") == len(names)
    assert not list(tmp_path.iterdir())


def test_each_campaign_finds_what_it_takes_from_the_tests():
    """Those too whose cases take minutes."""
    folders = [str(BENCHMARKS), str(BENCHMARKS.parent / "tests")]
    code = f"import importlib, sys\nsys.path[:0] = {folders}\nimport campaign\n"
    code += "for name in campaign.NAMES:\n"
    code += "    print(importlib.import_module('campaigns.' + name).CAMPAIGN.count)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 10


class Loaded:
    """Every fourth case is wrong."""

    name = "loaded"
    count = 20

    def prepare(self, folder):
        (folder / "shared").write_text("")

    def case(self, random, folder):
        (folder / "dice").write_text(str(random.random()))
        if random.random() < 0.25:
            return Result("broken", "a\nb", wrong=True, faults=1)
        return Result("whole", faults=2)


def test_wrong_cases_are_kept_and_said_and_can_be_repeated_alone(tmp_path, capfd):
    whole = run_campaign(Loaded(), 3, range(20), tmp_path / "kept", jobs=2)
    said = capfd.readouterr().out.splitlines()
    bad = sum(result.wrong for result in whole)
    assert 0 < bad == len(said) == len(list((tmp_path / "kept").iterdir()))
    first = min(int(path.name.rpartition("-")[2]) for path in (tmp_path / "kept").iterdir())
    assert f"loaded: seed 3 case {first}: broken: b" in said
    place = tmp_path / f"kept/loaded-3-{first}"
    assert (place / "dice").read_text() == str(chance("loaded", 3, first).random())
    told = (place / "case.txt").read_text()
    assert f"campaign.py loaded --seed 3 --only {first}\nbroken\na\nb" in told
    (alone,) = run_campaign(Loaded(), 3, range(first, first + 1), tmp_path / "again")
    assert alone.wrong
    line = f"loaded: 20 cases of seed 3, {bad + 2 * (20 - bad)} faults: whole {20 - bad}; "
    assert summary("loaded", 3, whole) == f"{line}wrong {bad}: broken {bad}"


class Broken(Loaded):
    def case(self, random, folder):
        raise KeyError("a bug of the campaign")


def test_a_campaign_that_breaks_off_is_no_success(tmp_path):
    with pytest.raises(SystemExit, match="loaded: 0 of 5 cases; it broke off"):
        run_campaign(Broken(), 1, range(5), tmp_path)


def traceback():
    raise ValueError("a bug")


def crash():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # another test's command may have caught it
    os.kill(os.getpid(), signal.SIGTERM)


def said(*lines, status=2):
    def say():
        print(*lines, sep="\n", file=sys.stderr)
        return status

    return say


ONE = "actionspan video: a.mp4: damaged"


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (said(ONE), None),
        (said("rejected b.mp4: damaged", status=0), None),
        (traceback, "traceback"),
        (crash, "signal 15"),
        (lambda: time.sleep(60), "hang"),
        (said(ONE, "actionspan video: more"), "more than one line"),
        (said("no name of ours"), "more than one line"),
        (said(f"{ONE}\x1b[2J"), "control characters"),
        (said(ONE, status=1), "status 1"),
    ],
)
def test_what_no_command_may_do_is_told_apart(tmp_path, function, outcome):
    limit = 0.3 if outcome == "hang" else 60
    found = fault(call(function, tmp_path, seconds=limit))
    assert (found and found.outcome) == outcome


def test_a_command_runs_in_a_folder_and_without_room_for_a_file(tmp_path):
    (tmp_path / "a.csv").write_text("video,start,end,label,duration\na,1,2,run,5\n")
    ended = call(command(["dataset", "convert", "a.csv", "b.json"]), tmp_path)
    assert ended.status == 0, ended.errors
    assert (tmp_path / "b.json").exists()
    assert call(command(["dataset", "convert", "none.csv", "c.json"]), tmp_path).status == 2


def orphan():
    subprocess.Popen(["sleep", "600"])
    return 0


def test_a_fork_is_killed_in_time_and_its_children_are_seen(tmp_path, monkeypatch):
    ended = call(lambda: time.sleep(60), tmp_path, kill_after=0.1)
    assert (ended.status, ended.late) == (-signal.SIGKILL, False)
    assert ended.seconds < 30
    monkeypatch.setattr(children, "GRACE", 0.2)
    cases.adopt_orphans()
    ended = call(orphan, tmp_path)
    assert isinstance(ended, children.Ended)
    assert ended.left == 1


@pytest.mark.parametrize("content", [b"", b"a", bytes(range(256)) * 8])
def test_damage_is_decided_by_the_seed(content):
    for way in WAYS:
        assert way(content, Random(5)) == way(content, Random(5))
    assert damaged(content, Random(6)) == damaged(content, Random(6))
    assert any(damaged(bytes(range(256)), Random(n))[0] != bytes(range(256)) for n in range(3))
