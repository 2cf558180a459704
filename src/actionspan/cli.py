"""The `actionspan` command: each stage's commands under the stage's name."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.parallel.launcher import let_root_speak

# Command → (module with add_parsers(subparsers), one line of help). Only the module of the command
# that is called is imported: torch and OpenCV cost seconds.
COMMANDS = {
    "dataset": ("actionspan.dataset.command", "videos and annotations to canonical tables"),
    "video": ("actionspan.video.command", "decoding and optical flow"),
    "recognition": ("actionspan.recognition.command", "two-stream classifiers, trained on clips"),
    "features": ("actionspan.features.command", "two-stream features and rescaling"),
    "temporal": ("actionspan.temporal.command", "boundary probabilities (TEM, MTN)"),
    "proposals": ("actionspan.proposals.command", "PGM, PEM and Soft-NMS"),
    "evaluation": ("actionspan.evaluation.command", "AR@AN, AUC, baselines and figures"),
    "scaling": ("actionspan.scaling.command", "training time over ranks: table, models, figures"),
    "score": ("actionspan.evaluation.score", "score a proposals file by a benchmark's protocol"),
    "fit-timing": ("actionspan.scaling.fit_timing", "fit the time models to a table of run times"),
    "schema": ("actionspan.plan.schema", "print the schema of config.yaml"),
    "propose": ("actionspan.propose.command", "proposals for videos, without the workflow"),
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaint comes from one rank: all have the same flags."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit with status 2."""
        if not let_root_speak():
            sys.exit(2)
        super().error(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = Parser(prog="actionspan", description=__doc__)
    parser.add_argument("--version", action="version", version=f"actionspan {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, help_line) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line, description=help_line)
        if words and words[0] == name:
            importlib.import_module(module).add_parsers(command)
    parsed = parser.parse_args(words)
    try:
        return int(parsed.run(parsed) or 0)
    except InputError as error:
        return _complain(parsed.command, str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        # a folder that cannot be written, a file that is a folder, a name too long, …
        return _complain(parsed.command, f"{error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        return _complain(parsed.command, "interrupted; run it again to go on", 130)


def _complain(command: str, line: str, status: int = 2) -> int:
    let_root_speak()
    print(f"actionspan {command}: {line}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
