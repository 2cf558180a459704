"""What a release states about itself is the same everywhere, and its page has no dead link."""

import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
import yaml

import actionspan

ROOT = Path(__file__).parents[1]
ADDRESS = "https://example.org/owner/actionspan"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())


@pytest.fixture(scope="module")
def set_up():
    """The module setup.py, which sets nothing up when it is imported."""
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere():
    assert actionspan.__version__ == PROJECT["version"] == CITATION["version"]
    assert CITATION["license"] == PROJECT["license"]
    titles = re.findall(r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] == "Unreleased"
    assert PROJECT["version"] in titles


def test_each_version_that_breaks_something_states_how_to_upgrade():
    sections = re.split(r"^## \[", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    for text in sections[:-1]:  # the first version has no earlier one
        if "### Removed" in text and not text.startswith("Unreleased"):
            assert "### Upgrading from " in text, text.splitlines()[0]


def test_a_tag_is_released_only_as_its_version():
    assert RELEASE[True]["push"]["tags"] == ["v*"]  # YAML reads `on` as true
    (check,) = [
        step["run"]
        for step in RELEASE["jobs"]["build"]["steps"]
        if step.get("name") == "The tag is the version"
    ]
    for tag, status in ((f"v{PROJECT['version']}", 0), ("v0.0.0", 1)):
        environment = {"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": tag}
        words = ["bash", "-c", check.replace("python ", f"{sys.executable} ")]
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == status, done.stderr


def test_packages_are_published_without_a_stored_password():
    publish = RELEASE["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()


def test_a_path_becomes_an_address_and_without_one_words_stay_and_links_go(set_up):
    for text, expected in (
        ("[a](docs/b.md#c)", f"[a]({ADDRESS}/blob/v1/docs/b.md#c)"),
        ("![a b](docs/c.webp)", f"![a b]({ADDRESS}/raw/v1/docs/c.webp)"),
        ("[a](#b)", f"[a]({ADDRESS}/blob/v1/README.md#b)"),
        ("[a](https://example.org/b)", "[a](https://example.org/b)"),
        ("[a\nb](c.md)", f"[a\nb]({ADDRESS}/blob/v1/c.md)"),
        ("x[0](y) of code", f"x[0]({ADDRESS}/blob/v1/y) of code"),
    ):
        assert set_up.long_description(text, ADDRESS, "v1") == expected
    text = "see [the page](docs/page.md) ![image](docs/a.webp) [site](https://example.org)"
    left = set_up.long_description(text, None, "v1")
    assert left == "see the page  [site](https://example.org)"


def test_the_page_of_the_package_has_no_path(set_up):
    text = set_up.long_description((ROOT / "README.md").read_text(), ADDRESS, "v1")
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert len(links) > 30
    assert [link for link in links if not link.startswith("https://")] == []
    for path in re.findall(rf"{re.escape(ADDRESS)}/(?:blob|raw)/v1/([^)#\s]+)", text):
        assert (ROOT / path).exists(), path


@pytest.mark.full
def test_the_source_archive_builds_the_same_page_and_has_tests_and_docs(program, tmp_path):
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if len(tracked) < 2:
        pytest.skip("this is no checkout of git, so its files are not known")
    source = tmp_path / "source"
    for name in filter(None, tracked):
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            copy.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            copy.write_bytes((ROOT / name).read_bytes())
    words = [program("uv"), "build", "--quiet", "--out-dir", tmp_path / "dist"]
    server, _, name = ADDRESS.rpartition("/owner/")
    known = {"GITHUB_SERVER_URL": server, "GITHUB_REPOSITORY": f"owner/{name}"}
    build(*words, "--sdist", source, known=known)
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {entry.partition("/")[2] for entry in opened.getnames()}
    left_out = {name for name in tracked if name and name not in names}
    assert {name.partition("/")[0] for name in left_out} <= {".ci", ".github", ".gitignore"}
    # the wheel of the archive knows the address from the archive alone
    build(*words, "--wheel", archive, known={})
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (metadata,) = [name for name in opened.namelist() if name.endswith("/METADATA")]
        text = opened.read(metadata).decode()
        assert "actionspan/py.typed" in opened.namelist()
    stated = message_from_string(text)
    assert f"Source, {ADDRESS}" in stated.get_all("Project-URL")
    assert stated["Author"] == PROJECT["authors"][0]["name"]
    assert f"]({ADDRESS}/blob/v{PROJECT['version']}/docs/loop.md)" in stated.get_payload()


def build(*words: object, known: dict[str, str]) -> None:
    import os

    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    done = subprocess.run(
        list(map(str, words)), env={**clean, **known}, capture_output=True, text=True
    )
    if "Failed to fetch" in done.stderr or "dns error" in done.stderr:
        pytest.skip("building needs setuptools from the package index, which cannot be reached")
    assert done.returncode == 0, done.stderr
