"""Operators of verification: which copies are due, check (mapped over copies), certify. Checking decides nothing and signs no chain."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context

from seawall.operators.base import SeawallOperator

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class DueCopiesOperator(SeawallOperator):
    """Copies of the run's newest checkpoint that are to be proved now.

    ``level`` is L0 to L4, by default the highest that this host's keys allow. A copy that was proved to it, or found damaged, in the last
    ``every_hours`` is left out, so that the same event twice costs one check. Returns a list of ``run``, ``sealing``, ``store``.
    """

    template_fields: Sequence[str] = ("run", "level", "every_hours", "seawall_config")

    def __init__(self, *, run: str, level: str = "", every_hours: int | str = 20, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.level = level
        self.every_hours = every_hours

    def act(self, site: "AirflowSite", context: Context) -> list[dict[str, str]]:
        from seawall.errors import StoreError
        from seawall.protect.fill import has_copy
        from seawall.verify.certify import read_proofs
        from seawall.verify.due import copies_due, newest_commit

        view, _ = site.view(self.run)
        commit = newest_commit(view.state)
        if commit is None:
            return []
        self.checkpoint = (self.run, commit.sealing)
        known = read_proofs(site.coordination.store, view)
        names: dict[str, str] = {}
        whole: dict[str, bool] = {}
        silent = []
        for name in site.run(self.run).copies:
            try:
                place = site.place(name)
                whole[place.id] = has_copy(place, self.run, bytes.fromhex(commit.sealing))
            except StoreError as error:
                # Neither good nor bad: its own task waits for the store, and is the one that fails if it stays away.
                self.log.warning("%s does not answer: %s", name, error)
                silent.append(name)
            else:
                names[place.id] = name
        every = timedelta(hours=int(self.every_hours))
        wanted = site.level_to_check(self.level)
        due = copies_due(view.state, commit, known.proofs, whole, site.clock.now(), site.config.verify.policy(), wanted, every)
        stores = [*(names[store] for store in due), *silent]
        return [{"run": self.run, "sealing": commit.sealing, "store": store} for store in stores]


class VerifyOperator(SeawallOperator):
    """Read one copy back, level by level. Damage is a result, no failure of the task.

    Returns ``run``, ``sealing``, ``step``, ``store``, ``result`` (ok, failed), ``levels``, and ``found``: the proofs, signed by this
    worker's verifier key, for :class:`CertifyOperator`.
    """

    template_fields: Sequence[str] = ("run", "sealing", "store", "level", "seawall_config")

    def __init__(self, *, run: str, sealing: str, store: str, level: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.store = store
        self.level = level

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.operators.task_name import with_task
        from seawall.verify.certify import proofs_of
        from seawall.verify.check import FAILED, OK
        from seawall.verify.committed import check_committed
        from seawall.verify.found import sign_found

        self.checkpoint = (self.run, self.sealing)
        key = site.signing_key("verifier")
        view, _ = site.view(self.run)
        commit = view.state.commit_of(self.sealing)
        place = site.place(self.store)
        findings = check_committed(
            place.store,
            view,
            commit,
            site.level_to_check(self.level),
            site.unwrappers,
            scratch=site.scratch,
            transfers=site.config.transfer.transfers,
        )
        for finding in findings:
            for damage in finding.damages:
                self.log.error("%s in %s is damaged, %s: %s", damage.object, self.store, finding.level.name, damage.why)
        return {
            "run": self.run,
            "sealing": self.sealing,
            "step": commit.step,
            "store": self.store,
            "result": FAILED if any(finding.result == FAILED for finding in findings) else OK,
            "levels": {finding.level.name: finding.result for finding in findings},
            "found": sign_found(self.run, with_task(context, proofs_of(findings, commit, place.id, site.clock)), key),
        }


class CertifyOperator(SeawallOperator):
    """Append what was found about a run's copies to this verifier's chain, once, and state its head in the log.

    ``results`` are what :class:`VerifyOperator` returned, also about other runs; those are left to their own task, unless ``run`` is empty.
    Damage is signed like everything else; what it calls for is for the matrix to say. Returns a list of ``run``, ``proofs`` (how many),
    ``copies`` (each with ``sealing``, ``store``, ``result``).
    """

    template_fields: Sequence[str] = ("run", "results", "seawall_config")

    def __init__(self, *, run: str, results: Iterable[dict[str, Any] | None], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.results = results

    def act(self, site: "AirflowSite", context: Context) -> list[dict[str, Any]]:
        from seawall.errors import SeawallError

        by_run: dict[str, list[dict[str, Any]]] = {}
        for result in self.results or ():
            if result and self.run in ("", result["run"]):
                by_run.setdefault(str(result["run"]), []).append(result)
        signed, problems = [], []
        for run, results in by_run.items():
            try:
                signed.append(self._certify(site, run, results))
            except SeawallError as error:
                self.log.error("nothing was signed about %s: %s", run, error)
                problems.append(error)
        if problems:
            # One that may go away by itself has to be tried again, whatever became of the others; what was signed is not signed again.
            raise next((error for error in problems if error.outcome != "permanent"), problems[0])
        return signed

    def _certify(self, site: "AirflowSite", run: str, results: list[dict[str, Any]]) -> dict[str, Any]:
        from seawall.verify.found import certify_once, read_found
        from seawall.verify.mirror_proofs import spread

        self.checkpoint = (run, str(results[0]["sealing"]))
        view, _ = site.view(run)
        resolve = view.state.resolver("verifier")
        proofs = [proof for result in results for proof in read_found(result["found"], run, resolve)]
        view = certify_once(site.coordination.store, view, proofs, site.signing_key("verifier"), site.clock)
        site.remember(view)
        for name, why in spread(site.coordination.store, view, site.mirrors(run)).items():
            self.log.warning("the mirror in %s is behind: %s", name, why)
        copies = [{"sealing": result["sealing"], "store": result["store"], "result": result["result"]} for result in results]
        return {"run": run, "proofs": len(proofs), "copies": copies}
