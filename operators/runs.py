"""Which runs a DAG run is about. Known when a task runs, not when the DAG is parsed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context

from seawall.operators.base import SeawallOperator
from seawall.operators.window import window

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class ListRunsOperator(SeawallOperator):
    """Names of the runs to go through: the one asked for, those that the triggering events name, or all of seawall.toml.

    ``trained_here`` leaves out runs that have no checkpoint folder in this configuration. With ``in_the_past`` the names are listed for the
    past, too: for tasks that act on nothing. Returns a list of names.
    """

    template_fields: Sequence[str] = ("run", "seawall_config")
    # It comes to runs, not to a checkpoint.
    operator_extra_links = ()

    def __init__(self, *, run: str = "", trained_here: bool = False, in_the_past: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.trained_here = trained_here
        self.in_the_past = in_the_past

    def act(self, site: "AirflowSite", context: Context) -> list[str]:
        start, end = window(context) if context.get("dag_run") is not None else (None, None)
        self.log.info("window %s to %s", start, end)
        if self.run:
            site.run(self.run)
            return [self.run]
        known = [name for name, settings in site.config.runs.items() if settings.paths or not self.trained_here]
        named = runs_in(context.get("triggering_asset_events") or {})
        return [name for name in known if named is None or name in named]


def runs_in(events: Mapping[Any, Sequence[Any]]) -> set[str] | None:
    """The runs that asset events are about; None when one of them does not say, or there is none.

    Airflow hands over all events since the last run at once, and an event may come twice.
    """
    named: set[str] = set()
    for of_asset in events.values():
        for event in of_asset:
            run = (getattr(event, "extra", None) or {}).get("run")
            if not isinstance(run, str) or not run:
                return None
            named.add(run)
    return named or None
