"""What the server that processes are forked from does first: it leaves the program's group.

Who ends a program by a signal to its whole group, as service managers do, would end the server and
with it all news of the stages, while the program is still writing its files. The server ends when
the program does. In any other process importing this does nothing.
"""

import os
import sys

if any(word.startswith("from multiprocessing.forkserver import main") for word in sys.orig_argv):
    os.setsid()
