"""Put the workflow into the wheel, and whole addresses into the page of the package.

All else is in pyproject.toml. A package index shows README on a page of its own, where a path such
as docs/page.md leads nowhere. The address of the repository is known where a release is built: from
GitHub's environment, or from the source archive that was built there. Without one the links go, and
their words stay.
"""

import os
import re
import shutil
import tomllib
from email import message_from_string
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

WORKFLOW = ("Snakefile", "config.yaml", "workflow", "envs", "examples", "CITATION.cff")
ROOT = Path(__file__).parent
# [words](path) and ![words](path), with a path in this repository or a heading of this page
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!https?://|mailto:)([^)\s]+)\)")


class BuildWithWorkflow(build_py):
    """Copies the workflow to actionspan/project, where actionspan.workflow.run finds it."""

    def run(self) -> None:
        """Build the package, then add the workflow unless it is an editable installation."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "actionspan" / "project"
        for name in WORKFLOW:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            target.mkdir(parents=True, exist_ok=True)
            if (target / name).is_dir():
                shutil.rmtree(target / name)
            copy(ROOT / name, target / name)


def repository() -> str | None:
    """Return the address of the repository, or None where nothing states it."""
    server, name = map(os.environ.get, ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"))
    if server and name:
        return f"{server}/{name}"
    built = ROOT / "PKG-INFO"  # of a source archive
    if built.is_file():
        stated = message_from_string(built.read_text(encoding="utf-8")).get_all("Project-URL", [])
        addresses = dict(line.split(", ", 1) for line in stated)
        return addresses.get("Source")
    return None


def long_description(text: str, address: str | None, tag: str) -> str:
    """Return README with whole addresses of a tag's files in place of paths."""

    def whole(link: re.Match[str]) -> str:
        image, words, path = link.groups()
        if address is None:
            return "" if image else words
        if path.startswith("#"):
            path = f"README.md{path}"
        return f"{image}[{words}]({address}/{'raw' if image else 'blob'}/{tag}/{path})"

    return _LINK.sub(whole, text)


def page() -> dict[str, object]:
    """Return what the page of the package shows: README and links."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tag, address = f"v{project['version']}", repository()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = {}
    if address is not None:
        links = {
            "Source": address,
            "Documentation": f"{address}/blob/{tag}/docs/index.md",
            "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{address}/issues",
        }
    return {
        "long_description": long_description(text, address, tag),
        "long_description_content_type": "text/markdown",
        "project_urls": links,
    }


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithWorkflow}, **page())
