"""The short form of the soak test; ``python -m tests.soak`` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_threads_and_processes():
    command = [sys.executable, "-m", "tests.soak", "--minutes", "0.05", "--threads", "8"]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout
    assert int(done.stdout.split(" calls")[0].split()[-1]) > 20
