"""What an operation of torch reads and writes, by its schema."""

import torch
from torch.utils._pytree import tree_leaves

ONLY_FORM = {"empty_like", "zeros_like", "ones_like", "new_empty", "new_zeros", "new_empty_strided"}
HOST_READS = {"_local_scalar_dense", "equal"}


def tensors(values):
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def written_by(func, args, kwargs):
    """Return the arguments that an operation writes into."""
    found = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += tensors(value)
    if func.overloadpacket.__name__ == "native_batch_norm":
        found += tensors(args[3:5])  # its schema does not say that it writes the statistics
    return found


def aliases(func):
    """Return whether what an operation returns is memory that was given to it."""
    returned = func._schema.returns
    return not returned or any(each.alias_info is not None for each in returned)
