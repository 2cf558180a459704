"""Lines for exceptions of Snakemake; `tests/runs/test_mistakes.py` has Snakemake raise some."""

from types import SimpleNamespace

import pytest

from actionspan.workflow.mistakes import mistake

PRODUCES = "No rule to produce {} (if you use input functions make sure that they don't raise)"
MISSING = "Missing input files for rule features_extract:\n    affected files:\n        {}"
RULES = [
    SimpleNamespace(name=name, input=["results/events.csv"], output=[], has_wildcards=lambda: False)
    for name in ("folds", "tables")
]
CONFIG = {
    "evaluation": {"folds": 0},
    "features": {"encoders": {"rgb_weights": "mine.pt", "flow_weights": ["a.pt", "b.pt"]}},
    "recognition": {"flow": {"weights": "bn.pth"}},
}
LISTED = "docs/outputs.md lists the files that can be asked for"


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("fold", "did you mean folds?"),
        ("tabels", "did you mean tables?"),
        ("results/event.csv", "did you mean results/events.csv?"),
        ("results/evaluation/mtn-fold7.json", "evaluation.folds is 0"),
        ("results/report/videos/nobody.mp4", LISTED),
    ],
)
def test_a_target_that_nothing_makes_has_a_hint(target, hint):
    line = mistake(Exception(PRODUCES.format(target)), RULES, CONFIG)
    assert line == f"{target}: nothing makes it with this configuration; {hint}"


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("mine.pt", "features.encoders.rgb_weights: mine.pt: no such file"),
        ("b.pt", "features.encoders.flow_weights: b.pt: no such file"),
        ("other.pt", "other.pt: no such file"),
        (
            "bn.pth",
            "recognition.flow.weights: bn.pth: no such file; give a checkpoint, or null next to "
            "pretrained: false to train from scratch",
        ),
    ],
)
def test_a_file_that_is_not_there_has_its_key(file, line):
    assert mistake(Exception(MISSING.format(file)), RULES, CONFIG) == line


def test_an_exception_that_no_mistake_raises_has_no_line():
    assert mistake(Exception("a rule failed"), RULES, CONFIG) is None
