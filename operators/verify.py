"""Operators of verification: which copies are due, check (mapped over copies), certify. Checking decides nothing and signs no chain."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context
from airflow.sdk.exceptions import AirflowFailException

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

    ``results`` are what :class:`VerifyOperator` returned, also about other runs; those are left to their own task. Fails after signing
    when a copy is damaged. Returns ``run``, ``proofs`` (how many), ``copies`` (store → result).
    """

    template_fields: Sequence[str] = ("run", "results", "seawall_config")

    def __init__(self, *, run: str, results: Iterable[dict[str, Any] | None], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.results = results

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.verify.check import FAILED
        from seawall.verify.found import certify_once, read_found
        from seawall.verify.mirror_proofs import spread

        results = [result for result in self.results or () if result and result["run"] == self.run]
        if not results:
            return {"run": self.run, "proofs": 0, "copies": {}}
        self.checkpoint = (self.run, str(results[0]["sealing"]))
        view, _ = site.view(self.run)
        resolve = view.state.resolver("verifier")
        proofs = [proof for result in results for proof in read_found(result["found"], self.run, resolve)]
        view = certify_once(site.coordination.store, view, proofs, site.signing_key("verifier"), site.clock)
        site.remember(view)
        for name, why in spread(site.coordination.store, view, site.mirrors(self.run)).items():
            self.log.warning("the mirror in %s is behind: %s", name, why)
        # What is signed says which copies are damaged; the words beside it are for people.
        damaged = sorted({result["store"] for result in results if result["result"] == FAILED})
        if damaged or any(proof.result == FAILED for proof in proofs):
            raise AirflowFailException(
                f"damaged copies of {self.run} in {', '.join(damaged) or 'a store'}: signed, and no recovery point now"
            )
        return {"run": self.run, "proofs": len(proofs), "copies": {result["store"]: result["result"] for result in results}}
