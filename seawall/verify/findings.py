"""What a check finds, before it is signed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from seawall.errors import SeawallError
from seawall.verify.levels import Level
from seawall.verify.proofs import FAILED

NOT_ATTAINABLE = "not attainable"
_SHOWN_DAMAGES = 16
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True)
class Damage:
    """A part of a copy that is not what was signed. ``records`` are numbers of records, empty when it is the frame."""

    object: str
    why: str
    records: tuple[int, ...] = ()


@dataclass(frozen=True)
class Finding:
    """The outcome of one level."""

    level: Level
    result: str
    """``ok``, ``failed`` or ``not attainable``."""
    method: str
    damages: tuple[Damage, ...] = ()
    evidence: dict[str, str] = field(default_factory=dict)
    versions: str = ""
    """Which versions were read (:attr:`~seawall.verify.proofs.Proof.versions`)."""

    def with_evidence(self, *more: dict[str, str]) -> "Finding":
        """The same, with more evidence."""
        evidence = dict(self.evidence)
        for each in more:
            evidence.update(each)
        return replace(self, evidence=evidence)


def failed(level: Level, method: str, damages: Sequence[Damage]) -> Finding:
    """The finding of a level that does not hold."""
    shown = "; ".join(f"{damage.object}: {damage.why}" for damage in damages[:_SHOWN_DAMAGES])
    return Finding(level, FAILED, method, tuple(damages), {"damaged_objects": str(len(damages)), "damage": shown[:_SHOWN_CHARACTERS]})


def object_in(error: SeawallError, otherwise: str) -> str:
    """The name of the object that an error is about: the last part of where it happened, when that is a stored object's."""
    name = error.where.rsplit("/", 1)[-1]
    return name if name.endswith((".json", ".sea")) else otherwise
