"""How many flipped bits each check misses, at a size that takes a minute: tens of millions of errors, beside theory and controls.

It is `seawall flips` with more trials, and with as many SHA-256 and AES-GCM computations as fit into the time that is given. Exit 1 when a
count contradicts theory, or a control does not miss what it must.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from seawall.cli.flips import document, show
from seawall.drills.flip_patterns import PATTERNS
from seawall.drills.missed_detection import measure
from seawall.drills.recomputed_check import SealedRecords


def recomputed_in(seconds: float, record_bytes: int) -> int:
    """How many errors of each kind digest and tag can be computed for in that time on this machine."""
    records = SealedRecords(record_bytes, 0)
    probe = 500
    began = time.perf_counter()
    for pattern in PATTERNS:
        for flips in pattern.blocks(0, records.record_bits, probe):
            records.missed(flips)
    return max(1, round(probe * seconds / (time.perf_counter() - began)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000_000, help="errors of each kind for each CRC")
    parser.add_argument("--seconds", type=float, default=30.0, help="for SHA-256 and AES-GCM together")
    parser.add_argument("--chunk-bytes", type=int, default=1 << 20)
    parser.add_argument("--record-bytes", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep the numbers in this file")
    asked = parser.parse_args()
    recomputed = recomputed_in(asked.seconds, asked.record_bytes)
    began = time.perf_counter()
    report = measure(
        trials=asked.trials, recomputed=recomputed, chunk_bytes=asked.chunk_bytes, record_bytes=asked.record_bytes, seed=asked.seed
    )
    took = time.perf_counter() - began
    show(report)
    total = sum(row.trials for row in report.rows)
    print(f"{total:,} errors judged in {took:.1f} s, {asked.trials:,} of each kind by table and {recomputed:,} of each kind computed anew")
    for problem in report.problems:
        print(problem)
    if asked.json:
        asked.json.write_text(json.dumps({**document(report), "seconds": took, "problems": report.problems}, indent=1) + "\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
