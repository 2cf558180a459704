"""The `actionspan` command: `actionspan <stage> <step>` runs the module actionspan.<stage>.<step>.

A step is a module with `add_arguments(parser)` and `run(arguments)`, found by its name; the first
line of its docstring is its help. Only the step that is called is imported: torch and OpenCV cost
seconds.
"""

import argparse
import difflib
import errno
import importlib
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from actionspan import __version__
from actionspan.errors import InputError, lacks_memory, printable
from actionspan.jobs.launcher import wait_for_root
from actionspan.storage.inputs import inputs_kept
from actionspan.workflow.steps import GROUPS, OURS, commands, file_of, steps_of, summary_of

_THEN = "--then"


class Parser(argparse.ArgumentParser):
    """A parser that reports an error from one rank only: all have the same flags."""

    def error(self, message: str) -> NoReturn:
        """Print the fault and exit with status 2."""
        if not wait_for_root():
            sys.exit(2)
        super().error(message)

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Print the unknown flags and the likely intended ones."""
        known = [flag for action in self._actions for flag in action.option_strings]
        self.error(f"unrecognized arguments: {' '.join(words)}{_meant(words[0], known)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, or several with `--then` between them, in one process.

    Returns:
        The exit status of the last that ran: 0 done, 2 bad input, 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Before NumPy is imported: BLAS waits busily for as many threads as there are cores, which
    # other jobs need. Its products here are small; networks have threads of their own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if arguments is None and hasattr(os, "fork"):  # Windows has no jobs and no ranks
        from actionspan.jobs.supervisor import supervise

        supervise(words)
    while _THEN in words:  # what one has imported, the next has: seconds for torch alone
        end = words.index(_THEN)
        if status := _main(words[:end]):
            return status
        words = words[end + 1 :]
    return _main(words)


def _main(words: list[str]) -> int:
    completed = os.environ.get("COMP_LINE") if "_ARGCOMPLETE" in os.environ else None
    if completed is not None:
        words = shlex.split(completed[: completed.rfind(" ") + 1])[1:]  # without the unfinished one
    try:
        ours = bool(words) and words[0] in OURS  # looking for plug-ins costs time
        modules = OURS if ours else commands()
        parser = Parser(
            prog="actionspan",
            description="Temporal action proposals: when does something happen in a video?",
            epilog=_listing(modules),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--version", action="version", version=f"actionspan {__version__}")
        cite = "print the reference of this version and of the papers, as CITATION.cff"
        parser.add_argument("--cite", action=_Cite, nargs=0, help=cite)
        _add_level(parser, modules, words, "COMMAND")
        if completed is not None:
            import argcomplete

            argcomplete.autocomplete(parser)
            return 0
        parsed, unknown = parser.parse_known_args(words)
        if unknown and not _taken(parsed, unknown):
            parsed.parser.refuse(unknown)
        with _inputs_kept(parsed):
            return int(parsed.run(parsed) or 0)
    except InputError as error:
        return _complain(" ".join(words[:1]), str(error))
    except Exception as error:
        status = _status(words, error)
        if status is None:
            raise
        return status
    except KeyboardInterrupt:
        return _complain(words[0], "interrupted; run it again to resume", 130)


class _Cite(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from actionspan.workflow.run import workflow_folder

        print((workflow_folder() / "CITATION.cff").read_text(encoding="utf-8"), end="")
        parser.exit()


def _taken(parsed: argparse.Namespace, words: Sequence[str]) -> bool:
    """Give words that come after a flag to the argument that takes any number, if there is one."""
    several = [a for a in parsed.parser._actions if not a.option_strings and a.nargs == "+"]
    if len(several) != 1 or any(word.startswith("-") for word in words):
        return False
    getattr(parsed, several[0].dest).extend(map(several[0].type or str, words))
    return True


def _inputs_kept(parsed: argparse.Namespace) -> AbstractContextManager[None]:
    """Keep what flags name from outputs, `out` and `out_…`; `replaces` names an exception."""
    found: dict[bool, list[Any]] = {True: [], False: []}
    for name in {action.dest for action in parsed.parser._actions} - {parsed.replaces}:
        value = getattr(parsed, name, None)
        found[name.partition("_")[0] == "out"] += value if isinstance(value, list) else [value]
    return inputs_kept(found[False], found[True])


def _status(words: Sequence[str], error: Exception) -> int | None:
    """Return the exit status after an error of the system, None for one without a line."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if lacks_memory(error):
        command = " ".join(word for word in words[:2] if not word.startswith("-"))
        line = (
            f"too little memory for `{command}`"
            "; give it more (on a cluster: mem_mb), or fewer processes"
        )
        return _complain(words[0], line)
    if isinstance(error, OSError) and error.filename is not None:
        # a folder that cannot be written, a file that is a folder, a name too long, …
        return _complain(words[0], f"{printable(str(error.filename))}: {error.strerror}")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _complain(words[0], f"{error.strerror}; make room and run it again")
    return None


def _add_level(
    parser: Parser, modules: Mapping[str, str], words: Sequence[str], level: str
) -> None:
    listed = level == "STEP"  # the help lists commands in groups, at its end
    help = None if listed else "what to do, see below"
    commands = parser.add_subparsers(dest=level.lower(), required=True, metavar=level, help=help)
    if words and not words[0].startswith("-") and words[0] not in modules:
        hint = f"; `{parser.prog} --help` lists what there is"
        what = f"no {level.lower()} {printable(words[0])!r}"
        parser.error(what + (_meant(words[0], modules) or hint))
    if words and words[0] in modules:  # nobody sees the others, and forty parsers are 10 ms
        modules = {words[0]: modules[words[0]]}
    for word, module in modules.items():
        file = file_of(module)
        summary = summary_of(file).replace("%", "%%")
        shown: dict[str, Any] = {"help": summary} if listed else {}
        command = commands.add_parser(word, description=summary, **shown)
        if not words or words[0] != word:
            continue
        if file.name == "__init__.py":
            _add_level(command, steps_of(module), words[1:], "STEP")
        else:
            step = importlib.import_module(module)
            command.set_defaults(run=step.run, parser=command, replaces="")
            step.add_arguments(command)


def _listing(modules: Mapping[str, str]) -> str:
    """Return the commands in groups, for the help."""
    added = [name for name in modules if name not in OURS]
    lines = []
    for title, names in {**GROUPS, **({"Plug-ins": added} if added else {})}.items():
        lines.append(f"{title}:")
        lines += [f"  {name:<14}{summary_of(file_of(modules[name]))}" for name in names]
        lines.append("")
    return "\n".join([*lines, "`actionspan COMMAND --help` prints more."])


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _complain(command: str, line: str, status: int = 2) -> int:
    wait_for_root()
    print(f"actionspan {command}: {line}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
