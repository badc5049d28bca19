"""Broken sparse matrices at every door, in child processes, so that a crash is counted.

    python tests/fuzz/sparse_rows.py --cases 1000

prints a line for each door: how many were refused, how many were accepted in silence, how many
raised anything but a ValueError, and how many crashed the process. The exit code is 1 if any was
not refused. Cases are drawn from --seed, and the same for the same seed.
"""

import argparse
import os
import struct
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from broken_sparse import broken, doors

OUTCOMES = ("refused", "silent", "other error", "crashed")


def run(door, X, seed, first, last, pipe):
    """Write the outcome of every case to the pipe, one byte each."""
    for case in range(first, last):
        matrix, what = broken(X, np.random.default_rng([seed, case]))
        try:
            door(matrix)
            outcome = 1
        except ValueError:
            outcome = 0
        except BaseException as error:
            print(f"case {case} ({what}): {type(error).__name__}: {error}", file=sys.stderr)
            outcome = 2
        os.write(pipe, struct.pack("B", outcome))


def count(door, X, seed, n_cases):
    """Count the outcomes; a child that dies is followed by another, from the next case on."""
    counts = dict.fromkeys(OUTCOMES, 0)
    done = 0
    while done < n_cases:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            run(door, X, seed, done, n_cases, writer)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answers:
            outcomes = answers.read()
        os.waitpid(child, 0)
        for outcome in outcomes:
            counts[OUTCOMES[outcome]] += 1
        done += len(outcomes)
        if done < n_cases:
            counts["crashed"] += 1
            done += 1
    return counts


def main():
    """Run all doors and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="cases for each door")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 5)), rng.integers(0, 3, 24).astype(float)
    total = dict.fromkeys(OUTCOMES, 0)
    for name, door in doors(X, y, np.arange(24) // 6).items():
        counts = count(door, X, options.seed, options.cases)
        print(f"{name:26s}", "  ".join(f"{key} {counts[key]}" for key in OUTCOMES), flush=True)
        for key in OUTCOMES:
            total[key] += counts[key]
    print(f"{'all':26s}", "  ".join(f"{key} {total[key]}" for key in OUTCOMES))
    return int(total["refused"] != sum(total.values()))


if __name__ == "__main__":
    sys.exit(main())
