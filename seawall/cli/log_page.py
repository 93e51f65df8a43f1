"""Pages of a run's log as documents: for ``seawall log show`` and for Airflow's page."""

from typing import TYPE_CHECKING, Any

from seawall.errors import FreshnessError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.entries import SignedEntry
    from seawall.log.read import LogView
    from seawall.log.state import RunState


def newest_entries(site: "Site", view: "LogView", count: int) -> "list[SignedEntry]":
    """The last ``count`` entries. Their digests lead to that of the verified view, so they are the entries that it was folded from."""
    from seawall.log.entries import FIRST_SEQ, entry_key, read_entry
    from seawall.log.read import fetch_entry

    store = site.coordination.store
    found: list[SignedEntry] = []
    wanted = view.digest
    for seq in range(view.seq, max(FIRST_SEQ, view.seq - count + 1) - 1, -1):
        where = f"{store.url} {entry_key(view.run, seq)}"
        data = fetch_entry(store, view.run, seq)
        signed = read_entry(data, where=where) if data is not None else None
        if signed is None or signed.digest != wanted:
            raise FreshnessError("the log changed while it was read", where=where, do="`seawall log verify` compares all stores")
        wanted = signed.entry.prev
        found.append(signed)
    return found[::-1]


def entries_before(site: "Site", view: "LogView", before: int, count: int) -> "list[SignedEntry]":
    """The last ``count`` entries below number ``before``, newest first, without reading what comes after them.

    The folded view tells which operation each number is and what it says; the signature covers the rest.
    """
    from seawall.log.entries import FIRST_SEQ, entry_key, read_entry
    from seawall.log.fold import content_of
    from seawall.log.read import fetch_entry
    from seawall.log.state import Done
    from seawall.vault import dsse

    store, state = site.coordination.store, view.state
    keys = {key_id: key.public for key_id, key in state.trust.keys.items()} if state.trust is not None else {}
    found: list[SignedEntry] = []
    first = min(before, view.seq + 1) - 1
    for seq in range(first, max(FIRST_SEQ, first - count + 1) - 1, -1):
        where = f"{store.url} {entry_key(view.run, seq)}"
        data = fetch_entry(store, view.run, seq)
        signed = read_entry(data, where=where) if data is not None else None
        if signed is None or state.done.get(signed.entry.op) != Done(seq, content_of(signed.entry.body)):
            raise FreshnessError("the log changed while it was read", where=where, do="`seawall log verify` compares all stores")
        dsse.verify(signed.envelope, signed.envelope.payload_type, keys.get, where=where)
        found.append(signed)
    return found


def role_of(state: "RunState", signed: "SignedEntry") -> str:
    """Role of the key that signed an entry."""
    key = state.trust.keys.get(signed.signer) if state.trust is not None else None
    return key.role if key is not None else "unknown"


def entry_document(state: "RunState", signed: "SignedEntry") -> dict[str, Any]:
    """An entry as JSON."""
    entry = signed.entry
    orphan = next((record.orphan for record in state.orphans.values() if record.seq == entry.seq), "")
    return {
        "seq": entry.seq,
        "at": entry.at,
        "epoch": entry.epoch,
        "kind": entry.kind,
        "operation": entry.op,
        "signer": signed.signer,
        "role": role_of(state, signed),
        "digest": signed.digest,
        "orphan": orphan,
        "body": entry.body.as_document(),
    }
