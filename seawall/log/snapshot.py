"""A local cache of a folded log, so that opening a run costs the same however long its log is.

A snapshot only says where to go on reading. :func:`seawall.log.read.read_log` first reads the last entry that the
snapshot covers from the store again and compares its digest; through ``prev`` that digest fixes every entry before it.
So a snapshot can make nothing look newer than the store has it. It is as private as a key (mode 0600), because
whoever can rewrite it can change what the fold says about entries that are not read again.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import seawall
from seawall.errors import SeawallError
from seawall.log.local import local_file, read_local, write_local
from seawall.log.read import LogView
from seawall.log.state import (
    CommitRecord,
    Done,
    EpochRecord,
    HeadRecord,
    Kept,
    LeaseRecord,
    Mark,
    RunState,
    TombstoneRecord,
    WriteOffRecord,
)
from seawall.vault.signing import PublicKey
from seawall.vault.trust import read_list

_VERSION = f"1 {seawall.__version__}"
"""Another version of seawall may fold by other rules; its snapshots are passed over."""


def save_snapshot(state_dir: Path, view: LogView) -> bool:
    """Keep ``view`` for the next process. False if the place cannot be written, which costs time and nothing else."""
    state = view.state
    content = {
        "version": _VERSION,
        "root": state.root.raw.hex(),
        "run": state.run,
        "store": view.store_id,
        "seq": state.seq,
        "digest": state.digest,
        "epoch": state.epoch,
        "coordination": state.coordination,
        "moved_at": state.moved_at,
        "trust": state.trust_bytes.hex(),
        "revoked_at": state.revoked_at,
        "epochs": [asdict(record) for record in state.epochs.values()],
        "commits": [asdict(record) for record in (*state.commits.values(), *state.orphans.values())],
        "marks": [asdict(mark) for mark in state.marks.values()],
        "tombstones": [asdict(record) for records in state.tombstones.values() for record in records],
        "leases": [asdict(lease) for lease in state.leases.values()],
        "written_off": [asdict(record) for record in state.written_off.values()],
        "heads": [asdict(head) for head in state.heads.values()],
        "kept": [asdict(kept) for kept in state.kept],
        "done": [[op, done.seq, done.content] for op, done in state.done.items()],
    }
    try:
        write_local(local_file(state_dir, "logs", view.run, state.root, view.store_id), content)
    except OSError:
        return False
    return True


def load_snapshot(state_dir: Path, run: str, root: PublicKey, store_id: str) -> LogView | None:
    """The view that was kept for this run, root and store; None if there is none that can be used."""
    content = read_local(local_file(state_dir, "logs", run, root, store_id))
    wanted = {"version": _VERSION, "root": root.raw.hex(), "run": run, "store": store_id}
    if content is None or any(content.get(name) != value for name, value in wanted.items()):
        return None
    try:
        return LogView(_restored(content, run, root), store_id)
    except (KeyError, TypeError, ValueError, SeawallError):
        # The digest of the file held, so this was written by a build with the same version number and other records.
        return None


def _restored(content: dict[str, Any], run: str, root: PublicKey) -> RunState:
    trust_bytes = bytes.fromhex(content["trust"])
    state = RunState(
        run=run,
        root=root,
        seq=content["seq"],
        digest=content["digest"],
        epoch=content["epoch"],
        coordination=content["coordination"],
        moved_at=content["moved_at"],
        trust=read_list(trust_bytes, root),
        trust_bytes=trust_bytes,
        revoked_at=content["revoked_at"],
        kept=[Kept(**kept) for kept in content["kept"]],
        heads={head["verifier"]: HeadRecord(**head) for head in content["heads"]},
        leases={lease["purpose"]: LeaseRecord(**lease) for lease in content["leases"]},
        written_off={
            fields["sealing"]: WriteOffRecord(**{**fields, "signers": tuple(fields["signers"])}) for fields in content["written_off"]
        },
        marks={mark["op"]: Mark(**mark) for mark in content["marks"]},
        done={op: Done(seq, digest) for op, seq, digest in content["done"]},
    )
    for fields in content["epochs"]:
        state.epochs[fields["number"]] = EpochRecord(**{**fields, "writers": tuple(fields["writers"])})
    for fields in content["commits"]:
        record = CommitRecord(**fields)
        if record.orphan:
            state.orphans[record.sealing] = record
        else:
            state.commits[record.sealing] = record
            state.steps[record.step] = (*state.steps.get(record.step, ()), record.sealing)
    for mark in state.marks.values():
        if mark.lifted_by:
            continue
        if mark.sealing:
            state.quarantined[mark.sealing] = (*state.quarantined.get(mark.sealing, ()), mark.op)
        else:
            state.held = (*state.held, mark.op)
    for fields in content["tombstones"]:
        tombstone = TombstoneRecord(**fields)
        state.tombstones[tombstone.sealing] = (*state.tombstones.get(tombstone.sealing, ()), tombstone)
    return state
