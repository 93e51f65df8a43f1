"""``documents.json``: receipts and chains of proofs, good and bad, as stored text."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from seawall.vault import canonical, dsse
from seawall.vault.receipt import PAYLOAD_TYPE as RECEIPT
from seawall.vault.receipt import Receipt
from seawall.vault.signing import SigningKey
from seawall.verify.levels import Level
from seawall.verify.proofs import NO_BATCH, Proof, ProofBatch
from seawall.verify.proofs import PAYLOAD_TYPE as PROOFS
from tests.log.actors import KEYS, RUN
from tests.vectors.copies import SAVED_AT, SealedCopy

STORE = "ab" * 16
VERIFIER = KEYS.verifier.key_id


def signed(kind: str, payload: bytes, key: SigningKey) -> str:
    return dsse.sign(kind, payload, [key]).encode().decode("ascii")


def edited(payload: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    document = canonical.decode(payload)
    edit(document)
    return canonical.encode(document)


def receipts(copy: SealedCopy) -> Iterator[dict[str, Any]]:
    """Each for the first receipt of ``copy`` in store ``STORE``."""
    good = Receipt(RUN, copy.sealing, copy.manifest_digest, STORE, 1, SAVED_AT, None, {"file-0.sea": "v1", "odd-\udcff": ""})
    payload = good.payload()

    def one(name: str, done: str, stored: str, expect: str = "corrupt") -> dict[str, Any]:
        return {"name": f"receipt-{name}", "done": done, "expect": expect, "stored": stored}

    yield one("good", "nothing", signed(RECEIPT, payload, KEYS.writer), "ok")
    yield one("by-a-verifier", "nothing wrong: a verifier signed it", signed(RECEIPT, payload, KEYS.verifier), "ok")
    yield one("by-an-operator", "nothing wrong: an operator signed it", signed(RECEIPT, payload, KEYS.operator), "ok")
    bare = replace(good, server_time=None, versions={})
    yield one("without-clock", "nothing wrong: a store without clock and versions", signed(RECEIPT, bare.payload(), KEYS.writer), "ok")
    yield one("foreign-signature", "signed by a stranger", signed(RECEIPT, payload, KEYS.stranger), "trust")
    yield one("wrong-role", "signed by a coordinator", signed(RECEIPT, payload, KEYS.coordinator), "trust")
    yield one("revoked-key", "signed by a revoked writer", signed(RECEIPT, payload, KEYS.second_writer), "trust")
    yield one("type-not-ascii", "payload type with a letter outside ASCII", signed(RECEIPT + "é", payload, KEYS.writer), "trust")
    yield one("type-of-a-manifest", "another type", signed("application/vnd.seawall.manifest.v1+json", payload, KEYS.writer), "trust")
    for name, other in {
        "another-run": replace(good, run="other"),
        "another-sealing": replace(good, sealing=bytes(16)),
        "another-manifest": replace(good, manifest_digest="00" * 32),
        "another-store": replace(good, store="cd" * 16),
        "another-number": replace(good, sequence=2),
    }.items():
        yield one(name, f"of {name.replace('-', ' ')}", signed(RECEIPT, other.payload(), KEYS.writer))
    yield one("field-too-many", "an unknown field", signed(RECEIPT, edited(payload, lambda d: d.update(more="x")), KEYS.writer))
    yield one("field-missing", "no 'locked_until'", signed(RECEIPT, edited(payload, lambda d: d.pop("locked_until")), KEYS.writer))
    both = edited(payload, lambda d: d["versions"].update({"cd" * 16: {}}))
    yield one("versions-of-two-stores", "versions of another store, too", signed(RECEIPT, both, KEYS.writer))
    yield one(
        "time-no-moment", "server_time is no time", signed(RECEIPT, edited(payload, lambda d: d.update(server_time="now")), KEYS.writer)
    )


def chains(copy: SealedCopy) -> Iterator[dict[str, Any]]:
    """Each is the verifier's whole chain; ``stored`` is its batches in order, null for one that is not there."""
    proof = Proof(copy.sealing.hex(), copy.manifest_digest, STORE, Level.L2, "ok", "scrub", SAVED_AT, {"objects": "11"}, "")
    failed = replace(proof, level=Level.L1, result="failed", versions="00" * 32)
    first = ProofBatch(RUN, VERIFIER, 1, NO_BATCH, (proof, failed))
    stored = signed(PROOFS, first.payload(), KEYS.verifier)
    second = ProofBatch(RUN, VERIFIER, 2, dsse.digest(stored.encode()), ())
    following = signed(PROOFS, second.payload(), KEYS.verifier)

    def one(name: str, done: str, batches: list[str | None], expect: str = "trust", seq: int = 0) -> dict[str, Any]:
        return {"name": f"proofs-{name}", "done": done, "expect": expect, "seq": seq, "stored": batches}

    def instead(name: str, done: str, other: ProofBatch, key: SigningKey = KEYS.verifier, expect: str = "trust") -> dict[str, Any]:
        return one(name, done, [stored, signed(PROOFS, other.payload(), key)], expect)

    yield one("good", "nothing", [stored, following], "ok", 2)
    yield one("none", "nothing: no batch yet", [], "ok", 0)
    yield one("cut", "the last is not there: a reader sees it by the head that the log states", [stored], "ok", 1)
    yield one("first-missing", "the first is not there: as if there were none; the log's head shows it", [None, following], "ok", 0)
    yield one("swapped", "the two in each other's place", [following, stored])
    yield one("repeated", "the first again as second", [stored, stored])
    yield instead("prev-of-another", "the second follows another first", replace(second, prev="11" * 32))
    yield instead("number-passed-over", "the second says that it is the third", replace(second, seq=3))
    yield instead("another-run", "of another run", replace(second, run="other"))
    yield instead("another-verifier", "in the name of another verifier", replace(second, verifier=KEYS.second_verifier.key_id))
    yield instead("by-another-verifier", "signed by another verifier", second, KEYS.second_verifier)
    yield instead("wrong-role", "signed by a writer", second, KEYS.writer)
    yield instead("foreign-signature", "signed by a stranger", second, KEYS.stranger)
    yield one("type-not-ascii", "payload type with a letter outside ASCII", [signed(PROOFS + "é", first.payload(), KEYS.verifier)])
    for name, edit in {
        "level-6": lambda d: d["proofs"][0].update(level="L6"),
        "level-lower-case": lambda d: d["proofs"][0].update(level="l2"),
        "result-maybe": lambda d: d["proofs"][0].update(result="maybe"),
        "evidence-number": lambda d: d["proofs"][0].update(evidence={"objects": None}),
        "field-too-many": lambda d: d["proofs"][0].update(more="x"),
        "proof-no-object": lambda d: d.update(proofs=["ok"]),
    }.items():
        yield one(name, name.replace("-", " "), [signed(PROOFS, edited(first.payload(), edit), KEYS.verifier)], "corrupt")
