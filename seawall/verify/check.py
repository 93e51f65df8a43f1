"""Checking one copy, level by level. Nothing is decided or written here: the findings become proofs.

L0 to L2 need public keys alone. Where the data key is at hand one pass proves bytes and content; when something is wrong in it, the bytes
are read once more by themselves, so that a damaged copy is not taken for damaged content, and damage is named by record.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.clock import Clock
from seawall.errors import ConfigurationError, CorruptError, KeyMissingError, NoSuchCopyError, NoSuchObjectError, TrustError
from seawall.stores.base import Store
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder
from seawall.vault.inventory import Inventory
from seawall.vault.open import Resolve
from seawall.vault.sealing import Sealing, read_sealing
from seawall.verify import evidence
from seawall.verify.copy_bytes import Progress as Progress
from seawall.verify.copy_bytes import check_bytes, check_heads, check_listing, check_wraps, found_ok, scrub_objects
from seawall.verify.findings import NOT_ATTAINABLE as NOT_ATTAINABLE
from seawall.verify.findings import Damage as Damage
from seawall.verify.findings import Finding as Finding
from seawall.verify.findings import failed, object_in
from seawall.verify.levels import Level
from seawall.verify.metering import AtVersions, Meter
from seawall.verify.proofs import FAILED as FAILED
from seawall.verify.proofs import OK as OK
from seawall.verify.receipts import versions_digest

if TYPE_CHECKING:
    from seawall.verify.content_check import Before


@dataclass
class Unlocked:
    """What the levels from L3 on need."""

    data_key: bytes
    inventory: Inventory
    before: "Callable[[], Before | None]" = lambda: None
    """Finds the checkpoint before, to compare the state dict with; only asked for L4."""


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
    versions: Mapping[str, str] | None = None,
    whole_at: str = "",
    clock: Clock | None = None,
) -> list[Finding]:
    """Check a copy from L0 up to ``up_to`` (at most L4); the list ends at L2 when one of L0 to L2 fails.

    ``unlock`` gives data key and inventory, for L3 and L4. ``scratch`` is a folder with room for the checkpoint, for
    L4. What keeps the store from answering is raised, not found: an unreachable copy is neither good nor bad.

    ``versions`` and ``whole_at`` are what the newest receipt says: the version ids of the objects, which are read, and when the copy was
    whole. With ``clock`` the evidence says how long each level took.
    """
    # What a store without versions reports as one tells repairs apart, and changes when a disk is moved: it is nothing to read by.
    versions = versions if versions and store.capabilities.versions else {}
    folder = sealing_folder(run, sealing)
    meter = Meter(store, clock)
    reader = AtVersions(meter, {folder + name: version for name, version in versions.items()}) if versions else meter
    try:
        opened = read_sealing(reader, run, sealing, manifest_digest, writers)
    except (NoSuchCopyError, CorruptError, TrustError) as error:
        return [failed(Level.L0, "list", [Damage(object_in(error, "manifest.json"), str(error))])]
    arrived = {evidence.WHOLE_AT: whole_at} if whole_at else {}
    findings = [check_listing(opened).with_evidence(meter.cost(), arrived)]
    locks: dict[str, str] = {}
    if up_to >= Level.L1:
        heads = check_heads(opened, versions)
        locks = heads.locks
        findings.append(heads.finding.with_evidence(meter.cost(), locks))
    if up_to >= Level.L3 and unlock is None:
        raise ValueError("L3 and above need the data key")
    content: list[Finding] = []
    if up_to >= Level.L3 and unlock is not None and all(finding.result != FAILED for finding in findings):
        in_one, content = _at_once(opened, rewrappers, unlock, up_to, scratch, transfers, progress)
        cost = meter.cost()
        if in_one is not None:
            # The time is that of the whole pass, so it says nothing about reading bytes alone.
            counts = {name: count for name, count in cost.items() if name != evidence.SECONDS}
            findings.append(in_one.with_evidence(counts, locks))
            content[0] = content[0].with_evidence(cost)
    if up_to >= Level.L2 and findings[-1].level < Level.L2:
        # Also when L0 or L1 failed: only reading the bytes tells which records are damaged.
        findings.append(check_bytes(opened, rewrappers, transfers, progress).with_evidence(meter.cost(), locks))
    if all(finding.result != FAILED for finding in findings):
        findings += content
    digest = versions_digest(versions)
    return [replace(finding, versions=digest) for finding in findings]


def _at_once(
    opened: Sealing,
    rewrappers: Resolve,
    unlock: Callable[[Sealing], Unlocked],
    up_to: Level,
    scratch: Path | None,
    transfers: int,
    progress: Progress,
) -> tuple[Finding | None, list[Finding]]:
    """L2 and what follows from one reading of the files; None for L2 when the bytes have to be looked at by themselves."""
    wraps = check_wraps(opened, rewrappers)
    of_files = {object_name(ObjectKind.FILE, number) for number in range(opened.manifest.files)}
    if wraps.damages or scrub_objects(opened, [row for row in opened.table.rows if row.name not in of_files], transfers, progress):
        return None, []
    content = _content(opened, unlock, up_to, scratch, transfers, progress)
    if content[0].result == FAILED:
        return None, content
    return found_ok(Level.L2, "scrub", opened, **wraps.evidence), content


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
    """L3: everything decrypted. L4 as well where it is asked for: the same pass rebuilds the files and looks at the tensors."""
    # Here, because a scrub with public keys alone opens nothing.
    from seawall.vault.rebuild import finish_tree, rebuild_files
    from seawall.verify.content_check import ContentCheck
    from seawall.verify.structure import differences, why_unrecorded

    method = "decrypt"
    unlocked = None
    try:
        unlocked = unlock(opened)
        inventory = unlocked.inventory
        numbers = range(len(inventory.files))
        unrecorded = why_unrecorded(inventory)
        if up_to < Level.L4 or unrecorded:
            rebuild_files(opened, inventory, numbers, unlocked.data_key, None, transfers=transfers, progress=progress, check_leaves=True)
            content = found_ok(Level.L3, method, opened, files=str(len(inventory.files)))
            if not unrecorded:
                return [content]
            content = content.with_evidence({evidence.UNRECORDED: unrecorded})
            return [content] if up_to < Level.L4 else [content, Finding(Level.L4, NOT_ATTAINABLE, "structure", (), {"why": unrecorded})]
        with _scratch_folder(scratch) as folder:
            tree = Path(folder) / "checkpoint"
            tree.mkdir()
            tensors = ContentCheck(inventory)
            rebuild_files(
                opened,
                inventory,
                numbers,
                unlocked.data_key,
                tree,
                transfers=transfers,
                progress=progress,
                observe=tensors.observe,
                check_leaves=True,
            )
            findings = [found_ok(Level.L3, method, opened, files=str(len(inventory.files)))]
            finish_tree(tree, inventory)
            problems = tensors.pieces.problems() + differences(tree, inventory)
    except (CorruptError, TrustError) as error:
        return [failed(Level.L3, method, [Damage(error.where or "content", str(error))])]
    except NoSuchObjectError as error:
        return [failed(Level.L3, method, [Damage(error.where, str(error))])]
    except KeyMissingError as error:
        if unlocked is None:
            raise
        # The key opened the inventory, so an object that it does not open was sealed under another one.
        return [failed(Level.L3, method, [Damage(object_in(error, "content"), str(error))])]
    counts = tensors.evidence(unlocked.before())
    if problems:
        findings.append(failed(Level.L4, "structure", [Damage(name, why) for name, why in problems]).with_evidence(counts))
    else:
        findings.append(found_ok(Level.L4, "structure", opened, **counts))
    return findings
