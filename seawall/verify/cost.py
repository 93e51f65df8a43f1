"""What verification costs in each store, fitted from the user's own measurements, and how far the prediction was off afterwards.

Every proof of a check carries the requests it sent, the bytes that came back and the seconds it took. For each store and level a line is
fitted: seconds = requests x seconds per request + bytes x seconds per byte, least squares with neither below zero. Media differ by more
than an order of magnitude, so nothing is assumed: published factors (NVMe to NVMe 6.2 GB/s; NVMe to DAOS 4.8, 1.29 times as long; DAOS to
S3 0.37, 16.8 times) say what to expect of somebody else's hardware, and a store without measurements has no prediction here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seawall.verify.evidence import READ_BYTES, REQUESTS, SECONDS, count_of
from seawall.verify.levels import Level
from seawall.verify.proofs import OK, Proof

_LEAST_SECONDS = 0.001
"""Evidence has milliseconds: below that nothing was measured."""
RECORD_BYTES = 8 << 20
"""What a request reads at most of a large object, where nobody counted requests yet."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one check of one copy took."""

    requests: int
    nbytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CostModel:
    """The line for one store and level. Parallel transfers are part of both numbers, because they were part of the measurements."""

    seconds_per_request: float
    seconds_per_byte: float
    samples: int
    relative_error: float | None
    """Mean of |predicted - measured| / measured with each measurement left out of its own fit; None below three of them."""

    def predict(self, requests: int, nbytes: int) -> float:
        """Seconds."""
        return self.seconds_per_request * requests + self.seconds_per_byte * nbytes

    @property
    def bytes_per_second(self) -> float | None:
        """Throughput where requests cost nothing; None when no cost of bytes shows."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else None


def measurements(proofs: Iterable[Proof], store: str, level: Level) -> list[Measured]:
    """What checks of copies in ``store`` took, oldest first. Failed ones ended early, so they tell nothing."""
    found = []
    for proof in sorted(proofs, key=lambda proof: proof.at):
        if (proof.store, proof.level, proof.result) != (store, level, OK):
            continue
        requests, nbytes = count_of(proof.evidence, REQUESTS), count_of(proof.evidence, READ_BYTES)
        seconds = _seconds(proof.evidence.get(SECONDS, ""))
        if requests is not None and nbytes is not None and seconds is not None:
            found.append(Measured(requests, nbytes, seconds))
    return found


def _seconds(text: str) -> float | None:
    whole, point, part = text.partition(".")
    if not (whole.isascii() and whole.isdecimal() and len(whole) <= 9 and point and part.isascii() and part.isdecimal() and len(part) <= 9):
        return None
    return max(float(text), _LEAST_SECONDS)


def fit(measured: Sequence[Measured]) -> CostModel | None:
    """The line through the measurements; None without any. One measurement, or several of one shape, give throughput alone."""
    if not measured:
        return None
    per_request, per_byte = _line(measured)
    errors = []
    if len(measured) >= 3:
        for index, each in enumerate(measured):
            a, b = _line([*measured[:index], *measured[index + 1 :]])
            errors.append(abs(a * each.requests + b * each.nbytes - each.seconds) / each.seconds)
    return CostModel(per_request, per_byte, len(measured), sum(errors) / len(errors) if errors else None)


def _line(measured: Sequence[Measured]) -> tuple[float, float]:
    """Non-negative least squares in two unknowns: the plain solution if it is allowed, else the better of the two edges.

    Each row is divided by its seconds, so that a check of minutes does not drown one of milliseconds: it is the relative error that counts.
    """
    import numpy

    rows = numpy.array([[each.requests / each.seconds, each.nbytes / each.seconds] for each in measured], dtype=float)
    ones = numpy.ones(len(measured))
    # Bytes are a thousand million times as many as requests; without scaling the solver would take one column for zero.
    scale = rows.max(axis=0)
    scale[scale == 0] = 1
    scaled = rows / scale
    solution, _, rank, _ = numpy.linalg.lstsq(scaled, ones, rcond=1e-6)
    if rank == 2 and (solution >= 0).all():
        return float(solution[0] / scale[0]), float(solution[1] / scale[1])
    edges = []
    for column in (1, 0):
        square = float(scaled[:, column] @ scaled[:, column])
        factor = float(scaled[:, column] @ ones) / square if square else 0.0
        edges.append((float(((scaled[:, column] * factor - 1) ** 2).sum()), column, factor))
    # Bytes first: among equals throughput is the better guess, because what is read is mostly bytes.
    _, column, factor = min(edges, key=lambda edge: edge[0])
    found = [0.0, 0.0]
    found[column] = factor / float(scale[column])
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class Work:
    """One reading that is planned, or that was done."""

    store: str
    level: Level
    requests: int | None
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds for a plan, one reading after another."""

    seconds: float
    unknown: int
    """Readings without a prediction: their store was never measured, or their size is not known."""


def fit_all(proofs: Sequence[Proof], stores: Iterable[str]) -> dict[tuple[str, Level], CostModel]:
    """The lines of every store and level that was measured."""
    found = {}
    for store in stores:
        for level in (Level.L2, Level.L3):
            model = fit(measurements(proofs, store, level))
            if model is not None:
                found[store, level] = model
    return found


def predict(models: dict[tuple[str, Level], CostModel], plan: Iterable[Work]) -> Prediction:
    """What a plan takes. A reading to L3 or more proves L2 in the same pass."""
    seconds, unknown = 0.0, 0
    for work in plan:
        model = models.get((work.store, Level.L3 if work.level >= Level.L3 else Level.L2))
        if work.nbytes is None or model is None:
            unknown += 1
            continue
        requests = work.requests if work.requests is not None else -(-work.nbytes // RECORD_BYTES)
        seconds += model.predict(requests, work.nbytes)
    return Prediction(seconds, unknown)
