"""``seawall score``: 3-2-1-1-0 of a run's checkpoints, each digit with what makes it true and when it lapses."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, JsonOption, RunArgument
from seawall.cli.output import emit, say, warn
from seawall.errors import NoSuchCopyError

if TYPE_CHECKING:
    from seawall.protect.score import Score

_NEWEST = 10


def score(
    run: RunArgument,
    step: Annotated[int | None, typer.Option("--step", help="Only the checkpoint of this step.", min=0)] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Score the newest 10 checkpoints: 3 copies, 2 media, 1 off site, 1 immutable or off line, 0 errors in recovery verification."""
    from seawall.cli.config import find_config
    from seawall.cli.retention_desk import retention_desk
    from seawall.cli.site import Site
    from seawall.protect.retention_clock import Moment
    from seawall.protect.retention_facts import Kind
    from seawall.protect.retention_gather import gather
    from seawall.protect.score import score as count

    site = Site(find_config(config))
    desk = retention_desk(site, run)
    for name, why in desk.absent.items():
        warn(f"store {name} does not answer, so its copies do not count: {why}")
    facts = gather(desk, Moment(site.clock.now(), "this host")).facts
    zone = site.run(run).training_zone
    site.close()
    points = sorted((p for p in facts.points if p.kind is Kind.CHECKPOINT), key=lambda p: (p.step, p.order), reverse=True)
    points = [point for point in points if step is None or point.step == step]
    if step is not None and not points:
        raise NoSuchCopyError("the run has no such checkpoint", where=f"{run} step {step}", do="`seawall copies` lists them")
    scores = [count(point, facts.sites, facts.now, zone) for point in points[:_NEWEST]]
    if json:
        emit({"run": run, "primary_zone": zone, "checkpoints": [_document(each) for each in scores]})
        return 0
    for each in scores:
        until = f", until {each.lapses_at:%Y-%m-%d %H:%M}Z" if each.lapses_at is not None else ""
        say(f"step {each.step}: {each.text} ({'3-2-1-1-0 holds' if each.ok else 'of 3-2-1-1-0'}{until})")
        for digit in each.digits:
            say(f"  {'ok ' if digit.ok else 'NOT'} {digit.rule}: {digit.have} of {digit.want}: {'; '.join(digit.evidence)}")
    if not scores:
        say(f"run {run} has no checkpoint yet")
    return 0


def _document(score: "Score") -> dict[str, Any]:
    def text(moment: Any) -> str | None:
        return None if moment is None else str(moment.isoformat()).replace("+00:00", "Z")

    digits = [
        {"rule": d.rule, "want": d.want, "have": d.have, "ok": d.ok, "evidence": list(d.evidence), "lapses_at": text(d.lapses_at)}
        for d in score.digits
    ]
    return {
        "step": score.step,
        "sealing": score.sealing,
        "score": score.text,
        "ok": score.ok,
        "lapses_at": text(score.lapses_at),
        "digits": digits,
    }
