"""The state of a pipeline in plain containers, which `torch.load(weights_only=True)` reads."""

from collections.abc import Mapping
from typing import Any

from actionspan.streaming.history import Kept
from actionspan.streaming.messages import Message


def plain(value: Any) -> Any:
    """Return a state whose tuples, dicts and lists are of no class of ours."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(plain, value))
    return value


def revived_stage(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a stage with the messages that `plain` unfolded."""
    history = state["history"]
    if history is not None:
        kept = [Kept(step, Message(*message), *rest) for step, message, *rest in history["kept"]]
        history = {**history, "kept": kept}
    links = {name: list(map(revived, state[name])) for name in ("arrived", "signalled")}
    return {**state, **links, "history": history}


def revived(message: Any) -> Message | None:
    """Return a message that `plain` unfolded."""
    return None if message is None else Message(*message)
