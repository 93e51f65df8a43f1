"""Operators of a sync: plan, seal (mapped over batches), commit, fill. Between them goes which sealing it is, never a key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.definitions.context import Context

from seawall.operators.base import SeawallOperator

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class PlanSyncOperator(SeawallOperator):
    """Judge the run's newest checkpoint and make the plan of its sealing, or find it committed.

    Skipped while the checkpoint is incomplete. Returns ``status`` (planned, unchanged), ``run``, ``step``, ``sealing``, ``batches`` (their
    numbers), ``path``, ``verdict``. ``path`` is a checkpoint or run folder instead of the configured one.
    """

    template_fields: Sequence[str] = ("run", "path", "seawall_config")

    def __init__(self, *, run: str, path: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.path = path

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.protect.checkpoint_source import read_source
        from seawall.protect.planning import Unchanged, plan_sync
        from seawall.vault.codecs import codec_named

        settings = site.run(self.run)
        source = read_source(
            self.path or str(site.source_folder(self.run)),
            exclude=settings.exclude,
            layout=settings.layout,
            commit_mark=settings.commit_mark,
        )
        for warning in source.warnings:
            self.log.warning(warning)
        view, _ = site.view(self.run)
        planned = plan_sync(
            source,
            self.run,
            view,
            place=site.place(settings.copies[0]),
            recipients=site.recipients(),
            unwrappers=site.unwrappers(),
            signing_key=site.signing_key("writer"),
            codec=codec_named(settings.codec),
            batch_bytes=settings.batch_bytes,
        )
        unchanged = isinstance(planned, Unchanged)
        sealing = planned.sealing if isinstance(planned, Unchanged) else planned.plan.sealing
        self.checkpoint = (self.run, sealing.hex())
        return {
            "status": "unchanged" if unchanged else "planned",
            "run": self.run,
            "step": source.inspection.step,
            "sealing": sealing.hex(),
            "batches": [] if isinstance(planned, Unchanged) else list(range(planned.plan.batches)),
            "path": source.root,
            "verdict": source.inspection.verdict.word,
        }


class SealBatchOperator(SeawallOperator):
    """Seal one batch of a plan into the run's stores. Files that an earlier try stored are adopted.

    Returns the batch's number, its files, how many were adopted, and the stores that missed something.
    """

    template_fields: Sequence[str] = ("run", "sealing", "path", "batch", "seawall_config")

    def __init__(self, *, run: str, sealing: str, path: str, batch: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.path = path
        self.batch = batch

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.protect.assignment import load_assignment
        from seawall.protect.commit import admitted_writers
        from seawall.protect.seal_batch import seal_batch

        self.checkpoint = (self.run, self.sealing)
        view, _ = site.view(self.run)
        resolve = admitted_writers(view.state)
        places, absent = site.answering_places(self.run)
        assignment = load_assignment(places[0].store, self.run, bytes.fromhex(self.sealing), site.unwrappers(), resolve)
        done = seal_batch(
            assignment,
            int(self.batch),
            source=self.path,
            places=places,
            signing_key=site.signing_key("writer"),
            resolve=resolve,
            transfers=site.config.transfer.transfers,
        )
        for name, why in {**done.behind, **absent}.items():
            self.log.warning("%s has to be filled after the commit: %s", name, why)
        return {
            "batch": int(self.batch),
            "files": len(done.batch.files),
            "adopted": done.adopted,
            "behind": sorted({*done.behind, *absent}),
        }


class CommitOperator(SeawallOperator):
    """Commit a sealing whose batches are all stored, bring it to the run's other stores, and mirror the log.

    Does for a committed one only what is left. Returns ``run``, ``step``, ``sealing``, ``status`` (committed, unchanged), ``copies``,
    ``missing`` (stores that have no whole copy or mirror yet). Its outlets' events say run, step and sealing.
    """

    template_fields: Sequence[str] = ("run", "sealing", "verdict", "seawall_config")

    def __init__(self, *, run: str, sealing: str, verdict: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.verdict = verdict

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall import __version__
        from seawall.protect.complete import SyncKeys, complete

        self.checkpoint = (self.run, self.sealing)
        view, report = site.view(self.run)
        places, absent = site.answering_places(self.run)
        notes = {"seawall": __version__, **({"verdict": self.verdict} if self.verdict else {})}
        done = complete(
            self.run,
            bytes.fromhex(self.sealing),
            view,
            places=places,
            coordination=site.coordination.store,
            keys=SyncKeys(site.signing_key("writer"), site.recipients(), site.unwrappers()),
            clock=site.clock,
            notes=notes,
            transfers=site.config.transfer.transfers,
            mirrors_behind=(*report.behind, *report.unreachable),
        )
        done.missing.update(absent)
        site.remember(done.view)
        for name, why in done.missing.items():
            self.log.warning("%s has no whole copy or mirror yet: %s", name, why)
        _announce(self, context, {"run": self.run, "step": done.step, "sealing": done.sealing})
        return {
            "run": self.run,
            "step": done.step,
            "sealing": done.sealing,
            "status": done.status,
            "copies": done.copies,
            "missing": sorted(done.missing),
        }


class FillOperator(SeawallOperator):
    """Give one store what it lacks of a committed sealing, and of the log. Fails when the store still has no whole copy after that."""

    template_fields: Sequence[str] = ("run", "sealing", "store", "seawall_config")

    def __init__(self, *, run: str, sealing: str, store: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.store = store

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.errors import StoreUnavailableError
        from seawall.protect.complete import SyncKeys, complete

        self.checkpoint = (self.run, self.sealing)
        view, _ = site.view(self.run)
        done = complete(
            self.run,
            bytes.fromhex(self.sealing),
            view,
            places=[site.place(site.run(self.run).copies[0]), site.place(self.store)],
            coordination=site.coordination.store,
            keys=SyncKeys(site.signing_key("writer"), site.recipients(), site.unwrappers()),
            clock=site.clock,
            transfers=site.config.transfer.transfers,
        )
        site.remember(done.view)
        if self.store in done.missing:
            raise StoreUnavailableError("the store has no whole copy or mirror yet", where=self.store, why=done.missing[self.store])
        _announce(self, context, {"run": self.run, "step": done.step, "sealing": done.sealing})
        return {"run": self.run, "step": done.step, "sealing": done.sealing, "store": self.store}


def _announce(operator: SeawallOperator, context: Context, extra: dict[str, Any]) -> None:
    """Say in the events of the task's outlets what they are about."""
    events = context.get("outlet_events")
    if events is None:
        return
    for outlet in operator.outlets:
        if isinstance(outlet, Asset):
            events[outlet].extra = extra
