"""Where a network of timm or transformers comes from, and what its library says of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from actionspan.errors import InputError, lacks_memory, printable

LOCAL: Any = {"local_files_only": True, "trust_remote_code": False}
"""How transformers loads a model: from this machine, and no code of its own."""
_OWN_WORDS = {  # of the libraries some advise to run the code
    "trust_remote_code": "needs code of its own, which is never run; give a model of the library's",
    "npickling": "its weights are a pickle of more than tensors; give model.safetensors",
    "weights_only": "its weights are a pickle of more than tensors; give model.safetensors",
    "size mismatch": "its weights have other shapes than its config.json asks for",
    "ignore_mismatched_sizes": "its weights have other shapes than its config.json asks for",
}


class Source(NamedTuple):
    """Where an encoder comes from."""

    name: str  # as it was asked for
    package: str  # timm or transformers
    model: str  # what the library calls it: a model's name, or a folder
    weights: tuple[Path, ...]
    prepares: str  # what says how pictures are prepared, and how the network is built


@contextmanager
def telling(name: str, repository: str = "") -> Iterator[None]:
    """Turn what the libraries raise for a model into one line."""
    from huggingface_hub import errors

    get = f"run `hf download {repository}` where there is a network, or give its folder"
    try:
        yield
    except InputError:
        raise
    except errors.GatedRepoError:
        page = f"https://huggingface.co/{repository}"
        line = f"its licence must be accepted at {page}; then run `hf auth login`"
        raise InputError(f"{name}: {line}") from None
    except errors.RepositoryNotFoundError:
        raise InputError(f"{name}: there is no such model, or it is private") from None
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise InputError(f"{name}: its weights are not on this machine; {get}") from None
    except Exception as error:  # of code that is not ours
        if lacks_memory(error):
            raise
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        ours = (ours for theirs, ours in _OWN_WORDS.items() if theirs in said)
        raise InputError(f"{name}: {next(ours, printable(said)[:300])}") from None
