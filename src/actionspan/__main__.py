"""Run the command line as `python -m actionspan`."""

import sys

from actionspan.cli import main

sys.exit(main())
