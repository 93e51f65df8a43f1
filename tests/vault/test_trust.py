"""The trust list: who may say what, and what the next version may not do."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from seawall.errors import CorruptError, TrustError
from seawall.vault import canonical, dsse, trust
from seawall.vault.signing import ROLES, SigningKey
from seawall.vault.trust import PAYLOAD_TYPE, TrustedKey, TrustList, check_successor, first_list, read_list, sign_list, store_key

ROOT = SigningKey(b"\x01" * 32, "root")
OTHER_ROOT = SigningKey(b"\x02" * 32, "root")
KEYS = {role: SigningKey(bytes([number + 3]) * 32, role) for number, role in enumerate(ROLES)}
MORE = SigningKey(b"\x20" * 32, "writer")


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("a list waits for nothing")


FIRST = first_list(list(KEYS.values()), Noon())


def test_round_trip() -> None:
    stored = sign_list(FIRST, ROOT)
    assert read_list(stored, ROOT.public) == FIRST
    assert sign_list(read_list(stored, ROOT.public), ROOT) == stored
    later = FIRST.with_key(MORE.public, "writer", Noon()).with_revocation(MORE.key_id, "lost \U0001f30a")
    assert (later.version, later.revoked) == (3, {MORE.key_id: "lost \U0001f30a"})
    assert read_list(sign_list(later, ROOT), ROOT.public) == later
    assert store_key(3) == "trust/3.json"


def test_a_key_speaks_in_its_role_only() -> None:
    for role in ROLES:
        resolve = FIRST.resolver(role)
        for other, key in KEYS.items():
            assert (resolve(key.key_id) == key.public) == (other == role)
            assert bool(FIRST.why_not(key.key_id, [role])) == (other != role)
        assert resolve("00" * 16) is None
    revoked = FIRST.with_revocation(KEYS["writer"].key_id, "stolen")
    assert revoked.resolver("writer")(KEYS["writer"].key_id) is None
    assert revoked.resolver("writer", include_revoked=True)(KEYS["writer"].key_id) == KEYS["writer"].public
    assert "stolen" in revoked.why_not(KEYS["writer"].key_id, ["writer"])
    assert "is not in trust list 1" in FIRST.why_not("00" * 16, ["writer"])


def test_only_the_root_makes_a_list() -> None:
    stored = sign_list(FIRST, OTHER_ROOT)
    with pytest.raises(TrustError):
        read_list(stored, ROOT.public)
    for key in KEYS.values():
        with pytest.raises(TrustError):
            read_list(sign_list(FIRST, key), ROOT.public)
    payload = canonical.encode(FIRST.as_document())
    with pytest.raises(TrustError, match="of another type"):
        read_list(dsse.sign("application/vnd.seawall.log+json", payload, [ROOT]).encode(), ROOT.public)


def test_the_root_and_double_roles_are_never_listed() -> None:
    with pytest.raises(TrustError, match="never listed"):
        first_list([*KEYS.values(), ROOT], Noon())
    with pytest.raises(TrustError, match="two roles"):
        first_list([*KEYS.values(), SigningKey(b"\x03" * 32, "verifier")], Noon())
    listed = replace(FIRST, keys={**FIRST.keys, ROOT.key_id: TrustedKey("writer", ROOT.public, "2026-03-01T12:00:00.000000Z")})
    with pytest.raises(TrustError, match="gives the root key a role"):
        read_list(sign_list(listed, ROOT), ROOT.public)
    with pytest.raises(TrustError, match="listed already"):
        FIRST.with_key(KEYS["writer"].public, "verifier", Noon())
    for key_id in ("00" * 16, MORE.key_id):
        with pytest.raises(TrustError, match="no such key to revoke"):
            FIRST.with_revocation(key_id, "x")
    revoked = FIRST.with_revocation(KEYS["writer"].key_id, "x")
    with pytest.raises(TrustError, match="no such key to revoke"):
        revoked.with_revocation(KEYS["writer"].key_id, "again")


SECOND = FIRST.with_key(MORE.public, "writer", Noon())
THIRD = SECOND.with_revocation(MORE.key_id, "lost")


def without(trust_list: TrustList, key_id: str) -> dict[str, TrustedKey]:
    return {each: key for each, key in trust_list.keys.items() if each != key_id}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (FIRST, FIRST, "version 1 after 1"),
        (FIRST, THIRD, "version 3 after 1"),
        (SECOND, FIRST, "version 1 after 2"),
        (SECOND, replace(THIRD, keys=without(THIRD, KEYS["operator"].key_id)), "drops a key"),
        (
            SECOND,
            replace(THIRD, keys={**THIRD.keys, MORE.key_id: replace(THIRD.keys[MORE.key_id], role="verifier")}),
            "changes a key's role",
        ),
        (
            SECOND,
            replace(THIRD, keys={**THIRD.keys, MORE.key_id: replace(THIRD.keys[MORE.key_id], added="2027-01-01T00:00:00.000000Z")}),
            "rewrites a key's line",
        ),
        (THIRD, replace(THIRD, version=4, revoked={}), "undoes or rewrites a revocation"),
        (THIRD, replace(THIRD, version=4, revoked={MORE.key_id: "found again"}), "undoes or rewrites a revocation"),
    ],
)
def test_what_may_not_follow(old: TrustList, new: TrustList, words: str) -> None:
    check_successor(FIRST, SECOND)
    check_successor(SECOND, THIRD)
    with pytest.raises(TrustError, match=words):
        check_successor(old, new)


def item(**changes: object) -> dict[str, object]:
    key = KEYS["writer"]
    return {"id": key.key_id, "role": "writer", "public": key.public.raw.hex(), "added": "2026-03-01T12:00:00.000000Z", **changes}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "2"}, "another format"),
        ({"version": "0"}, "too small"),
        ({"version": "01"}, "not canonical"),
        ({"extra": ""}, "unknown fields"),
        ({"keys": [item(role="king")]}, "unknown role"),
        ({"keys": [item(role="root")]}, "unknown role"),
        ({"keys": [item(id="00" * 16)]}, "does not belong to its key"),
        ({"keys": [item(added="today")]}, "no moment"),
        ({"keys": [item(public="00")]}, "hex value"),
        ({"keys": [item(extra="")]}, "unknown fields"),
        ({"keys": ["x"]}, "not an object"),
        ({"keys": [item(), item()]}, "not in order"),
        ({"revoked": [{"id": MORE.key_id, "reason": "x"}]}, "revoked and not listed"),
        ({"revoked": [{"id": KEYS["writer"].key_id, "reason": ""}]}, "wrong length"),
        ({"revoked": None}, "'revoked' is not"),
    ],
)
def test_malformed_lists(change: dict[str, object], words: str) -> None:
    document = {"format": "1", "version": "1", "keys": [item()], "revoked": []}

    def stored(payload: dict[str, object]) -> bytes:
        return dsse.sign(PAYLOAD_TYPE, canonical.encode(payload), [ROOT]).encode()

    assert read_list(stored(document), ROOT.public).version == 1
    with pytest.raises(CorruptError, match=words):
        read_list(stored({**document, **change}), ROOT.public, where="here")


def test_a_list_is_bounded() -> None:
    with pytest.raises(CorruptError, match="larger than its bound"):
        read_list(b" " * (trust.MAX_LIST_BYTES + 1), ROOT.public)
