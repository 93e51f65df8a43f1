"""Writes ``tests/vectors/log``: logs as other implementations of format 1 may be given them. ``python -m tests.log.vector_files``

``base.json`` is a good log with some of everything. Every other file is what changes: it takes the first ``after``
entries of the base and goes on with its own ``entries`` (the stored text, or null for a number without an object).
``expect`` is ``read``, or the kind of refusal, and ``at`` the number that is refused.
"""

import json
from pathlib import Path
from typing import Any

from seawall.errors import CorruptError, FreshnessError, TrustError
from seawall.log.bodies import (
    SIGNERS,
    Body,
    Epoch,
    Hold,
    Lift,
    ProofHead,
    ProofHeads,
    Quarantine,
    Tombstone,
    TrustChange,
    Unread,
    WriteOff,
)
from seawall.log.entries import entry_key, operation_id
from seawall.log.identity import identify
from seawall.log.state import RunState
from seawall.testing.memory import MemoryStore
from seawall.vault import canonical
from seawall.vault.signing import SigningKey
from seawall.vault.trust import read_list, sign_list
from tests.log.actors import KEYS, RUN, Hand, TickClock, begun, commit_body, hexed, read, trust_list
from tests.log.faults import BODIES, PREPARED, SEALING, SECOND_OPERATOR, VECTORS, lease, next_list, some, statement, two_operators

FOLDER = Path(__file__).parent.parent / "vectors" / "log"

REFUSALS = {CorruptError: "corrupt", TrustError: "trust", FreshnessError: "freshness"}

COMMON = 4
"""Entries of the base that the faults of faults.py stand on."""


def tombstone(under: int, of: str = SEALING) -> Tombstone:
    return Tombstone(of, hexed("store", 16), hexed("plan", 32), under)


OPERATOR = KEYS.operator
BOTH = (TrustChange(two_operators()), OPERATOR)

SEQUENCES: dict[str, list[tuple[Body, SigningKey]]] = {
    "lease that somebody holds": [(lease(), OPERATOR), (lease("two", 9, 20), OPERATOR)],
    "lease from before the last one": [(lease(taken=5), OPERATOR), (lease(taken=4), OPERATOR)],
    "lease of another purpose from before": [(lease(taken=5), OPERATOR), (lease(taken=4, purpose="tape"), OPERATOR)],
    "tombstone under a lease of before": [(lease(), OPERATOR), (lease("two", 10, 20), OPERATOR), (tombstone(5), OPERATOR)],
    "tombstone under a lease that was extended": [(lease(), OPERATOR), (lease(taken=1), OPERATOR), (tombstone(5), OPERATOR)],
    "tombstone under a lease that was given back": [(lease(), OPERATOR), (lease(taken=1, until=1), OPERATOR), (tombstone(6), OPERATOR)],
    "tombstone under a lease of another purpose": [(lease(purpose="tape"), OPERATOR), (tombstone(5), OPERATOR)],
    "tombstone under somebody else's lease": [BOTH, (lease(), SECOND_OPERATOR), (tombstone(6), OPERATOR)],
    "tombstone twice": [(lease(), OPERATOR), (tombstone(5), OPERATOR), (tombstone(5), OPERATOR)],
    "commit of what was given up": [(lease(), OPERATOR), (tombstone(5, commit_body(9).sealing), OPERATOR), (commit_body(9), KEYS.writer)],
    "write-off of another run": [BOTH, (WriteOff(SEALING, statement(OPERATOR, SECOND_OPERATOR, run="other")), OPERATOR)],
    "write-off that is another record": [BOTH, (WriteOff(SEALING, statement(OPERATOR, SECOND_OPERATOR, kind="incident")), OPERATOR)],
    "write-off of another checkpoint": [
        BOTH,
        (WriteOff(SEALING, statement(OPERATOR, SECOND_OPERATOR, sealing=hexed("other", 16))), OPERATOR),
    ],
    "write-off of another manifest": [
        BOTH,
        (WriteOff(SEALING, statement(OPERATOR, SECOND_OPERATOR, manifest=hexed("other", 32))), OPERATOR),
    ],
    "write-off by a stranger": [(WriteOff(SEALING, statement(OPERATOR, SECOND_OPERATOR)), OPERATOR)],
}
"""Several entries after the common ones, of which the last may not be there."""


def base() -> tuple[MemoryStore, Hand]:
    """The good log."""
    hand = some()
    op = operation_id
    hand.write(commit_body(3, quarantine="opaque"), KEYS.writer)
    hand.write(Hold("audit"), KEYS.operator)
    hand.write(Lift(op("test", "4"), "was fine"), KEYS.operator)
    hand.write(lease(), KEYS.operator)
    hand.write(Tombstone(SEALING, hexed("store", 16), hexed("plan", 32), 8), KEYS.operator)
    hand.write(Tombstone(hexed("unfinished", 16), hexed("store", 16), hexed("plan", 32), 8), KEYS.operator)
    hand.write(ProofHeads((ProofHead(KEYS.verifier.key_id, 3, hexed("proof", 32)),)), KEYS.verifier)
    hand.write(Unread("later", {"name": "é\udc80\U0001f30a"}), KEYS.verifier, ignorable=True)
    hand.write(lease(taken=2, until=2), KEYS.operator)
    first = read_list(trust_list(), KEYS.root.public).with_key(SECOND_OPERATOR.public, "operator", TickClock())
    hand.write(TrustChange(sign_list(first, KEYS.root)), KEYS.operator)
    hand.write(WriteOff(SEALING, statement(KEYS.operator, SECOND_OPERATOR)), KEYS.operator)
    second = first.with_revocation(KEYS.writer.key_id, "stolen")
    hand.write(TrustChange(sign_list(second, KEYS.root)), KEYS.coordinator)
    hand.write(Epoch(2, (KEYS.second_writer.key_id,), "zone a is gone"), KEYS.coordinator)
    hand.write(commit_body(9, written=1), KEYS.second_writer)
    hand.write(commit_body(9, written=2, name="in time"), KEYS.second_writer)
    hand.write(Quarantine(commit_body(9, name="in time").sealing, "loss jumped"), KEYS.verifier)
    return hand.store, hand


def summary(state: RunState) -> dict[str, Any]:
    """What two readers must agree on."""
    assert state.trust is not None
    return {
        "seq": state.seq,
        "digest": state.digest,
        "epoch": state.epoch,
        "coordination": state.coordination,
        "trust_version": state.trust.version,
        "revoked_at": state.revoked_at,
        "commits": list(state.commits),
        "orphans": list(state.orphans),
        "quarantined": sorted(state.quarantined),
        "holds": state.hold_reasons(),
        "tombstones": sorted([record.sealing, record.store] for records in state.tombstones.values() for record in records),
        "leases": {lease.purpose: [lease.holder, lease.until, lease.seq] for lease in state.leases.values()},
        "written_off": {record.sealing: list(record.signers) for record in state.written_off.values()},
        "heads": {head.verifier: [head.seq, head.digest] for head in state.heads.values()},
        "kept": [[kept.seq, kept.kind] for kept in state.kept],
    }


def stored(store: MemoryStore, first: int, last: int) -> list[str | None]:
    found = [store.objects.get(entry_key(RUN, seq)) for seq in range(first, last + 1)]
    return [None if data is None else data.decode("ascii") for data in found]


def vectors() -> dict[str, dict[str, Any]]:
    """File name to content."""
    good, hand = base()
    made: dict[str, dict[str, Any]] = {
        "base": {
            "root": KEYS.root.public.text(),
            "run": RUN,
            "store": identify(good),
            "entries": stored(good, 1, hand.seq),
            "expect": "read",
            "state": summary(read(good).state),
        }
    }
    for name, (write, error, _) in VECTORS.items():
        bad = some()
        write(bad)
        entry = bad.store.objects[entry_key(RUN, COMMON + 1)]
        # A file of 3 MiB says no more than its name.
        if len(entry) < 100_000:
            text = entry.decode("ascii")
            made[name] = {"after": COMMON, "entries": [text], "expect": REFUSALS[error], "at": COMMON + 1}
    late = some()
    late.write(Epoch(2, (KEYS.second_writer.key_id,), "zone a is gone"), KEYS.coordinator)
    late.write(commit_body(9), KEYS.writer, epoch=1)
    made["commit of a fenced writer"] = {
        "after": COMMON,
        "entries": stored(late.store, COMMON + 1, late.seq),
        "expect": "read",
        "state": summary(read(late.store).state),
    }
    revoked = some()
    revoked.write(TrustChange(next_list(KEYS.writer.key_id)), KEYS.coordinator)
    revoked.write(commit_body(9), KEYS.writer)
    made["commit of a revoked key"] = {
        "after": COMMON,
        "entries": stored(revoked.store, COMMON + 1, revoked.seq),
        "expect": "trust",
        "at": 6,
    }
    for name, writes in SEQUENCES.items():
        told = some()
        for body, key in writes:
            told.write(body, key)
        made[name] = {"after": COMMON, "entries": stored(told.store, COMMON + 1, told.seq), "expect": "trust", "at": told.seq}
    skipped = stored(good, 6, 8)
    made["entry skipped"] = {"after": 4, "entries": [None, *skipped], "expect": "freshness", "at": 5}
    other, other_hand = begun("other")
    other_hand.write(Hold("forked"), KEYS.operator)
    made["forked"] = {"after": 2, "entries": [*stored(other, 3, 3), *stored(good, 4, 4)], "expect": "trust", "at": 3}
    fourth, fifth = stored(good, 4, 5)
    made["two entries swapped"] = {"after": 3, "entries": [fifth, fourth], "expect": "trust", "at": 4}
    for kind, body in BODIES.items():
        for role in ("writer", "verifier", "operator", "coordinator"):
            if role not in SIGNERS[kind]:
                bad = some()
                if kind in PREPARED:
                    bad.write(*PREPARED[kind])
                bad.write(body, KEYS.of(role))
                made[f"{kind} by {role}"] = {"after": COMMON, "entries": stored(bad.store, 5, bad.seq), "expect": "trust", "at": bad.seq}
    return made


def store_of(vector: dict[str, Any], good: dict[str, Any]) -> MemoryStore:
    """The store that a vector describes."""
    store = MemoryStore()
    store.objects["seawall.json"] = canonical.encode({"format": "1", "store": good["store"]})
    for seq, text in enumerate([*good["entries"][: vector.get("after", 0)], *vector["entries"]], 1):
        if text is not None:
            store.objects[entry_key(good["run"], seq)] = text.encode("ascii")
    return store


def file_name(name: str) -> str:
    return name.replace(" ", "-").replace(",", "").replace("'", "") + ".json"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, vector in vectors().items():
        (FOLDER / file_name(name)).write_text(json.dumps(vector, indent=1, sort_keys=True) + "\n")
