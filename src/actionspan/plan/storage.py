"""Files in S3, and results that lie there: what Snakemake's storage plugin is told of them."""

import importlib.util
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

from actionspan.errors import InputError

_URI = re.compile(r"[a-z][a-z0-9+.-]*://")
_PLUGIN = "snakemake_storage_plugin_s3"


def is_uri(path: str | None) -> TypeGuard[str]:
    """Return whether a path of the configuration is a URI, such as `s3://bucket/videos`."""
    return path is not None and _URI.match(path) is not None


class Storage:
    """The files that people give, as inputs of rules.

    Args:
        registry: Snakemake's `storage`; without one nothing can lie in S3.
        local: Snakemake's `local`.
    """

    def __init__(self, registry: Any = None, local: Any = None) -> None:
        self._registry, self._local = registry, local or (lambda path: path)

    @property
    def holds_results(self) -> bool:
        """Whether results lie in storage (`--default-storage-provider`), not on this disk."""
        return getattr(self._registry, "default_storage_provider", None) is not None

    def given(self, paths: Iterable[str]) -> list[Any]:
        """Return files as inputs: what is no result is not looked for where results lie."""
        return [self._given(path) for path in paths]

    def _given(self, path: str) -> Any:
        if is_uri(path):
            return self._registry.s3(path)
        return path if path.startswith("results/") else self._local(path)

    def names(self, folder: str, key: str) -> list[str]:
        """Return the names of the files of a folder in S3; sub-folders are not searched.

        Raises:
            InputError: The plugin is missing, or the folder cannot be listed; the line begins with
                `key`.
        """
        if not folder.startswith("s3://"):
            raise InputError(f"{key}: {folder}: a folder, or s3://BUCKET/FOLDER")
        if self._registry is None or importlib.util.find_spec(_PLUGIN) is None:
            raise InputError(f"{key}: {folder}: needs pip install 'actionspan[s3]'")
        from botocore.exceptions import BotoCoreError, ClientError

        # the plugin's own list_candidate_matches fails for every S3 address (0.3.6)
        inside = self._registry.s3(f"{folder}/_").flags["storage_object"]
        prefix = inside.key.removesuffix("_")
        try:
            listed = inside.s3bucket().objects.filter(Prefix=prefix, Delimiter="/")
            return [each.key.removeprefix(prefix) for each in listed if each.key != prefix]
        except (BotoCoreError, ClientError) as error:
            raise InputError(f"{key}: {folder}: cannot be listed: {error}") from None
