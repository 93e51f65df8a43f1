"""What a run's log and proofs said at a moment in the past.

An entry is placed by the time that its signer wrote into it; the log goes up to the last entry that is not later than the moment. What
was appended afterwards changes nothing. A proof is placed by the entry that names its batch, not by its own time: one that was made before
the moment and signed into the log after it was not known then (docs/decisions/0010-what-an-audit-may-have-known.md).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from seawall.clock import utc_text
from seawall.errors import CorruptError, FreshnessError, TrustError
from seawall.log.entries import FIRST_SEQ, SignedEntry, entry_key, read_entry
from seawall.log.read import LogView, fetch_entry
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.verify.proofs import Proof, read_chain


@dataclass(frozen=True)
class Known:
    """Log and proofs of a run as they were known at a moment."""

    state: RunState
    """The fold of the log up to then; entry 0 where there was no log."""
    proofs: tuple[Proof, ...]
    """Those that counted, of the whole run."""
    not_counted: tuple[str, ...] = ()
    """Verifiers whose keys had been revoked."""


def entries_at(entries: Sequence[SignedEntry], moment: datetime) -> int:
    """How many of ``entries``, from the first, were there at ``moment``: up to the last that is not later."""
    text = utc_text(moment)
    return max((number for number, signed in enumerate(entries, 1) if signed.entry.at <= text), default=0)


def read_entries(store: Store, view: LogView) -> list[SignedEntry]:
    """Every entry of the verified log of ``view``; :class:`FreshnessError` when the store has another log by now."""

    def fetch(seq: int) -> bytes | None:
        return fetch_entry(store, view.run, seq)

    found: list[SignedEntry] = []
    with ThreadPoolExecutor(16, "entries") as pool:
        for seq, raw in enumerate(pool.map(fetch, range(FIRST_SEQ, view.seq + 1)), FIRST_SEQ):
            where = f"{store.url} {entry_key(view.run, seq)}"
            if raw is None:
                raise FreshnessError("the log lost an entry", where=where, do="`seawall log verify` compares all stores")
            found.append(read_entry(raw, where=where))
    if (found[-1].digest if found else RunState(view.run, view.state.root).digest) != view.digest:
        raise FreshnessError("the log changed while it was read", where=store.url, do="`seawall log verify` compares all stores")
    return found


def proofs_known(store: Store, view: LogView, state: RunState) -> Known:
    """The proofs that the log named when its fold was ``state``, an earlier one of ``view``.

    Raises :class:`FreshnessError` when proofs that the log named then cannot be read: what is missing may have been a failure, and a report
    without it would be another one than the report with it.
    """
    proofs: list[Proof] = []
    revoked = []
    resolve = state.resolver("verifier")
    for verifier, head in sorted(state.heads.items()):
        if resolve(verifier) is None:
            revoked.append(verifier)
            continue
        try:
            chain = read_chain(store, view.run, verifier, resolve, at_least=head.seq, at_most=head.seq)
        except (CorruptError, TrustError) as problem:
            raise _missing(store, view.run, verifier, str(problem)) from problem
        if chain.seq < head.seq or chain.digest != head.digest:
            why = f"the chain ends at {chain.seq}" if chain.seq < head.seq else f"link {head.seq} is another one"
            raise _missing(store, view.run, verifier, f"{why}, the log names {head.seq}")
        proofs.extend(chain.proofs)
    return Known(state, tuple(proofs), tuple(revoked))


def _missing(store: Store, run: str, verifier: str, why: str) -> FreshnessError:
    return FreshnessError(
        "proofs that the log names cannot be read",
        where=f"{store.url} {run} {verifier}",
        why=why,
        do="copy the run's proofs back from another store; then make the report",
    )
