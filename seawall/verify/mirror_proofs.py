"""Proofs copied into the other stores of a run, so that one store alone still tells what its copies are worth, and brought back from
there when the coordination store lost some.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreError
from seawall.log.mirror import mirror_log
from seawall.log.read import LogView
from seawall.stores.base import Store
from seawall.vault import dsse
from seawall.verify.proofs import MAX_BYTES, NO_BATCH, prev_of, proof_key, proof_prefix

_SEQ = re.compile(r"([0-9]{16})\.json\Z", re.ASCII)


def mirror_proofs(store: Store, view: LogView, mirror: Store) -> int:
    """Bring the chains that the log of ``view`` names from ``store`` to ``mirror``; how many batches were copied.

    A chain is looked at from its head down to what the mirror has, so an up-to-date mirror costs one request a verifier.
    Batches are written oldest first: a copy that was stopped is a shorter chain, never one with a hole. What a mirror holds under a
    number already is left alone; whoever reads it compares it with the log.
    """
    copied = 0
    for verifier, head in sorted(view.state.heads.items()):
        missing = []
        for seq in range(head.seq, 0, -1):
            try:
                mirror.head(proof_key(view.run, verifier, seq))
                break
            except NoSuchObjectError:
                missing.append(proof_key(view.run, verifier, seq))
        for key in reversed(missing):
            try:
                mirror.put(key, store.get(key))
                copied += 1
            except ObjectExistsError:
                continue
    return copied


@dataclass(frozen=True)
class BroughtBack:
    """What :func:`bring_back` did."""

    batches: int = 0
    """Batches that are in their places again."""
    lost: dict[str, str] = field(default_factory=dict)
    """Verifier → why its chain is still not the one that the log names."""


def bring_back(store: Store, view: LogView, mirrors: Mapping[str, Store]) -> BroughtBack:
    """Put batches of proofs that ``store`` lost back into their places, from whichever mirror has the right ones.

    Which bytes are right is fixed by the log: the digest of a chain's head, and through it of every link before. Nothing is overwritten,
    so a batch that was replaced by another one stays and is reported. One listing tells that a chain has no hole.
    """
    batches, lost = 0, {}
    for verifier, head in sorted(view.state.heads.items()):
        there = _numbers(store, view.run, verifier)
        if all(seq in there for seq in range(1, head.seq + 1)) and _digest(store, view.run, verifier, head.seq) == head.digest:
            continue
        right, why = _right_batches(store, view, verifier, mirrors, there)
        for seq, raw in sorted(right.items()):
            try:
                store.put(proof_key(view.run, verifier, seq), raw)
                batches += 1
            except ObjectExistsError:
                why = why or f"batch {seq} was replaced by another one"
        if why:
            lost[verifier] = why
    return BroughtBack(batches, lost)


def _numbers(store: Store, run: str, verifier: str) -> set[int]:
    prefix = proof_prefix(run, verifier)
    return {int(match[1]) for match in (_SEQ.match(found.key.removeprefix(prefix)) for found in store.list(prefix)) if match}


def _right_batches(
    store: Store, view: LogView, verifier: str, mirrors: Mapping[str, Store], there: set[int]
) -> tuple[dict[int, bytes], str]:
    """From the head down: batches that the store lacks, each with the digest that the link after it names; and why the walk ended early."""
    missing: dict[int, bytes] = {}
    head = view.state.heads[verifier]
    wanted = head.digest
    # Below the lowest hole everything is there; that it links is for readers to check.
    lowest = next((seq for seq in range(1, head.seq + 1) if seq not in there), head.seq)
    for seq in range(head.seq, lowest - 1, -1):
        key = proof_key(view.run, verifier, seq)
        raw = _with_digest(store, key, wanted) if seq in there else None
        if raw is None:
            raw = next((found for mirror in mirrors.values() if (found := _with_digest(mirror, key, wanted)) is not None), None)
            if raw is None:
                return missing, f"no mirror has batch {seq} of it"
            missing[seq] = raw
        wanted = prev_of(raw, key)
    if lowest == 1 and wanted != NO_BATCH:
        return missing, "its first batch names one before it"
    return missing, ""


def _digest(store: Store, run: str, verifier: str, seq: int) -> str:
    try:
        return dsse.digest(store.get(proof_key(run, verifier, seq), 0, MAX_BYTES + 1))
    except NoSuchObjectError:
        return ""


def _with_digest(store: Store, key: str, digest: str) -> bytes | None:
    """The batch under ``key`` if it is the one with that digest; None also where the store does not answer."""
    try:
        raw = store.get(key, 0, MAX_BYTES + 1)
    except StoreError:
        return None
    return raw if dsse.digest(raw) == digest else None


def spread(store: Store, view: LogView, mirrors: Mapping[str, Store]) -> dict[str, str]:
    """Bring proofs and log of ``view`` from ``store`` to each mirror; mirror name → why it is behind.

    The log comes last, so that no mirror's log names a proof that the mirror lacks.
    """
    behind = {}
    for name, mirror in mirrors.items():
        try:
            mirror_proofs(store, view, mirror)
            mirror_log(store, view, mirror)
        except StoreError as error:
            behind[name] = str(error)
    return behind
