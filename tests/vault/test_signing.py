"""Keys and the files they lie in."""

import hashlib
import os
from pathlib import Path

import pytest

from seawall.errors import ConfigurationError, KeyMissingError
from seawall.vault import canonical
from seawall.vault.signing import ROLES, PublicKey, SigningKey, key_id_of

# RFC 8032 section 7.1, tests 1 and 2.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@pytest.mark.parametrize(("private", "public", "message", "signature"), RFC_8032)
def test_the_vectors_of_the_rfc(private: str, public: str, message: str, signature: str) -> None:
    key = SigningKey(bytes.fromhex(private), "writer")
    assert key.public.raw.hex() == public
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert key.public.verify(bytes.fromhex(signature), bytes.fromhex(message))
    assert not key.public.verify(bytes.fromhex(signature), bytes.fromhex(message) + b"x")
    assert not key.public.verify(b"", bytes.fromhex(message))
    assert key.key_id == hashlib.sha256(bytes.fromhex(public)).hexdigest()[:32] == key_id_of(key.public.raw)


def test_text_of_a_public_key() -> None:
    public = SigningKey(b"\x01" * 32, "root").public
    text = public.text()
    assert text == "ed25519:" + public.raw.hex()
    assert PublicKey.from_text(text) == public
    for wrong in ("", "ed25519:", text[:-2], text + "00", text.upper(), text.replace("ed25519", "rsa"), public.raw.hex(), text + "\n"):
        with pytest.raises(ConfigurationError, match="a public key is malformed"):
            PublicKey.from_text(wrong)


@pytest.mark.parametrize("role", [*ROLES, "root"])
def test_a_key_file_round_trip(tmp_path: Path, role: str) -> None:
    path = tmp_path / "key.json"
    key = SigningKey.generate(role)
    before = os.umask(0)
    try:
        key.save(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    again = SigningKey.load(path, role)
    assert (again.key_id, again.role, again.sign(b"x")) == (key.key_id, role, key.sign(b"x"))
    assert set(canonical.decode(path.read_bytes())) == {"format", "role", "public", "private"}
    with pytest.raises(ConfigurationError, match="there already"):
        SigningKey.generate(role).save(path)
    assert SigningKey.load(path, role).key_id == key.key_id
    with path.open("ab") as file:
        file.write(b"\n")
    assert SigningKey.load(path, role).key_id == key.key_id


def test_secrets_are_not_shown() -> None:
    key = SigningKey(b"\x05" * 32, "writer")
    assert "05" * 8 not in repr(key)
    assert key.key_id in repr(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_key_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key.json"
    SigningKey.generate("writer").save(path)
    path.chmod(mode)
    with pytest.raises(KeyMissingError, match="open to other users") as caught:
        SigningKey.load(path, "writer")
    assert caught.value.exit_code == 8
    path.chmod(0o400)
    assert SigningKey.load(path, "writer")


def test_a_key_of_another_role_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    SigningKey.generate("verifier").save(path)
    with pytest.raises(KeyMissingError, match="not for writer"):
        SigningKey.load(path, "writer")


def test_an_absent_key_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyMissingError, match="not on this host"):
        SigningKey.load(tmp_path / "none.json", "writer")
    with pytest.raises(KeyMissingError):
        SigningKey.load(tmp_path, "writer")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        SigningKey.generate("writer").save(tmp_path / "none" / "key.json")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "2"},
        {"role": "king"},
        {"role": None},
        {"public": "00" * 32},
        {"public": "00"},
        {"private": "00" * 31},
        {"private": "00" * 32},
        {"extra": "x"},
    ],
)
def test_a_damaged_key_file_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "key.json"
    SigningKey.generate("writer").save(path)
    path.write_bytes(canonical.encode({**canonical.decode(path.read_bytes()), **change}))
    with pytest.raises(KeyMissingError):
        SigningKey.load(path, "writer")


@pytest.mark.parametrize("data", [b"", b"{}", b"-----BEGIN " + b"PRIVATE KEY-----", b"x" * 10_000])
def test_what_is_no_key_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "key.json"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(KeyMissingError):
        SigningKey.load(path, "writer")


def test_there_is_no_other_role() -> None:
    with pytest.raises(ConfigurationError, match="no such role"):
        SigningKey.generate("king")
