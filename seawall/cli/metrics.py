"""``seawall metrics``: what Prometheus should know of runs, in its text form, for the textfile collector of node_exporter."""

import os
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption
from seawall.cli.output import emit, warn
from seawall.cli.worst import worst_code
from seawall.errors import SeawallError, UsageError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from seawall.cli.judged_run import JudgedRun
    from seawall.cli.site import Site


def metrics(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="The runs; all of seawall.toml by default.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write this file, whole or not at all, instead of standard output.", show_default=False)
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Print what is proved about each run as metrics: recovery point, levels and when they lapse, verdicts, holds. Reads log and proofs,
    no copies.
    """
    from prometheus_client import CollectorRegistry, generate_latest

    from seawall.cli.config import find_config
    from seawall.cli.site import Site

    site = Site(find_config(config))
    registry = CollectorRegistry()
    problems = collect(site, runs or list(site.config.runs), registry)
    site.close()
    text = generate_latest(registry)
    if output is not None:
        write_whole(output, text)
    if json:
        samples = [sample for family in registry.collect() for sample in family.samples]
        found = [{"name": sample.name, "labels": dict(sample.labels), "value": sample.value} for sample in samples]
        emit({"metrics": found, "problems": {run: problem.as_json() for run, problem in problems.items()}})
    elif output is None:
        typer.echo(text, nl=False)
    for run, problem in problems.items():
        warn(f"nothing is known of {run}: {problem}")
    return worst_code(problems.values())


def collect(site: "Site", runs: list[str], registry: "CollectorRegistry") -> dict[str, SeawallError]:
    """Put the metrics of ``runs`` into ``registry``. Runs of which nothing can be read are marked so, and named with the reason."""
    from seawall.cli.judged_run import judged_run

    gauges = Gauges(registry)
    problems: dict[str, SeawallError] = {}
    for run in runs:
        site.run(run)
        try:
            judged = judged_run(site, run, warn)
        except SeawallError as error:
            problems[run] = error
            gauges.readable.labels(run).set(0)
            continue
        gauges.readable.labels(run).set(1)
        gauges.of_run(judged, site.run(run).rpo_minutes * 60.0)
    gauges.made.set(site.clock.now().timestamp())
    return problems


class Gauges:
    """The metrics by name. Moments are Unix times, so that a file that is not written any more does not stop their clocks."""

    def __init__(self, registry: "CollectorRegistry") -> None:
        from prometheus_client import Gauge

        def gauge(name: str, documentation: str, *labels: str) -> "Gauge":
            return Gauge(f"seawall_{name}", documentation, labels, registry=registry)

        self.readable = gauge("run_readable", "Whether log and proofs of the run could be read.", "run")
        self.made = gauge("metrics_timestamp_seconds", "When these metrics were made.")
        self.point_step = gauge("recovery_point_step", "Step of the recovery point; -1 when there is none.", "run")
        self.point_level = gauge("recovery_point_level", "Level that the recovery point is proved to; -1 when there is none.", "run")
        self.point_at = gauge("recovery_point_timestamp_seconds", "When the recovery point was committed; 0 when there is none.", "run")
        self.newest_at = gauge("newest_commit_timestamp_seconds", "When the newest checkpoint was committed; 0 when there is none.", "run")
        self.rpo = gauge("rpo_seconds", "How old the newest commit may be, as configured.", "run")
        self.level = gauge("copy_level", "Level that the newest checkpoint's copy in a store is proved to; -1 for none.", "run", "store")
        self.lapses = gauge("proof_lapses_timestamp_seconds", "When that level lapses if nothing is proved again.", "run", "store")
        self.copies = gauge("copies", "Copies by verdict.", "run", "store", "dimension", "verdict")
        self.behind = gauge("run_behind", "1 when a finished checkpoint is not committed in time, 0 when it is.", "run")
        self.calls = gauge("calls", "What the copies call for now.", "run", "response")
        self.held = gauge("run_holds", "Holds that stand.", "run")
        self.quarantined = gauge("quarantined_checkpoints", "Checkpoints that are quarantined.", "run")
        self.gaps = gauge("proof_gaps", "Verifiers of whose proofs some are missing.", "run")
        self.fresh = gauge("log_fresh", "1 when the log was compared with another memory, 0 when it may be an old state.", "run")

    def of_run(self, judged: "JudgedRun", rpo_seconds: float) -> None:
        """All that is about one run."""
        from seawall.clock import parse_utc
        from seawall.log.floor import Freshness
        from seawall.verify.matrix import Dimension, Response, Verdict
        from seawall.verify.responses import responses

        state, matrix = judged.view.state, judged.matrix
        run = state.run
        point = judged.recovery.point
        self.point_step.labels(run).set(-1 if point is None else point.commit.step)
        self.point_level.labels(run).set(-1 if point is None else int(point.level))
        at = None if point is None else parse_utc(point.commit.stored_at or point.commit.at)
        self.point_at.labels(run).set(0 if at is None else at.timestamp())
        newest = max(state.commits.values(), key=lambda commit: (commit.step, commit.seq), default=None)
        self.newest_at.labels(run).set(0 if newest is None else parse_utc(newest.stored_at or newest.at).timestamp())
        self.rpo.labels(run).set(rpo_seconds)
        for place in judged.places:
            copy = judged.newest_copies.get(place.id)
            self.level.labels(run, place.name).set(-1 if copy is None or copy.level is None else int(copy.level))
            if copy is not None and copy.lapses_at is not None:
                self.lapses.labels(run, place.name).set(copy.lapses_at.timestamp())
            own = [row for row in matrix.rows if row.store.id == place.id]
            for dimension, verdict in product(Dimension, Verdict):
                count = sum(row.cells[dimension].verdict is verdict for row in own)
                self.copies.labels(run, place.name, dimension.value, verdict.value).set(count)
        called = [call.response for call in responses(matrix)]
        for response in Response:
            if response is not Response.NONE:
                self.calls.labels(run, response.value).set(called.count(response))
        self.behind.labels(run).set(matrix.run_cell.verdict is Verdict.FAILED)
        self.held.labels(run).set(len(state.held))
        self.quarantined.labels(run).set(sum(sealing in state.commits for sealing in state.quarantined))
        self.gaps.labels(run).set(len(judged.gaps))
        self.fresh.labels(run).set(judged.report.freshness is Freshness.PROVED)


def write_whole(path: Path, text: bytes) -> None:
    """Write beside the file and rename: a collector that reads meanwhile sees the old one or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(text)
        # The collector is another user.
        fresh.chmod(0o644)
        fresh.replace(path)
    except OSError as error:
        raise UsageError("the metrics cannot be written", where=str(path), why=error.strerror or "") from error
    finally:
        fresh.unlink(missing_ok=True)
