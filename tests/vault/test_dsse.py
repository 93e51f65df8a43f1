"""Signed statements: the published encoding, byte by byte, and what a signature does not cover."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, TrustError
from seawall.vault import canonical, dsse
from seawall.vault.signing import PublicKey, SigningKey

ONE = SigningKey(b"\x01" * 32, "writer")
TWO = SigningKey(b"\x02" * 32, "verifier")
KNOWN = {key.key_id: key.public for key in (ONE, TWO)}


def test_the_encoding_of_the_protocol_document() -> None:
    # The example of https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert dsse.pae("", b"") == b"DSSEv1 0  0 "


def test_lengths_count_bytes() -> None:
    # python-securesystemslib counted characters here, so that its signatures verified nowhere else.
    assert dsse.pae("text/é", b"x") == b"DSSEv1 7 text/\xc3\xa9 1 x"
    assert dsse.pae("\U0001f30a", "é".encode()) == b"DSSEv1 4 \xf0\x9f\x8c\x8a 2 \xc3\xa9"
    envelope = dsse.sign("text/é", b"x", [ONE])
    assert dsse.verify(envelope, "text/é", KNOWN.get) == [ONE.key_id]
    wrong = dsse.Envelope("text/é", b"x", ((ONE.key_id, ONE.sign("DSSEv1 6 text/é 1 x".encode())),))
    with pytest.raises(TrustError, match="a signature is wrong"):
        dsse.verify(wrong, "text/é", KNOWN.get)


@settings(deadline=None, max_examples=50)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.binary(max_size=30),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.binary(max_size=30),
)
def test_no_two_statements_share_an_encoding(kind: str, payload: bytes, other_kind: str, other_payload: bytes) -> None:
    same = (kind, payload) == (other_kind, other_payload)
    assert (dsse.pae(kind, payload) == dsse.pae(other_kind, other_payload)) == same


@settings(deadline=None, max_examples=50)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    st.binary(max_size=200),
    st.sampled_from([[ONE], [TWO, ONE]]),
)
def test_round_trip(kind: str, payload: bytes, keys: list[SigningKey]) -> None:
    envelope = dsse.sign(kind, payload, keys)
    assert dsse.Envelope.decode(envelope.encode()) == envelope
    assert dsse.verify(dsse.Envelope.decode(envelope.encode()), kind, KNOWN.get) == [key.key_id for key in keys]


def test_the_stored_form() -> None:
    signature = base64.b64encode(ONE.sign(b"DSSEv1 1 t 1 p")).decode()
    expected = f'{{"payload":"cA==","payloadType":"t","signatures":[{{"keyid":"{ONE.key_id}","sig":"{signature}"}}]}}'
    assert dsse.sign("t", b"p", [ONE]).encode() == expected.encode()
    assert dsse.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_who_counts_is_the_readers_choice() -> None:
    envelope = dsse.sign("t", b"p", [ONE, TWO])
    assert dsse.verify(envelope, "t", KNOWN.get, threshold=2) == [ONE.key_id, TWO.key_id]
    assert dsse.verify(envelope, "t", {TWO.key_id: TWO.public}.get) == [TWO.key_id]
    with pytest.raises(TrustError, match="1 of 2 needed"):
        dsse.verify(envelope, "t", {TWO.key_id: TWO.public}.get, threshold=2)
    with pytest.raises(TrustError, match=f"not counted: {ONE.key_id}, {TWO.key_id}"):
        dsse.verify(envelope, "t", lambda key_id: None)
    with pytest.raises(TrustError, match="of another type"):
        dsse.verify(envelope, "u", KNOWN.get)
    with pytest.raises(ValueError, match="verifies nothing"):
        dsse.verify(envelope, "t", KNOWN.get, threshold=0)
    # A resolver that answers with another key than was asked for must not make a signature count under its name.
    with pytest.raises(TrustError, match="a signature is wrong"):
        dsse.verify(dsse.Envelope("t", b"p", ((ONE.key_id, TWO.sign(dsse.pae("t", b"p"))),)), "t", lambda key_id: TWO.public)


def test_one_key_is_one_signature() -> None:
    twice = dsse.Envelope("t", b"p", dsse.sign("t", b"p", [ONE]).signatures * 2)
    with pytest.raises(TrustError, match="1 of 2 needed"):
        dsse.verify(twice, "t", KNOWN.get, threshold=2)
    with pytest.raises(CorruptError, match="two signatures of one key"):
        dsse.Envelope.decode(twice.encode())


def test_every_flipped_bit_is_noticed() -> None:
    good = dsse.sign("type", b"payload", [ONE]).encode()
    for position in range(len(good)):
        for bit in (0x01, 0x20, 0x80):
            bad = bytearray(good)
            bad[position] ^= bit
            with pytest.raises((CorruptError, TrustError)):
                dsse.verify(dsse.Envelope.decode(bytes(bad)), "type", KNOWN.get)


def signature(**changes: object) -> dict[str, object]:
    return {"keyid": ONE.key_id, "sig": canonical.base64_text(b"\x00" * 64), **changes}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"extra": "x"}, "unknown fields"),
        ({"payload": "cA"}, "base64"),
        ({"payload": "cB=="}, "base64"),
        ({"payload": "cA==\n"}, "base64"),
        ({"payload": None}, "'payload' is not"),
        ({"payloadType": ""}, "wrong length"),
        ({"payloadType": "x" * 201}, "wrong length"),
        ({"payloadType": "\udc80"}, "not UTF-8"),
        ({"signatures": []}, "no signature"),
        ({"signatures": None}, "'signatures' is not"),
        ({"signatures": ["x"]}, "not an object"),
        ({"signatures": [signature(extra="x")]}, "unknown fields"),
        ({"signatures": [signature(keyid="ab")]}, "hex value"),
        ({"signatures": [signature(keyid=ONE.key_id.upper())]}, "hex value"),
        ({"signatures": [signature(sig=canonical.base64_text(b"\x00" * 63))]}, "is cut"),
        ({"signatures": [signature(sig=canonical.base64_text(b"\x00" * 65))]}, "base64"),
        ({"signatures": [signature(keyid=f"{number:032x}") for number in range(17)]}, "too many"),
    ],
)
def test_malformed_envelopes(change: dict[str, object], words: str) -> None:
    document = {"payload": "cA==", "payloadType": "t", "signatures": [signature()]}
    dsse.Envelope.decode(canonical.encode(document))
    with pytest.raises(CorruptError, match=words):
        dsse.Envelope.decode(canonical.encode({**document, **change}), where="here")


def test_a_public_key_has_32_bytes() -> None:
    for length in (0, 31, 33):
        with pytest.raises(CorruptError):
            PublicKey(b"\x00" * length)


VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "dsse.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["what"])
def test_the_committed_vectors(vector: dict[str, str]) -> None:
    public = PublicKey.from_text(vector["public"])
    data = vector["envelope"].encode()
    if vector["expect"] == "verified":
        envelope = dsse.Envelope.decode(data)
        assert dsse.verify(envelope, vector["type"], {public.key_id: public}.get) == [public.key_id]
        assert envelope.payload.hex() == vector["payload"]
        assert dsse.pae(vector["type"], envelope.payload).hex() == vector["pae"]
        assert dsse.sign(vector["type"], envelope.payload, [ONE]).encode() == data
        return
    with pytest.raises({"trust": TrustError, "corrupt": CorruptError}[vector["expect"]]):
        dsse.verify(dsse.Envelope.decode(data), vector["type"], {public.key_id: public}.get)
