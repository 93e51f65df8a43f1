"""Results of checks on their way: what was signed arrives, nothing else does, and it is appended once."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest

from seawall.errors import CorruptError, SeawallError, TrustError
from seawall.vault import canonical, dsse
from seawall.verify.certify import certify, read_proofs
from seawall.verify.found import PAYLOAD_TYPE, certify_once, read_found, sign_found
from seawall.verify.levels import Level
from seawall.verify.proofs import append_proofs, read_chain
from tests.log.actors import KEYS, RUN, TickClock, begun, read
from tests.verify.test_proofs import VERIFIER, proof


def changed(text: str, change: Callable[[dict[str, object]], object]) -> str:
    """The envelope with another payload under the same signature."""
    envelope = json.loads(text)
    payload = json.loads(b64decode(envelope["payload"]))
    change(payload)
    envelope["payload"] = b64encode(canonical.encode(payload)).decode()
    return canonical.encode(envelope).decode()


def test_what_was_signed_arrives() -> None:
    resolve = read(begun()[0]).state.resolver("verifier")
    proofs = [proof(1), proof(2, Level.L3, "failed")]
    assert read_found(sign_found(RUN, proofs, VERIFIER), RUN, resolve) == proofs
    assert read_found(sign_found(RUN, [], VERIFIER), RUN, resolve) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            changed(sign_found(RUN, [proof(1, result="failed")], VERIFIER), lambda payload: payload["proofs"][0].update(result="ok")),
            TrustError,
        ),  # type: ignore[index]
        (changed(sign_found(RUN, [proof(1)], VERIFIER), lambda payload: payload["proofs"].clear()), TrustError),  # type: ignore[attr-defined]
        (sign_found(RUN, [proof(1)], KEYS.writer), TrustError),
        (sign_found("another", [proof(1)], VERIFIER), CorruptError),
        (dsse.sign("application/vnd.seawall.proofs.v1+json", b"{}", [VERIFIER]).encode().decode(), TrustError),
        (dsse.sign(PAYLOAD_TYPE, b"{}", [VERIFIER]).encode().decode(), CorruptError),
        ("", CorruptError),
        ("{}", CorruptError),
    ],
)
def test_nothing_else_does(text: str, error: type[SeawallError]) -> None:
    resolve = read(begun()[0]).state.resolver("verifier")
    with pytest.raises(error):
        read_found(text, RUN, resolve)


def test_the_same_proofs_are_appended_once() -> None:
    store, _ = begun()
    first = certify_once(store, read(store), [proof(1), proof(2)], VERIFIER, TickClock())
    again = certify_once(store, read(store), [proof(2), proof(1)], VERIFIER, TickClock())
    assert again.seq == first.seq
    more = certify_once(store, read(store), [proof(1), proof(3)], VERIFIER, TickClock())
    assert [found.at for found in read_proofs(store, more).proofs] == [proof(number).at for number in (1, 2, 3)]


def test_a_head_that_an_earlier_try_did_not_state_is_stated() -> None:
    store, _ = begun()
    view = read(store)
    append_proofs(store, RUN, [proof(1)], VERIFIER, view.state.resolver("verifier"))
    assert read(store).state.heads == {}
    after = certify_once(store, read(store), [proof(1)], VERIFIER, TickClock())
    assert after.state.heads[VERIFIER.key_id].seq == 1
    assert read_chain(store, RUN, VERIFIER.key_id, view.state.resolver("verifier")).seq == 1


def test_nothing_found_says_nothing() -> None:
    store, _ = begun()
    view = read(store)
    assert certify_once(store, view, [], VERIFIER, TickClock()).seq == view.seq
    assert certify(store, view, [], VERIFIER, TickClock()).seq > view.seq, "the control: certify itself appends what it is given"
