"""Put the workflow into the wheel; all else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

WORKFLOW = ("Snakefile", "config.yaml", "workflow", "envs", "examples")


class BuildWithWorkflow(build_py):
    """Copies the workflow to actionspan/project, where actionspan.workflow.run finds it."""

    def run(self) -> None:
        """Build the package, then add the workflow unless it is an editable installation."""
        super().run()
        if self.editable_mode:
            return
        root = Path(__file__).parent
        target = Path(self.build_lib) / "actionspan" / "project"
        for name in WORKFLOW:
            copy = shutil.copytree if (root / name).is_dir() else shutil.copy
            target.mkdir(parents=True, exist_ok=True)
            if (target / name).is_dir():
                shutil.rmtree(target / name)
            copy(root / name, target / name)


setup(cmdclass={"build_py": BuildWithWorkflow})
