"""Mutations of the core: each line stands once in the program, and its tests are there."""

from pathlib import Path

import mutations

ROOT = Path(__file__).parents[2]


def test_each_mutation_changes_a_line_and_names_its_tests():
    texts = [path.read_text() for path in (ROOT / mutations.SOURCE).rglob("*.py")]
    table = list(mutations._table())
    assert len(table) > 60
    for each in table:
        assert sum(text.count(each.old) for text in texts) == 1, each.old
        assert [name for name in each.tests if not (ROOT / name).exists()] == [], each.subject
