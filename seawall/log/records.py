"""Records: signed, write-once documents of a run that are no log entries: plans, approvals, incidents, reports.

``runs/<run>/records/<kind>/<name>.json`` (docs/spec/log-and-trust.md, section 11) is a DSSE envelope over a document that names its
run, its kind and its name, so that no record can be shown in the place of another. A record without a name of its own is named by the
digest of its stored bytes. Records lie in the coordination store; who may sign which kind is decided by who reads it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError, StoreAmbiguousError, StoreUnavailableError, UsageError
from seawall.stores.base import Store
from seawall.vault import canonical, dsse
from seawall.vault.canonical import Document
from seawall.vault.identity import checked_run
from seawall.vault.signing import PublicKey, SigningKey

PAYLOAD_TYPE = "application/vnd.seawall.record.v1+json"

MAX_BYTES = 16 << 20
"""Bound on a stored record: the exact objects of a copy of 10,000 files, each with its version."""

_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}\Z", re.ASCII)
_TRIES = 3

Resolve = Callable[[str], PublicKey | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record, its signatures verified."""

    run: str
    kind: str
    name: str
    """As in its key: its own name, or the digest of its stored bytes."""
    body: Document
    signers: tuple[str, ...]
    """Key ids of the signatures that count."""
    envelope: dsse.Envelope
    digest: str
    """SHA-256 of the stored bytes: how other documents name it."""


def records_prefix(run: str, kind: str) -> str:
    """Where a store keeps the records of one kind."""
    if not _KIND.match(kind):
        raise UsageError("this is no kind of record", where=repr(kind), do="a lower-case letter, then lower-case letters, digits and '-'")
    return f"runs/{checked_run(run)}/records/{kind}/"


def record_key(run: str, kind: str, name: str) -> str:
    """Where a store keeps a record."""
    if not _NAME.match(name):
        raise UsageError("this is no name of a record", where=repr(name), why="letters, digits, '.', '_' and '-', at most 200")
    return f"{records_prefix(run, kind)}{name}.json"


def payload_of(run: str, kind: str, name: str, body: Document) -> bytes:
    """What is signed. ``name`` is empty for a record that is named by its digest."""
    record_key(run, kind, name or "by-digest")
    return canonical.encode({"format": canonical.FORMAT, "run": run, "kind": kind, "name": name, "body": body})


def sign_record(store: Store, run: str, kind: str, name: str, body: Document, keys: Sequence[SigningKey]) -> Record:
    """Sign a record with every one of ``keys`` and create it; the same record again is no error.

    With an empty ``name`` it is named by the digest of its stored bytes. ``ObjectExistsError`` when another record has the
    name: read it before deciding anything. ``StoreAmbiguousError`` when the outcome stays unknown; the same call is then safe.
    """
    envelope = dsse.sign(PAYLOAD_TYPE, payload_of(run, kind, name, body), keys)
    stored = envelope.encode()
    if len(stored) > MAX_BYTES:
        raise UsageError("a record is too large", where=f"{run} {kind}", why=f"{len(stored)} bytes, at most {MAX_BYTES}")
    digest = dsse.digest(stored)
    _create(store, record_key(run, kind, name or digest), stored)
    return Record(run, kind, name or digest, body, tuple(key.key_id for key in keys), envelope, digest)


def read_record(store: Store, run: str, kind: str, name: str, resolve: Resolve, *, threshold: int = 1) -> Record:
    """The record of that name. ``resolve`` admits signers, of whom ``threshold`` different ones are needed.

    ``NoSuchObjectError`` if there is none, ``TrustError`` for signatures that do not count, ``CorruptError`` for anything else that is
    not this record.
    """
    key = record_key(run, kind, name)
    raw = store.get(key, 0, MAX_BYTES + 1)
    return parse_record(raw, run, kind, name, resolve, threshold=threshold, where=f"{store.url}/{key}")


def list_records(store: Store, run: str, kind: str, beginning: str = "", after: str = "") -> Iterator[str]:
    """Names of the records of a kind that begin like this, in order, from the first that is greater than ``after``.

    Nothing is read or verified.
    """
    prefix = records_prefix(run, kind)
    for found in store.list(prefix + beginning):
        name = found.key.removeprefix(prefix).removesuffix(".json")
        if found.key.endswith(".json") and _NAME.match(name) and name > after:
            yield name


def parse_record(raw: bytes, run: str, kind: str, name: str | None, resolve: Resolve, *, threshold: int = 1, where: str = "") -> Record:
    """Verify and read the stored bytes of a record. ``name`` is None where the bytes were quoted and not read under a key."""
    envelope = dsse.Envelope.decode(raw, where=where, max_bytes=MAX_BYTES)
    signers = dsse.verify(envelope, PAYLOAD_TYPE, resolve, threshold=threshold, where=where)
    document = canonical.decode(envelope.payload, where=where, max_bytes=MAX_BYTES)
    canonical.check_format(document, where=where)
    canonical.only_fields(document, {"format", "run", "kind", "name", "body"}, where=where)
    digest = dsse.digest(raw)
    own = canonical.text_field(document, "name", where=where, most=200, empty=True)
    there = (canonical.text_field(document, "run", where=where), canonical.text_field(document, "kind", where=where))
    if there != (run, kind) or (name is not None and name != (own or digest)):
        raise CorruptError("a record is not the one of its place", where=where, why=f"it is {there[0]} {there[1]} {own or digest}")
    return Record(run, kind, own or digest, canonical.object_field(document, "body", where=where), tuple(signers), envelope, digest)


def merge_signatures(records: Sequence[Record]) -> bytes:
    """Stored bytes of one envelope with the signatures of several records of the same content, in order of key id.

    ``UsageError`` if their content differs.
    """
    first = records[0].envelope
    signatures: dict[str, bytes] = {}
    for record in records:
        if record.envelope.payload != first.payload:
            raise UsageError("these records do not say the same", where=f"{record.run} {record.kind}", why=record.digest)
        signatures.update({key: signature for key, signature in record.envelope.signatures if key in record.signers})
    return dsse.Envelope(PAYLOAD_TYPE, first.payload, tuple(sorted(signatures.items()))).encode()


def _create(store: Store, key: str, stored: bytes) -> None:
    problem: Exception | None = None
    for _ in range(_TRIES):
        try:
            store.put(key, stored)
            return
        except (ObjectExistsError, StoreAmbiguousError, StoreUnavailableError) as raised:
            problem = raised
        there = _there(store, key)
        if there == stored:
            return
        if there is not None:
            raise ObjectExistsError("another record has this name", where=f"{store.url}/{key}", do="read it before deciding anything")
    raise StoreAmbiguousError(
        "it is unknown whether the record was written", where=f"{store.url}/{key}", why=str(problem), do="run it again"
    )


def _there(store: Store, key: str) -> bytes | None:
    try:
        return store.get(key, 0, MAX_BYTES + 1)
    except NoSuchObjectError:
        return None
