"""Which keys exist and what each may say: the root-signed, numbered trust list (docs/spec/log-and-trust.md, section 4).

The list in force for a run is the one that the run's log quotes; ``trust/<version>.json`` in a store is only a hint.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from seawall.clock import Clock, utc_text
from seawall.errors import CorruptError, TrustError
from seawall.vault import canonical, dsse
from seawall.vault.canonical import Document
from seawall.vault.signing import ROLES, PublicKey, Role, SigningKey, key_id_of

PAYLOAD_TYPE = "application/vnd.seawall.trust+json"

MAX_LIST_BYTES = 1 << 20
"""Bound on a stored list; 4,000 keys fit."""


def store_key(version: int) -> str:
    """Where a store keeps list ``version``."""
    return f"trust/{version}.json"


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """One line of the list."""

    role: Role
    public: PublicKey
    added: str
    """When, by the clock of whoever added it; information only."""

    @property
    def key_id(self) -> str:
        return self.public.key_id


@dataclass(frozen=True, slots=True)
class TrustList:
    """Version ``version`` of the list: all keys ever added, and those revoked since with the reason."""

    version: int
    keys: Mapping[str, TrustedKey]
    revoked: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def resolver(self, role: Role, *, include_revoked: bool = False) -> Callable[[str], PublicKey | None]:
        """Key id to public key, for keys of ``role`` only; for :func:`seawall.vault.dsse.verify`.

        ``include_revoked`` is for things that the log places before the revocation.
        """

        def resolve(key_id: str) -> PublicKey | None:
            key = self.keys.get(key_id)
            if key is None or key.role != role or (key_id in self.revoked and not include_revoked):
                return None
            return key.public

        return resolve

    def why_not(self, key_id: str, roles: Sequence[Role]) -> str:
        """For an error message: why ``key_id`` may not sign for one of ``roles``; empty if it may."""
        key = self.keys.get(key_id)
        if key is None:
            return f"key {key_id} is not in trust list {self.version}"
        if key.role not in roles:
            return f"key {key_id} is a {key.role}'s, this needs {' or '.join(roles)}"
        if key_id in self.revoked:
            return f"key {key_id} was revoked ({self.revoked[key_id]})"
        return ""

    def with_key(self, public: PublicKey, role: Role, clock: Clock) -> "TrustList":
        """The next version with one key more; ``TrustError`` if the key is listed already."""
        if public.key_id in self.keys:
            raise TrustError("the key is listed already", where=public.key_id, why=f"as {self.keys[public.key_id].role}")
        return TrustList(self.version + 1, {**self.keys, public.key_id: TrustedKey(role, public, utc_text(clock.now()))}, self.revoked)

    def with_revocation(self, key_id: str, reason: str) -> "TrustList":
        """The next version with one key revoked; ``TrustError`` if it is not listed or revoked already."""
        if key_id not in self.keys or key_id in self.revoked:
            raise TrustError("there is no such key to revoke", where=key_id, why="it is not listed, or revoked already")
        return TrustList(self.version + 1, self.keys, {**self.revoked, key_id: reason})

    def as_document(self) -> Document:
        return {
            "format": canonical.FORMAT,
            "version": canonical.number(self.version),
            "keys": [
                {"id": key_id, "role": key.role, "public": key.public.raw.hex(), "added": key.added}
                for key_id, key in sorted(self.keys.items())
            ],
            "revoked": [{"id": key_id, "reason": reason} for key_id, reason in sorted(self.revoked.items())],
        }


def first_list(keys: Sequence[SigningKey], clock: Clock) -> TrustList:
    """Version 1, listing ``keys`` under the roles of their files."""
    added = utc_text(clock.now())
    listed = {}
    for key in keys:
        if key.role not in ROLES:
            raise TrustError("a root key is never listed", where=key.key_id)
        listed[key.key_id] = TrustedKey(key.role, key.public, added)
    if len(listed) != len(keys):
        raise TrustError("one key has two roles", why="every role has its own key")
    return TrustList(1, listed)


def sign_list(trust: TrustList, root: SigningKey) -> bytes:
    """The stored bytes of ``trust``, signed by the root key; the same list and key give the same bytes."""
    return dsse.sign(PAYLOAD_TYPE, canonical.encode(trust.as_document()), [root]).encode()


def read_list(data: bytes, root: PublicKey, *, where: str = "") -> TrustList:
    """The list in ``data``; ``CorruptError`` if it is malformed, ``TrustError`` unless ``root`` signed it."""
    envelope = dsse.Envelope.decode(data, where=where, max_bytes=MAX_LIST_BYTES)
    dsse.verify(envelope, PAYLOAD_TYPE, lambda key_id: root if key_id == root.key_id else None, where=where)
    trust = _parse(canonical.decode(envelope.payload, where=where, max_bytes=MAX_LIST_BYTES), where)
    if root.key_id in trust.keys:
        raise TrustError("a trust list gives the root key a role", where=where, why="the root signs lists and nothing else")
    return trust


def _parse(document: Document, where: str) -> TrustList:
    canonical.check_format(document, where=where)
    canonical.only_fields(document, {"format", "version", "keys", "revoked"}, where=where)
    keys: dict[str, TrustedKey] = {}
    for item in _sorted_items(document, "keys", {"id", "role", "public", "added"}, where):
        raw = bytes.fromhex(canonical.hex_field(item, "public", 32, where=where))
        role = canonical.text_field(item, "role", where=where)
        if key_id_of(raw) != item["id"]:
            raise CorruptError("a key id does not belong to its key", where=where, why=item["id"])
        if role not in ROLES:
            raise CorruptError("a key has an unknown role", where=where, why=f"{role[:40]!r}")
        keys[item["id"]] = TrustedKey(role, PublicKey(raw), canonical.time_field(item, "added", where=where))
    revoked: dict[str, str] = {}
    for item in _sorted_items(document, "revoked", {"id", "reason"}, where):
        if item["id"] not in keys:
            raise CorruptError("a key is revoked and not listed", where=where, why=item["id"])
        revoked[item["id"]] = canonical.text_field(item, "reason", where=where, most=1000)
    return TrustList(canonical.number_field(document, "version", where=where, least=1), MappingProxyType(keys), MappingProxyType(revoked))


def _sorted_items(document: Document, name: str, fields: set[str], where: str) -> list[Document]:
    items = canonical.list_field(document, name, where=where, most=10_000)
    before = ""
    for item in items:
        if not isinstance(item, dict):
            raise CorruptError(f"an item of {name!r} is not an object", where=where)
        canonical.only_fields(item, fields, where=where)
        key_id = canonical.hex_field(item, "id", 16, where=where)
        if key_id <= before:
            raise CorruptError(f"the items of {name!r} are not in order of their ids", where=where)
        before = key_id
    return items


def check_successor(old: TrustList, new: TrustList, *, where: str = "") -> None:
    """``TrustError`` unless ``new`` may follow ``old``: next number, nothing removed, no role changed, no revocation undone."""
    if new.version != old.version + 1:
        raise TrustError("a trust list is out of order", where=where, why=f"version {new.version} after {old.version}")
    for key_id, key in old.keys.items():
        after = new.keys.get(key_id)
        if after is None:
            raise TrustError("a trust list drops a key", where=where, why=f"{key_id} is missing; revoke it instead")
        if after.role != key.role:
            raise TrustError("a trust list changes a key's role", where=where, why=f"{key_id} was {key.role}, is {after.role}")
        if after != key:
            raise TrustError("a trust list rewrites a key's line", where=where, why=key_id)
    for key_id, reason in old.revoked.items():
        if new.revoked.get(key_id) != reason:
            raise TrustError("a trust list undoes or rewrites a revocation", where=where, why=key_id)
