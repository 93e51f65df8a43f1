"""Operators of the archive: what is to be copied, its parts (mapped), and the label that says it is whole."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context
from airflow.sdk.exceptions import AirflowSkipException

from seawall.operators.base import SeawallOperator

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class PlanArchiveOperator(SeawallOperator):
    """Choose the newest proved checkpoint of a run, and cut its objects into parts that one task can copy in its time.

    Skipped for a run without an archive, or when nothing is proved. Returns ``run``, ``sealing``, ``step``, ``status`` (planned,
    unchanged) and ``parts``, each with ``first`` and ``count`` of its objects.
    """

    template_fields: Sequence[str] = ("run", "seawall_config")

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.archive import archive_places
        from seawall.errors import NoSuchCopyError
        from seawall.protect.archive import choose_for_archive
        from seawall.protect.fill import has_copy
        from seawall.protect.from_copies import first_sealing
        from seawall.verify.certify import read_proofs
        from seawall.verify.chain_cache import ChainCache
        from seawall.verify.levels import Level
        from seawall.verify.rotation import object_spans

        settings = site.run(self.run)
        if not settings.archive:
            raise AirflowSkipException(f"run {self.run} has no archive")
        view, _ = site.view(self.run)
        known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
        policy = site.config.verify.policy()
        try:
            commit = choose_for_archive(view.state, known.proofs, site.clock.now(), policy, Level.parse(settings.required_level))
        except NoSuchCopyError as error:
            raise AirflowSkipException(str(error)) from error
        self.checkpoint = (self.run, commit.sealing)
        target, sources = archive_places(site, self.run)
        about = {"run": self.run, "sealing": commit.sealing, "step": commit.step}
        if view.state.is_deleted(commit.sealing, target.id) or has_copy(target, self.run, bytes.fromhex(commit.sealing)):
            return {**about, "status": "unchanged", "parts": []}
        rows = first_sealing(view, commit, sources).table.rows
        return {**about, "status": "planned", "parts": [{"first": span.first, "count": span.count} for span in object_spans(rows)]}


class ArchivePartOperator(SeawallOperator):
    """Copy some objects of a sealing into the run's archive, sealed as they are. What is there already is not sent.

    Returns ``run``, ``sealing``, ``objects`` (how many were sent).
    """

    template_fields: Sequence[str] = ("run", "sealing", "seawall_config")

    def __init__(self, *, run: str, sealing: str, first: int, count: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.first = first
        self.count = count

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.archive import archive_places
        from seawall.protect.archive import bring_objects
        from seawall.protect.from_copies import first_sealing

        self.checkpoint = (self.run, self.sealing)
        target, sources = archive_places(site, self.run)
        view, _ = site.view(self.run)
        opened = first_sealing(view, view.state.commit_of(self.sealing), sources)
        rows = opened.table.rows[self.first : self.first + self.count]
        sent = bring_objects(opened, target, rows, transfers=site.config.transfer.transfers)
        return {"run": self.run, "sealing": self.sealing, "objects": sent}


class ArchiveOperator(SeawallOperator):
    """Finish a copy in the archive: what a part left out, the lock, the receipt and the label. Does nothing to one that has all of it.

    Returns ``run``, ``sealing``, ``step``, ``store``, ``label``, ``status`` (archived, unchanged).
    """

    template_fields: Sequence[str] = ("run", "sealing", "seawall_config")

    def __init__(self, *, run: str, sealing: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.cli.archive import archive_places
        from seawall.protect.archive import archive

        self.checkpoint = (self.run, self.sealing)
        target, sources = archive_places(site, self.run)
        view, _ = site.view(self.run)
        commit = view.state.commit_of(self.sealing)
        if view.state.is_deleted(self.sealing, target.id):
            raise AirflowSkipException("the archive's copy was deleted by plan")
        done = archive(
            view,
            commit,
            sources,
            target,
            coordination=site.coordination.store,
            writer=site.signing_key("writer"),
            clock=site.clock,
            transfers=site.config.transfer.transfers,
            on_problem=lambda place, error: self.log.warning("the copy in %s cannot be used: %s", place.name, error),
        )
        self.log.info("%s is in %s as %s", done.status, target.name, done.label)
        about = {"run": self.run, "sealing": self.sealing, "step": done.step, "store": target.name}
        return {**about, "label": done.label, "status": done.status}
