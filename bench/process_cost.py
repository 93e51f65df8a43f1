"""What one command costs: wall seconds, CPU seconds and peak memory of its whole process tree.

Run as a program it is the small process between the bench and the command. Linux counts the memory that a process had before
``exec`` into its peak, so a child started by a large parent would seem as large as that parent; this one has about 10 MiB.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

COMMAND_SECONDS = 180
"""A command that takes longer hangs; everything measured here takes seconds."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds and bytes of one run of a command. ``peak_bytes`` is that of its largest process."""

    wall: float
    cpu: float
    peak_bytes: int


def cost_of(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> tuple[Cost, str]:
    """Run a command to its end. Its cost, and its standard output. ``SystemExit`` with what it said when it fails."""
    with TemporaryFile() as report, TemporaryFile() as output, TemporaryFile() as errors:
        between = [sys.executable, "-I", "-S", __file__, str(report.fileno()), *command]
        process = subprocess.Popen(
            between, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
            pass_fds=[report.fileno()], start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(COMMAND_SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        for file in (report, output, errors):
            file.seek(0)
        said = output.read().decode("utf-8", "replace")
        if process.returncode:
            sys.exit(
                f"{' '.join(command)} ended with {process.returncode}:\n{said[-2000:]}{errors.read().decode('utf-8', 'replace')[-2000:]}"
            )
        return Cost(**json.load(report)), said


def _measure(report: int, command: list[str]) -> int:
    os.set_inheritable(report, False)
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - started
    # ru_maxrss is in KiB on Linux; the seconds are those of the child and of every child that it waited for (getrusage(2)).
    os.write(report, json.dumps({"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss << 10}).encode())
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_measure(int(sys.argv[1]), sys.argv[2:]))
