"""The command line, called in this process."""

from actionspan.cli import main


def actionspan(*words: object) -> int:
    """Run a command, return its exit status; words may be paths or numbers."""
    return main([str(word) for word in words])
