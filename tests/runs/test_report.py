"""`snakemake --report` shows the figures of a run, each with a caption."""

import json
import re
from types import SimpleNamespace

import pytest

from actionspan.workflow.sections import fill_in
from actionspan_papers.rules import experiments
from runs.conftest import ROOT, snakemake

pytestmark = pytest.mark.workflow


def test_the_report_has_every_figure_with_a_caption(project, tmp_path):
    report = tmp_path / "report.html"
    words = ("--report", report, "--configfile", "tiny.yaml")  # and no --cores
    done = snakemake(project.folder, *words)
    assert done.returncode == 0, done.stderr
    page = report.read_text()
    (text,) = re.findall(r"var results = (\{.*?\});?\n", page)
    results = json.loads(text)
    shown = {path.removeprefix("results/evaluation/"): entry for path, entry in results.items()}
    assert "recall_curves.svg" in shown
    assert any(path.startswith("timelines/mtn/") for path in shown)
    assert "results/report/index.html" in results
    for path, entry in results.items():
        assert path.endswith((".svg", "report/index.html"))
        assert len(entry["caption"]) > 60, path
    assert "Top: probabilities of start" in page


def test_a_copy_for_browsers_and_a_contact_sheet_are_targets(project):
    page = project.text("results/report/index.html")
    assert "demo_005" in page
    copy = "results/report/videos/demo_001.mp4"
    sheets = [f"results/report/contact_sheets/{name}/demo_001.jpg" for name in ("span", "random")]
    project.make(copy, *sheets)
    try:
        for name in (copy, *sheets):
            assert (project.folder / name).stat().st_size > 1000
        # the page is made again, and plays the copy
        assert project.planned() == {"report_index": 1}
    finally:
        (project.folder / copy).unlink()
    assert project.planned() == {}


def test_every_caption_belongs_to_a_figure():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    captions = {path.stem for path in (ROOT / "workflow/report").glob("*.rst")} - {"workflow"}
    named = set(re.findall(r'report/(\w+)\.rst"', rules))
    named |= {name for _, name in re.findall(r'figure_files\(\s*"([^"]+)",\s*"(\w+)"', rules)}
    config: dict = {}
    fill_in(config)
    data = SimpleNamespace(shards=["0000"], first_fetched=lambda count: [])
    of_papers = experiments(config, data)
    assert captions == named | {each.figure for each in of_papers if each.figure}
