"""Temporal action proposals from raw, untrimmed video, in one reproducible pipeline."""

from actionspan.lazy import lazy

__version__ = "0.2.0"

# A relative name: every module that asks for the version would otherwise count as one that uses
# the proposer, and all rules would run again when it changes.
__getattr__ = lazy(__name__, {name: ".propose.proposer" for name in ("Proposer", "load_model")})
