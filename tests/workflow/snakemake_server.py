"""Snakemake, imported once and forked for each call, so that a dry run costs its own work alone.

Each line of standard input is a JSON object with the folder of a project, Snakemake's arguments and
the environment; each line of standard output is one with the exit status and all that was printed.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence

import h5py  # noqa: F401  (what the plan of a run imports, beside Snakemake)
import jsonschema  # noqa: F401
import snakemake.cli


def call(
    folder: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> dict[str, object]:
    """Run Snakemake in a fork of this process."""
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if not child:
            status = 1
            try:
                os.chdir(folder)
                os.environ.update(environment)
                for stream in (1, 2):
                    os.dup2(printed.fileno(), stream)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                snakemake.cli.main(list(arguments))
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    return {"status": os.waitstatus_to_exitcode(ended), "text": text}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(call(**json.loads(line))), flush=True)
