"""What the commands of this stage share: how they are called and how they refuse."""

from collections.abc import Callable

import pytest

from actionspan.cli import main


def run(*words: object) -> int:
    """Call `actionspan` with these words and return its status."""
    return main([str(word) for word in words])


@pytest.fixture
def refused(capsys) -> Callable[[int], str]:
    """Return a function that asserts status 2 and one line on standard error; it returns it."""

    def line_of(status: int) -> str:
        printed = capsys.readouterr()
        assert status == 2
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        return printed.err

    return line_of
