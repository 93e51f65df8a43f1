"""Nothing but a SeawallError comes out of a parser of the vault, in bounded time and memory, whatever is put in.

Signatures are made to agree where they would end the parsing: after a signature, a hostile writer is the one to fear.
"""

import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from seawall.errors import SeawallError
from seawall.vault import codecs, dsse, manifest, receipt, wraps, zstd_frames
from seawall.vault.batch import decode_batch
from seawall.vault.codecs import Codec
from seawall.vault.header import parse_header
from seawall.vault.inventory import decode_inventory
from seawall.vault.keyring import Keyring
from seawall.vault.manifest import parse_manifest
from seawall.vault.objects import decode_objects
from seawall.vault.open import open_bytes, read_frame, scrub
from seawall.vault.plan import decode_plan
from seawall.vault.receipt import parse_receipt
from seawall.vault.recipients import Wrap
from seawall.vault.signing import PublicKey
from seawall.vault.tail import Footer, parse_footer, parse_tail, parse_trailer
from seawall.vault.wraps import parse_wraps
from seawall.verify import proofs
from tests.log.actors import KEYS
from tests.vault.mutations import mutated, mutated_document
from tests.vault.readers import COPIES, INDEX, STORE
from tests.vault.sealed import DATA_KEY, frame_of, sealed
from tests.vault.test_recipients import CONTEXT, RECIPIENTS
from tests.vectors.copies import KEYRING, RECOVERY, plain, text

MOST_SECONDS = 2.0
"""For one input; they take well under a millisecond, but other tests run beside."""
MOST_BYTES = 64 << 20


class AgreeingKey(PublicKey):
    """Whatever is signed by it verifies."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        return True


def anyone(key_id: str) -> PublicKey:
    return AgreeingKey(KEYS.writer.public.raw)


def signed(kind: str, parse: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """For a payload: it is signed again after every change."""
    return lambda payload: parse(dsse.sign(kind, payload, [KEYS.writer, KEYS.verifier]).encode())


def payload_of(stored: bytes) -> bytes:
    return dsse.Envelope.decode(stored).payload


def known(key_id: str) -> PublicKey | None:
    return {key.key_id: key.public for key in (KEYS.writer, KEYS.verifier)}.get(key_id)


PLAIN = plain()
FOLDER = f"runs/{INDEX['run']}/sealings/{COPIES['plain']['sealing']}/"
SEALED = sealed(text(3000), Codec.ZSTD)[0]
FRAME = frame_of(SEALED)
TAIL_AT = FRAME.offsets[-1] + FRAME.leaves[-1].length
PROOFS_AT = f"runs/{INDEX['run']}/proofs/{KEYS.verifier.key_id}/{1:016d}.json"


def open_all(raw: bytes) -> None:
    """Frame under a signature that agrees, scrub, and what opens."""
    frame = read_frame(lambda start, length: raw[start : start + length], len(raw), anyone, "fuzz")
    scrub(frame, lambda start, length: memoryview(raw)[start : start + length])
    open_bytes(raw, DATA_KEY, anyone, "fuzz")


@dataclass(frozen=True)
class Target:
    seed: bytes
    parse: Callable[[bytes], object]
    mutate: Callable[[bytes, random.Random], bytes] = mutated


def _receipt() -> bytes:
    return next(raw for key, raw in STORE.items() if key.startswith(FOLDER + "receipt-"))


TARGETS: dict[str, Target] = {
    "header": Target(SEALED[:128], lambda raw: parse_header(raw, "fuzz")),
    "trailer": Target(SEALED[-80:], lambda raw: parse_trailer(raw, len(SEALED), "fuzz")),
    "tail": Target(SEALED[TAIL_AT:-80], lambda raw: parse_tail(raw, TAIL_AT, "fuzz")),
    "footer": Target(Footer(b"a name", 3000, bytes(32)).pack(), lambda raw: parse_footer(raw, "fuzz")),
    "object": Target(SEALED, open_all),
    "zstd": Target(zstd_frames.pack_frame(memoryview(text(1024))), lambda raw: codecs.unpack(Codec.ZSTD, memoryview(raw), 1024)),
    "plan": Target(PLAIN.plan.encode(), lambda raw: decode_plan(raw, "fuzz"), mutated_document),
    "inventory": Target(PLAIN.inventory.encode(), lambda raw: decode_inventory(raw, "fuzz"), mutated_document),
    "inventory bytes": Target(PLAIN.inventory.encode(), lambda raw: decode_inventory(raw, "fuzz")),
    "batch": Target(
        open_bytes(PLAIN.objects["batch-1.sea"], PLAIN.data_key, known, "")[0], lambda raw: decode_batch(raw, "fuzz"), mutated_document
    ),
    "objects": Target(PLAIN.objects["objects.json"], lambda raw: decode_objects(raw, PLAIN.sealing, "fuzz"), mutated_document),
    "objects bytes": Target(PLAIN.objects["objects.json"], lambda raw: decode_objects(raw, PLAIN.sealing, "fuzz")),
    "manifest": Target(
        payload_of(PLAIN.objects["manifest.json"]),
        signed(manifest.PAYLOAD_TYPE, lambda raw: parse_manifest(raw, known, "fuzz")),
        mutated_document,
    ),
    "envelope": Target(PLAIN.objects["manifest.json"], lambda raw: parse_manifest(raw, anyone, "fuzz"), mutated_document),
    "keys": Target(
        payload_of(PLAIN.objects["keys-1.json"]),
        signed(wraps.PAYLOAD_TYPE, lambda raw: parse_wraps(raw, INDEX["run"], PLAIN.sealing, 1, known, "fuzz").unwrap([KEYRING, RECOVERY])),
        mutated_document,
    ),
    "receipt": Target(
        payload_of(_receipt()), signed(receipt.PAYLOAD_TYPE, lambda raw: parse_receipt(raw, known, "fuzz")), mutated_document
    ),
    "proofs": Target(
        payload_of(STORE[PROOFS_AT]),
        signed(proofs.PAYLOAD_TYPE, lambda raw: proofs.parse_batch(raw, INDEX["run"], KEYS.verifier.key_id, 1, "0" * 64, known, "fuzz")),
        mutated_document,
    ),
    **{
        f"{kind} wrap": Target(
            recipient.wrap(DATA_KEY, CONTEXT).wrapped,
            lambda raw, r=recipient: r.unwrap(Wrap(r.kind, r.id, raw), CONTEXT),  # type: ignore[misc]
        )
        for kind, recipient in RECIPIENTS.items()
    },
}


def fuzz(target: Target, count: int) -> int:
    """How many inputs were refused."""
    target.parse(target.seed)
    draw = random.Random(20260301)
    refused = 0
    for number in range(count):
        changed = target.mutate(target.seed, draw)
        # Tracing makes everything several times slower, so it looks at every twentieth.
        with traced() if number % 20 == 0 else nullcontext():
            began = time.perf_counter()
            try:
                target.parse(changed)
            except SeawallError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"input {number}: {type(error).__name__}: {error}\n{changed[:2000]!r}") from error
            assert time.perf_counter() - began < MOST_SECONDS, changed
    return refused


@contextmanager
def traced() -> Iterator[None]:
    """What is done within allocates little."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", list(TARGETS))
def test_only_typed_errors_come_out(name: str) -> None:
    assert fuzz(TARGETS[name], 500) > 250, "most changes are noticed"


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", list(TARGETS))
def test_only_typed_errors_come_out_at_length(name: str) -> None:
    assert fuzz(TARGETS[name], 10_000) > 5000


def test_a_keyring_of_anything_is_a_missing_key(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    Keyring.generate().rotated().create(path)

    def load(raw: bytes) -> None:
        path.write_bytes(raw)
        Keyring.load(path)

    assert fuzz(Target(path.read_bytes(), load), 500) > 250
