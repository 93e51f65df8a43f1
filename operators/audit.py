"""The operator that makes a run's report of an interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context
from airflow.sdk.exceptions import AirflowSkipException

from seawall.errors import UsageError
from seawall.operators.base import SeawallOperator
from seawall.operators.window import has_interval, window

if TYPE_CHECKING:
    from seawall.audit.terms import Interval
    from seawall.operators.site import AirflowSite


class AuditOperator(SeawallOperator):
    """Report what was proved of the checkpoints that were committed in an interval, as it was known then; signed and written once.

    The interval is ``start`` to ``end`` (days or moments), else the DAG run's own, shifted back by the time that an audit waits for what
    is late; for a run without one, the last whole day. It acts on nothing else, so it does the same in a backfill. Skipped before its time,
    and for a run that had no log then. Returns ``run``, ``record``, ``status`` (written, found), ``start``, ``end``, ``counts``.
    """

    template_fields: Sequence[str] = ("run", "start", "end", "seawall_config")
    # It comes to a report, not to a checkpoint.
    operator_extra_links = ()
    in_the_past = True

    def __init__(self, *, run: str, start: str = "", end: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.start = start
        self.end = end

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.audit.record import NoLogYetError, make_report
        from seawall.cli.audit_terms import audit_terms

        interval = self._interval(context)
        view, _ = site.view(self.run)
        terms, _ = audit_terms(site, self.run, lambda name, error: self.log.warning("%s is not asked about: %s", name, error))
        key = site.signing_key("verifier")
        try:
            done = make_report(site.coordination.store, view, interval, terms, key, site.clock.now())
        except NoLogYetError as error:
            raise AirflowSkipException(str(error)) from error
        counts: Mapping[str, str] = done.body["counts"]
        self.log.info("report audit/%s: %s, %s", done.name, done.status, dict(counts))
        return {"run": self.run, "record": done.name, "status": done.status, **done.body["interval"], "counts": dict(counts)}

    def _interval(self, context: Context) -> "Interval":
        from seawall.audit.terms import Interval, audited, last_day, parse_moment

        if self.start or self.end:
            if not (self.start and self.end):
                raise UsageError("an interval has a start and an end", where=f"{self.start or '-'} to {self.end or '-'}")
            return Interval(parse_moment(self.start), parse_moment(self.end))
        return audited(*window(context)) if has_interval(context) else last_day(context["dag_run"].run_after)
