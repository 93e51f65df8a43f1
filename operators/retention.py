"""Operators of retention: plan, and carry out what an operator has approved. No task approves anything."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context

from seawall.operators.base import SeawallOperator

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class PlanRetentionOperator(SeawallOperator):
    """Decide which copies of a run no rule keeps, and sign the list; an equal list that is still good is found again. Deletes nothing.

    The chat hears of a list that is new: a person approves it (`seawall retention approve`). Returns ``run``, ``status`` (planned,
    unchanged, nothing), ``plan`` (its name, or null), ``copies`` (how many it lists), ``approved``, ``ready_at``, ``stopped`` (why
    nothing may go).
    """

    template_fields: Sequence[str] = ("run", "seawall_config")
    operator_extra_links = ()

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.retention_desk import retention_desk
        from seawall.clock import utc_text
        from seawall.operators.tell import tell
        from seawall.protect.retention import look_up, make_plan

        desk = retention_desk(site, self.run)
        for name, why in desk.absent.items():
            self.log.warning("store %s does not answer, so its copies count for nothing and stay: %s", name, why)
        done = make_plan(desk, site.signing_key("operator"))
        for why in done.decision.stopped:
            self.log.warning("nothing may be deleted: %s", why)
        found: dict[str, Any] = {"run": self.run, "status": "nothing", "plan": None, "copies": 0, "approved": False, "ready_at": None}
        if done.plan is not None:
            known = look_up(desk, done.gathered.view.state, done.plan.name)
            ready = utc_text(known.ready_at)
            if done.fresh:
                lines = [f"{known.left} copies of {self.run} would be deleted from {ready} on, and only if an operator approves it:"]
                lines.append(f"`seawall retention show {self.run} {known.plan.name}`, then `seawall retention approve`")
                tell(site, f"{self.run}: a plan of retention awaits approval", lines, context, self.log.warning)
            found |= {"status": "planned" if done.fresh else "unchanged", "plan": known.plan.name, "copies": known.left}
            found |= {"approved": known.approved, "ready_at": ready}
        return {**found, "stopped": list(done.decision.stopped)[:20]}


class RunRetentionOperator(SeawallOperator):
    """Carry out the newest plan that an operator approved and that has cooled off, copy by copy, each decided again; and finish what an
    earlier run began. Without such a plan it does nothing.

    Returns ``run``, ``plan`` (its name, or null), ``outcomes`` (deleted, finished, dropped, cut short → how many), ``stopped``.
    """

    template_fields: Sequence[str] = ("run", "seawall_config")
    operator_extra_links = ()

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.retention_desk import retention_desk
        from seawall.errors import StoreUnavailableError
        from seawall.protect.retention import run_plan
        from seawall.verify.mirror_proofs import spread

        desk = retention_desk(site, self.run)
        done = run_plan(desk, None, site.signing_key("operator"), site.config.transfer.transfers)
        site.remember(done.view)
        for name, why in spread(site.coordination.store, done.view, site.mirrors(self.run)).items():
            self.log.warning("the mirror in %s is behind: %s", name, why)
        outcomes: dict[str, int] = {}
        for copy in done.copies:
            outcomes[copy.outcome] = outcomes.get(copy.outcome, 0) + 1
            self.log.warning("step %s in %s: %s %s", copy.step, copy.store, copy.outcome, copy.why)
        for why in done.stopped:
            self.log.warning("stopped: %s", why)
        if outcomes.get("cut short"):
            raise StoreUnavailableError(
                "a store failed while copies were deleted", where=self.run, do="run it again: what was begun is finished"
            )
        return {"run": self.run, "plan": None if done.plan is None else done.plan.name, "outcomes": outcomes, "stopped": list(done.stopped)}
