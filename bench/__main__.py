"""``python -m bench``: see `every`."""

import sys

from bench.every import main

if __name__ == "__main__":
    sys.exit(main())
