"""Checking one copy, level by level. Nothing is decided or written here: the findings become proofs.

L0 to L2 need public keys alone. What a copy's content is worth (L3 and above) is only tried when its bytes hold, so that
a damaged copy is not taken for damaged content.
"""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from seawall.errors import ConfigurationError, CorruptError, KeyMissingError, NoSuchCopyError, NoSuchObjectError, SeawallError, TrustError
from seawall.stores.base import Store
from seawall.stores.part_buffers import fresh_buffer
from seawall.vault.inventory import Inventory
from seawall.vault.objects import Row
from seawall.vault.open import Resolve, scrub
from seawall.vault.rebuild import finish_tree, rebuild_files
from seawall.vault.sealing import WHOLE_BYTES, Sealing, read_sealing, read_whole, read_wraps
from seawall.verify.levels import Level
from seawall.verify.piece_check import PieceCheck
from seawall.verify.structure import differences, why_unrecorded

Progress = Callable[[int, int], None]
OK = "ok"
FAILED = "failed"
NOT_ATTAINABLE = "not attainable"


@dataclass(frozen=True)
class Damage:
    """A part of a copy that is not what was signed. ``records`` are numbers of records, empty when it is the frame."""

    object: str
    why: str
    records: tuple[int, ...] = ()


@dataclass(frozen=True)
class Finding:
    """The outcome of one level."""

    level: Level
    result: str
    """``ok``, ``failed`` or ``not attainable``."""
    method: str
    damages: tuple[Damage, ...] = ()
    evidence: dict[str, str] = field(default_factory=dict)


@dataclass
class Unlocked:
    """What the levels from L3 on need."""

    data_key: bytes
    inventory: Inventory


def check_copy(
    store: Store,
    run: str,
    sealing: bytes,
    manifest_digest: str,
    writers: Resolve,
    rewrappers: Resolve,
    up_to: Level,
    *,
    unlock: Callable[[Sealing], Unlocked] | None = None,
    scratch: Path | None = None,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> list[Finding]:
    """Check a copy from L0 up to ``up_to`` (at most L4); the list ends at L2 when one of L0 to L2 fails.

    ``unlock`` gives data key and inventory, for L3 and L4. ``scratch`` is a folder with room for the checkpoint, for
    L4. What keeps the store from answering is raised, not found: an unreachable copy is neither good nor bad.
    """
    try:
        opened = read_sealing(store, run, sealing, manifest_digest, writers)
    except (NoSuchCopyError, CorruptError, TrustError) as error:
        return [_failed(Level.L0, "list", [Damage(_object_in(error, "manifest.json"), str(error))])]
    findings = [_listed(opened)]
    if up_to >= Level.L1:
        findings.append(_sizes(opened))
    if up_to >= Level.L2:
        # Also when L0 or L1 failed: only reading the bytes tells which records are damaged.
        findings.append(_bytes(opened, rewrappers, transfers, progress))
    if up_to >= Level.L3 and not any(finding.result == FAILED for finding in findings):
        if unlock is None:
            raise ValueError("L3 and above need the data key")
        findings += _content(opened, unlock, up_to, scratch, transfers, progress)
    return findings


def _object_in(error: SeawallError, otherwise: str) -> str:
    """The name of the object that an error is about: the last part of where it happened, when that is a stored object's."""
    name = error.where.rsplit("/", 1)[-1]
    return name if name.endswith((".json", ".sea")) else otherwise


def _failed(level: Level, method: str, damages: Sequence[Damage]) -> Finding:
    shown = "; ".join(f"{damage.object}: {damage.why}" for damage in damages[:16])
    return Finding(level, FAILED, method, tuple(damages), {"damaged_objects": str(len(damages)), "damage": shown[:2000]})


def _ok(level: Level, method: str, opened: Sealing, **evidence: str) -> Finding:
    facts = {"objects": str(len(opened.table.rows)), "stored_bytes": str(opened.manifest.stored_bytes), **evidence}
    return Finding(level, OK, method, (), facts)


def _listed(opened: Sealing) -> Finding:
    """L0: one listing of the sealing's folder, a page for every thousand objects."""
    there = {found.key.removeprefix(opened.folder): found for found in opened.store.list(opened.folder)}
    missing = [Damage(row.name, "the store does not list it") for row in opened.table.rows if row.name not in there]
    wrong = [
        Damage(row.name, f"the store lists {there[row.name].size} bytes, the manifest {row.length}")
        for row in opened.table.rows
        if row.name in there and there[row.name].size != row.length
    ]
    damages = missing + wrong
    return _failed(Level.L0, "list", damages) if damages else _ok(Level.L0, "list", opened)


def _sizes(opened: Sealing) -> Finding:
    """L1: the store's own CRC-64/NVME of each whole object."""
    if not opened.store.capabilities.full_object_crc:
        why = "the store computes no checksum of whole objects"
        return Finding(Level.L1, NOT_ATTAINABLE, "head", (), {"why": why})

    def one(row: Row) -> Damage | str | None:
        try:
            found = opened.store.head(opened.key_of(row))
        except NoSuchObjectError:
            return Damage(row.name, "the store has it no more")
        if found.size != row.length or (found.crc64 is not None and found.crc64 != row.crc64):
            return Damage(row.name, "the store's size or checksum is not the signed one")
        return row.name if found.crc64 is None else None

    with ThreadPoolExecutor(16, "head") as pool:
        answers = list(pool.map(one, opened.table.rows))
    damages = [answer for answer in answers if isinstance(answer, Damage)]
    silent = [answer for answer in answers if isinstance(answer, str)]
    if damages:
        return _failed(Level.L1, "head", damages)
    if silent:
        # Another tool brought these objects, without a checksum. That says nothing against their bytes.
        why = f"the store has no checksum of {len(silent)} objects, the first is {silent[0]}"
        return Finding(Level.L1, NOT_ATTAINABLE, "head", (), {"why": why})
    return _ok(Level.L1, "head", opened)


def _bytes(opened: Sealing, rewrappers: Resolve, transfers: int, progress: Progress) -> Finding:
    """L2: every stored byte of every object against the signed leaf digests."""

    def one(row: Row) -> Damage | None:
        try:
            damage = _scrub(opened, row)
        except NoSuchObjectError:
            return Damage(row.name, "the store has it no more")
        except (CorruptError, TrustError) as error:
            return Damage(row.name, str(error))
        finally:
            progress(row.length, 1)
        return damage

    damages = []
    try:
        if not read_wraps(opened, rewrappers):
            damages.append(Damage("keys-1.json", "the wrapped keys are not there"))
    except (CorruptError, TrustError, NoSuchObjectError) as error:
        damages.append(Damage(_object_in(error, "keys-1.json"), str(error)))
    with ThreadPoolExecutor(min(4, transfers), "scrub") as pool:
        damages += [damage for damage in pool.map(one, opened.table.rows) if damage is not None]
    return _failed(Level.L2, "scrub", damages) if damages else _ok(Level.L2, "scrub", opened)


def _scrub(opened: Sealing, row: Row) -> Damage | None:
    key = opened.key_of(row)
    if row.length <= WHOLE_BYTES:
        raw = read_whole(opened.store, key, row.length)
        view = memoryview(raw)
        frame = opened.frame_of(row, raw)
        damaged = scrub(frame, lambda start, length: view[start : start + length])
    else:
        buffer = fresh_buffer(16 << 20)

        def read(start: int, length: int) -> memoryview:
            nonlocal buffer
            if len(buffer) < length:
                buffer = memoryview(bytearray(length))
            return buffer[: opened.store.read_into(key, start, buffer[:length])]

        frame = opened.frame_of(row)
        damaged = scrub(frame, read)
    if damaged:
        numbers = ", ".join(str(number) for number in damaged[:16])
        return Damage(row.name, f"record {numbers} of {len(frame.leaves)} is not what was signed", tuple(damaged))
    return None


def _scratch_folder(scratch: Path | None) -> "tempfile.TemporaryDirectory[str]":
    try:
        return tempfile.TemporaryDirectory(prefix="seawall-verify-", dir=scratch)
    except OSError as error:
        raise ConfigurationError(
            "there is no folder to rebuild the checkpoint in",
            where=str(scratch or tempfile.gettempdir()),
            why=error.strerror or "",
            do="name one with room for a checkpoint under [verify] scratch, or verify to L3",
        ) from error


def _content(
    opened: Sealing, unlock: Callable[[Sealing], Unlocked], up_to: Level, scratch: Path | None, transfers: int, progress: Progress
) -> list[Finding]:
    """L3: everything decrypted. L4 as well where it is asked for: the same pass rebuilds the files and sums the tensors."""
    method = "decrypt"
    unlocked = None
    try:
        unlocked = unlock(opened)
        inventory = unlocked.inventory
        numbers = range(len(inventory.files))
        unrecorded = why_unrecorded(inventory)
        if up_to < Level.L4 or unrecorded:
            rebuild_files(opened, inventory, numbers, unlocked.data_key, None, transfers=transfers, progress=progress)
            content = _ok(Level.L3, method, opened, files=str(len(inventory.files)))
            return [content] if up_to < Level.L4 else [content, Finding(Level.L4, NOT_ATTAINABLE, "structure", (), {"why": unrecorded})]
        with _scratch_folder(scratch) as folder:
            tree = Path(folder) / "checkpoint"
            tree.mkdir()
            pieces = PieceCheck(inventory)
            rebuild_files(
                opened, inventory, numbers, unlocked.data_key, tree, transfers=transfers, progress=progress, observe=pieces.observe
            )
            findings = [_ok(Level.L3, method, opened, files=str(len(inventory.files)))]
            finish_tree(tree, inventory)
            problems = pieces.problems() + differences(tree, inventory)
    except (CorruptError, TrustError) as error:
        return [_failed(Level.L3, method, [Damage(error.where or "content", str(error))])]
    except NoSuchObjectError as error:
        return [_failed(Level.L3, method, [Damage(error.where, str(error))])]
    except KeyMissingError as error:
        if unlocked is None:
            raise
        # The key opened the inventory, so an object that it does not open was sealed under another one.
        return [_failed(Level.L3, method, [Damage(_object_in(error, "content"), str(error))])]
    if problems:
        findings.append(_failed(Level.L4, "structure", [Damage(name, why) for name, why in problems]))
    else:
        findings.append(_ok(Level.L4, "structure", opened, tensors=str(len(inventory.tensors)), summed=str(pieces.summed)))
    return findings
