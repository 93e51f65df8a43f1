"""Writing a checkpoint off: what ends a freeze that cannot be healed. It needs two people, each with an operator's key of their own."""

from dataclasses import dataclass

from seawall.clock import Clock
from seawall.errors import NoSuchCopyError, TrustError, UsageError
from seawall.log import verbs
from seawall.log.bodies import MAX_REASON, WriteOff
from seawall.log.read import LogView
from seawall.log.records import list_records, read_record, sign_record
from seawall.protect.place import Place
from seawall.vault.signing import SigningKey


@dataclass(frozen=True, slots=True)
class WrittenOff:
    """How far it has come."""

    view: LogView
    signers: tuple[str, ...]
    """Key ids of those who said so in the same words."""
    done: bool
    """Whether the log has it."""


def write_off(coordination: Place, view: LogView, sealing: str, reason: str, operator: SigningKey, clock: Clock) -> WrittenOff:
    """Say that a checkpoint is given up.

    The first person's word waits in the records; the second's, in the same words, puts it into the log. Saying it twice with one key is
    saying it once. :class:`NoSuchCopyError` if it was never committed.
    """
    state = view.state
    commit = state.commits.get(sealing) or state.orphans.get(sealing)
    if commit is None:
        raise NoSuchCopyError("there is no such checkpoint", where=f"{view.run} {sealing}", do="`seawall copies` lists them")
    if sealing in state.written_off:
        return WrittenOff(view, state.written_off[sealing].signers, done=True)
    if not reason or len(reason) > MAX_REASON:
        raise UsageError("a reason is needed", why=f"1 to {MAX_REASON} characters", do="say why; the second person signs the same words")
    if state.resolver("operator")(operator.key_id) is None:
        raise TrustError("this key is no operator's", where=operator.key_id, why="it is not listed, or revoked")
    body = {"sealing": sealing, "manifest": commit.manifest, "reason": reason}
    sign_record(coordination.store, view.run, WriteOff.kind, "", body, [operator])
    said = {}
    for name in list_records(coordination.store, view.run, WriteOff.kind):
        try:
            record = read_record(coordination.store, view.run, WriteOff.kind, name, state.resolver("operator"))
        except TrustError:
            # A key that was revoked since: its word counts no more.
            continue
        if record.body == body:
            said.update(dict.fromkeys(record.signers, record))
    signers = tuple(sorted(said))
    if len(signers) < 2:
        return WrittenOff(view, signers, done=False)
    statements = list({record.digest: record for record in said.values()}.values())
    return WrittenOff(verbs.write_off(coordination.store, view, statements, operator, clock), signers, done=True)
