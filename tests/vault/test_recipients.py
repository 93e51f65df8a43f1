"""Who can open a sealing: keyring and recovery key, and that a wrap serves its own run and sealing alone."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from seawall.errors import ConfigurationError, CorruptError, KeyMissingError, TrustError
from seawall.vault.keyring import Keyring
from seawall.vault.recipients import KeyringKey, RecoveryKey, RecoveryPublicKey, Unwrapper, Wrap, wrap_context
from seawall.vault.wraps import WrappedKey, parse_wraps, wrap_for
from tests.log.actors import KEYS
from tests.vectors.copies import noise

DATA_KEY = noise("data key", 32)
SEALING = noise("sealing", 16)
CONTEXT = wrap_context("gpt", SEALING)
RECIPIENTS: dict[str, Unwrapper] = {"keyring": KeyringKey(noise("keyring", 32)), "recovery": RecoveryKey(noise("recovery", 96))}


@pytest.fixture(params=list(RECIPIENTS))
def recipient(request: pytest.FixtureRequest) -> Unwrapper:
    return RECIPIENTS[request.param]


def test_a_wrap_is_opened_by_its_recipient(recipient: Unwrapper) -> None:
    wraps = {recipient.wrap(DATA_KEY, CONTEXT).wrapped for _ in range(3)}
    assert len(wraps) == 3, "two wraps of one key are not alike"
    for wrapped in wraps:
        assert recipient.unwrap(Wrap(recipient.kind, recipient.id, wrapped), CONTEXT) == DATA_KEY
        assert len(wrapped) == {"keyring": 60, "recovery": 1168}[recipient.kind]


@pytest.mark.parametrize("context", [wrap_context("gpt2", SEALING), wrap_context("gpt", noise("another", 16)), b"", CONTEXT + b"\0"])
def test_a_wrap_cannot_be_moved(recipient: Unwrapper, context: bytes) -> None:
    with pytest.raises(KeyMissingError, match="another key, run or sealing"):
        recipient.unwrap(recipient.wrap(DATA_KEY, CONTEXT), context)


def test_contexts_do_not_run_into_each_other() -> None:
    """Without the length, a run's name could take bytes of the sealing id."""
    assert wrap_context("ab", b"c" * 16) != wrap_context("abc", b"c" * 15)


def test_a_damaged_wrap_is_refused(recipient: Unwrapper) -> None:
    wrapped = recipient.wrap(DATA_KEY, CONTEXT).wrapped
    places = sorted(
        {0, 5, 11, 12, 13, len(wrapped) // 2, len(wrapped) - 49, len(wrapped) - 48, len(wrapped) - 1} & set(range(len(wrapped)))
    )
    bad = [wrapped[:at] + bytes((wrapped[at] ^ 1,)) + wrapped[at + 1 :] for at in places]
    bad += [b"", wrapped[:11], wrapped[:-1], wrapped + b"\0", bytes(len(wrapped)), wrapped[: len(wrapped) // 2]]
    for changed in bad:
        with pytest.raises(KeyMissingError):
            recipient.unwrap(Wrap(recipient.kind, recipient.id, changed), CONTEXT)


def test_another_key_of_the_same_kind_opens_nothing() -> None:
    others: dict[str, Unwrapper] = {"keyring": KeyringKey(noise("other", 32)), "recovery": RecoveryKey(noise("other", 96))}
    for kind, other in others.items():
        with pytest.raises(KeyMissingError):
            other.unwrap(RECIPIENTS[kind].wrap(DATA_KEY, CONTEXT), CONTEXT)


def test_a_public_half_wraps_for_the_private_one() -> None:
    private = RecoveryKey.generate()
    public = RecoveryPublicKey.from_text(private.public.text())
    assert public.id == private.id
    assert RecoveryKey.from_text(private.text()).unwrap(public.wrap(DATA_KEY, CONTEXT), CONTEXT) == DATA_KEY


@pytest.mark.parametrize(
    "text",
    ["", "mlkem768x25519:", "mlkem768x25519:zz", "ed25519:" + "00" * 32, "mlkem768x25519:" + "00" * 1215, "mlkem768x25519:" + "ff" * 1216],
)
def test_malformed_public_halves_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        RecoveryPublicKey.from_text(text)


@pytest.mark.parametrize("text", ["", "mlkem768x25519-private:", "mlkem768x25519-private:" + "00" * 95, "mlkem768x25519:" + "00" * 96])
def test_malformed_private_halves_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        RecoveryKey.from_text(text)


def document(*recipients: str) -> WrappedKey:
    return wrap_for([RECIPIENTS[name] for name in recipients], DATA_KEY, "gpt", SEALING)


def read(raw: bytes, run: str = "gpt", sealing: bytes = SEALING, version: int = 1) -> WrappedKey:
    keys = {key.key_id: key.public for key in (KEYS.writer, KEYS.operator)}
    return parse_wraps(raw, run, sealing, version, keys.get, "keys")


def test_any_recipient_opens_the_document() -> None:
    wrapped = read(document("keyring", "recovery").sign(KEYS.writer))
    for recipient in RECIPIENTS.values():
        assert wrapped.unwrap([recipient]) == DATA_KEY
    with pytest.raises(KeyMissingError, match=r"its recipients are keyring \w+, recovery "):
        wrapped.unwrap([KeyringKey(bytes(32))])


def test_a_damaged_wrap_does_not_hide_a_whole_one() -> None:
    good = document("keyring", "recovery")
    wrapped = replace(good, wraps=(replace(good.wraps[0], wrapped=bytes(60)), good.wraps[1]))
    assert wrapped.unwrap(list(RECIPIENTS.values())) == DATA_KEY
    with pytest.raises(KeyMissingError, match="wrapped data key does not open"):
        wrapped.unwrap([RECIPIENTS["keyring"]])


def test_a_key_that_is_not_the_sealings_is_refused() -> None:
    planted = replace(document("keyring"), wraps=wrap_for([RECIPIENTS["keyring"]], noise("planted", 32), "gpt", SEALING).wraps)
    with pytest.raises(KeyMissingError, match="commitment disagrees"):
        planted.unwrap([RECIPIENTS["keyring"]])


def test_the_document_belongs_to_its_place() -> None:
    raw = document("keyring").sign(KEYS.operator)
    assert read(raw).version == 1
    for place in ({"run": "gpt2"}, {"sealing": bytes(16)}, {"version": 2}):
        with pytest.raises(CorruptError, match="another sealing"):
            read(raw, **place)  # type: ignore[arg-type]  # one of the three
    with pytest.raises(TrustError):
        read(document("keyring").sign(KEYS.verifier))


def test_a_keyring_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    before = os.umask(0)
    try:
        Keyring.generate().create(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    Keyring.load(path)
    for mode in (0o640, 0o604, 0o660, 0o610):
        path.chmod(mode)
        with pytest.raises(KeyMissingError, match=f"mode 0{mode:o}"):
            Keyring.load(path)
    path.chmod(0o400)
    Keyring.load(path)


def test_rotation_keeps_every_older_key(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    first = Keyring.generate()
    first.create(path)
    old_wrap = first.current.wrap(DATA_KEY, CONTEXT)
    second = Keyring.load(path).rotated()
    second.replace(path)
    loaded = Keyring.load(path)
    assert [key.id for key in loaded.keys] == [first.current.id, second.current.id]
    assert loaded.current.id == second.current.id != first.current.id
    found = loaded.find(first.current.id)
    assert found is not None and found.unwrap(old_wrap, CONTEXT) == DATA_KEY
    assert loaded.find("00" * 16) is None
    assert [entry.name for entry in tmp_path.iterdir()] == ["keyring.json"] and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_rotation_that_was_killed_does_not_stop_the_next(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    first = Keyring.generate()
    first.create(path)
    (tmp_path / f".keyring.json.{os.getpid()}").write_bytes(b"half")
    first.rotated().replace(path)
    assert len(Keyring.load(path).keys) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["keyring.json"]


def test_a_keyring_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    Keyring.generate().create(path)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="there already"):
        Keyring.generate().create(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"format":"1","keys":[]}',
        b'{"format":"1","keys":["00"]}',
        b'{"format":"1","keys":[1]}',
        b'{"format":"2","keys":[]}',
        b"\xff" * 100,
        b" " * (2 << 20),
    ],
)
def test_a_damaged_keyring_is_a_missing_key(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keyring.json"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyMissingError):
        Keyring.load(path)


def test_no_keyring_is_a_missing_key(tmp_path: Path) -> None:
    with pytest.raises(KeyMissingError, match="not on this host"):
        Keyring.load(tmp_path / "keyring.json")
