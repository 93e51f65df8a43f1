"""The copies that are due to be read back, and what that should take: for `seawall verify --due`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seawall.cli.output import human_bytes, say, warn
from seawall.errors import CorruptError, NoSuchCopyError, NoSuchObjectError, StoreError, TrustError
from seawall.estimate.units import parse_bytes, seconds_text
from seawall.verify.certify import read_proofs
from seawall.verify.chain_cache import ChainCache
from seawall.verify.cost import Prediction, Work, fit_all, predict
from seawall.verify.evidence import STORED_BYTES
from seawall.verify.levels import Level
from seawall.verify.rotation import Reading, Rotation, plan_rotation

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place
    from seawall.verify.proofs import Proof


@dataclass(frozen=True)
class DueCopies:
    """The plan, the stores' names by their ids, and the prediction."""

    rotation: Rotation
    names: Mapping[str, str]
    prediction: Prediction

    def document(self, seconds: float) -> dict[str, Any]:
        """For `--json`, once it is done in so many seconds."""
        return {
            "planned": len(self.rotation.readings),
            "bytes": str(self.rotation.nbytes),
            "postponed": [self._brief(reading) for reading in self.rotation.postponed],
            "overdue": len(self.rotation.overdue),
            "predicted_seconds": f"{self.prediction.seconds:.1f}",
            "unpredicted": self.prediction.unknown,
            "seconds": f"{seconds:.1f}",
        }

    def _brief(self, reading: Reading) -> dict[str, Any]:
        place = {"step": reading.commit.step, "sealing": reading.commit.sealing, "store": self.names[reading.store]}
        return {**place, "level": reading.level.name, "why": reading.why.value}

    def show(self) -> None:
        """For a person, before it begins."""
        rotation = self.rotation
        later = f", {len(rotation.postponed)} later" if rotation.postponed else ""
        say(f"{len(rotation.readings)} copies are due, {human_bytes(rotation.nbytes)} as far as is known{later}{self._expected()}")
        if rotation.overdue:
            warn(f"{len(rotation.overdue)} of the later ones were not read for a whole period: the budget is too small for what is stored")

    def _expected(self) -> str:
        if self.prediction.unknown == len(self.rotation.readings):
            return ""
        without = f", without {self.prediction.unknown} that nothing is known about" if self.prediction.unknown else ""
        return f"; expected to take {seconds_text(self.prediction.seconds)}{without}"

    def show_outcome(self, seconds: float) -> None:
        """How far the prediction was off, where everything was predicted."""
        if self.prediction.unknown == 0 and self.prediction.seconds > 0:
            off = (seconds - self.prediction.seconds) / self.prediction.seconds
            say(f"took {seconds_text(seconds)}, {seconds_text(self.prediction.seconds)} were expected ({off:+.0%})")


def due_copies(
    site: "Site", view: "LogView", names: Sequence[str], wanted: Level, budget: str | None, unreachable: dict[str, StoreError]
) -> DueCopies:
    """Plan for the stores of these names; those that do not answer are added to ``unreachable``. Reads no copies."""
    budget_bytes = None if budget is None else parse_bytes(budget)
    known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
    for verifier in known.gaps:
        warn(f"proofs of verifier {verifier} are missing, so no success counts: {known.unknown[verifier]}")
    places = []
    for name in names:
        try:
            places.append(site.place(name))
        except StoreError as error:
            unreachable[name] = error
    proofs = known.proofs
    media = {place.id: site.config.stores[place.name].medium for place in places}
    rotation = plan_rotation(
        view.state,
        proofs,
        [place.id for place in places],
        _whole(view, places, proofs, unreachable),
        site.clock.now(),
        site.config.verify.policy(media),
        wanted=wanted,
        budget_bytes=budget_bytes,
        sizes=_sizes(view, places, proofs),
    )
    works = [Work(each.store, each.level, each.requests, each.nbytes) for each in rotation.readings]
    prediction = predict(fit_all(proofs, media), works)
    return DueCopies(rotation, {place.id: place.name for place in places}, prediction)


def _whole(
    view: "LogView", places: "Sequence[Place]", proofs: "Sequence[Proof]", unreachable: dict[str, StoreError]
) -> dict[tuple[str, str], bool]:
    """Of copies that were never proved, whether their receipt is there. One request each."""
    from seawall.protect.fill import has_copy

    proved = {(proof.sealing, proof.store) for proof in proofs}
    found: dict[tuple[str, str], bool] = {}
    for place in places:
        for commit in view.state.commits.values():
            key = (commit.sealing, place.id)
            if key in proved or place.id == commit.store or view.state.is_deleted(*key):
                continue
            try:
                found[key] = has_copy(place, view.run, bytes.fromhex(commit.sealing))
            except StoreError as error:
                unreachable[place.name] = error
                break
    return found


def _sizes(view: "LogView", places: "Sequence[Place]", proofs: "Sequence[Proof]") -> dict[str, int]:
    """Stored bytes of the sealings that no proof tells the size of, from the first manifest that is there."""
    told = {proof.sealing for proof in proofs if STORED_BYTES in proof.evidence}
    found = {}
    for commit in view.state.commits.values():
        if commit.sealing not in told:
            nbytes = next((size for place in places if (size := _stored_bytes(view, commit, place)) is not None), None)
            if nbytes is not None:
                found[commit.sealing] = nbytes
    return found


def _stored_bytes(view: "LogView", commit: "CommitRecord", place: "Place") -> int | None:
    from seawall.vault import manifest as manifests
    from seawall.vault.identity import sealing_folder
    from seawall.vault.sealing import checked_manifest

    sealing = bytes.fromhex(commit.sealing)
    key = sealing_folder(view.run, sealing) + manifests.NAME
    try:
        raw = place.store.get(key, 0, manifests.MAX_BYTES + 1)
        return checked_manifest(raw, view.run, sealing, commit.manifest, view.state.writer_of(commit), key).stored_bytes
    except (NoSuchObjectError, NoSuchCopyError, CorruptError, TrustError, StoreError):
        return None
