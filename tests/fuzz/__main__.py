r"""The long form of the tests with damaged and hostile input.

    python -m tests.fuzz

gives damaged and hostile input to the package some 330,000 times, in child processes, and prints a
table of what came of it. It takes about ten minutes on two cores, and ends with exit code 1 where a
case crashed, hung, was read otherwise in silence or raised another error than the documented one;
it prints those cases. `--only NAME` runs one campaign, `--cases N` other numbers of cases, `--seed
N` others.

The same under sanitizers, which find what a crash does not show. The package must have been built
with them, by ``-Ccmake.define.PAIRGRAM_SANITIZE=address,undefined`` in the command of pip:

    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
        ASAN_OPTIONS=detect_leaks=0 python -m tests.fuzz
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from .campaigns import CAMPAIGNS
from .runner import run, table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=sorted(CAMPAIGNS), action="append")
    parser.add_argument("--cases", type=int, help="cases of each campaign")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds until a case hangs")
    arguments = parser.parse_args()
    reports = []
    for name in arguments.only or CAMPAIGNS:
        campaign = CAMPAIGNS[name]
        start = time.perf_counter()
        report = run(
            campaign,
            seed=arguments.seed,
            n_cases=arguments.cases or campaign.n_long,
            short=False,
            n_jobs=arguments.jobs,
            limit=arguments.limit,
        )
        for failure in report.failures[:20]:
            print(failure, file=sys.stderr)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        reports.append(report)
    print(table(reports))
    return int(any(report.failures for report in reports))


if __name__ == "__main__":
    sys.exit(main())
