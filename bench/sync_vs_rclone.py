"""What sealing, restoring and verifying cost, beside rclone, restic and sha256sum: same bytes, same server, same run.

    make bench        (or: python bench/sync_vs_rclone.py [--rounds N] [--mib N] [--json FILE])

Each round gives every tool a fresh bucket and fresh keys, and each task alternates which tool goes first. Everything lies in
memory (tmpfs) where there is room. Exits 1 when a goal is missed. docs/performance.md says how to read the table.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from process_cost import cost_of
from ratios import Goal, Measurement, Row, Verdict, judge, rows_of
from tools_measured import Rclone, Restic, Seawall, clean_environment, run_to_end, versions

from seawall.testing.seaweedfs import SeaweedFS, client_of

UP, DOWN, LOCAL, REMOTE = "up", "down", "verify on disk", "verify on S3"
REFERENCES = {UP: "rclone crypt", DOWN: "rclone crypt", LOCAL: "sha256sum -c", REMOTE: "rclone crypt check --download"}
GOALS = (
    Goal(UP, "seawall sync", "rclone crypt", 0.5),
    Goal(DOWN, "seawall restore", "rclone crypt", 1.0),
    Goal(LOCAL, "seawall verify L2", "sha256sum -c", 0.5),
    Goal(REMOTE, "seawall verify L3", "restic check --read-data", 0.6),
)
LEAST_ROUNDS = 5
LONGEST_SECONDS = 450
"""No round begins that would not end within it, so that the whole takes less than eight minutes. On a busy machine give it more."""
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the scratch folder in it is made by tempfile, under a random name

Commands = list[tuple[str, list[str], dict[str, str], Path]]
"""Tool, command line, environment, folder to run it in."""


class Bench:
    """One run: its scratch folder, its server, and what was measured so far."""

    def __init__(self, scratch: Path, server: SeaweedFS, rounds: int) -> None:
        self.scratch = scratch
        self.server = server
        self.rounds = rounds
        self.measurements: list[Measurement] = []
        self.skipped: list[str] = []
        self.env = clean_environment(scratch, server)
        self.checkpoint = scratch / "step_00000006"
        self.sums = scratch / "SHA256SUMS"
        self.sums.write_text(run_to_end(["sha256sum", *sorted(os.listdir(self.checkpoint))], self.checkpoint, self.env))
        self.local = Seawall.site(scratch / "local", self.env, f"file://{scratch}/local/copies")
        run_to_end(self.local.sync(self.checkpoint), self.local.folder, self.env)
        server.create_bucket("restic")
        self.restic = Restic.repository(scratch / "restic", self.env, server, "restic", self.checkpoint)
        if isinstance(self.restic, str):
            self.skipped.append(f"restic check --read-data: {self.restic}")

    def round(self, number: int) -> None:
        """All tasks once."""
        folder = self.scratch / f"round-{number}"
        folder.mkdir()
        buckets = {tool: f"{tool}-{number}" for tool in ("sealed", "plain", "crypt")}
        for bucket in buckets.values():
            self._fresh_bucket(bucket)
        site = Seawall.site(folder / "site", self.env, f"s3://{buckets['sealed']}/bench", self.server.endpoint)
        rclone = Rclone.remotes(folder / "rclone.conf", self.server, buckets["plain"], buckets["crypt"])
        source = str(self.checkpoint)
        self._measure(
            number,
            UP,
            [
                ("seawall sync", site.sync(self.checkpoint), self.env, site.folder),
                ("rclone crypt", rclone.sync(source, "crypt:step"), self.env, folder),
                ("rclone plain", rclone.sync(source, "plain:step"), self.env, folder),
            ],
        )
        targets = {tool: folder / f"back-{tool.replace(' ', '-')}" for tool in ("seawall restore", "rclone crypt", "rclone plain")}
        self._measure(
            number,
            DOWN,
            [
                ("seawall restore", site.restore(targets["seawall restore"]), self.env, site.folder),
                ("rclone crypt", rclone.sync("crypt:step", str(targets["rclone crypt"])), self.env, folder),
                ("rclone plain", rclone.sync("plain:step", str(targets["rclone plain"])), self.env, folder),
            ],
            after=lambda tool: self._came_back(tool, targets[tool], compare=number == 0),
        )
        self._measure(
            number,
            LOCAL,
            [
                ("seawall verify L2", self.local.verify("L2"), self.env, self.local.folder),
                ("sha256sum -c", ["sha256sum", "--check", "--quiet", str(self.sums)], self.env, self.checkpoint),
                ("seawall verify L3", self.local.verify("L3"), self.env, self.local.folder),
            ],
        )
        remote: Commands = [
            ("seawall verify L2", site.verify("L2"), self.env, site.folder),
            ("rclone crypt check --download", rclone.check(self.checkpoint, "crypt:step"), self.env, folder),
            ("seawall verify L3", site.verify("L3"), self.env, site.folder),
            ("rclone cryptcheck", rclone.cryptcheck(self.checkpoint, "crypt:step"), self.env, folder),
            ("rclone plain check --download", rclone.check(self.checkpoint, "plain:step"), self.env, folder),
        ]
        if isinstance(self.restic, Restic):
            remote.append(("restic check --read-data", self.restic.check(), self.restic.env, folder))
        self._measure(number, REMOTE, remote)
        for bucket in buckets.values():
            self._drop_bucket(bucket)
        shutil.rmtree(folder)

    def _measure(self, number: int, task: str, commands: Commands, after: Callable[[str], None] = lambda tool: None) -> None:
        for tool, command, env, folder in commands if number % 2 == 0 else reversed(commands):
            cost, _ = cost_of(command, cwd=folder, env=env)
            self.measurements.append(Measurement(number, task, tool, cost))
            after(tool)
            print(
                f"  round {number + 1}/{self.rounds} {task}: {tool}: {cost.cpu:.2f} CPU s, {cost.wall:.2f} s", file=sys.stderr, flush=True
            )

    def _came_back(self, tool: str, target: Path, *, compare: bool) -> None:
        names = sorted(os.listdir(self.checkpoint))
        if sorted(os.listdir(target)) != names:
            sys.exit(f"{tool} brought back other files: {sorted(os.listdir(target))}")
        if compare:
            _, differing, unread = filecmp.cmpfiles(self.checkpoint, target, names, shallow=False)
            if differing or unread:
                sys.exit(f"{tool} brought back other bytes: {differing + unread}")
        shutil.rmtree(target)

    def _fresh_bucket(self, name: str) -> None:
        """A bucket with one small object, because the server makes room for a bucket when its first object comes."""
        self.server.create_bucket(name)
        client = client_of(self.server.endpoint, self.server.keys)
        client.put_object(Bucket=name, Key="first", Body=b"first")
        client.close()

    def _drop_bucket(self, name: str) -> None:
        client = client_of(self.server.endpoint, self.server.keys)
        client.delete_bucket(Bucket=name)
        client.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="seawall beside rclone, restic and sha256sum; exits 1 when a goal is missed")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help=f"fewer than {LEAST_ROUNDS} judge nothing and exit 1")
    parser.add_argument("--mib", type=int, default=512, help="size of the checkpoint")
    parser.add_argument("--seconds", type=int, default=LONGEST_SECONDS, help="begin no round that would not end within it")
    parser.add_argument("--json", type=Path, help="write all measurements, medians and verdicts to this file")
    options = parser.parse_args()
    started = time.monotonic()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seawall-bench-", dir=_place(options.mib))))
        made = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("real_checkpoint.py")), str(scratch / "step_00000006"), str(options.mib)],
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        print(f"checkpoint: {made}", file=sys.stderr, flush=True)
        server = stack.enter_context(SeaweedFS(scratch / "s3"))
        bench = Bench(scratch, server, options.rounds)
        longest = 0.0
        for number in range(options.rounds):
            began = time.monotonic()
            if began - started + longest > options.seconds:
                bench.skipped.append(f"rounds from {number + 1} on: they would not end within {options.seconds} s")
                break
            bench.round(number)
            longest = max(longest, time.monotonic() - began)
        in_memory = scratch.is_relative_to(_SHARED_MEMORY)
    rows = rows_of(bench.measurements, REFERENCES)
    verdicts = judge(bench.measurements, GOALS, LEAST_ROUNDS)
    seconds = time.monotonic() - started
    _show(rows, verdicts, bench.skipped, options.mib, seconds)
    if options.json:
        _write(options.json, bench, rows, verdicts, {"checkpoint": made, "seconds": round(seconds), "tmpfs": in_memory})
    return 0 if all(verdict.held for verdict in verdicts) else 1


def _place(mib: int) -> Path | None:
    """Memory, if it has twice the room that a run takes at its fullest: eight times the checkpoint. None is the usual folder."""
    if not _SHARED_MEMORY.is_dir():
        return None
    available = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return _SHARED_MEMORY if min(shutil.disk_usage(_SHARED_MEMORY).free >> 10, available) > 16 * (mib << 10) else None


def _show(rows: list[Row], verdicts: list[Verdict], skipped: list[str], mib: int, seconds: float) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{mib} MiB, medians, {seconds:.0f} s in all", box=box.ASCII2)
    table.add_column("task")
    table.add_column("tool")
    for heading in ("wall s", "CPU s", "least-most", "CPU s/GiB", "peak MiB", "CPU ratio", "wall ratio"):
        table.add_column(heading, justify="right")
    previous = ""
    for row in rows:
        if previous and row.task != previous:
            table.add_section()
        table.add_row(
            "" if row.task == previous else row.task,
            row.tool,
            f"{row.wall:.2f}",
            f"{row.cpu:.2f}",
            f"{row.cpu_least:.2f}-{row.cpu_most:.2f}",
            f"{row.cpu * 1024 / mib:.2f}",
            f"{row.peak_bytes >> 20}",
            f"{row.cpu_ratio:.2f}",
            f"{row.wall_ratio:.2f}",
        )
        previous = row.task
    console = Console(width=None if sys.stdout.isatty() else 132, highlight=False)
    console.print(table)
    print("Ratios: medians of ratios within a round, to " + ", ".join(f"{tool} ({task})" for task, tool in REFERENCES.items()) + ".")
    for line in skipped:
        print(f"Skipped: {line}.")
    for verdict in verdicts:
        goal = verdict.goal
        word = "held" if verdict.held else "MISSED" if verdict.rounds >= LEAST_ROUNDS else f"not judged: {verdict.rounds} rounds only"
        print(f"Goal: {goal.task}: {goal.tool} at most {goal.most:.2f} x the CPU of {goal.reference}: {verdict.measured:.2f}, {word}")


def _write(path: Path, bench: Bench, rows: list[Row], verdicts: list[Verdict], facts: dict[str, object]) -> None:
    document = {
        **facts,
        "cpus": os.cpu_count(),
        "versions": versions(),
        "skipped": bench.skipped,
        "rows": [asdict(row) for row in rows],
        "verdicts": [asdict(verdict) for verdict in verdicts],
        "measurements": [asdict(one) for one in bench.measurements],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
