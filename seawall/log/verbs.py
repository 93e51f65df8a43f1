"""What people and tasks do to a run's log, each safe to ask twice.

Operation ids are derived from the request, so that the same request has the same id on any host. Where the same words
may be meant anew (a quarantine after its lift), what happened in between is part of the request.
"""

from collections.abc import Sequence
from datetime import datetime

from seawall.clock import Clock, utc_text
from seawall.errors import BusyError, EpochClosedError, NoSuchCopyError, StoreRefusedError, TrustError, UsageError
from seawall.log.append import append
from seawall.log.bodies import (
    MAX_REASON,
    RETENTION,
    Commit,
    Epoch,
    Genesis,
    Hold,
    Lease,
    Lift,
    ProofHead,
    ProofHeads,
    Quarantine,
    Tombstone,
    TrustChange,
    WriteOff,
)
from seawall.log.entries import operation_id
from seawall.log.read import LogView, check_authority, empty_view, read_on
from seawall.log.records import Record, merge_signatures
from seawall.log.state import LeaseRecord, RunState
from seawall.stores.base import Store
from seawall.vault.signing import PublicKey, SigningKey
from seawall.vault.trust import check_successor, read_list


def open_run(
    store: Store, run: str, root: PublicKey, trust_list: bytes, coordinator: SigningKey, writers: Sequence[str], clock: Clock
) -> LogView:
    """Begin the log of ``run`` in ``store``, its coordination store: genesis, and epoch 1 for ``writers`` (key ids).

    Of several calls, at once or after a kill, one does it and all succeed if they ask for the same writers.
    ``trust_list`` is the stored, root-signed list; it is used by whoever begins the log. ``StoreRefusedError`` for a
    store in which two could create one object.
    """
    read_list(trust_list, root, where="trust list")
    if not store.capabilities.conditional_put:
        raise StoreRefusedError(
            "this store cannot have authority over a log",
            where=store.url,
            why="create-if-absent has no single winner here; " + "; ".join(store.capabilities.reasons),
            do="name another store under [coordination]; this one can still hold copies and a mirror",
        )
    view = read_on(store, empty_view(store, run, root))
    if view.seq == 0:
        genesis = Genesis(view.store_id, trust_list)
        begun = operation_id("genesis", run)
        view = append(store, view, genesis, coordinator, begun, clock, unless=lambda state: begun in state.done)
    check_authority(view, store.url)
    wanted = tuple(sorted(set(writers)))
    first = Epoch(1, wanted, "the run was opened")
    view = append(store, view, first, coordinator, operation_id("epoch", run, "1"), clock, unless=lambda state: state.epoch >= 1)
    if view.state.epochs[1].writers != wanted:
        raise UsageError(
            "the run is open already, for other writers",
            where=run,
            why=f"epoch 1 admits {', '.join(view.state.epochs[1].writers) or 'nobody'}",
            do="open a new epoch to admit others",
        )
    return view


def new_epoch(store: Store, view: LogView, writers: Sequence[str], reason: str, coordinator: SigningKey, op: str, clock: Clock) -> LogView:
    """Close the epoch in force and open the next for ``writers``.

    ``op`` is reserved beforehand (law 4): with the same one this opens one epoch, however often it is called.
    ``EpochClosedError`` if somebody else opened an epoch first.
    """
    done = [record for record in view.state.epochs.values() if record.op == op]
    number = done[0].number if done else view.epoch + 1
    return append(store, view, Epoch(number, tuple(sorted(set(writers))), _said(reason)), coordinator, op, clock)


def commit(store: Store, view: LogView, body: Commit, writer: SigningKey, epoch: int, clock: Clock) -> LogView:
    """Put a checkpoint's commit into the log, decided under ``epoch``.

    Two writers of one sealing may name different receipts; the first counts and the other finds it done.
    ``EpochClosedError`` if another epoch is in force by now, or the sealing is an orphan.
    """

    def there(state: RunState) -> bool:
        return body.sealing in state.commits and state.commits[body.sealing].manifest == body.manifest

    op = operation_id("commit", view.run, body.sealing)
    view = append(store, view, body, writer, op, clock, epoch=epoch, unless=there)
    orphan = view.state.orphans.get(body.sealing)
    if orphan is not None:
        raise EpochClosedError("the checkpoint was committed too late", where=f"{view.run} {body.sealing}", why=orphan.orphan)
    return view


def quarantine(store: Store, view: LogView, sealing: str, reason: str, key: SigningKey, clock: Clock) -> LogView:
    """Say that the checkpoint of ``sealing`` is no recovery point. ``NoSuchCopyError`` if the log has no commit of it."""
    if sealing not in view.state.orphans:
        view.state.commit_of(sealing)
    lifted = [mark.op for mark in view.state.marks.values() if mark.sealing == sealing and mark.lifted_by]
    op = operation_id("quarantine", view.run, sealing, _said(reason), *lifted)
    return append(store, view, Quarantine(sealing, reason), key, op, clock)


def hold(store: Store, view: LogView, reason: str, key: SigningKey, clock: Clock) -> LogView:
    """Stop deletions and promotions of the run."""
    lifted = [mark.op for mark in view.state.marks.values() if not mark.sealing and mark.lifted_by]
    op = operation_id("hold", view.run, _said(reason), *lifted)
    return append(store, view, Hold(reason), key, op, clock)


def lift(store: Store, view: LogView, lifts: str, reason: str, operator: SigningKey, clock: Clock) -> LogView:
    """End the quarantine or hold whose operation id is ``lifts``. ``NoSuchCopyError`` if there is none."""
    mark = view.state.marks.get(lifts)
    if mark is None:
        raise NoSuchCopyError("there is no such quarantine or hold", where=f"{view.run} {lifts}", do="`seawall log show` lists them")

    def lifted(state: RunState) -> bool:
        return bool(state.marks[lifts].lifted_by)

    op = operation_id("lift", view.run, lifts)
    return append(store, view, Lift(lifts, _said(reason)), operator, op, clock, unless=lifted)


def tombstone(
    store: Store, view: LogView, sealing: str, copy_store: str, plan: str, lease: int, operator: SigningKey, clock: Clock
) -> LogView:
    """Record that the copy of ``sealing`` in ``copy_store`` (an id) goes by the plan of digest ``plan``.

    ``lease`` is the number of the retention lease that this was decided under. :class:`BusyError` if another is in force by now:
    then nothing may be deleted on that decision.
    """

    def there(state: RunState) -> bool:
        if state.is_deleted(sealing, copy_store):
            return True
        held = state.leases.get(RETENTION)
        if held is None or held.seq != lease or held.released:
            raise BusyError(
                "the retention lease was lost",
                where=state.run,
                why=f"this was decided under lease {lease}; {held.holder if held else 'nobody'} has the newest, {held.seq if held else 0}",
                do="run it again: what is left is decided anew",
            )
        return False

    op = operation_id("tombstone", view.run, sealing, copy_store)
    return append(
        store,
        view,
        Tombstone(sealing, copy_store, plan, lease),
        operator,
        op,
        clock,
        unless=there,
    )


def take_lease(
    store: Store, view: LogView, holder: str, purpose: str, taken: datetime, until: datetime, operator: SigningKey, clock: Clock
) -> tuple[LogView, LeaseRecord]:
    """Take or extend the lease of ``purpose`` for ``holder``; with ``until`` equal to ``taken`` give it back.

    ``taken`` is the store's time now. :class:`BusyError` when somebody else holds it, or it was taken later than that by the store's clock.
    """
    wanted = Lease(holder, purpose, utc_text(taken), utc_text(until))

    def may_not(state: RunState) -> bool:
        held = state.leases.get(purpose)
        if held is not None and held.holder != holder and wanted.taken < held.until:
            raise BusyError(
                f"the {purpose} lease of the run is held",
                where=state.run,
                why=f"{held.holder} has it until {held.until} by the store's clock",
                do="run it again after that",
            )
        if state.store_time is not None and wanted.taken < state.store_time:
            raise BusyError(
                "the store's clock went back, or somebody was quicker", where=state.run, why=f"it had come to {state.store_time}"
            )
        return False

    op = operation_id("lease", view.run, purpose, holder, wanted.taken, wanted.until)
    view = append(store, view, wanted, operator, op, clock, unless=may_not)
    lease = view.state.leases[purpose]
    if lease.holder != holder:
        raise BusyError(f"the {purpose} lease of the run is held", where=view.run, why=f"{lease.holder} has it until {lease.until}")
    return view, lease


def write_off(store: Store, view: LogView, statements: Sequence[Record], operator: SigningKey, clock: Clock) -> LogView:
    """Give a checkpoint up. ``statements`` are the records of kind ``write-off`` that the people signed, two at least.

    :class:`TrustError` when the signatures are not two operators'.
    """
    body = WriteOff(str(statements[0].body["sealing"]), merge_signatures(statements))
    op = operation_id("write-off", view.run, body.sealing)
    return append(store, view, body, operator, op, clock, unless=lambda state: body.sealing in state.written_off)


def state_proof_heads(store: Store, view: LogView, heads: Sequence[ProofHead], key: SigningKey, clock: Clock) -> LogView:
    """State how far chains of proofs have come; nothing is appended for heads that the log has or has passed.

    ``TrustError`` if the log has another digest for a head: the chain was forked.
    """

    def news(state: RunState) -> tuple[ProofHead, ...]:
        found = []
        for head in sorted(heads, key=lambda head: head.verifier):
            known = state.heads.get(head.verifier)
            if known and known.seq == head.seq and known.digest != head.digest:
                raise TrustError(
                    "a chain of proofs has two histories", where=f"{state.run} {head.verifier}", why=f"proof {head.seq} has two digests"
                )
            if known is None or head.seq > known.seq:
                found.append(head)
        return tuple(found)

    wanted = news(view.state)
    if not wanted:
        return view
    named = [f"{head.verifier} {head.seq} {head.digest}" for head in wanted]
    op = operation_id("proof-heads", view.run, *named)
    return append(store, view, ProofHeads(wanted), key, op, clock, unless=lambda state: not news(state))


def change_trust(store: Store, view: LogView, trust_list: bytes, key: SigningKey, clock: Clock) -> LogView:
    """Let the next root-signed list count from here on. ``TrustError`` if it may not follow the one in force.

    ``key`` is a coordinator's or an operator's, in the *new* list.
    """
    wanted = read_list(trust_list, view.state.root, where="trust list")
    trust = view.state.trust
    if trust is not None and trust_list != view.state.trust_bytes and wanted.version > trust.version:
        check_successor(trust, wanted, where="trust list")
    op = operation_id("trust", view.run, str(wanted.version))
    return append(store, view, TrustChange(trust_list), key, op, clock, unless=lambda state: state.trust_bytes == trust_list)


def _said(reason: str) -> str:
    if not reason or len(reason) > MAX_REASON:
        raise UsageError(
            "a reason is needed", why=f"1 to {MAX_REASON} characters; it has {len(reason)}", do="say why, for whoever reads the log"
        )
    return reason
