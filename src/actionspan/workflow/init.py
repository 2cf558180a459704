"""Make the folder of a project with its configuration; `actionspan run` does the rest."""

import argparse
from pathlib import Path

import yaml

from actionspan.errors import InputError
from actionspan.storage.writing import write_text
from actionspan.workflow.run import CONFIG

_DEMO = """\
# What this project changes; `actionspan config --full` prints every setting with its unit.
dataset:
  videos: demo         # a folder of videos; demo: rendered ones, to see a whole run
  annotations: null    # with a folder: a table video,start,end,label (seconds), or ActivityNet JSON
"""
_OWN = """\
# What this project changes; `actionspan config --full` prints every setting with its unit.
"""
_README = """\
# A project of actionspan

    actionspan run                                 everything
    actionspan run results/evaluation/span.json    one file and its inputs
    actionspan run --dry-run                       what would be done

`config.yaml` names the videos and their annotations. Results are in `results/`: the table of scores
is `evaluation/summary.md`, and `proposals/span/` has the proposals and a trained model, for
`actionspan propose VIDEO --model results/proposals/span`. The same command resumes after Ctrl-C or
a kill, and repeats only the steps that a change affects.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="made if it does not exist")
    parser.add_argument("--videos", type=Path, help="folder of your videos (default: the demo's)")
    labels = "your annotations: a table video,start,end,label, ActivityNet JSON, or others"
    parser.add_argument("--annotations", type=Path, help=labels)


def run(arguments: argparse.Namespace) -> None:
    """Write the files of a project; nothing is overwritten."""
    folder, videos, annotations = arguments.folder, arguments.videos, arguments.annotations
    if (videos is None) != (annotations is None):
        raise InputError("--videos and --annotations go together")
    text = _DEMO
    if videos is not None:
        if not videos.is_dir():
            raise InputError(f"--videos {videos}: no such folder")
        if not annotations.exists():
            raise InputError(f"--annotations {annotations}: no such file")
        named = {"videos": str(videos.resolve()), "annotations": str(annotations.resolve())}
        text = _OWN + yaml.safe_dump({"dataset": named}, sort_keys=False, allow_unicode=True)
    if (folder / CONFIG).exists():
        raise InputError(f"{folder / CONFIG}: is there already; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, text)
    if not (folder / "README.md").exists():
        write_text(folder / "README.md", _README)
    print(f"{folder / CONFIG}: written; now: cd {folder} && actionspan run")
