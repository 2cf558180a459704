"""`make gpu` on a machine without a GPU: pages and evidence of small benchmarks, in processes."""

from itertools import product

import pytest

import exchange
import gpu
import swin_step
from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.evidence import Measured, on_gpu, read_measurements
from actionspan_papers.sbp.swin import SHAPES, Shape
from papers.steps import REPRODUCED
from test_docs import ROOT

WHERE = ("A card", "2.11", "2026-11-26")
PLACE = "A card, torch 2.11, 2026-11-26"
SWIN = next(part for part in gpu.PARTS if part.benchmark == "swin_step")


def part(folder, lines, name="pipeline_cuda", more=""):
    """Return a part of `make gpu` that prints these lines of a table of pipelines."""
    script = folder / f"{name}.py"
    script.write_text(f"print({lines!r}, flush=True)\n{more}")
    (known,) = [each for each in gpu.PARTS if each.title == "Pipelines over time"]
    return gpu.Part(name, "Frames.", (str(script),), None, known.cases, known.quantities)


HEADER = "# a card\nR\twork\tstages\tkind\tms_per_frame\tleast\tmost\tspeed_up"
EAGER = "128\tinference\t1\teager\t10.0\t9.0\t12.0\t1.0"
GRAPH = "128\tinference\t1\tgraph\t3.0\t3.0\t3.5\t1.0"


@pytest.fixture
def run(tmp_path):
    def measure(*parts, where=WHERE):
        failed = gpu.measure(parts, tmp_path / "gpu.md", tmp_path / "gpu.tsv", where)
        return failed, (tmp_path / "gpu.md").read_text(), read_measurements(tmp_path / "gpu.tsv")

    return measure


def test_a_run_writes_the_page_and_the_evidence_that_claims_take(tmp_path, run):
    failed, page, known = run(part(tmp_path, "\n".join([HEADER, EAGER, GRAPH])))
    assert not failed
    assert "2026-11-26: A card, torch 2.11." in page
    assert "| 128 | inference | 1 | eager | 10.0 (9.0–12.0) | 1.0 |" in page
    assert "Frames. The benchmark took " in page
    assert known["pipeline_cuda", "128, inference, 1, graph", "ms per frame"] == Measured(
        3.0, 3.0, 3.5, PLACE
    )
    claim = on_gpu("partime", known)[0]
    assert (claim.verdict, claim.low) == (REPRODUCED, 9.0 - 3.5)


def test_what_is_measured_again_is_replaced_and_the_rest_keeps_its_date(tmp_path, run):
    run(part(tmp_path, "\n".join([HEADER, EAGER, GRAPH])))
    later = ("A card", "2.12", "2027-01-02")
    _, _, known = run(
        part(tmp_path, f"{HEADER}\n{GRAPH}".replace("3.0\t3.0", "2.0\t2.0")), where=later
    )
    assert [(one.value, one.place[-10:]) for one in known.values()] == [
        (10.0, "2026-11-26"),
        (2.0, "2027-01-02"),
    ]


def test_a_benchmark_that_fails_leaves_its_rows_so_far_and_the_next_runs(tmp_path, run):
    broken = part(tmp_path, f"{HEADER}\n{EAGER}", "broken", "raise SystemExit('no memory')")
    failed, page, known = run(broken, part(tmp_path, f"{HEADER}\n{GRAPH}"))
    assert failed
    assert "Not to its end: no memory" in page
    assert [key[0] for key in known] == ["broken", "pipeline_cuda"]


def test_a_benchmark_is_ended_at_its_limit_and_none_starts_after_the_last_second(
    tmp_path, run, monkeypatch
):
    """Of a line that is cut off nothing counts."""
    slow = "import sys, time\nsys.stdout.write('128\\tinf')\nsys.stdout.flush()\ntime.sleep(600)"
    monkeypatch.setattr(gpu, "_LATE", 3)
    failed, page, known = run(part(tmp_path, f"{HEADER}\n{EAGER}", "slow", slow))
    assert failed
    assert "ended after 3 s" in page
    assert len(known) == 1
    monkeypatch.setattr(gpu, "_TOTAL", 0)
    _, page, known = run(part(tmp_path, f"{HEADER}\n{GRAPH}"))
    assert "Not to its end: no time was left" in page
    assert len(known) == 1


def test_a_wrong_table_of_evidence_is_one_line_before_the_run(tmp_path, run):
    (tmp_path / "gpu.tsv").write_text("benchmark\tcase\nx\ty\n")
    with pytest.raises(InputError, match="no column 'quantity'"):
        run(part(tmp_path, HEADER))
    assert not (tmp_path / "gpu.md").exists()


def test_steps_of_a_small_swin_are_timed_on_a_cpu_and_memory_is_left_out():
    shape = Shape(32, (1, 1), 1)
    rows = list(swin_step.rows("Swin-T", shape, (8, 14, 14), "cpu", 1))
    assert [row[1] for row in rows] == ["end-to-end", "checkpointing", "SBP", "SBP + checkpointing"]
    assert all(row[2] == "" and float(row[3]) > 0 for row in rows)
    found = list(gpu.evidence_rows([list(swin_step.COLUMNS), *rows], SWIN, WHERE))
    assert [row[:3] for row in found] == [
        ("swin_step", f"Swin-T, {row[1]}", "seconds a step") for row in rows
    ]
    assert [row[3] for row in found] == [row[3] for row in rows]


def printable():
    """Return the cases that the benchmarks of `make gpu` print, by their flags."""
    for each in gpu.PARTS:
        words = dict(zip(each.command[1::2], each.command[2::2], strict=False))
        if each.benchmark == "pipeline_cuda":
            stages = {"1", words.get("--stages", "2")}
            for case in product(
                [words["--size"]], ("inference", "learning"), stages, ("eager", "graph")
            ):
                yield each.benchmark, ", ".join(case), "ms per frame"
        elif each.benchmark == "exchange":
            for size, name in product(exchange.SIZES, exchange.NAMES):
                yield each.benchmark, f"{words['--ranks']}, {size}, {name}", "ms"
        elif each.benchmark == "swin_step":
            for name, way, quantity in product(SHAPES, swin_step.WAYS, each.quantities):
                yield each.benchmark, f"{name}, {way.name}", quantity


@pytest.mark.parametrize("paper", ["ring", "partime", "sbp"])
def test_make_gpu_measures_all_that_claims_compare(paper):
    cases = set(printable())
    for row in read_tsv(ROOT / f"src/actionspan_papers/{paper}/on_gpu.tsv"):
        sides = [case for side in ("own", "other") for case in row[side].split(" ÷ ")]
        for case in sides:
            if case != "1.1":
                assert (row["benchmark"], case, row["quantity"]) in cases
