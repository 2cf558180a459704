"""The docs are true: names, commands, files and links exist, and words are plain."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from actionspan.workflow.sections import defaults
from actionspan.workflow.steps import step_module
from actionspan_papers.rules import experiments

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "api"
# Made by `make config` from the settings, which `src` words
GENERATED = {"configuration.md"}
READ = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
WRITTEN = [page for page in [*READ, *sorted(PAGES.glob("*.md"))] if page.name not in GENERATED]


@pytest.mark.parametrize("page", sorted(PAGES.glob("[!i]*.md")), ids=lambda page: page.stem)
def test_a_page_has_all_public_names_of_its_package(page):
    package = importlib.import_module(f"actionspan.{page.stem}")
    documented = {}
    for module, name in re.findall(r"^::: ([\w.]+)\.(\w+)$", page.read_text(), re.MULTILINE):
        documented[name] = getattr(importlib.import_module(module), name)
    assert documented == {name: getattr(package, name) for name in package.__all__}


def test_every_package_with_public_names_has_a_page():
    source = ROOT / "src" / "actionspan"
    packages = {
        path.parent.name for path in source.glob("*/__init__.py") if "__all__" in path.read_text()
    }
    assert packages == {page.stem for page in PAGES.glob("[!i]*.md")}


def outputs() -> Iterator[tuple[str, str]]:
    """Yield (files, commands) of each item of the page of outputs."""
    text = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")
    for item in re.findall(r"^- (.*?)(?=^- |\n\n)", text, re.DOTALL | re.MULTILINE):
        files, _, _ = re.sub(r"\s+", " ", item).partition(": ")
        parts = re.fullmatch(r"((?:`[^`]*`,? ?|\(\+\) ?)*)(.*)", files)
        assert parts is not None, files
        yield parts[1], parts[2]


def files_of(shown: str) -> set[str]:
    """Return the paths that an item names, with `{}` for wildcards.

    `.md` after `a.tsv` is `a.md`, `b.csv` after `x/a.tsv` is `x/b.csv`.
    """
    paths: list[str] = []
    for name in re.findall(r"`(.*?)`", shown):
        if name.startswith(".") and paths:
            paths.append(re.sub(r"\.\w+$", name, paths[-1]))
        elif "/" in name or not paths:
            paths.append(name)
        else:
            paths.append(paths[-1].rpartition("/")[0] + "/" + name)
    suffixes = (".tsv", ".md", ".svg", ".png") if "(+)" in shown else (".tsv", ".md")
    every = {
        f"{path}{suffix}"
        for path in paths
        for suffix in (("",) if re.search(r"\.\w+$|/$", path) else suffixes)
    }
    return {re.sub(r"\{.*?\}", "{}", path) for path in every}


def files_of_rules() -> set[str]:
    """Return the paths below results/ that rules write, with `x` for wildcards."""
    paths = []
    for file in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        blocks = re.findall(r"^( +)output:\n((?:\1    .*\n|\n)+)", text, re.MULTILINE)
        blocks += re.findall(r"^(SCORES) = (.*?^}$)", text, re.DOTALL | re.MULTILINE)
        for _, block in blocks:
            for path, more in re.findall(r'"results/([^"]+)"((?:, "\.\w+")*)', block):
                suffixes = re.findall(r"\.\w+", more) or [".svg", ".png"]  # of figure_files
                paths += [path] if "." in path else [path + suffix for suffix in suffixes]
    dataset = SimpleNamespace(shards=["0000"], first_fetched=lambda most: ["a.mp4"])
    for each in experiments(defaults(), dataset):
        made = [*each.files, *each.outputs.values()]
        paths += [path.removeprefix("results/") for path in made]
    found = set()
    for path in paths:
        path = path.replace("{listed}", "proposals").replace("{{", "{").replace("}}", "}")
        path = re.sub(r"\{(new|fold|folds)\}", "", path)
        both = [path.replace("{suffix,svg|png}", suffix) for suffix in ("svg", "png")]
        found |= {re.sub(r"\{.*?\}", "x", each) for each in both}
    return found


def test_the_page_of_outputs_has_the_files_of_all_rules():
    listed = set().union(*(files_of(shown) for shown, _ in outputs()))
    known = re.compile("|".join(re.escape(path).replace(r"\{\}", "[^/]+") for path in listed))
    files = files_of_rules()
    assert len(files) > 150
    missing = {file for file in files if not known.match(file)}
    assert sorted(missing) == []


def test_the_page_of_outputs_has_no_file_that_nothing_makes():
    listed = set().union(*(files_of(shown) for shown, _ in outputs()))
    code = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("src", "workflow")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".smk"}
    )
    made = files_of_rules()
    for file in sorted(listed):
        pattern = re.compile(re.escape(file).replace(r"\{\}", "[^/]+"))
        stem = file.rstrip("/").rpartition("/")[2].rpartition("{}")[2].partition(".")[0]
        assert any(map(pattern.match, made)) or (stem in code if stem else "{}" in file), file


def test_the_commands_that_write_the_outputs_exist():
    commands = {
        words for _, named in outputs() for words in re.findall(r"`([a-z]+ [a-z0-9 -]+)`", named)
    }
    for shown, named in outputs():
        if re.match(r"`papers/\w+/\w+[`.]", shown) and not named:
            commands.add(
                re.sub(r"[/_]", lambda at: " -"[at[0] == "_"], re.split(r"[`.]", shown)[1])
            )
    assert len(commands) > 60
    for words in commands:
        assert step_module(words).startswith("actionspan")


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [*READ, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_links_lead_to_pages_and_headings(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    for link in links:
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


def prose(page: Path) -> str:
    """Return a page without code, comments, targets of links and the table of words."""
    text = page.read_text(encoding="utf-8")
    if page.name == "CONTRIBUTING.md":
        text = re.sub(r"^\| avoid .*?\n\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", text, flags=re.S | re.M)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " ` ", text)


def avoided() -> re.Pattern[str]:
    """Return the words that the guide avoids, as one pattern."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = guide.split("## Words", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (?!avoid)(\w[^|]*) \|", table, re.MULTILINE)
    words = [r"\s+".join(word.split()) for row in rows for word in row.split(", ")]
    assert len(words) > 30
    return re.compile(rf"\b(?<!-)(?:{'|'.join(words)})\b(?!-)", re.IGNORECASE)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_words_to_avoid_are_not_in_the_docs(page):
    assert avoided().findall(prose(page)) == []


def test_words_to_avoid_are_not_in_the_source():
    pattern = avoided()
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        comments = re.findall(r"(?:^|\s)# (.*)", path.read_text(encoding="utf-8"))
        texts = [*comments, *said(path)]
        found |= {
            f"{path.name}: {word}" for text in texts for word in pattern.findall(worded(text))
        }
    assert found == set()


def test_words_to_avoid_are_not_in_the_page():
    pattern = avoided()
    script = r"/\*.*?\*/|(?<!:)//[^\n]*|\"[^\"\n]*\""
    parts = {".js": script, ".css": script, ".jinja": r"\"[^\"\n]*\"|>[^<{]+<"}
    found = set()
    for path in (ROOT / "src/actionspan/report").rglob("*"):
        if path.suffix in parts and "vendor" not in path.parts:
            texts = re.findall(parts[path.suffix], path.read_text(encoding="utf-8"), re.DOTALL)
            words = [word for text in texts for word in pattern.findall(worded(text.strip('"')))]
            found |= {f"{path.name}: {word}" for word in words}
    assert found == set()


def worded(text: str) -> str:
    """Return a string or comment without code: keys, names in backticks and of arguments."""
    return "" if text.isidentifier() else re.sub(r"`[^`]*`|^ +\w+(?=: )", "`", text, flags=re.M)


@cache
def said(path: Path) -> list[str]:
    """Return the strings of a module, `…` where a value is filled in."""

    def text(node: ast.expr) -> str:
        if isinstance(node, ast.JoinedStr):
            return "".join(map(text, node.values))
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "…"

    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [text(node) for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant)]


def test_the_messages_that_are_explained_are_those_of_the_program():
    known = [(ROOT / "Makefile").read_text()]
    for path in (ROOT / "src").rglob("*.py"):
        known += said(path)
    page = re.sub(r"\n +", " ", (ROOT / "docs" / "troubleshooting.md").read_text())
    messages = re.findall(r"^- `(.+?)`: ", page, re.MULTILINE)
    assert len(messages) > 20
    for message in messages:
        # a value may be longer than `…` says
        parts = [part for part in re.split(r"…", message) if part.strip(" ()`;,:?")]
        pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
        assert any(pattern.search(text.replace("`", "")) for text in known), message
