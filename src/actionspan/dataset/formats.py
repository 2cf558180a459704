"""The former name of `actionspan.annotations.formats`, which plug-ins may import."""

import sys
from importlib import import_module

for _name in ("parsing", "records", "rejections", "rows", "times"):
    sys.modules[f"{__name__}.{_name}"] = import_module(f"actionspan.annotations.formats.{_name}")
