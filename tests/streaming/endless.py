"""A program that streams through processes until it is ended; its first line are their ids."""

import itertools
import sys

from actionspan.streaming import Pipeline
from streaming.networks import Slow, chain, sgd, squared, stream

if __name__ == "__main__":
    samples = itertools.cycle(stream(16))
    network = [Slow(0, 0.02), *chain(2)]
    try:
        with Pipeline(network, "process", loss=squared, optimiser=[None, sgd, sgd]) as pipeline:
            for answer in pipeline.run(samples):
                if answer.index == 3:
                    print(*pipeline.processes(), flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
