"""How long the integrity matrix of many copies takes, from proofs in memory and from the local cache of chains.

    python bench/matrix.py [--checkpoints 1000] [--rounds 4]

Two stores, so 2,000 copies by default; every copy was verified ``rounds`` times, the first of them to L4. Prints seconds for each step.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from seawall.clock import utc_text
from seawall.log.read import LogView
from seawall.log.state import CommitRecord, HeadRecord, RunState
from seawall.vault.signing import ROOT, SigningKey
from seawall.verify.cells import MatrixPolicy
from seawall.verify.chain_cache import ChainCache
from seawall.verify.configuration import MatrixSettings
from seawall.verify.folded_facts import Asked, fold_facts
from seawall.verify.judge import judge
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.matrix_facts import StoreFacts
from seawall.verify.proofs import NO_BATCH, OK, Chain, Proof, ProofBatch
from seawall.verify.responses import responses

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
RUN = "gpt"
VERIFIER = "ab" * 16
T = TypeVar("T")


def hexed(text: str, nbytes: int) -> str:
    return sha256(text.encode()).hexdigest()[: 2 * nbytes]


def commits_of(checkpoints: int) -> list[CommitRecord]:
    at = [utc_text(BEGIN + timedelta(hours=number)) for number in range(checkpoints)]
    return [
        CommitRecord(
            hexed(f"s{n}", 16), n, 1, 1, hexed(f"m{n}", 32), hexed("k", 32), hexed("a", 16), hexed(f"r{n}", 32), at[n],
            n + 1, hexed(f"o{n}", 16), hexed("w", 16), at[n],
        )
        for n in range(checkpoints)
    ]  # fmt: skip


def batches_of(commits: list[CommitRecord], rounds: int) -> list[ProofBatch]:
    """One batch a check of both copies."""
    counts = {"keys": "500", "keys_missing": "0", "keys_new": "0", "compared_with": hexed("s0", 16)}
    counts |= {"floats": "1000000", "nonfinite": "0", "zeros": "1000", "saturated": "0"}
    batches = []
    for number in range(rounds):
        for commit in commits:
            at = utc_text(BEGIN + timedelta(days=number, hours=commit.step, minutes=5))
            levels = [Level.L0, Level.L2] + ([Level.L3, Level.L4] if number == 0 else [])
            proofs = tuple(
                Proof(commit.sealing, commit.manifest, hexed(store, 16), level, OK, "scrub", at, {
                    "objects": "40", "stored_bytes": "400000000", "wraps": "keyring 1, recovery 2", **(counts if level == Level.L4 else {})
                })
                for store in "ac" for level in levels
            )  # fmt: skip
            batches.append(ProofBatch(RUN, VERIFIER, len(batches) + 1, NO_BATCH, proofs))
    return batches


def timed(name: str, action: Callable[[], T]) -> T:
    began = time.perf_counter()
    result = action()
    print(f"{name:<48} {time.perf_counter() - began:7.3f} s")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    commits = commits_of(options.checkpoints)
    batches = batches_of(commits, options.rounds)
    state = RunState(RUN, SigningKey.generate(ROOT).public)
    state.commits = {commit.sealing: commit for commit in commits}
    digests = tuple(hexed(f"batch {batch.seq}", 32) for batch in batches)
    state.heads = {VERIFIER: HeadRecord(VERIFIER, len(batches), digests[-1], 1)}
    proofs = [proof for batch in batches for proof in batch.proofs]
    print(f"{2 * len(commits)} copies, {len(proofs)} proofs in {len(batches)} batches")
    view = LogView(state, hexed("c", 16))
    with tempfile.TemporaryDirectory() as folder:
        chain = Chain(VERIFIER, tuple(batches), digests)
        timed("keep the chain on disk, all of it", lambda: ChainCache(Path(folder)).keep(view, chain))
        loaded = timed("load it in another process", lambda: ChainCache(Path(folder)).known(view, VERIFIER))
        assert loaded is not None and loaded.seq == chain.seq
    stores = [StoreFacts(hexed(name, 16), name) for name in "ac"]
    now, ages = BEGIN + timedelta(hours=options.checkpoints, days=1), AgePolicy()
    facts = timed("fold the facts", lambda: fold_facts(state, proofs, stores, now, ages, Asked(fresh=True)))
    matrix = timed("judge", lambda: judge(facts, now, MatrixPolicy(ages, MatrixSettings())))
    calls = timed("gather what it calls for", lambda: responses(matrix))
    print(", ".join(f"{verdict} {count}" for verdict, count in matrix.counts().items()) + f"; {len(calls)} calls")


if __name__ == "__main__":
    main()
