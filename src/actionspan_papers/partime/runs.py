"""What the steps of paper 002 share: the settings of all experiments that learn."""

import argparse

from actionspan.settings import from_arguments
from actionspan_papers.partime.settings import PartimeSettings


def settings_of(arguments: argparse.Namespace) -> PartimeSettings:
    """Return the settings of all experiments that learn."""
    return from_arguments(PartimeSettings, arguments)
