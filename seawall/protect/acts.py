"""Acts: what is done in response to a finding. Each has an operation id that is reserved, in a signed record, before anything happens
(DESIGN law 4), and a second record that says how it ended. A reserved act without an end was cut, and may be done again.

Records of kind ``response`` and ``outcome`` are signed by whoever acts: a writer heals, a verifier or operator quarantines and holds.
Those of kind ``incident`` say that no response is safe; any role may sign one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seawall.clock import Clock, utc_text
from seawall.errors import NoSuchObjectError, ObjectExistsError
from seawall.log.entries import operation_id
from seawall.log.read import LogView
from seawall.log.records import read_record, sign_record
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.vault.open import Resolve
from seawall.vault.signing import ROLES, PublicKey, SigningKey

RESPONSE = "response"
OUTCOME = "outcome"
INCIDENT = "incident"
_MAX_NAMED = 1000
"""Objects that an incident names; the count says how many there are."""


@dataclass(frozen=True)
class Act:
    """One thing that is done. ``stores`` are ids."""

    response: str
    op: str
    sealing: str
    stores: tuple[str, ...]
    reason: str


def any_role(state: RunState) -> Resolve:
    """Key id to public key, for every key that is listed and not revoked."""
    resolvers = [state.resolver(role) for role in ROLES]

    def resolve(key_id: str) -> PublicKey | None:
        return next((key for resolver in resolvers if (key := resolver(key_id)) is not None), None)

    return resolve


def reserve(store: Store, view: LogView, act: Act, key: SigningKey, clock: Clock) -> bool:
    """Write down what will be done; whether this call was the first to. ``store`` is the coordination store.

    Raises what reading a record raises when something else lies in its place.
    """
    body: Document = {"response": act.response, "sealing": act.sealing, "stores": list(act.stores), "reason": act.reason}
    return _write(store, view, RESPONSE, act.op, body, key, clock)


def finish(store: Store, view: LogView, act: Act, outcome: str, key: SigningKey, clock: Clock) -> None:
    """Write down how it ended. A second end of the same act says nothing new."""
    _write(store, view, OUTCOME, act.op, {"response": act.response, "sealing": act.sealing, "outcome": outcome}, key, clock)


def reserved(store: Store, view: LogView, op: str) -> bool:
    """Whether an act of this id was reserved by somebody who counts."""
    try:
        read_record(store, view.run, RESPONSE, op, any_role(view.state))
    except NoSuchObjectError:
        return False
    return True


def record_incident(
    store: Store,
    view: LogView,
    sealing: str,
    stores: Sequence[str],
    reason: str,
    missing: Mapping[str, Sequence[int]],
    key: SigningKey,
    clock: Clock,
) -> str:
    """Write down, once, that no copy of a checkpoint can be used or mended; the incident's operation id.

    ``missing`` are objects and their records. The same finding again is the same incident.
    """
    named = sorted(missing)
    op = operation_id("incident", view.run, sealing, reason, *(f"{name} {list(missing[name])}" for name in named))
    body: Document = {
        "severity": "highest",
        "sealing": sealing,
        "stores": sorted(stores),
        "reason": reason,
        "missing": {name: [canonical.number(number) for number in missing[name]] for name in named[:_MAX_NAMED]},
        "objects": canonical.number(len(named)),
    }
    _write(store, view, INCIDENT, op, body, key, clock)
    return op


def _write(store: Store, view: LogView, kind: str, op: str, body: Document, key: SigningKey, clock: Clock) -> bool:
    full = {**body, "epoch": canonical.number(view.epoch), "at": utc_text(clock.now())}
    try:
        sign_record(store, view.run, kind, op, full, [key])
    except ObjectExistsError:
        read_record(store, view.run, kind, op, any_role(view.state))
        return False
    return True
