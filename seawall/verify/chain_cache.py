"""A cache of verified chains of proofs, so that reading what is proved costs as many requests as there is news.

Like the log's snapshot (:mod:`seawall.log.snapshot`) it only says where to go on reading: the last batch that it covers is read from
the store again and compared by digest, and the head that the log names must be in it. It is as private as a key (mode 0600). What is
damaged, foreign or of another version is passed over, which costs requests and nothing else.
"""

from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import seawall
from seawall.log.local import local_file, read_local, write_local
from seawall.log.read import LogView
from seawall.verify.levels import Level
from seawall.verify.proofs import NO_BATCH, Chain, Proof, ProofBatch

_VERSION = f"1 {seawall.__version__}"
SEGMENT_BATCHES = 512
"""Batches a file: a full file is never written again, so that a long chain does not cost its length at every new batch."""


@dataclass
class ChainCache:
    """Chains that this process has read, and with ``state_dir`` those of processes before it on this host."""

    state_dir: Path | None = None
    _chains: dict[tuple[str, str, str, str], Chain] = field(default_factory=dict)

    def known(self, view: LogView, verifier: str) -> Chain | None:
        """What is known of a verifier's chain in the store that ``view`` was read from; None when nothing is."""
        name = _name(view, verifier)
        if name not in self._chains and self.state_dir is not None:
            loaded = self._load(self.state_dir, view, verifier)
            if loaded is not None:
                self._chains[name] = loaded
        return self._chains.get(name)

    def keep(self, view: LogView, chain: Chain) -> None:
        """Remember a chain that was read from the store of ``view``. A place that cannot be written costs time and nothing else."""
        name = _name(view, chain.verifier)
        known = self._chains.get(name)
        self._chains[name] = chain
        if self.state_dir is None or chain.seq == 0 or (known is not None and known.digest == chain.digest):
            return
        # Segments before the last one that changed are the same as they were, because a chain only grows.
        begun = known.seq // SEGMENT_BATCHES if known is not None and chain.digests[: known.seq] == known.digests else 0
        try:
            for number in range(begun, -(-chain.seq // SEGMENT_BATCHES)):
                self._save(self.state_dir, view, chain, number)
        except OSError:
            return

    def _save(self, state_dir: Path, view: LogView, chain: Chain, number: int) -> None:
        first = number * SEGMENT_BATCHES
        content = {
            **_place(view, chain.verifier, number),
            "prev": chain.digests[first - 1] if first else NO_BATCH,
            "digests": list(chain.digests[first : first + SEGMENT_BATCHES]),
            "batches": [[astuple(proof) for proof in batch.proofs] for batch in chain.batches[first : first + SEGMENT_BATCHES]],
        }
        write_local(_file(state_dir, view, chain.verifier, number), content)

    def _load(self, state_dir: Path, view: LogView, verifier: str) -> Chain | None:
        batches: list[ProofBatch] = []
        digests: list[str] = []
        for number in range(1 << 20):
            content = read_local(_file(state_dir, view, verifier, number))
            prev = digests[-1] if digests else NO_BATCH
            wanted = {**_place(view, verifier, number), "prev": prev}
            if content is None or any(content.get(name) != value for name, value in wanted.items()):
                break
            for digest, proofs in zip(content["digests"], content["batches"], strict=True):
                prev = digests[-1] if digests else NO_BATCH
                batches.append(ProofBatch(view.run, verifier, len(batches) + 1, prev, tuple(_proof(fields) for fields in proofs)))
                digests.append(digest)
            if len(content["digests"]) < SEGMENT_BATCHES:
                break
        return Chain(verifier, tuple(batches), tuple(digests)) if batches else None


def _name(view: LogView, verifier: str) -> tuple[str, str, str, str]:
    return view.state.root.key_id, view.run, view.store_id, verifier


def _place(view: LogView, verifier: str, number: int) -> dict[str, Any]:
    root = view.state.root.raw.hex()
    return {"version": _VERSION, "root": root, "run": view.run, "store": view.store_id, "verifier": verifier, "segment": number}


def _file(state_dir: Path, view: LogView, verifier: str, number: int) -> Path:
    path = local_file(state_dir, "proofs", view.run, view.state.root, view.store_id)
    return path.with_name(f"{path.stem}.{verifier[:16]}.{number}.json")


def _proof(fields: list[Any]) -> Proof:
    sealing, manifest, store, level, *rest = fields
    return Proof(sealing, manifest, store, Level(level), *rest)
