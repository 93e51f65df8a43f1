"""Operators of the integrity matrix: judge a run, and see what stands after the responses. What a matrix calls for is decided in the
library; here it is handed to the tasks that may do it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context
from airflow.sdk.exceptions import AirflowFailException

from seawall.operators.base import SeawallOperator

if TYPE_CHECKING:
    from seawall.cli.judged_run import JudgedRun
    from seawall.operators.site import AirflowSite
    from seawall.verify.matrix import Response

HEALS_A_RUN = 64
"""Copies of a run that one DAG run heals; the next goes on. Bounds what goes through XCom, and the map over all runs."""


class MatrixOperator(SeawallOperator):
    """Judge every copy of a run from log, proofs and what its stores say; tell Alertmanager what stands and what is over.

    Returns ``run``, ``verdict``, ``counts`` (verdict → cells), ``calls`` (response → how many), ``heal`` (``sealing``, ``store`` of the
    copies that can be mended), ``mark`` (whether a quarantine, a hold or an incident is called for), ``catch_up`` (id of the sync that is
    asked for; empty when nothing is late).
    """

    template_fields: Sequence[str] = ("run", "seawall_config")
    operator_extra_links = ()

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.judged_run import judged_run
        from seawall.operators.tell import tell_matrix
        from seawall.verify.matrix import Response
        from seawall.verify.responses import responses

        judged = judged_run(site, self.run, self.log.warning)
        tell_matrix(site, judged, context, self.log.warning)
        calls = responses(judged.matrix)
        counts: dict[str, int] = {}
        for call in calls:
            counts[call.response.value] = counts.get(call.response.value, 0) + 1
            if call.response is not Response.PROVE:
                self.log.warning("step %s calls for %s: %s", call.step, call.response.value, call.reason)
        names = {place.id: place.name for place in judged.places}
        heal = [
            {"sealing": call.sealing, "store": names[store]}
            for call in calls
            if call.response is Response.HEAL
            for store in call.stores
            if store in names
        ]
        return {
            "run": self.run,
            "verdict": judged.matrix.verdict.value,
            "counts": {verdict.value: count for verdict, count in judged.matrix.counts().items()},
            "calls": counts,
            "heal": heal[:HEALS_A_RUN],
            "mark": any(call.response in marks() for call in calls),
            "catch_up": catch_up_id(judged),
        }


class SettleOperator(SeawallOperator):
    """Judge a run again after the responses, and tell Alertmanager. Fails while a person has to look: a copy is damaged or lost, or a
    checkpoint was quarantined in this DAG run (``marked``). Returns ``run`` and ``verdict``."""

    template_fields: Sequence[str] = ("run", "marked", "seawall_config")
    operator_extra_links = ()

    def __init__(self, *, run: str, marked: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.marked = marked

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.judged_run import judged_run
        from seawall.operators.tell import tell_matrix
        from seawall.verify.matrix import Response
        from seawall.verify.responses import responses

        judged = judged_run(site, self.run, self.log.warning)
        tell_matrix(site, judged, context, self.log.warning)
        left = [call for call in responses(judged.matrix) if call.response in (Response.HEAL, *marks())]
        if left:
            said = "; ".join(f"step {call.step} in {len(call.stores)} stores: {call.reason}" for call in left[:8])
            raise AirflowFailException(f"{self.run} is not as it should be, and no response mended it: {said}")
        if self.marked:
            raise AirflowFailException(f"a checkpoint of {self.run} was quarantined, or is lost; a person has to look (`seawall matrix`)")
        return {"run": self.run, "verdict": judged.matrix.verdict.value}


def marks() -> "tuple[Response, ...]":
    """Responses that a verifier's key is needed for, and that a person should know of."""
    from seawall.protect.respond import QUARANTINES
    from seawall.verify.matrix import Response

    return (*QUARANTINES, Response.INCIDENT)


def catch_up_id(judged: "JudgedRun") -> str:
    """Id of the DAG run of the sync that is called for. It follows from what is late, so that a sync that could not help is not asked
    for again and again: the hourly one goes on trying."""
    from seawall.log.entries import operation_id
    from seawall.verify.matrix import Response
    from seawall.verify.responses import responses

    late = [call for call in responses(judged.matrix) if call.response is Response.CATCH_UP]
    if not late:
        return ""
    newest = judged.matrix.run_cell.evidence.get("newest_step", "")
    about = sorted(f"{call.sealing} {store}" for call in late for store in call.stores)
    return f"catch_up__{operation_id('catch-up', judged.view.run, newest, *about)}"
