"""A deletion plan as people approve it: a signed record that lists every copy, and the approval that is bound to its digest."""

from dataclasses import dataclass
from datetime import datetime

from seawall.clock import parse_utc, utc_text
from seawall.errors import CorruptError
from seawall.log.records import Record
from seawall.protect.retention_facts import Kind
from seawall.protect.retention_gather import Gathered
from seawall.protect.retention_plan import Deletion, Keep, RetentionDecision
from seawall.protect.retention_settings import RetentionSettings
from seawall.vault import canonical, dsse
from seawall.vault.canonical import Document

PLAN = "retention-plan"
APPROVAL = "retention-approval"
INTENT = "retention-intent"
"""Kinds of records (docs/spec/log-and-trust.md, section 11)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan's record says."""

    name: str
    digest: str
    run: str
    at: datetime
    """The store's time when it was made."""
    not_before: datetime
    not_after: datetime
    log_seq: int
    delete: tuple[Deletion, ...]
    signer: str

    @property
    def copies(self) -> frozenset[tuple[str, str]]:
        return frozenset(deletion.copy for deletion in self.delete)


def plan_body(gathered: Gathered, decision: RetentionDecision, settings: RetentionSettings) -> Document:
    """The body of the record. Moments are the store's."""
    now = gathered.moment.now
    policy = {name: str(value) for name, value in settings.model_dump(mode="json").items()}
    return {
        "at": utc_text(now),
        "clock": gathered.moment.clock,
        "not_before": utc_text(now + settings.cooling_off),
        "not_after": utc_text(now + settings.cooling_off + settings.plan_valid),
        "log": {"seq": canonical.number(gathered.view.seq), "digest": gathered.view.digest},
        "policy": policy,
        "delete": [_deletion(deletion) for deletion in decision.delete],
        "keep": [_keep(kept) for kept in decision.keep],
        "blocked": [{"sealing": item.sealing, "store": item.store, "why": item.why} for item in decision.blocked],
    }


def _deletion(deletion: Deletion) -> Document:
    return {
        "sealing": deletion.sealing,
        "step": canonical.number(deletion.step),
        "store": deletion.store,
        "kind": deletion.kind.value,
        "manifest": deletion.manifest,
        "reason": deletion.reason,
        "bytes": canonical.number(deletion.nbytes),
    }


def _keep(kept: Keep) -> Document:
    return {"sealing": kept.sealing, "step": canonical.number(kept.step), "protected": kept.protected, "reasons": list(kept.reasons)}


def read_plan(record: Record) -> Plan:
    """Back from :func:`plan_body`; :class:`CorruptError` for anything else."""
    body, where = record.body, f"{record.run} {record.kind} {record.name}"
    log = canonical.object_field(body, "log", where=where)
    return Plan(
        record.name,
        record.digest,
        record.run,
        parse_utc(canonical.time_field(body, "at", where=where)),
        parse_utc(canonical.time_field(body, "not_before", where=where)),
        parse_utc(canonical.time_field(body, "not_after", where=where)),
        canonical.number_field(log, "seq", where=where),
        tuple(_read_deletion(item, where) for item in canonical.objects_field(body, "delete", where=where)),
        record.signers[0],
    )


def _read_deletion(item: Document, where: str) -> Deletion:
    kind = canonical.text_field(item, "kind", where=where)
    if kind not in {known.value for known in Kind}:
        raise CorruptError("a plan deletes what this reader does not know", where=where, why=repr(kind))
    return Deletion(
        canonical.hex_field(item, "sealing", 16, where=where),
        canonical.number_field(item, "step", where=where),
        canonical.hex_field(item, "store", 16, where=where),
        Kind(kind),
        canonical.text_field(item, "manifest", where=where, empty=True),
        canonical.text_field(item, "reason", where=where),
        canonical.number_field(item, "bytes", where=where),
    )


def plan_name(body: Document) -> str:
    """Names sort by the time of the plan, so that the newest is found without reading them all."""
    return f"{name_of_moment(parse_utc(str(body['at'])))}-{dsse.digest(canonical.encode(body))[:16]}"


def name_of_moment(moment: datetime) -> str:
    """How the names of plans of this second begin."""
    return f"{moment:%Y%m%dT%H%M%SZ}"
