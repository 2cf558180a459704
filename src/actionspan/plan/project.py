"""Where the workflow is: in the installed package, or in the checkout that holds it."""

from pathlib import Path

from actionspan.errors import InputError
from actionspan.plan.steps import PACKAGE_FOLDER


def workflow_folder() -> Path:
    """Return the folder of Snakefile, config.yaml, workflow/ and examples/.

    Raises:
        InputError: There is none.
    """
    checkout = PACKAGE_FOLDER.parents[1]
    for folder in (PACKAGE_FOLDER / "project", checkout):
        if (folder / "Snakefile").is_file():
            return folder
    raise InputError(f"{checkout}: no Snakefile; install actionspan, or run it in a checkout")
