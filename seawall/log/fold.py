"""What one more entry makes of a run's state, or why it may not be there (docs/spec/log-and-trust.md, section 7). Pure.

Every rule is checked against the state *before* the entry. An entry names the digest of the one before it, so whoever
signed it knew that state: an entry that breaks a rule is an incident, never bad luck. The one exception are commits
under a closed epoch, which a writer that does not know of its fencing may still leave behind; they become orphans.
"""

from collections.abc import Iterable
from dataclasses import replace

from seawall.errors import CorruptError, TrustError
from seawall.log import bodies
from seawall.log.entries import Entry, SignedEntry, entry_key
from seawall.log.records import parse_record
from seawall.log.state import (
    CommitRecord,
    Done,
    EpochRecord,
    HeadRecord,
    Kept,
    LeaseRecord,
    Mark,
    RunState,
    TombstoneRecord,
    WriteOffRecord,
)
from seawall.vault import canonical, dsse
from seawall.vault.signing import PublicKey
from seawall.vault.trust import TrustList, check_successor, read_list


def fold(state: RunState, signed: SignedEntry) -> RunState:
    """The state after ``signed``; ``TrustError`` (``CorruptError`` for a malformed list inside) if it may not follow."""
    return fold_all(state, [signed])


def fold_all(state: RunState, entries: Iterable[SignedEntry]) -> RunState:
    """The state after ``entries`` in order; ``state`` itself stays as it is, whatever is raised."""
    after = state.copy()
    for signed in entries:
        _apply(after, signed)
    return after


def content_of(body: bodies.Body) -> str:
    """SHA-256 over kind and body: what an operation id stands for."""
    return dsse.digest(canonical.encode({"kind": body.kind, "body": body.as_document()}))


def _refuse(state: RunState, why: str) -> TrustError:
    return TrustError(
        f"log entry {state.seq + 1} may not be there",
        where=entry_key(state.run, state.seq + 1),
        why=why,
        do="compare with the mirrors (`seawall log verify`); nothing is deleted or promoted on this history until it is explained",
    )


def _apply(state: RunState, signed: SignedEntry) -> None:
    entry = signed.entry
    _check_place(state, entry)
    _check_signer(state, signed)
    content = content_of(entry.body)
    match entry.body:
        case bodies.Genesis():
            _genesis(state, entry, entry.body)
        case bodies.Epoch():
            _epoch(state, entry, entry.body)
        case bodies.Commit():
            _commit(state, signed, entry.body)
        case bodies.Quarantine():
            _mark(state, signed, entry.body.sealing, entry.body.reason)
        case bodies.Hold():
            _mark(state, signed, "", entry.body.reason)
        case bodies.Lift():
            _lift(state, entry, entry.body)
        case bodies.Tombstone():
            _tombstone(state, signed, entry.body)
        case bodies.ProofHeads():
            _heads(state, signed, entry.body)
        case bodies.TrustChange():
            _adopt(
                state, entry, read_list(entry.body.trust_list, state.root, where=entry_key(state.run, state.seq + 1)), entry.body.trust_list
            )
        case bodies.Move():
            state.coordination = entry.body.store
            state.moved_at = entry.seq
            _keep(state, entry)
        case bodies.Lease():
            _lease(state, signed, entry.body)
        case bodies.WriteOff():
            _write_off(state, entry, entry.body)
        case bodies.Unread():
            _keep(state, entry)
    state.done[entry.op] = Done(entry.seq, content)
    state.seq = entry.seq
    state.digest = signed.digest


def _check_place(state: RunState, entry: Entry) -> None:
    if entry.run != state.run:
        raise _refuse(state, f"it belongs to run {entry.run!r}, this is the log of {state.run!r}")
    if entry.seq != state.seq + 1:
        raise _refuse(state, f"entry {state.seq + 1} is expected here")
    if entry.prev != state.digest:
        raise _refuse(state, f"it follows an entry with digest {entry.prev[:16]}…, entry {state.seq} has {state.digest[:16]}…")
    if (entry.kind == bodies.Genesis.kind) != (state.seq == 0):
        raise _refuse(state, "a log begins with its one genesis entry")
    if entry.op in state.done:
        raise _refuse(state, f"operation {entry.op} is in the log already, as entry {state.done[entry.op].seq}")
    expected = state.epoch + 1 if entry.kind == bodies.Epoch.kind else state.epoch
    if entry.epoch > expected:
        raise _refuse(state, f"it claims epoch {entry.epoch}, the log is in epoch {state.epoch}")
    # Only a commit may be late: it is the one entry that a fenced writer can still have on its way.
    if entry.epoch < expected and entry.kind != bodies.Commit.kind:
        raise _refuse(state, f"it was signed for epoch {entry.epoch}, the log is in epoch {state.epoch}")


def _check_signer(state: RunState, signed: SignedEntry) -> None:
    entry = signed.entry
    where = entry_key(state.run, state.seq + 1)
    # Entries that quote a list are judged by that list: the root signed it, and when every key that could speak
    # for the old one is lost or revoked, the root can still name new ones.
    trust: TrustList | None
    if isinstance(entry.body, bodies.Genesis | bodies.TrustChange):
        trust = read_list(entry.body.trust_list, state.root, where=where)
    else:
        trust = state.trust
    if trust is None:
        raise _refuse(state, "no trust list is in force")
    roles = bodies.signers(entry.kind)
    why = trust.why_not(signed.signer, roles)
    if why:
        raise _refuse(state, why)
    keys: dict[str, PublicKey] = {signed.signer: trust.keys[signed.signer].public}
    dsse.verify(signed.envelope, signed.envelope.payload_type, keys.get, where=where)


def _genesis(state: RunState, entry: Entry, body: bodies.Genesis) -> None:
    state.coordination = body.store
    trust = read_list(body.trust_list, state.root, where=entry_key(state.run, state.seq + 1))
    state.trust, state.trust_bytes = trust, body.trust_list
    state.revoked_at = dict.fromkeys(trust.revoked, entry.seq)


def _adopt(state: RunState, entry: Entry, trust: TrustList, stored: bytes) -> None:
    if state.trust is None:
        raise _refuse(state, "no trust list is in force")
    check_successor(state.trust, trust, where=entry_key(state.run, state.seq + 1))
    for key_id in trust.revoked:
        state.revoked_at.setdefault(key_id, entry.seq)
    state.trust, state.trust_bytes = trust, stored


def _epoch(state: RunState, entry: Entry, body: bodies.Epoch) -> None:
    if body.number != entry.epoch:
        raise _refuse(state, f"it opens epoch {body.number} and is signed for epoch {entry.epoch}")
    for writer in body.writers:
        why = state.trust.why_not(writer, ("writer",)) if state.trust else "no trust list is in force"
        if why:
            raise _refuse(state, f"it admits a writer that may not write: {why}")
    state.epochs[body.number] = EpochRecord(body.number, body.writers, body.reason, entry.seq, entry.op, entry.at)
    state.epoch = body.number


def _commit(state: RunState, signed: SignedEntry, body: bodies.Commit) -> None:
    entry = signed.entry
    epoch = state.epochs.get(entry.epoch)
    if epoch is None:
        raise _refuse(state, "no epoch is open")
    if signed.signer not in epoch.writers:
        raise _refuse(state, f"key {signed.signer} was not admitted to epoch {entry.epoch}")
    if body.written > entry.epoch:
        raise _refuse(state, f"the checkpoint claims epoch {body.written}, its committer epoch {entry.epoch}")
    if body.sealing in state.commits or body.sealing in state.orphans:
        raise _refuse(state, f"sealing {body.sealing} is committed already")
    if body.sealing in state.tombstones:
        raise _refuse(state, f"sealing {body.sealing} was given up unfinished, by entry {state.tombstones[body.sealing][0].seq}")
    orphan = ""
    if entry.epoch < state.epoch:
        orphan = f"committed under epoch {entry.epoch}, which epoch {entry.epoch + 1} had closed"
    elif body.written < state.epoch:
        orphan = f"written under epoch {body.written}, which epoch {body.written + 1} had closed"
    record = CommitRecord(
        sealing=body.sealing,
        step=body.step,
        written=body.written,
        epoch=entry.epoch,
        manifest=body.manifest,
        keys=body.keys,
        store=body.store,
        receipt=body.receipt,
        stored_at=body.stored_at,
        seq=entry.seq,
        op=entry.op,
        writer=signed.signer,
        at=entry.at,
        orphan=orphan,
    )
    if orphan:
        state.orphans[body.sealing] = record
    else:
        state.commits[body.sealing] = record
        state.steps[body.step] = (*state.steps.get(body.step, ()), body.sealing)
    if body.quarantine:
        _mark(state, signed, body.sealing, body.quarantine)


def _mark(state: RunState, signed: SignedEntry, sealing: str, reason: str) -> None:
    entry = signed.entry
    state.marks[entry.op] = Mark(entry.op, sealing, reason, entry.seq, signed.signer, entry.at)
    if sealing:
        state.quarantined[sealing] = (*state.quarantined.get(sealing, ()), entry.op)
    else:
        state.held = (*state.held, entry.op)


def _lift(state: RunState, entry: Entry, body: bodies.Lift) -> None:
    mark = state.marks.get(body.lifts)
    if mark is None:
        raise _refuse(state, f"it lifts {body.lifts}, which is no quarantine or hold")
    if mark.lifted_by:
        # Two operators lifting one mark at once is no incident; the first counts.
        return
    state.marks[mark.op] = replace(mark, lifted_by=entry.op, lifted_why=body.reason)
    if not mark.sealing:
        state.held = tuple(op for op in state.held if op != mark.op)
        return
    remaining = tuple(op for op in state.quarantined.get(mark.sealing, ()) if op != mark.op)
    if remaining:
        state.quarantined[mark.sealing] = remaining
    else:
        del state.quarantined[mark.sealing]


def _tombstone(state: RunState, signed: SignedEntry, body: bodies.Tombstone) -> None:
    if state.is_deleted(body.sealing, body.store):
        raise _refuse(state, f"the copy of {body.sealing} in {body.store} has a tombstone already")
    lease = state.leases.get(bodies.RETENTION)
    if lease is None or body.lease != lease.seq:
        raise _refuse(state, f"it was decided under lease {body.lease}, the newest is {lease.seq if lease else 'none'}")
    if lease.released or signed.signer != lease.signer:
        raise _refuse(state, f"lease {lease.seq} was given back" if lease.released else f"lease {lease.seq} is {lease.signer}'s")
    record = TombstoneRecord(body.sealing, body.store, body.plan, signed.entry.seq, body.lease)
    state.tombstones[body.sealing] = (*state.tombstones.get(body.sealing, ()), record)


def _lease(state: RunState, signed: SignedEntry, body: bodies.Lease) -> None:
    known = state.store_time
    if known is not None and body.taken < known:
        raise _refuse(state, f"it was taken at {body.taken}, and the store's clock had come to {known}")
    before = state.leases.get(body.purpose)
    if before is not None and before.holder != body.holder and body.taken < before.until:
        raise _refuse(state, f"{before.holder} holds the lease until {before.until}")
    state.leases[body.purpose] = LeaseRecord(body.purpose, body.holder, body.taken, body.until, signed.entry.seq, signed.signer)


def _write_off(state: RunState, entry: Entry, body: bodies.WriteOff) -> None:
    commit = state.commits.get(body.sealing) or state.orphans.get(body.sealing)
    if commit is None:
        raise _refuse(state, f"it writes off {body.sealing}, which was never committed")
    try:
        record = parse_record(body.statement, state.run, bodies.WriteOff.kind, None, state.resolver("operator"), threshold=2)
        reason = canonical.text_field(record.body, "reason", most=bodies.MAX_REASON)
    except (CorruptError, TrustError) as problem:
        raise _refuse(state, f"what it quotes is no statement of two operators: {problem}") from None
    wanted = {"sealing": body.sealing, "manifest": commit.manifest, "reason": reason}
    if record.body != wanted:
        raise _refuse(state, "the statement that it quotes is about something else")
    if body.sealing not in state.written_off:
        state.written_off[body.sealing] = WriteOffRecord(body.sealing, reason, tuple(sorted(record.signers)), entry.seq, entry.at)


def _heads(state: RunState, signed: SignedEntry, body: bodies.ProofHeads) -> None:
    entry = signed.entry
    trust = state.trust
    speaks_for_itself = trust is not None and trust.keys[signed.signer].role == "verifier"
    for head in body.heads:
        if speaks_for_itself and head.verifier != signed.signer:
            raise _refuse(state, f"verifier {signed.signer} states the head of {head.verifier}")
        if trust is None or head.verifier not in trust.keys or trust.keys[head.verifier].role != "verifier":
            raise _refuse(state, f"{head.verifier} is no verifier's key")
        known = state.heads.get(head.verifier)
        if known and head.seq == known.seq and head.digest != known.digest:
            raise _refuse(state, f"proof {head.seq} of verifier {head.verifier} has two digests: its chain was forked")
        if known and head.seq < known.seq:
            # Somebody stated a newer head first. What counts never goes back, and the race is no incident.
            continue
        state.heads[head.verifier] = HeadRecord(head.verifier, head.seq, head.digest, entry.seq)


def _keep(state: RunState, entry: Entry) -> None:
    body = canonical.encode(entry.body.as_document()).decode("ascii")
    state.kept.append(Kept(entry.seq, entry.kind, entry.op, body))
