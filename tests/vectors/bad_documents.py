"""Documents of a sealing that are wrong: keys, objects table, manifest, inventory, plan and batch."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

from seawall.vault import canonical, dsse, manifest, wraps
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.objects import NAME as OBJECTS
from seawall.vault.objects import ObjectsTable
from seawall.vault.open import open_bytes
from seawall.vault.recipients import Wrap, wrap_context
from seawall.vault.signing import SigningKey
from seawall.vault.wraps import commitment
from tests.log.actors import KEYS, RUN
from tests.vectors.bad_bytes import flipped
from tests.vectors.copies import CHUNK_BYTES, KEYRING, STRANGE_KEYRING, SealedCopy, noise
from tests.vectors.craft import Craft
from tests.vectors.fixed_random import fixed_random
from tests.vectors.vector import Vector, instead

Edit = Callable[[dict[str, Any]], object]
MANIFEST = "manifest.json"


def signed(kind: str, payload: bytes, *keys: SigningKey) -> bytes:
    return dsse.sign(kind, payload, keys).encode()


def loose(document: dict[str, Any]) -> bytes:
    """JSON as others write it."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def bad_manifests(base: SealedCopy, other_sealing: SealedCopy) -> Iterator[Vector]:
    assert base.manifest is not None and other_sealing.manifest is not None
    payload = base.manifest.payload()
    kind = manifest.PAYLOAD_TYPE

    def stored(name: str, done: str, raw: bytes, expect: str = "corrupt", *, in_log: bool = True) -> Vector:
        digest = sha256(raw if in_log else base.objects[MANIFEST]).hexdigest()
        return Vector(f"manifest-{name}", base, done, expect, "", {MANIFEST: raw}, digest)

    def edited(
        name: str, done: str, edit: Edit, expect: str = "corrupt", dump: Callable[[dict[str, Any]], bytes] = canonical.encode
    ) -> Vector:
        document = canonical.decode(payload)
        edit(document)
        return stored(name, done, signed(kind, dump(document), KEYS.writer), expect)

    yield stored("control", "nothing: signed again, the same bytes", signed(kind, payload, KEYS.writer), "ok")
    yield stored(
        "not-in-the-log", "another manifest than the log names", signed(kind, payload, KEYS.writer, KEYS.second_writer), in_log=False
    )
    yield stored(
        "also-signed-by-a-stranger",
        "nothing wrong: a signature that does not count, too",
        signed(kind, payload, KEYS.stranger, KEYS.writer),
        "ok",
    )
    yield stored("foreign-signature", "signed by a stranger", signed(kind, payload, KEYS.stranger), "trust")
    yield stored("wrong-role", "signed by an operator", signed(kind, payload, KEYS.operator), "trust")
    yield stored("wrong-role-verifier", "signed by a verifier", signed(kind, payload, KEYS.verifier), "trust")
    yield stored("root-signature", "signed by the root key", signed(kind, payload, KEYS.root), "trust")
    yield stored("revoked-key", "signed by a revoked writer", signed(kind, payload, KEYS.second_writer), "trust")
    yield stored(
        "type-of-a-receipt", "payload type of a receipt", signed("application/vnd.seawall.receipt.v1+json", payload, KEYS.writer), "trust"
    )
    yield stored("type-not-ascii", "payload type with a letter outside ASCII", signed(kind + "é", payload, KEYS.writer), "trust")
    counted = b"DSSEv1 %d %b %d %b" % (len(kind + "é"), (kind + "é").encode(), len(payload), payload)
    envelope = dsse.Envelope(kind + "é", payload, ((KEYS.writer.key_id, KEYS.writer.sign(counted)),))
    yield stored("type-counted-in-characters", "its length counted in characters, as an old library did", envelope.encode(), "trust")
    envelope = dsse.Envelope(kind, payload, ((KEYS.writer.key_id, KEYS.writer.sign(payload)),))
    yield stored("signed-without-type", "the payload alone signed", envelope.encode(), "trust")
    yield stored("no-signature", "no signature", dsse.Envelope(kind, payload, ()).encode())
    yield stored(
        "signature-of-another",
        "signature of another manifest",
        dsse.Envelope(kind, payload, dsse.sign(kind, other_sealing.manifest.payload(), [KEYS.writer]).signatures).encode(),
        "trust",
    )
    yield stored("trailing-newline", "a newline at the end", base.objects[MANIFEST] + b"\n")
    yield stored("cut", "cut by a byte", base.objects[MANIFEST][:-1])
    yield stored("empty", "no bytes", b"")
    yield stored("too-large", "larger than its bound", signed(kind, payload + b" " * 50_000, KEYS.writer))
    yield stored("of-another-sealing", "the manifest of another sealing of the run", other_sealing.objects[MANIFEST])
    yield edited("another-run", "run 'other'", lambda d: d.update(run="other"))
    yield edited("format-2", "format 2", lambda d: d.update(format="2"))
    yield edited("field-too-many", "an unknown field", lambda d: d.update(more="x"))
    yield edited("field-missing", "no 'base'", lambda d: d.pop("base"))
    yield edited("number-as-number", "a number that is no text", lambda d: d.update(step=100), dump=loose)
    yield edited("number-with-zero", "a number with a leading zero", lambda d: d.update(step="0100"))
    yield edited("number-too-large", "2^64", lambda d: d.update(step=str(1 << 64)))
    yield edited("spaces", "spaces between fields", lambda d: None, dump=lambda d: json.dumps(d, sort_keys=True).encode())
    yield edited("time-no-moment", "saved_at is no time", lambda d: d.update(saved_at="yesterday"))
    yield edited("files-one-more", "counts a file more", lambda d: d.update(files="8"))
    yield edited("stored-bytes", "counts a byte more", lambda d: d.update(stored_bytes=str(int(d["stored_bytes"]) + 1)))
    # A keyless reader does not know the sizes of the plaintext.
    sizes = edited("plaintext-bytes", "counts a byte more of plaintext", lambda d: d.update(plaintext_bytes="1"))
    sizes.readers = {"scrub": "ok"}
    yield sizes
    steps = edited("step", "another step than the inventory", lambda d: d.update(step="101"))
    steps.readers = {"scrub": "ok"}
    yield steps
    for field in ("objects", "keys", "inventory", "root"):
        yield edited(f"{field}-digest", f"the digest '{field}' is another", lambda d, field=field: d.update({field: "00" * 32}))


def bad_tables(base: SealedCopy) -> Iterator[Vector]:
    rows = base.table().rows

    def table(name: str, done: str, changed: ObjectsTable, expect: str = "corrupt", *, removed: str = "", **fields: object) -> Vector:
        other = base.altered().commit(changed, **fields)
        if removed:
            del other.objects[removed]
        return instead(base, f"objects-{name}", done, other, expect)

    def listed(*changed: Any) -> ObjectsTable:
        return ObjectsTable(base.sealing, changed)

    yield table("control", "nothing: made again", listed(*rows), "ok")
    unsigned = base.altered()
    unsigned.objects[OBJECTS] = listed(*rows[1:]).encode()
    yield Vector("objects-unsigned", base, "a row taken out, the manifest as it was", "corrupt", "", {OBJECTS: unsigned.objects[OBJECTS]})
    yield Vector("objects-bit", base, "one bit of a digest", "corrupt", "", {OBJECTS: flipped(base.objects[OBJECTS], 200)})
    empty = rows[0]
    yield table("empty-file-removed", "the empty file and its row gone, counts as before", listed(*rows[1:]), removed=empty.name, files=7)
    yield table(
        "empty-file-removed-counts-too", "the empty file, its row and its count gone", listed(*rows[1:]), removed=empty.name, files=6
    )
    yield table("last-file-missing", "no row for the last file", listed(*rows[:6], *rows[7:]), files=7)
    # Without a key it cannot be known how many files there were, so this is for those who read the inventory.
    fewer = table("last-file-missing-counts-too", "no row for the last file, and counted so", listed(*rows[:6], *rows[7:]))
    fewer.readers = {"scrub": "ok"}
    yield fewer
    yield table("row-twice", "a row twice", listed(rows[0], *rows))
    yield table("batch-twice", "a row twice at the end of the batches", listed(*rows[:9], rows[8], *rows[9:]))
    yield table("rows-swapped", "two rows in each other's place", listed(rows[1], rows[0], *rows[2:]))
    yield table("plan-missing", "no row for the plan", listed(*rows[:-1]))
    yield table(
        "foreign-row",
        "a row for an object that is no part of a sealing",
        listed(*rows[:7], replace(rows[0], name="shard-7.sea"), *rows[7:]),
    )
    yield table("row-outside", "a row that leads out of the folder", listed(replace(rows[0], name="../x/file-0.sea"), *rows[1:]))
    yield table("row-leading-zero", "file-00.sea", listed(replace(rows[0], name="file-00.sea"), *rows[1:]))
    extra = table(
        "file-too-many", "a row more than the inventory has files", listed(*rows[:7], replace(rows[0], name="file-7.sea"), *rows[7:])
    )
    extra.objects["file-7.sea"] = base.objects["file-0.sea"]
    yield extra
    for field, value in {"length": rows[5].length + 1, "trailer_digest": bytes(32), "crc64": rows[5].crc64 ^ 1, "root": bytes(32)}.items():
        changed = replace(rows[5], **{field: value})
        yield table(f"row-{field.replace('_', '-')}", f"another {field} in one row", listed(*rows[:5], changed, *rows[6:]))
    yield table("another-sealing", "a table of another sealing", ObjectsTable(noise("sealing", 16), rows))
    yield table("root-lies", "the manifest's root is another", listed(*rows), root=bytes(32))


def bad_keys(base: SealedCopy) -> Iterator[Vector]:
    raw = base.objects["keys-1.json"]
    good = wraps.parse_wraps(raw, RUN, base.sealing, 1, lambda key_id: KEYS.writer.public, "")

    def first(name: str, done: str, changed: bytes, expect: str = "corrupt", **more: Any) -> Vector:
        other = base.altered()
        other.objects["keys-1.json"] = changed
        return instead(base, f"keys-{name}", done, other.commit(), expect, **more)

    def second(name: str, done: str, changed: bytes, expect: str = "corrupt", **more: Any) -> Vector:
        return Vector(f"keys-2-{name}", base, done, expect, "", {"keys-2.json": changed}, **more)

    yield Vector("keys-flipped", base, "one bit flipped", "corrupt", "", {"keys-1.json": flipped(raw, 300)})
    yield Vector("no-recipient", base, "nothing: no key at hand is a recipient", "key", readers={"scrub": "ok"}, keyring="stranger")
    yield first("foreign-signature", "signed by a stranger", good.sign(KEYS.stranger), "trust")
    yield first("wrong-role", "signed by a verifier", good.sign(KEYS.verifier), "trust")
    yield first("by-an-operator", "signed by an operator, who may sign later versions only", good.sign(KEYS.operator), "trust")
    yield first("revoked-key", "signed by a revoked writer", good.sign(KEYS.second_writer), "trust")
    yield first("another-run", "of another run", replace(good, run="other").sign(KEYS.writer))
    yield first("another-sealing", "of another sealing", replace(good, sealing=noise("s", 16)).sign(KEYS.writer))
    yield first("another-version", "signed as version 2", replace(good, version=2).sign(KEYS.writer))
    yield first(
        "commitment",
        "the commitment is another key's",
        replace(good, commitment=bytes(32)).sign(KEYS.writer),
        "key",
        readers={"scrub": "ok"},
    )
    keyless: dict[str, Any] = {"expect": "key", "readers": {"scrub": "ok"}}
    with fixed_random("bad keys"):
        moved = {
            "wrap-of-another-run": KEYRING.wrap(base.data_key, wrap_context("other", base.sealing)),
            "wrap-of-another-sealing": KEYRING.wrap(base.data_key, wrap_context(RUN, noise("s", 16))),
            "wrap-of-another-key": KEYRING.wrap(noise("k", 32), wrap_context(RUN, base.sealing)),
            "wrap-of-a-short-key": KEYRING.wrap(base.data_key[:16], wrap_context(RUN, base.sealing)),
            "wrap-too-short": Wrap("keyring", KEYRING.id, b"short"),
            "wrap-flipped": Wrap("keyring", KEYRING.id, flipped(good.wraps[0].wrapped, 20)),
            "wrap-under-anothers-name": Wrap(
                "keyring", KEYRING.id, STRANGE_KEYRING.wrap(base.data_key, wrap_context(RUN, base.sealing)).wrapped
            ),
        }
        rotated = STRANGE_KEYRING.wrap(base.data_key, wrap_context(RUN, base.sealing))
    for name, wrap in moved.items():
        yield first(name, name.replace("-", " "), replace(good, wraps=(wrap,)).sign(KEYS.writer), **keyless)
    yield first("no-wraps", "no recipients", replace(good, wraps=()).sign(KEYS.writer), **keyless)
    yield first(
        "recovery-only",
        "nothing wrong: the recovery key is the only recipient",
        replace(good, wraps=good.wraps[1:]).sign(KEYS.writer),
        "key",
        readers={"scrub": "ok"},
    )
    yield first(
        "unknown-kind-first",
        "nothing wrong: a recipient of a kind that this text does not define, too",
        replace(good, wraps=(Wrap("later", "00" * 16, b"x"), *good.wraps)).sign(KEYS.writer),
        "ok",
    )
    # Later versions: one that must be refused does not keep a reader from version 1, and a check of everything says so.
    passed_over = {"stream": "ok", "range": "ok", "alone": "ok"}
    later = replace(good, version=2, wraps=(rotated,))
    yield second(
        "rotated", "nothing wrong: an operator wrapped the key for another keyring", later.sign(KEYS.operator), "ok", keyring="stranger"
    )
    yield second("by-a-writer", "nothing wrong: a writer did", later.sign(KEYS.writer), "ok", keyring="stranger")
    yield second("foreign-signature", "signed by a stranger", later.sign(KEYS.stranger), "trust", keyring="stranger")
    yield second("wrong-role", "signed by a verifier", later.sign(KEYS.verifier), "trust", readers=passed_over)
    yield second(
        "another-key", "its commitment is another key's", replace(later, commitment=bytes(32)).sign(KEYS.operator), readers=passed_over
    )
    with fixed_random("planted"):
        planted = STRANGE_KEYRING.wrap(noise("planted", 32), wrap_context(RUN, base.sealing))
    other_key = replace(later, commitment=commitment(noise("planted", 32), base.sealing), wraps=(planted,))
    yield second("planted-key", "an operator's own data key, with its own commitment", other_key.sign(KEYS.operator), keyring="stranger")
    yield second("garbage", "no document", b"{}", readers=passed_over)
    yield second("number-lies", "signed as version 3", replace(later, version=3).sign(KEYS.operator), readers=passed_over)


def _sealed(base: SealedCopy, kind: ObjectKind, number: int, plaintext: bytes) -> SealedCopy:
    name = object_name(kind, number)
    crafted = Craft(base.sealing, kind, number, b"", plaintext, base.data_key, KEYS.writer, CHUNK_BYTES)
    return base.with_object(name, *crafted.row(name))


def bad_inventories(base: SealedCopy) -> Iterator[Vector]:
    def edited(
        name: str, done: str, edit: Edit, expect: str = "corrupt", dump: Callable[[dict[str, Any]], bytes] = canonical.encode
    ) -> Vector:
        document = canonical.decode(base.inventory.encode())
        edit(document)
        other = _sealed(base, ObjectKind.INVENTORY, 0, dump(document))
        readers = {"scrub": "ok", "alone": "ok"} if expect != "ok" else {}
        return instead(base, f"inventory-{name}", done, other, expect, "inventory.sea", readers=readers)

    def file(number: int, **changes: str) -> Edit:
        return lambda d: d["files"][number].update(changes)

    yield edited("control", "nothing: made by hand", lambda d: None, "ok")
    yield edited("name-outside", "a file name leads out", file(1, name="../one.bin"))
    yield edited("name-absolute", "a file name is absolute", file(1, name="/etc/passwd"))
    yield edited("name-dot", "a file name has a part '.'", file(1, name="./one.bin"))
    yield edited("name-empty-part", "a file name has an empty part", file(1, name="a//b"))
    yield edited("name-nul", "a file name has a NUL", file(1, name="one\0bin"))
    yield edited("name-too-long", "a part of 256 bytes", file(1, name="n" * 256))
    yield edited("name-second-spelling", "a name escapes bytes that are UTF-8", file(1, name="\udcc3\udca9"))
    yield edited("name-twice", "two files of one name", file(1, name="empty.bin"))
    yield edited("name-below-a-file", "a file below another file", file(1, name="empty.bin/one"))
    yield edited("name-below-a-link", "a file below a link", file(1, name="deep/link/one"))
    yield edited("name-of-the-link", "a file with the name of a link", file(1, name="deep/link"))
    yield edited("folder-is-a-file", "an empty folder with the name of a file", lambda d: d["folders"][0].update(name="one.bin"))
    yield edited("link-target-nul", "a link target with a NUL", lambda d: d["links"][0].update(target="a\0"))
    yield edited("pointer-below-a-link", "the pointer below a link", lambda d: d["pointer"].update(name="deep/link/latest"))
    yield edited("mode", "a mode of more than permission bits", file(1, mode="65535"))
    yield edited("identity", "an identity that is none", file(1, identity="now"))
    yield edited("other-name", "another name than the footer", file(1, name="two.bin"))
    yield edited("size", "another size", file(1, size="2"))
    yield edited("digest", "another digest", file(1, plaintext="00" * 32))
    yield edited("file-missing", "the last file missing", lambda d: d["files"].pop())
    yield edited("files-swapped", "two files in each other's place", lambda d: d["files"].insert(0, d["files"].pop(1)))
    yield edited("another-run", "run 'other'", lambda d: d.update(run="other"))
    yield edited("another-sealing", "another sealing", lambda d: d.update(sealing="00" * 16))
    yield edited("another-step", "another step", lambda d: d.update(step="7"))
    yield edited("field-too-many", "an unknown field in a file", file(1, more="x"))
    yield edited("field-missing", "no 'world_size'", lambda d: d.pop("world_size"))
    yield edited("note-no-text", "a note that is no text", lambda d: d.update(notes={"loss": None}))
    yield edited("item-no-object", "a file that is text", lambda d: d.update(files=["one.bin"]))
    yield edited("tensor-outside", "a tensor in a file that is not there", lambda d: d["tensors"][0]["pieces"][0].update(file="7"))
    yield edited("not-canonical", "spaces between fields", lambda d: None, dump=lambda d: json.dumps(d, sort_keys=True).encode())
    # Inventory and footer agree on a digest that never was the plaintext's: only who reads the whole file can see it.
    digest = "11" * 32
    crafted = Craft(base.sealing, ObjectKind.FILE, 1, b"one.bin", b"1", base.data_key, KEYS.writer, CHUNK_BYTES)
    crafted.footer = lambda footer: replace(footer, digest=bytes.fromhex(digest)).pack()
    document = canonical.decode(base.inventory.encode())
    document["files"][1]["plaintext"] = digest
    other = _sealed(base.with_object("file-1.sea", *crafted.row("file-1.sea")), ObjectKind.INVENTORY, 0, canonical.encode(document))
    yield instead(
        base,
        "digest-never-right",
        "footer and inventory have another digest than the plaintext",
        other,
        "corrupt",
        "file-1.sea",
        readers={"scrub": "ok", "range": "ok"},
    )


def bad_plans(base: SealedCopy) -> Iterator[Vector]:
    """A plan or batch that was wrong before it was signed. Neither scrub nor a restore looks inside."""

    def edited(kind: ObjectKind, number: int, name: str, done: str, plaintext: bytes, edit: Edit, expect: str = "corrupt") -> Vector:
        document = canonical.decode(plaintext)
        edit(document)
        other = _sealed(base, kind, number, canonical.encode(document))
        stem = object_name(kind, number)
        readers = {"scrub": "ok", "check": "ok", "alone": "ok"} if expect != "ok" else {}
        return instead(base, f"{kind.name.lower()}-{name}", done, other, expect, stem, readers=readers)

    def plan(name: str, done: str, edit: Edit, expect: str = "corrupt") -> Vector:
        return edited(ObjectKind.PLAN, 0, name, done, base.plan.encode(), edit, expect)

    yield plan("control", "nothing: made by hand", lambda d: None, "ok")
    yield plan("sealing-not-its-own", "the attempt is another than the sealing id says", lambda d: d.update(attempt="1"))
    yield plan("name-outside", "a file name leads out", lambda d: d["files"][1].update(name="../one.bin"))
    yield plan("batch-outside", "a file in a batch that is not there", lambda d: d["files"][1].update(batch="2"))
    yield plan("field-too-many", "an unknown field", lambda d: d.update(more="x"))
    yield plan("run-no-name", "a run that is no name", lambda d: d.update(run="../gpt"))
    batch, _ = open_bytes(base.objects["batch-1.sea"], base.data_key, lambda key_id: KEYS.writer.public, "")

    def of_batch(name: str, done: str, edit: Edit, expect: str = "corrupt") -> Vector:
        return edited(ObjectKind.BATCH, 1, name, done, batch, edit, expect)

    yield of_batch("control", "nothing: made by hand", lambda d: None, "ok")
    yield of_batch("row-of-another-file", "the row of another file", lambda d: d["files"][0].update(n="0"))
    yield of_batch("field-too-many", "an unknown field", lambda d: d["files"][0].update(more="x"))
    yield of_batch("versions-no-text", "a version that is no text", lambda d: d.update(versions={"a": {"b": None}}))
    yield of_batch("item-no-object", "a file that is text", lambda d: d.update(files=["file-4.sea"]))
    plan_numbered = Craft(base.sealing, ObjectKind.PLAN, 1, b"", base.plan.encode(), base.data_key, KEYS.writer, CHUNK_BYTES)
    other = base.with_object("plan.sea", *plan_numbered.row("plan.sea"))
    # Files are read without the plan, so only who reads the plan sees that its frame is refused.
    yield instead(base, "plan-numbered", "a plan with number 1", other, "corrupt", "plan.sea")
