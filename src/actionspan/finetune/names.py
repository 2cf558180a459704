"""The names of the causal heads, quick to import."""

from typing import Literal, get_args

HeadName = Literal["recurrent", "attention"]
HEADS: tuple[HeadName, ...] = get_args(HeadName)
