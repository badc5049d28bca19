"""``python -m tests.soak --minutes 60`` runs the soak test for an hour and prints what it did."""

import argparse
import sys

from tests.soak.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=8)
    arguments = parser.parse_args()
    report = soak(60 * arguments.minutes, arguments.threads)
    print(report)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
