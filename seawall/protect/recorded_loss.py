"""The loss that training recorded with a checkpoint, read back from the sealed commit mark. Private: it is in no public document."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.checkpoint import strict_json
from seawall.errors import SeawallError
from seawall.log.local import local_file, read_local, write_local
from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.protect.place import Place
from seawall.stores.base import Store
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.open import open_bytes
from seawall.vault.sealing import read_inventory, read_sealing, unlock

if TYPE_CHECKING:
    from seawall.vault.recipients import Unwrapper

MAX_READS = 500
"""Checkpoints whose loss is read in one call, newest first. What is known is kept, so the rest follows with the next ones."""

_MAX_MARK = 1 << 20
"""Of the sealed object: a commit mark is a line of JSON."""


def recorded_losses(view: LogView, places: Sequence[Place], unwrappers: "Sequence[Unwrapper]", state_dir: Path) -> dict[str, float]:
    """Sealing → loss, of the checkpoints that have a copy in ``places`` and said one. Those that cannot be read now are left out.

    What was read is kept in ``state_dir`` with mode 0600, so that a checkpoint is opened once.
    """
    path = local_file(state_dir, "losses", view.run, view.state.root)
    known = {sealing: str(text) for sealing, text in (read_local(path) or {}).items()}
    fresh: dict[str, str] = {}
    for commit in sorted(view.state.commits.values(), key=lambda commit: (commit.step, commit.seq), reverse=True):
        if commit.sealing in known or len(fresh) == MAX_READS:
            continue
        for place in places:
            if view.state.is_deleted(commit.sealing, place.id):
                continue
            try:
                fresh[commit.sealing] = read_loss(place.store, view, commit, unwrappers)
                break
            except SeawallError:
                # Another copy may be whole; if none is, whether it can be counted on is decided elsewhere.
                continue
    if fresh:
        known.update(fresh)
        # Where it cannot be kept, it is read again the next time.
        with contextlib.suppress(OSError):
            write_local(path, known)
    losses = {sealing: _number(text) for sealing, text in known.items() if sealing in view.state.commits}
    return {sealing: loss for sealing, loss in losses.items() if loss is not None}


def read_loss(store: Store, view: LogView, commit: CommitRecord, unwrappers: "Sequence[Unwrapper]") -> str:
    """What the commit mark of this copy says is the loss; empty when it says none. Raises what reading a sealing raises."""
    writers = view.state.writer_of(commit)
    opened = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, writers)
    data_key = unlock(opened, unwrappers, view.state.resolver("operator"))
    inventory = read_inventory(opened, data_key)
    number = next((n for n, file in enumerate(inventory.files) if file.name == inventory.commit_mark), None)
    if number is None or inventory.files[number].size > _MAX_MARK:
        return ""
    key = opened.folder + object_name(ObjectKind.FILE, number)
    plaintext, _ = open_bytes(store.get(key, 0, 2 * _MAX_MARK), data_key, writers, key)
    if plaintext.lstrip()[:1] != b"{":
        return ""
    try:
        said = strict_json.parse(plaintext, key)
    except SeawallError:
        # Other trainers' marks are no JSON, and say no loss.
        return ""
    return str(said.get("loss") or "") if isinstance(said, dict) else ""


def _number(text: str) -> float | None:
    try:
        loss = float(text)
    except ValueError:
        return None
    return loss if math.isfinite(loss) else None
