"""The results of the installed package, to be held against those of another revision.

``python -m tests.same write FILE`` goes through all configurations and writes what they give, and
``python -m tests.same compare OLD NEW`` says what differs. ``.ci/same`` does both for a revision.
Only public names are used, so that every revision can run the same configurations.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # of helpers that other tests have too
