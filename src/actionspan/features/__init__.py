"""The features stage: two-stream features of snippets, rescaled to a fixed number of steps."""

from actionspan.lazy import lazy

_MODULES = {
    "VideoSettings": "actionspan.features.settings",
    "encode_video": "actionspan.features.one_pass",
}
__all__ = list(_MODULES)
__getattr__ = lazy(__name__, _MODULES)
