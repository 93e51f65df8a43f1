"""Operators that act on what the integrity matrix calls for. Each reads the state again before it does anything: what another task said
only tells where to look."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context

from seawall.operators.base import SeawallOperator

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite
    from seawall.protect.place import Place
    from seawall.protect.respond import Answer


class HealOperator(SeawallOperator):
    """Make one copy whole again from what the run's copies hold together. Needs a writer's key, and none that opens it.

    Reads every stored byte of the copy, whoever said that it is damaged. Fails at once, after recording an incident, when the copies
    together do not hold it; nothing was overwritten then. Returns ``run``, ``sealing``, ``step``, ``store``, ``status`` (done, nothing
    to do), ``objects`` (how many were made right), ``receipt`` (number of the new one, or null).
    """

    template_fields: Sequence[str] = ("run", "sealing", "store", "seawall_config")

    def __init__(self, *, run: str, sealing: str, store: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.store = store

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.operators.tell import tell_answers
        from seawall.protect.respond import Hands, respond
        from seawall.verify.matrix import Dimension, Response
        from seawall.verify.responses import Call

        self.checkpoint = (self.run, self.sealing)
        view, _ = site.view(self.run)
        commit = view.state.commit_of(self.sealing)
        target = site.place(self.store)
        hands = Hands(
            site.coordination.store,
            site.clock,
            site.signing_key("writer"),
            scratch=site.scratch,
            transfers=site.config.transfer.transfers,
        )
        reason = f"{Dimension.FILE}: a verifier found the copy in {self.store} damaged"
        call = Call(Response.HEAL, Dimension.FILE, self.sealing, commit.step, (target.id,), (), reason)
        done = respond(view, [call], all_places(site, self.run), hands)
        (answer,) = done.answers
        tell_answers(site, done, context, self.log.warning)
        _raise_for(answer)
        self.log.info("%s: %s", answer.status, answer.detail)
        healed = answer.healed
        return {
            "run": self.run,
            "sealing": self.sealing,
            "step": commit.step,
            "store": self.store,
            "status": answer.status,
            "objects": 0 if healed is None else len(healed.repairs),
            "receipt": None if healed is None or healed.receipt is None else healed.receipt.sequence,
        }


class RespondOperator(SeawallOperator):
    """Judge a run again and do what needs a verifier's key: quarantine, hold, record an incident. Returns ``run`` and ``answers``
    (``response``, ``step``, ``status``, ``detail``)."""

    template_fields: Sequence[str] = ("run", "seawall_config")
    operator_extra_links = ()

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.judged_run import judged_run
        from seawall.operators.matrix import marks
        from seawall.operators.tell import tell_answers
        from seawall.protect.respond import Hands, respond
        from seawall.verify.mirror_proofs import spread
        from seawall.verify.responses import responses

        judged = judged_run(site, self.run, self.log.warning)
        calls = [call for call in responses(judged.matrix) if call.response in marks()]
        hands = Hands(site.coordination.store, site.clock, speaker=site.signing_key("verifier"))
        done = respond(judged.view, calls, judged.places, hands)
        site.remember(done.view)
        for name, why in spread(site.coordination.store, done.view, site.mirrors(self.run)).items():
            self.log.warning("the mirror in %s is behind: %s", name, why)
        tell_answers(site, done, context, self.log.warning)
        for answer in done.answers:
            self.log.warning("%s of step %s: %s, %s", answer.call.response.value, answer.call.step, answer.status, answer.detail)
        for answer in done.answers:
            _raise_for(answer)
        answers = [
            {"response": answer.call.response.value, "step": answer.call.step, "status": answer.status, "detail": answer.detail[:500]}
            for answer in done.answers
        ]
        return {"run": self.run, "answers": answers}


def all_places(site: "AirflowSite", run: str) -> "list[Place]":
    """The run's places. One that does not even tell its id is among them: it may have what is needed, and is asked last."""
    from seawall.errors import StoreError
    from seawall.protect.place import Place

    answering, silent = [], []
    for name in site.run(run).copies:
        try:
            answering.append(site.place(name))
        except StoreError:
            silent.append(Place(name, "", site.store(name)))
    return [*answering, *silent]


def _raise_for(answer: "Answer") -> None:
    """A response that failed fails its task, by the type of its error."""
    if answer.error is not None:
        raise answer.error
