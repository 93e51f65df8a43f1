"""The warm tier: the newest proved checkpoint, copied as it is sealed into the run's archive store, and labelled.

Nothing is decrypted and nothing sealed again, so the archive holds what was proved. The label is a record, ``<UTC>-step<step>``; it is
signed last, so what has a label was whole and locked when it got it. Running it again finds what is there and goes on.
"""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from seawall.clock import Clock, parse_utc
from seawall.errors import NoSuchCopyError, ObjectExistsError, SeawallError
from seawall.estimate.transfer import Link, TransferPlan, plan_transfer
from seawall.log.mirror import mirror_log
from seawall.log.read import LogView
from seawall.log.records import list_records, read_record, sign_record
from seawall.log.state import CommitRecord, RunState
from seawall.protect.assembly import Sources
from seawall.protect.assignment import Progress
from seawall.protect.fill import copy_object, fill, has_copy
from seawall.protect.from_copies import from_first_good
from seawall.protect.place import Place
from seawall.protect.transfer_load import load_of
from seawall.stores.base import Store
from seawall.vault.canonical import Document, number
from seawall.vault.objects import Row
from seawall.vault.sealing import Sealing, read_sealing
from seawall.vault.signing import SigningKey
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import Proof
from seawall.verify.recovery import recovery_point

KIND = "archive"
"""The kind of the records that label archived copies."""


@dataclass(frozen=True)
class Archived:
    """What an archiving did."""

    step: int
    sealing: str
    label: str
    status: str
    """``archived`` or ``unchanged``."""
    source: str
    """Name of the place that was copied from; empty when nothing was."""
    copied_objects: int
    copied_bytes: int
    seconds: float
    predicted: TransferPlan | None
    """What it was expected to take, where a rate is known."""


def choose_for_archive(state: RunState, proofs: Sequence[Proof], now: datetime, policy: AgePolicy, required: Level) -> CommitRecord:
    """The newest checkpoint with a copy that is proved to ``required`` now; :class:`NoSuchCopyError` with the reasons if there is none.

    It may be in the archive already: whatever is newest and proved is what is archived, and nothing older in its stead.
    """
    decision = recovery_point(state, proofs, now, policy, required)
    if decision.point is None:
        why = "; ".join(f"step {commit.step}: {reason}" for commit, reason in decision.passed_over[:3])
        raise NoSuchCopyError(
            f"no checkpoint is proved to {required.name}, so there is nothing to archive",
            where=state.run,
            why=why or "no checkpoint was ever committed",
            do="`seawall verify` proves copies",
        )
    return decision.point.commit


def label_of(commit: CommitRecord) -> str:
    """``20261129T031500Z-step00012000``: when the first store had the checkpoint whole, by that store's clock where it has one."""
    moment = parse_utc(commit.stored_at or commit.at)
    return f"{moment:%Y%m%dT%H%M%SZ}-step{commit.step:08d}"


def archived_steps(coordination: Store, run: str) -> frozenset[int]:
    """Steps of which the archive was given a copy, by the names of the labels: one listing, a hint and no proof."""
    found = (re.match(r"\d{8}T\d{6}Z-step(\d+)", name) for name in list_records(coordination, run, KIND))
    return frozenset(int(match[1]) for match in found if match is not None)


def bring_objects(
    opened: Sealing, target: Place, rows: Sequence[Row], *, transfers: int = 16, progress: Progress = lambda nbytes, files: None
) -> int:
    """Copy some objects of a sealing to ``target``; how many were sent. A large checkpoint is brought by many workers in this way, and
    :func:`archive` then finds all of it there. Raises as :func:`~seawall.protect.fill.fill` does."""
    sources = Sources([Place("the copy that is read", "", opened.store)])

    def one(row: Row) -> bool:
        _, copied = copy_object(opened, row, target, sources)
        progress(row.length, 1)
        return copied

    with ThreadPoolExecutor(min(transfers, max(1, len(rows))), "copy") as pool:
        return sum(pool.map(one, rows))


def archive(
    view: LogView,
    commit: CommitRecord,
    sources: Sequence[Place],
    target: Place,
    *,
    coordination: Store,
    writer: SigningKey,
    clock: Clock,
    link: Link | None = None,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
    on_problem: Callable[[Place, SeawallError], None] = lambda place, error: None,
) -> Archived:
    """Bring ``commit``'s sealing to ``target`` from the first of ``sources`` that is whole, lock it, and label it.

    Raises the first source's problem when none can be used, :class:`StoreError` when ``target`` fails, and :class:`NoSuchCopyError` when
    its copy there was deleted by plan: a retention plan decided so, and archiving it again would undo that every day.
    """
    state = view.state
    if state.is_deleted(commit.sealing, target.id):
        raise NoSuchCopyError("the archive's copy of this checkpoint was deleted by plan", where=f"{target.name} step {commit.step}")
    began = clock.monotonic()
    source, copied, nbytes, predicted = "", 0, 0, None
    if not has_copy(target, view.run, bytes.fromhex(commit.sealing)):

        def bring(place: Place) -> tuple[str, int, int, TransferPlan | None]:
            opened = read_sealing(place.store, view.run, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit))
            expected = None if link is None else plan_transfer(load_of(opened, target.store), link)
            filled = fill(
                opened,
                target,
                signing_key=writer,
                resolve=state.resolver("writer"),
                rewrappers=state.resolver("operator"),
                transfers=transfers,
                progress=progress,
            )
            return place.name, filled.copied, filled.copied_bytes, expected

        source, copied, nbytes, predicted = from_first_good(sources, bring, on_problem)
    if target.store.url != coordination.url:
        mirror_log(coordination, view, target.store)
    label = _label(view, commit, target, coordination, writer)
    return Archived(
        commit.step,
        commit.sealing,
        label,
        "archived" if source else "unchanged",
        source,
        copied,
        nbytes,
        clock.monotonic() - began,
        predicted,
    )


def _label(view: LogView, commit: CommitRecord, target: Place, coordination: Store, writer: SigningKey) -> str:
    body: Document = {"sealing": commit.sealing, "step": number(commit.step), "manifest": commit.manifest, "store": target.id}
    usual = label_of(commit)
    # The same step sealed twice within a second has two labels.
    for label in (usual, f"{usual}-{commit.sealing[:8]}"):
        try:
            return sign_record(coordination, view.run, KIND, label, body, [writer]).name
        except ObjectExistsError:
            # Another writer's key, or another sealing.
            if read_record(coordination, view.run, KIND, label, view.state.resolver("writer")).body == body:
                return label
    raise ObjectExistsError("the archive's label belongs to another sealing", where=f"{view.run} {usual}", do="read the record")
