"""The command line: quick help, one line for bad input, and exit statuses that tell."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from actionspan import __version__
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.workflow.steps import SHORT, STAGES, commands, step_module, steps_of

HEAVY = ["torch", "torchvision", "cv2", "decord", "av", "matplotlib"]

EVERY_HELP = """
import contextlib, importlib, io, json, sys
from actionspan.cli import main
from actionspan.workflow.steps import SHORT, commands, steps_of

def below(words, module):
    yield words
    for step, inner in steps_of(module).items():
        yield from below([*words, step], inner)

def every():
    yield []
    for word, module in commands().items():
        yield from [[word]] if word in SHORT else below([word], module)

shown = {}
for words in every():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            main([*words, "--help"])
            status = None
        except SystemExit as end:
            status = end.code
    heavy = [name for name in HEAVY if name in sys.modules]
    shown[" ".join(words)] = [status, text.getvalue(), heavy]
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, list]:
    """Exit status, text and heavy imports of `--help`, by command."""
    code = f"HEAVY = {HEAVY}\n{EVERY_HELP}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_command_and_step_has_help(helps):
    assert {name.split()[0] for name in helps if name} == set(commands()) > {*STAGES, *SHORT}
    assert len(helps) > 2 * len(commands())
    assert all(command in helps[""][1] for command in commands())
    for name, (status, text, _) in helps.items():
        assert status == 0, name
        assert text.startswith(f"usage: actionspan {name}".rstrip()), name


def test_help_says_what_each_step_does(helps):
    for stage in STAGES:
        for word, module in steps_of(f"actionspan.{stage}").items():
            summary = importlib.import_module(module).__doc__.splitlines()[0].rstrip(".")
            shown = " ".join(helps[stage][1].split())
            assert word in shown
            assert summary[:20] in shown


def test_no_help_costs_a_heavy_import(helps):
    assert {name: heavy for name, (_, _, heavy) in helps.items() if heavy} == {}


def test_help_says_what_each_flag_does(helps):
    """A flag whose help is empty stands alone on its line, with no text on the next."""
    for name, (_, text, _) in helps.items():
        lines = text.split("options:")[1].splitlines() if "options:" in text else []
        flags = [i for i, line in enumerate(lines) if line.startswith("  -")]
        for i in flags:
            alone = "  " not in lines[i].strip()
            next_line = lines[i + 1] if i + 1 < len(lines) else ""
            assert not alone or next_line.startswith(" " * 8), f"{name}: {lines[i]}"


def command(*words: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "actionspan", *words], capture_output=True, text=True, **more
    )


def test_the_program_runs_as_a_module_and_cites_itself():
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text()
    for flag, shown in (("--version", f"actionspan {__version__}\n"), ("--cite", citation)):
        done = command(flag)
        assert (done.returncode, done.stdout) == (0, shown)


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["video"], ["video", "nonsense"], ["propose"], ["propose", "--x"]]
)
def test_a_wrong_command_is_usage_and_exit_2(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert "usage: actionspan" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage", "line"),
    [
        ("propse", "actionspan [-h]", "no command 'propse'; did you mean propose?"),
        ("xyzzy", "actionspan [-h]", "no command 'xyzzy'; `actionspan --help` lists what there is"),
        ("dataset indx", "actionspan dataset [-h]", "no step 'indx'; did you mean index?"),
        (
            "propose a.mp4 --modle m",
            "actionspan propose [-h]",
            "unrecognized arguments: --modle m; did you mean --model?",
        ),
        (
            "dataset subset --subset training --annotations a --out b --anotations c",
            "actionspan dataset subset [-h]",
            "unrecognized arguments: --anotations c; did you mean --annotations?",
        ),
    ],
)
def test_a_slip_is_named_with_what_was_meant(words, usage, line, capsys):
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage: {usage}")
    assert shown.splitlines()[-1].endswith(f"error: {line}")


def test_the_help_begins_with_what_newcomers_want(helps):
    listed = [line.split()[0] for line in helps[""][1].splitlines() if line.startswith("  ")]
    commands = [word for word in listed if word in (*SHORT, *STAGES)]
    assert commands[0] == "review"
    assert sorted(commands) == sorted([*SHORT, *STAGES]), "each once"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("actionspan prop", ["propose", "proposals"]),
        ("actionspan dataset in", ["index"]),
        ("actionspan propose --mo", ["--model"]),
        ("actionspan propose --device c", ["cpu", "cuda"]),
    ],
)
def test_a_shell_completes_commands_and_flags(typed, expected, tmp_path):
    pytest.importorskip("argcomplete")
    found = tmp_path / "completions"
    asked = {
        "COMP_LINE": typed,
        "COMP_POINT": str(len(typed)),
        "COMP_TYPE": "9",
        "_ARGCOMPLETE": "1",
    }
    shell = {"_ARGCOMPLETE_STDOUT_FILENAME": str(found), "_ARGCOMPLETE_IFS": " "}
    done = command(env={**os.environ, **asked, **shell})
    assert done.returncode == 0, done.stderr
    assert sorted(found.read_text().split()) == sorted(expected)


def missing(name: str, *flags: str) -> list[str]:
    return [*name.split(), *(word for flag in flags for word in (flag, "missing/file"))]


@pytest.mark.parametrize(
    "words",
    [
        missing("dataset index", "--shards", "--annotations", "--out"),
        missing("video frames", "--shard", "--out"),
        missing("video flow", "--frames", "--out"),
        missing("features extract", "--frames", "--flow", "--out"),
        missing("features external", "--folder", "--videos", "--out"),
        missing("features rescale", "--shards", "--videos", "--annotations", "--out"),
        missing("temporal train", "--features", "--annotations", "--out"),
        missing("temporal predict", "--model", "--features", "--out"),
        missing("proposals candidates", "--probabilities", "--out"),
        missing("proposals train", "--candidates", "--annotations", "--out"),
        missing("proposals generate", "--candidates", "--evaluator", "--out-json"),
        missing("proposals suppress", "--proposals", "--out"),
        missing("proposals bundle", "--features", "--temporal", "--evaluator", "--out"),
        missing("proposals chapters", "--proposals", "--out-folder"),
        ["evaluation", "baseline", "--method", "random",
         *missing("", "--annotations", "--out-json", "--out-csv")],
        missing("evaluation evaluate", "--proposals", "--annotations", "--method", "--out"),
        missing("evaluation summary", "--evaluations", "--out-json", "--out-tsv", "--out-markdown"),
        missing("evaluation curves", "--evaluations", "--out-table"),
        missing("finetune store", "--frames", "--flow", "--out"),
        ["score", "--protocol", "activitynet", *missing("", "--ground-truth", "--proposals")],
        ["propose", "missing/file", "--model", "missing/model"],
        ["propose", "missing/file", "--model", "none", "--out", "missing/out"],
    ],
    ids=lambda words: "-".join(word for word in words[:2] if word.isalpha()),
)  # fmt: skip
def test_a_missing_file_is_one_line_and_exit_2(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    shown = capsys.readouterr()
    last = shown.err.splitlines()[-1]
    assert last.startswith(f"actionspan {words[0]}: ")
    assert "Traceback" not in shown.err
    assert shown.out == ""


THREADED = (
    "features extract --frames f.h5 --flow g.h5",
    "temporal train --features f.h5 --annotations a.json",
)


@pytest.mark.parametrize("words", THREADED)
def test_no_threads_are_refused(words, capsys):
    assert main([*words.split(), "--out", "o", "--threads", "0"]) == 2
    stage = words.split()[0]
    assert capsys.readouterr().err == f"actionspan {stage}: --threads 0: at least 1\n"


def raising(monkeypatch, error: BaseException | type[BaseException]) -> list[str]:
    """Make `actionspan schema` raise; return its words."""

    def run(arguments):
        raise error

    monkeypatch.setattr("actionspan.workflow.schema.run", run)
    return ["schema"]


MEMORY = "too little memory for `schema`; give it"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("a.json: no such file"), 2, "a.json: no such file"),
        (KeyboardInterrupt, 130, "interrupted; run it again to resume"),
        (OSError(28, "No space left", "out/a.h5"), 2, "out/a.h5: No space left"),
        (NotADirectoryError(20, "Not a directory", "file/a"), 2, "file/a: Not a directory"),
        (PermissionError(13, "Permission denied", "out"), 2, "out: Permission denied"),
        (OSError(28, "No space left"), 2, "No space left; make room and run it again"),
        (MemoryError(), 2, MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), 2, MEMORY),
        (OSError(12, "Cannot allocate memory"), 2, MEMORY),
    ],
)
def test_what_a_user_can_mend_is_one_line(monkeypatch, capsys, error, status, line):
    assert main(raising(monkeypatch, error)) == status
    (shown,) = capsys.readouterr().err.splitlines()
    assert shown.startswith(f"actionspan schema: {line}")
    assert line == MEMORY or shown.endswith(line)


def test_an_error_of_the_program_keeps_its_traceback(monkeypatch):
    for error in (ZeroDivisionError("x"), OSError("without a file")):
        with pytest.raises(type(error)):
            main(raising(monkeypatch, error))


def test_a_status_is_passed_on(monkeypatch):
    for given, expected in ((None, 0), (0, 0), (1, 1)):
        monkeypatch.setattr("actionspan.workflow.schema.run", lambda arguments, given=given: given)
        assert main(["schema"]) == expected


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads by /proc")
@pytest.mark.skipif(os.cpu_count() == 1, reason="BLAS has one thread on one core")
@pytest.mark.parametrize(("asked", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
def test_blas_has_one_thread_unless_the_caller_asks_for_more(asked, threads):
    code = (
        "import os, actionspan.cli; actionspan.cli.main(['config'])\n"
        "import numpy; numpy.ones((600, 600)) @ numpy.ones((600, 600))\n"
        "print(len(os.listdir('/proc/self/task')))"
    )
    own = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], env={**own, **asked}, stdout=-1, text=True)
    assert int(done.stdout.split()[-1]) == threads


def test_a_closed_pipe_is_no_error():
    """As `actionspan schema | head -1` closes it: 0, and nothing on standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "actionspan", "schema"], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_step_is_found_by_its_name_and_what_is_no_step_is_refused():
    for words, module in (
        ("video flow", "actionspan.video.flow"),
        ("scaling plot-speedup", "actionspan.scaling.plot_speedup"),
        ("score", "actionspan.evaluation.score"),
    ):
        assert step_module(words) == module
    for words in ("video", "video nonsense", "video decode", "nonsense", ""):
        with pytest.raises(ValueError, match="no step"):
            step_module(words)


def test_commands_of_one_process_end_with_the_first_that_fails(monkeypatch, capsys):
    said = []
    monkeypatch.setattr("actionspan.workflow.schema.run", lambda arguments: said.append("schema"))
    assert main(["schema", "--then", "schema"]) == 0
    assert said == ["schema"] * 2
    broken = raising(monkeypatch, InputError("a.json: no such file"))
    monkeypatch.setattr("actionspan.workflow.config.run", lambda arguments: said.append("config"))
    assert main(["config", "--then", *broken, "--then", "config"]) == 2
    assert said[2:] == ["config"]
    assert capsys.readouterr().err == "actionspan schema: a.json: no such file\n"
