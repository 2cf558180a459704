"""Run commands of `actionspan`, each an argument in JSON, one after another on the same ranks."""

import json
import sys

from actionspan.cli import main

for words in map(json.loads, sys.argv[1:]):
    if status := main(words):
        sys.exit(status)
