"""One fault an entry, as a table: what to write as entry 5, the refusal, and words of it."""

import json
from collections.abc import Callable

from seawall.errors import CorruptError, SeawallError, TrustError
from seawall.log.bodies import (
    Body,
    Epoch,
    Genesis,
    Hold,
    Lease,
    Lift,
    Move,
    ProofHead,
    ProofHeads,
    Quarantine,
    Tombstone,
    TrustChange,
    Unread,
    WriteOff,
)
from seawall.log.entries import NO_ENTRY, PAYLOAD_TYPE, operation_id
from seawall.log.records import PAYLOAD_TYPE as RECORD_TYPE
from seawall.log.records import payload_of
from seawall.vault import canonical, dsse
from seawall.vault.signing import SigningKey
from seawall.vault.trust import read_list, sign_list
from tests.log.actors import KEYS, RUN, Hand, TickClock, begun, commit_body, hexed, key_from_seed, trust_list

SEALING = commit_body(2).sealing
SECOND_OPERATOR = key_from_seed("operator", "second")


def next_list(revoke: str = "", root: str = "root") -> bytes:
    old = read_list(trust_list(), KEYS.root.public)
    new = old.with_revocation(revoke, "lost") if revoke else old.with_key(KEYS.stranger.public, "writer", TickClock())
    return sign_list(new, getattr(KEYS, root))


def two_operators() -> bytes:
    """A list with the second operator's key."""
    return sign_list(read_list(trust_list(), KEYS.root.public).with_key(SECOND_OPERATOR.public, "operator", TickClock()), KEYS.root)


def statement(*keys: SigningKey, kind: str = "write-off", run: str = RUN, **changes: str) -> bytes:
    """What people sign to write off the checkpoint of :func:`some`."""
    body: canonical.Document = {"sealing": SEALING, "manifest": commit_body(2).manifest, "reason": "its disk is gone", **changes}
    return dsse.sign(RECORD_TYPE, payload_of(run, kind, "", body), keys).encode()


def lease(holder: str = "one", taken: int = 0, until: int = 10, purpose: str = "retention") -> Lease:
    """A lease from and to so many minutes after the hour."""
    return Lease(holder, purpose, f"2026-03-01T00:{taken:02}:00.000000Z", f"2026-03-01T00:{until:02}:00.000000Z")


TOMBSTONE = Tombstone(SEALING, hexed("store", 16), hexed("plan", 32), 5)

PREPARED: dict[str, tuple[Body, SigningKey]] = {
    "tombstone": (lease(), KEYS.operator),
    "write-off": (TrustChange(two_operators()), KEYS.operator),
}
"""What has to stand before a kind of entry can."""

BODIES: dict[str, Body] = {
    "epoch": Epoch(2, (KEYS.writer.key_id,), "next"),
    "commit": commit_body(9),
    "quarantine": Quarantine(SEALING, "odd"),
    "hold": Hold("wait"),
    "lift": Lift(operation_id("test", "4"), "fine again"),
    "tombstone": TOMBSTONE,
    "trust": TrustChange(next_list()),
    "proof-heads": ProofHeads((ProofHead(KEYS.verifier.key_id, 1, hexed("proof", 32)),)),
    "lease": lease(),
    "write-off": WriteOff(SEALING, statement(KEYS.operator, SECOND_OPERATOR)),
    "move": Move(hexed("elsewhere", 16), "disk is full"),
}


def some() -> Hand:
    """Genesis, epoch 1, a commit and a quarantine of it."""
    _, hand = begun()
    hand.write(commit_body(2), KEYS.writer)
    hand.write(Quarantine(SEALING, "odd"), KEYS.verifier)
    return hand


def edited(
    hand: Hand, edit: Callable[[dict[str, object]], object], *, dump: Callable[[dict[str, object]], bytes] = canonical.encode
) -> None:
    document = canonical.decode(hand.entry(Hold("x")).encode())
    edit(document)
    hand.put(dump(document), KEYS.operator)


def loose(document: dict[str, object]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


VECTORS: dict[str, tuple[Callable[[Hand], object], type[SeawallError], str]] = {
    "wrong prev": (lambda hand: hand.write(Hold("x"), KEYS.operator, prev=hexed("other", 32)), TrustError, "it follows an entry"),
    "prev of genesis": (lambda hand: hand.write(Hold("x"), KEYS.operator, prev=NO_ENTRY), TrustError, "it follows an entry"),
    "number too high": (lambda hand: hand.write(Hold("x"), KEYS.operator, seq=6), TrustError, "entry 5 is expected here"),
    "number too low": (lambda hand: hand.write(Hold("x"), KEYS.operator, seq=4), TrustError, "entry 5 is expected here"),
    "number zero": (lambda hand: hand.write(Hold("x"), KEYS.operator, seq=0), CorruptError, "too small"),
    "another run": (lambda hand: hand.write(Hold("x"), KEYS.operator, run="other"), TrustError, "belongs to run 'other'"),
    "run is no name": (lambda hand: hand.write(Hold("x"), KEYS.operator, run="../gpt"), CorruptError, "names no run"),
    "old epoch": (lambda hand: hand.write(Hold("x"), KEYS.operator, epoch=0), TrustError, "signed for epoch 0"),
    "epoch of the future": (lambda hand: hand.write(Hold("x"), KEYS.operator, epoch=2), TrustError, "claims epoch 2"),
    "commit of the future": (lambda hand: hand.write(commit_body(9), KEYS.writer, epoch=2), TrustError, "claims epoch 2"),
    "commit without epoch": (lambda hand: hand.write(commit_body(9), KEYS.writer, epoch=0), TrustError, "no epoch is open"),
    "written in the future": (lambda hand: hand.write(commit_body(9, written=2), KEYS.writer), TrustError, "claims epoch 2, its committer"),
    "epoch opened again": (lambda hand: hand.write(Epoch(1, (), "again"), KEYS.coordinator), TrustError, "signed for epoch 1"),
    "epoch passed over": (lambda hand: hand.write(Epoch(3, (), "far"), KEYS.coordinator), TrustError, "claims epoch 3"),
    "epoch of two numbers": (lambda hand: hand.write(Epoch(3, (), "x"), KEYS.coordinator, epoch=2), TrustError, "opens epoch 3"),
    "stranger admitted": (lambda hand: hand.write(Epoch(2, (KEYS.stranger.key_id,), "x"), KEYS.coordinator), TrustError, "may not write"),
    "verifier admitted": (lambda hand: hand.write(Epoch(2, (KEYS.verifier.key_id,), "x"), KEYS.coordinator), TrustError, "may not write"),
    "foreign signature": (lambda hand: hand.write(commit_body(9), KEYS.stranger), TrustError, "not in trust list 1"),
    "root signs an entry": (lambda hand: hand.write(Hold("x"), KEYS.root), TrustError, "not in trust list 1"),
    "writer of no epoch": (lambda hand: hand.write(commit_body(9), KEYS.second_writer), TrustError, "not admitted to epoch 1"),
    "second genesis": (
        lambda hand: hand.write(Genesis(hexed("s", 16), trust_list()), KEYS.coordinator),
        TrustError,
        "begins with its one genesis",
    ),
    "operation twice": (lambda hand: hand.write(Hold("x"), KEYS.operator, op=operation_id("test", "3")), TrustError, "as entry 3"),
    "sealing committed twice": (lambda hand: hand.write(commit_body(2), KEYS.writer), TrustError, "is committed already"),
    "unknown kind": (lambda hand: hand.write(Unread("later", {}), KEYS.operator), TrustError, "unknown kind"),
    "unknown kind, stranger": (
        lambda hand: hand.write(Unread("later", {}), KEYS.stranger, ignorable=True),
        TrustError,
        "not in trust list 1",
    ),
    "known kind ignorable": (lambda hand: hand.write(Hold("x"), KEYS.operator, ignorable=True), TrustError, "marked ignorable"),
    "malformed kind": (lambda hand: hand.write(Unread("La ter", {}), KEYS.operator, ignorable=True), CorruptError, "malformed kind"),
    "lift of nothing": (lambda hand: hand.write(Lift(operation_id("test", "3"), "x"), KEYS.operator), TrustError, "no quarantine or hold"),
    "tombstone without a lease": (lambda hand: hand.write(TOMBSTONE, KEYS.operator), TrustError, "the newest is none"),
    "lease that is too long": (
        lambda hand: hand.write(Lease("one", "retention", "2026-03-01T00:00:00.000000Z", "2026-03-02T00:00:00.000001Z"), KEYS.operator),
        CorruptError,
        "no length that it may have",
    ),
    "lease that ends before it begins": (lambda hand: hand.write(lease(taken=10, until=9), KEYS.operator), CorruptError, "no length"),
    "write-off by one person": (
        lambda hand: hand.write(WriteOff(SEALING, statement(KEYS.operator)), KEYS.operator),
        TrustError,
        "1 of 2 needed signatures",
    ),
    "write-off by an operator and a verifier": (
        lambda hand: hand.write(WriteOff(SEALING, statement(KEYS.operator, KEYS.verifier)), KEYS.operator),
        TrustError,
        "1 of 2 needed signatures",
    ),
    "write-off of nothing": (
        lambda hand: hand.write(WriteOff(hexed("none", 16), statement(KEYS.operator)), KEYS.operator),
        TrustError,
        "never committed",
    ),
    "write-off that quotes nothing": (lambda hand: hand.write(WriteOff(SEALING, b"{}"), KEYS.operator), TrustError, "no statement of two"),
    "head of another verifier": (
        lambda hand: hand.write(ProofHeads((ProofHead(KEYS.second_verifier.key_id, 1, hexed("x", 32)),)), KEYS.verifier),
        TrustError,
        "states the head of",
    ),
    "head of a writer": (
        lambda hand: hand.write(ProofHeads((ProofHead(KEYS.writer.key_id, 1, hexed("x", 32)),)), KEYS.operator),
        TrustError,
        "no verifier's key",
    ),
    "list by another root": (
        lambda hand: hand.write(TrustChange(next_list(root="other_root")), KEYS.operator),
        TrustError,
        "not signed by a key that may",
    ),
    "list not the next": (lambda hand: hand.write(TrustChange(trust_list()), KEYS.operator), TrustError, "version 1 after 1"),
    "list that is none": (lambda hand: hand.write(TrustChange(b"{}"), KEYS.operator), CorruptError, "'signatures' is missing"),
    "revoked by its own list": (
        lambda hand: hand.write(TrustChange(next_list(KEYS.operator.key_id)), KEYS.operator),
        TrustError,
        "was revoked",
    ),
    "another payload type": (
        lambda hand: hand.put(hand.entry(Hold("x")).encode(), KEYS.operator, payload_type="application/json"),
        TrustError,
        "of another type",
    ),
    "payload type outside ASCII": (
        lambda hand: hand.put(hand.entry(Hold("x")).encode(), KEYS.operator, payload_type=PAYLOAD_TYPE + "é"),
        TrustError,
        "of another type",
    ),
    "another format": (lambda hand: edited(hand, lambda d: d.update(format="2")), CorruptError, "another format"),
    "field missing": (lambda hand: edited(hand, lambda d: d.pop("at")), CorruptError, "'at' is missing"),
    "field too many": (lambda hand: edited(hand, lambda d: d.update(extra="x")), CorruptError, "unknown fields"),
    "body field too many": (
        lambda hand: edited(hand, lambda d: d.update(body={"reason": "x", "why": "y"})),
        CorruptError,
        "unknown fields",
    ),
    "reason empty": (lambda hand: edited(hand, lambda d: d.update(body={"reason": ""})), CorruptError, "wrong length"),
    "reason too long": (lambda hand: edited(hand, lambda d: d.update(body={"reason": "x" * 1001})), CorruptError, "wrong length"),
    "time is no moment": (lambda hand: edited(hand, lambda d: d.update(at="yesterday")), CorruptError, "no moment"),
    "number as a number": (lambda hand: edited(hand, lambda d: d.update(seq=5), dump=loose), CorruptError, "not written as text"),
    "float": (lambda hand: edited(hand, lambda d: d.update(seq=5.0), dump=loose), CorruptError, "not written as text"),
    "NaN": (lambda hand: edited(hand, lambda d: d.update(seq=float("nan")), dump=loose), CorruptError, "not written as text"),
    "leading zero": (lambda hand: edited(hand, lambda d: d.update(seq="05")), CorruptError, "not canonical"),
    "spaces in the payload": (
        lambda hand: edited(hand, lambda d: None, dump=lambda d: json.dumps(d, sort_keys=True).encode()),
        CorruptError,
        "encoded differently",
    ),
    "two signatures": (
        lambda hand: hand.put_stored(dsse.sign(PAYLOAD_TYPE, hand.entry(Hold("x")).encode(), [KEYS.operator, KEYS.verifier]).encode()),
        TrustError,
        "has one signature",
    ),
    "no signature": (
        lambda hand: hand.put_stored(dsse.Envelope(PAYLOAD_TYPE, hand.entry(Hold("x")).encode(), ()).encode()),
        CorruptError,
        "no signature",
    ),
    "signature of other bytes": (
        lambda hand: hand.put_stored(
            dsse.Envelope(PAYLOAD_TYPE, hand.entry(Hold("x")).encode(), ((KEYS.operator.key_id, KEYS.operator.sign(b"other")),)).encode()
        ),
        TrustError,
        "a signature is wrong",
    ),
    "signature under another's name": (
        lambda hand: hand.put_stored(
            dsse.Envelope(
                PAYLOAD_TYPE,
                hand.entry(Hold("x")).encode(),
                ((KEYS.operator.key_id, KEYS.verifier.sign(dsse.pae(PAYLOAD_TYPE, hand.entry(Hold("x")).encode()))),),
            ).encode()
        ),
        TrustError,
        "a signature is wrong",
    ),
    "signed without the type": (
        lambda hand: hand.put_stored(
            dsse.Envelope(
                PAYLOAD_TYPE, hand.entry(Hold("x")).encode(), ((KEYS.operator.key_id, KEYS.operator.sign(hand.entry(Hold("x")).encode())),)
            ).encode()
        ),
        TrustError,
        "a signature is wrong",
    ),
    "trailing newline": (
        lambda hand: hand.put_stored(dsse.sign(PAYLOAD_TYPE, hand.entry(Hold("x")).encode(), [KEYS.operator]).encode() + b"\n"),
        CorruptError,
        "not canonical JSON",
    ),
    "cut": (
        lambda hand: hand.put_stored(dsse.sign(PAYLOAD_TYPE, hand.entry(Hold("x")).encode(), [KEYS.operator]).encode()[:-1]),
        CorruptError,
        "not canonical JSON",
    ),
    "empty": (lambda hand: hand.put_stored(b""), CorruptError, "not canonical JSON"),
    "too large": (lambda hand: hand.put_stored(b" " * (3 << 20)), CorruptError, "larger than its bound"),
}
