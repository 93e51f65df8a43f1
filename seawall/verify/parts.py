"""A copy read back by several tasks: what each found, signed, and the one proof that they add up to.

A part proves nothing by itself. Only when parts cover every object of the copy is there an L2 proof, dated as the oldest of them; damage
in one part is a failed proof at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seawall.clock import Clock, utc_text
from seawall.errors import CorruptError, NoSuchCopyError, TrustError
from seawall.log.identity import identify
from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.stores.base import Store
from seawall.vault import canonical, dsse
from seawall.vault.canonical import Document
from seawall.vault.identity import sealing_folder
from seawall.vault.sealing import read_sealing
from seawall.vault.signing import PublicKey, SigningKey
from seawall.verify import evidence
from seawall.verify.committed import usable_receipt
from seawall.verify.copy_bytes import Progress, check_wraps, scrub_objects
from seawall.verify.evidence import count_of
from seawall.verify.findings import Damage, failed, object_in
from seawall.verify.levels import Level
from seawall.verify.metering import AtVersions, Meter
from seawall.verify.proofs import FAILED, OK, Proof
from seawall.verify.receipts import versions_digest
from seawall.verify.rotation import Span

PAYLOAD_TYPE = "application/vnd.seawall.part.v1+json"
_SUMMED = (evidence.READ_BYTES, evidence.REQUESTS)


@dataclass(frozen=True)
class Part:
    """What one task found in some objects of a copy. ``result`` as in a proof."""

    sealing: str
    manifest: str
    store: str
    first: int
    count: int
    objects: int
    """Objects that the copy has in all."""
    result: str
    at: str
    versions: str
    evidence: dict[str, str]

    def document(self) -> Document:
        return {
            "sealing": self.sealing,
            "manifest": self.manifest,
            "store": self.store,
            "first": canonical.number(self.first),
            "count": canonical.number(self.count),
            "objects": canonical.number(self.objects),
            "result": self.result,
            "at": self.at,
            "versions": self.versions,
            "evidence": dict(self.evidence),
        }


def check_part(
    store: Store,
    view: LogView,
    commit: CommitRecord,
    span: Span,
    clock: Clock,
    *,
    store_id: str = "",
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> tuple[Part, tuple[Damage, ...]]:
    """Read the objects of ``span`` back. The part that begins at 0 also looks at the wrapped keys."""
    store_id = store_id or identify(store)
    receipt = usable_receipt(store, store_id, view.state, commit)
    versions = receipt.versions if receipt is not None and store.capabilities.versions else {}
    meter = Meter(store, clock)
    folder = sealing_folder(view.run, bytes.fromhex(commit.sealing))
    reader = AtVersions(meter, {folder + name: version for name, version in versions.items()}) if versions else meter

    def part(objects: int, damages: Sequence[Damage], more: dict[str, str]) -> tuple[Part, tuple[Damage, ...]]:
        found = {**(failed(Level.L2, "scrub", damages).evidence if damages else {}), **more, **meter.cost()}
        result = FAILED if damages else OK
        at, digest = utc_text(clock.now()), versions_digest(versions)
        return Part(commit.sealing, commit.manifest, store_id, span.first, span.count, objects, result, at, digest, found), tuple(damages)

    try:
        opened = read_sealing(reader, view.run, bytes.fromhex(commit.sealing), commit.manifest, view.state.writer_of(commit))
    except (NoSuchCopyError, CorruptError, TrustError) as error:
        return part(0, [Damage(object_in(error, "manifest.json"), str(error))], {})
    rows = opened.table.rows
    damages: list[Damage] = []
    more = {evidence.STORED_BYTES: str(opened.manifest.stored_bytes)}
    if span.first == 0:
        wraps = check_wraps(opened, view.state.resolver("operator"))
        damages += wraps.damages
        more |= wraps.evidence
    damages += scrub_objects(opened, rows[span.first : span.first + span.count], transfers, progress)
    return part(len(rows), damages, more)


def sign_part(run: str, part: Part, key: SigningKey) -> str:
    """A part as signed text, for :func:`read_part`: on its way it passes through somebody else's database."""
    payload = canonical.encode({"format": canonical.FORMAT, "run": run, "part": part.document()})
    return dsse.sign(PAYLOAD_TYPE, payload, [key]).encode().decode()


def read_part(text: str, run: str, resolve: Callable[[str], PublicKey | None]) -> Part:
    """Back from :func:`sign_part`. ``resolve`` admits verifiers. :class:`TrustError`, :class:`CorruptError`."""
    where = f"a part of a check of {run}"
    envelope = dsse.Envelope.decode(text.encode(), where=where)
    dsse.verify(envelope, PAYLOAD_TYPE, resolve, where=where)
    document = canonical.decode(envelope.payload, where=where)
    canonical.check_format(document, where=where)
    canonical.only_fields(document, {"format", "run", "part"}, where=where)
    if canonical.text_field(document, "run", where=where) != run:
        raise CorruptError("this part is about another run", where=where)
    item = canonical.object_field(document, "part", where=where)
    found = canonical.object_field(item, "evidence", where=where)
    part = Part(
        canonical.hex_field(item, "sealing", 16, where=where),
        canonical.hex32_field(item, "manifest", where=where),
        canonical.hex_field(item, "store", 16, where=where),
        canonical.number_field(item, "first", where=where),
        canonical.number_field(item, "count", where=where),
        canonical.number_field(item, "objects", where=where),
        canonical.text_field(item, "result", where=where),
        canonical.time_field(item, "at", where=where),
        canonical.text_field(item, "versions", where=where, empty=True),
        {name: str(value) for name, value in found.items()},
    )
    canonical.same_form(canonical.encode({**document, "part": part.document()}), envelope.payload, where=where)
    if part.result not in (OK, FAILED):
        raise CorruptError("a part has no result", where=where)
    return part


def combine(parts: Sequence[Part]) -> list[Proof]:
    """The L2 proofs that parts add up to, at most one a copy: failed where one part failed, ok where they cover every object, else none.

    Parts that read other versions, or counted another number of objects, are about another copy. Pure.
    """
    copies: dict[tuple[str, str, str], list[Part]] = {}
    for part in parts:
        copies.setdefault((part.sealing, part.manifest, part.store), []).append(part)
    return [proof for found in copies.values() if (proof := _combined(found)) is not None]


def _combined(parts: Sequence[Part]) -> Proof | None:
    bad = [part for part in parts if part.result == FAILED]
    if bad:
        damage = "; ".join(part.evidence.get("damage", "") for part in bad)
        counted = sum(count_of(part.evidence, "damaged_objects") or 1 for part in bad)
        found = {**_sum(parts), "damaged_objects": str(counted), "damage": damage[:2000]}
        # The newest: a failure counts from the moment it was seen, and outlives every success before that.
        return _proof(parts[0], FAILED, max(part.at for part in bad), found)
    if len({(part.versions, part.objects) for part in parts}) != 1:
        return None
    covered = 0
    for part in sorted(parts, key=lambda part: part.first):
        if part.first > covered:
            return None
        covered = max(covered, part.first + part.count)
    wraps = next((part.evidence[evidence.WRAPS] for part in parts if evidence.WRAPS in part.evidence), None)
    if covered != parts[0].objects or covered == 0 or wraps is None:
        return None
    found = {**_sum(parts), evidence.OBJECTS: str(covered), evidence.WRAPS: wraps}
    return _proof(parts[0], OK, min(part.at for part in parts), found)


def _sum(parts: Sequence[Part]) -> dict[str, str]:
    """Costs add up; what was stored is what each part says of the whole."""
    found = {name: str(sum(count_of(part.evidence, name) or 0 for part in parts)) for name in _SUMMED}
    stored = next((part.evidence[evidence.STORED_BYTES] for part in parts if evidence.STORED_BYTES in part.evidence), None)
    return found if stored is None else {**found, evidence.STORED_BYTES: stored}


def _proof(part: Part, result: str, at: str, found: dict[str, str]) -> Proof:
    return Proof(part.sealing, part.manifest, part.store, Level.L2, result, "scrub in parts", at, found, part.versions)
