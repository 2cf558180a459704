"""Image networks in stages: the parts between which pictures get smaller, stem first."""

from torch import nn

from actionspan.networks.efficientnet_lite0 import EfficientNetLite0


def stages(network: nn.Module) -> list[nn.ModuleList]:
    """Return the modules with parameters of each stage, in the order in which they compute.

    EfficientNet-Lite0: stem, the groups of blocks that begin with a stride, head. ResNets: stem and
    four layers. Other networks: each child that has parameters.
    """
    if isinstance(network, EfficientNetLite0):
        groups = [[network._conv_stem, network._bn0]]
        for block in network._blocks:
            if block._depthwise_conv.stride[0] > 1 or len(groups) == 1:  # type: ignore[index]
                groups.append([])
            groups[-1].append(block)
        groups.append([network._conv_head, network._bn1])
        return [nn.ModuleList(group) for group in groups]
    children = [[child] for child in network.children() if any(True for _ in child.parameters())]
    first = dict(network.named_children())
    if "conv1" in first and "layer1" in first and "bn1" in first:
        stem = [first["conv1"], first["bn1"]]
        children = [stem, *[each for each in children if each[0] not in stem]]
    return [nn.ModuleList(group) for group in children]
