"""Appending to a run's log: create-if-absent of the next number, so that each slot has one winner.

The rules that keep "asked twice" from becoming "done twice", whatever times out:

* A request has an operation id. It is looked for in the log first, and again in every entry that won a slot before us.
* A slot whose outcome is unknown is settled before the next one is tried: the same bytes are put into the same slot
  until *something* is read back from it. A first request that arrives late then finds the slot taken, by its own bytes
  or by another's.
* An entry that no longer fits (its epoch was closed, somebody else lifted it first) is not written at all.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from seawall.clock import Clock, utc_text
from seawall.errors import (
    BusyError,
    EpochClosedError,
    NoSuchCopyError,
    ObjectExistsError,
    StoreAmbiguousError,
    StoreError,
    StoreUnavailableError,
    TrustError,
    UsageError,
)
from seawall.log.bodies import Body, Commit, Epoch
from seawall.log.entries import FIRST_SEQ, Entry, SignedEntry, entry_key, read_entry, sign_entry
from seawall.log.fold import content_of, fold
from seawall.log.read import LogView, check_authority, fetch_entry, read_on
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.vault.canonical import hex_text
from seawall.vault.signing import SigningKey

MAX_SLOTS: Final = 64
"""Slots that may be lost to others in one call: a hundred writers at once do not come near it."""

MAX_TRIES: Final = 6
"""Puts of the same bytes into one slot whose outcome stays unknown."""

_FIRST_WAIT_SECONDS: Final = 0.2
"""Before the second put into an unclear slot; doubles each time. With 6 tries about 6 s in all, on top of the store's own retries."""


def append(
    store: Store,
    view: LogView,
    body: Body,
    key: SigningKey,
    op: str,
    clock: Clock,
    *,
    epoch: int | None = None,
    unless: Callable[[RunState], bool] | None = None,
) -> LogView:
    """The log of ``view`` with ``body`` in it, appended by this call or an earlier one of the same operation ``op``.

    ``epoch`` is what the caller decided under; if the log has gone on to another, ``EpochClosedError`` is raised and
    nothing is written. A commit must name it; other kinds count for whatever epoch is in force if they do not.
    ``unless`` is asked about the state before each try, and before ``op`` is looked for: once true, nothing is left to do.

    ``TrustError`` if ``op`` is in the log with another content or if the entry may not follow, ``BusyError`` when
    others won too many slots, ``StoreAmbiguousError`` when a slot's outcome stays unknown. After the last two the same
    call with the same ``op`` is safe.
    """
    if isinstance(body, Commit) and epoch is None:
        raise UsageError("a commit names the epoch it was decided under", where=view.run)
    if not view.authoritative:
        raise UsageError("a mirror's log is not appended to", where=view.run, do="append to the coordination store")
    hex_text(op, 16, where="operation id")
    content = content_of(body)
    for _ in range(MAX_SLOTS):
        if unless is not None and unless(view.state):
            return view
        done = view.state.done.get(op)
        if done is not None:
            if done.content != content:
                raise TrustError(
                    "one operation id stands for two different requests",
                    where=f"{view.run} {op}",
                    why=f"entry {done.seq} has it with another content",
                    do="reserve a new operation id for a new request",
                )
            return view
        if view.seq >= FIRST_SEQ:
            check_authority(view, store.url)
        signed = _candidate(view.state, body, key, op, clock, epoch)
        after = fold(view.state, signed)
        winner = _settle(store, signed, clock)
        if winner == signed.stored:
            return replace(view, state=after)
        where = f"{store.url} {entry_key(view.run, signed.entry.seq)}"
        view = replace(view, state=fold(view.state, read_entry(winner, where=where)))
        # More may have been appended meanwhile; taking them all at once keeps a crowd from trying every slot.
        view = read_on(store, view)
    raise BusyError("others won every slot of the log", where=f"{store.url} {view.run}", why=f"{MAX_SLOTS} tries", do="run it again")


def _candidate(state: RunState, body: Body, key: SigningKey, op: str, clock: Clock, epoch: int | None) -> SignedEntry:
    if epoch is not None and epoch != state.epoch:
        raise EpochClosedError(
            f"epoch {epoch} is not in force",
            where=state.run,
            why=f"the log is in epoch {state.epoch}",
            do="stop here if this zone was fenced off; otherwise decide again under the epoch in force",
        )
    if isinstance(body, Commit) and body.written < state.epoch:
        raise EpochClosedError(
            "the checkpoint was written under a closed epoch",
            where=f"{state.run} step {body.step}",
            why=f"its commit mark says epoch {body.written}, the log is in epoch {state.epoch}",
        )
    if isinstance(body, Commit) and body.sealing in state.tombstones and body.sealing not in state.commits:
        raise NoSuchCopyError(
            "the sealing was given up while it was made",
            where=f"{state.run} step {body.step}",
            why=f"entry {state.tombstones[body.sealing][0].seq} deletes what was stored of it",
            do="sync again: the checkpoint is sealed anew",
        )
    if isinstance(body, Epoch) and body.number != state.epoch + 1:
        raise EpochClosedError(
            f"epoch {body.number} is not the next one", where=state.run, why=f"the log is in epoch {state.epoch}", do="decide again"
        )
    entry = Entry(
        run=state.run,
        seq=state.seq + 1,
        prev=state.digest,
        op=op,
        epoch=body.number if isinstance(body, Epoch) else state.epoch,
        at=utc_text(clock.now()),
        body=body,
    )
    return sign_entry(entry, key)


def _settle(store: Store, signed: SignedEntry, clock: Clock) -> bytes:
    """What the slot of ``signed`` holds once that is known for certain."""
    entry = signed.entry
    where = entry_key(entry.run, entry.seq)
    wait = _FIRST_WAIT_SECONDS
    problem: StoreError | None = None
    for attempt in range(MAX_TRIES):
        if attempt:
            clock.sleep(wait)
            wait *= 2
        try:
            store.put(where, signed.stored)
        except (ObjectExistsError, StoreAmbiguousError, StoreUnavailableError) as raised:
            problem = raised
        except StoreError as raised:
            if problem is None:
                raise
            # An earlier put of ours may still arrive, so a plain refusal now does not mean that nothing was written.
            problem = raised
            break
        else:
            return signed.stored
        try:
            winner = fetch_entry(store, entry.run, entry.seq)
        except StoreError as raised:
            problem = raised
            continue
        if winner is not None:
            return winner
    raise StoreAmbiguousError(
        "it is unknown whether the log has the entry",
        where=f"{store.url} {where}",
        why=str(problem) if problem else "",
        do=f"run the same command again; operation {entry.op} is done at most once",
    )
