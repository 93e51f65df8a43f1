"""Operators of verification: which copies are due, check (mapped over copies), certify. Checking decides nothing and signs no chain."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context

from seawall.operators.base import SeawallOperator
from seawall.operators.restore import number

if TYPE_CHECKING:
    from seawall.errors import StoreError
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.operators.site import AirflowSite
    from seawall.protect.place import Place
    from seawall.vault.signing import SigningKey
    from seawall.verify.levels import Level
    from seawall.verify.rotation import Reading


class DueCopiesOperator(SeawallOperator):
    """Copies of a run that are to be read back now, so that every stored byte is read within a period: what was never read comes first, and
    after ``budget`` bytes (such as 2TB; empty for no bound) the rest waits for the next DAG run.

    ``level`` is L0 to L4, by default the highest that this host's keys allow. ``step`` adds the copies of a checkpoint, whenever they were
    read last: a step, or ``newest``. A store that does not answer has a task of its own, which waits for it. Returns a list of ``run``,
    ``sealing``, ``store``, ``level``, and for a large copy one item a part: ``first`` and ``count`` of its objects.
    """

    template_fields: Sequence[str] = ("run", "level", "budget", "step", "seawall_config")

    def __init__(self, *, run: str, level: str = "", budget: str = "", step: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.level = level
        self.budget = budget
        self.step = step

    def act(self, site: "AirflowSite", context: Context) -> list[dict[str, Any]]:
        from seawall.errors import StoreError
        from seawall.verify.due import newest_commit

        wanted = site.level_to_check(self.level, self.log.warning)
        view, _ = site.view(self.run)
        newest = newest_commit(view.state)
        if newest is None:
            return []
        self.checkpoint = (self.run, newest.sealing)
        silent: dict[str, StoreError] = {}
        items = self._rotation(site, view, wanted, silent)
        there = {(item["sealing"], item["store"]) for item in items}
        asked = newest if self.step == "newest" else _of_step(view, number(self.step))
        if asked is not None:
            names = self._copies_of(site, view, asked, silent)
            items += [_item(self.run, asked.sealing, name, wanted) for name in names if (asked.sealing, name) not in there]
        for name, error in silent.items():
            # Neither good nor bad: its own task waits for the store, and is the one that fails if it stays away.
            self.log.warning("%s does not answer: %s", name, error)
        return [*items, *(_item(self.run, newest.sealing, name, wanted) for name in silent)]

    def _rotation(self, site: "AirflowSite", view: "LogView", wanted: "Level", silent: "dict[str, StoreError]") -> list[dict[str, Any]]:
        from seawall.cli.due_copies import due_copies
        from seawall.verify.levels import Level
        from seawall.verify.rotation import BATCH_BYTES

        names = site.run(self.run).copies
        planned = due_copies(site, view, names, wanted, self.budget or None, silent)
        readings = list(planned.rotation.readings)
        large = {reading.commit.sealing for reading in readings if (reading.nbytes or 0) > BATCH_BYTES and reading.level > Level.L2}
        if large:
            # Their bytes are read in parts; their content cannot be, and one task would not end in its time.
            self.log.warning("%d checkpoints are too large for one task: `seawall verify --level L4` proves their content", len(large))
            bytes_only = due_copies(site, view, names, Level.L2, self.budget or None, silent).rotation.readings
            readings = [each for each in readings if each.commit.sealing not in large]
            readings += [each for each in bytes_only if each.commit.sealing in large]
        self.log.info("%d copies are due now, %d later", len(readings), len(planned.rotation.postponed))
        if planned.rotation.overdue:
            self.log.warning("%d copies were not read for a whole period: the budget is too small", len(planned.rotation.overdue))
        return [item for reading in readings for item in self._items(site, view, reading, planned.names[reading.store])]

    def _items(self, site: "AirflowSite", view: "LogView", reading: "Reading", name: str) -> list[dict[str, Any]]:
        from seawall.errors import CorruptError, NoSuchCopyError, TrustError
        from seawall.vault.sealing import read_sealing
        from seawall.verify.rotation import BATCH_BYTES, object_spans

        whole = _item(self.run, reading.commit.sealing, name, reading.level)
        if (reading.nbytes or 0) <= BATCH_BYTES:
            return [whole]
        sealing = bytes.fromhex(reading.commit.sealing)
        try:
            opened = read_sealing(site.place(name).store, self.run, sealing, reading.commit.manifest, view.state.writer_of(reading.commit))
        except (NoSuchCopyError, CorruptError, TrustError) as error:
            self.log.error("step %s in %s: %s", reading.commit.step, name, error)
            return [whole]
        return [{**whole, "first": span.first, "count": span.count} for span in object_spans(opened.table.rows)]

    def _copies_of(self, site: "AirflowSite", view: "LogView", commit: "CommitRecord", silent: "dict[str, StoreError]") -> list[str]:
        """Stores with a copy of ``commit``, or that should have one as far as anybody knows."""
        from seawall.errors import StoreError
        from seawall.protect.fill import has_copy
        from seawall.verify.certify import read_proofs
        from seawall.verify.chain_cache import ChainCache
        from seawall.verify.due import copies_due
        from seawall.verify.levels import Level

        names: dict[str, str] = {}
        whole: dict[str, bool] = {}
        for name in site.run(self.run).copies:
            if name in silent:
                continue
            try:
                place = site.place(name)
                whole[place.id] = has_copy(place, self.run, bytes.fromhex(commit.sealing))
            except StoreError as error:
                silent[name] = error
            else:
                names[place.id] = name
        proofs = read_proofs(site.coordination.store, view, cache=ChainCache(site.state)).proofs
        due = copies_due(view.state, commit, proofs, whole, site.clock.now(), site.config.verify.policy(), Level.L0, timedelta(0))
        return [names[store] for store in due]


def _of_step(view: "LogView", step: int | None) -> "CommitRecord | None":
    """The last commit of a step; None where none was asked for."""
    from seawall.errors import NoSuchCopyError

    if step is None:
        return None
    sealings = view.state.steps.get(step)
    if not sealings:
        raise NoSuchCopyError("the run has no such checkpoint", where=f"{view.run} step {step}", do="`seawall copies` lists them")
    return view.state.commits[sealings[-1]]


def _item(run: str, sealing: str, store: str, level: "Level") -> dict[str, Any]:
    return {"run": run, "sealing": sealing, "store": store, "level": level.name}


class VerifyOperator(SeawallOperator):
    """Read one copy back, level by level, or with ``count`` the bytes of so many of its objects from ``first`` on. Damage is a result, no
    failure of the task.

    Returns ``run``, ``sealing``, ``step``, ``store``, ``result`` (ok, failed), ``levels``, and what was found, signed by this worker's
    verifier key, for :class:`CertifyOperator`: ``found``, the proofs, or ``part``.
    """

    template_fields: Sequence[str] = ("run", "sealing", "store", "level", "seawall_config")

    def __init__(self, *, run: str, sealing: str, store: str, level: str = "", first: int = 0, count: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.sealing = sealing
        self.store = store
        self.level = level
        self.first = first
        self.count = count

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
        about = {"run": self.run, "sealing": self.sealing, "step": commit.step, "store": self.store}
        if self.count:
            return {**about, **self._part(site, view, commit, place, key)}
        findings = check_committed(
            place.store,
            view,
            commit,
            site.level_to_check(self.level),
            site.unwrappers,
            scratch=site.scratch,
            transfers=site.config.transfer.transfers,
            store_id=place.id,
            clock=site.clock,
        )
        for finding in findings:
            for damage in finding.damages:
                self.log.error("%s in %s is damaged, %s: %s", damage.object, self.store, finding.level.name, damage.why)
        return {
            **about,
            "result": FAILED if any(finding.result == FAILED for finding in findings) else OK,
            "levels": {finding.level.name: finding.result for finding in findings},
            "found": sign_found(self.run, with_task(context, proofs_of(findings, commit, place.id, site.clock)), key),
        }

    def _part(self, site: "AirflowSite", view: "LogView", commit: "CommitRecord", place: "Place", key: "SigningKey") -> dict[str, Any]:
        from seawall.verify.parts import check_part, sign_part
        from seawall.verify.rotation import Span

        span = Span(self.first, self.count, 0)
        part, damages = check_part(place.store, view, commit, span, site.clock, store_id=place.id, transfers=site.config.transfer.transfers)
        for damage in damages:
            self.log.error("%s in %s is damaged: %s", damage.object, self.store, damage.why)
        return {"result": part.result, "levels": {}, "part": sign_part(self.run, part, key)}


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
        from seawall.verify.chain_cache import ChainCache
        from seawall.verify.found import certify_once, read_found
        from seawall.verify.mirror_proofs import spread
        from seawall.verify.parts import combine, read_part

        self.checkpoint = (run, str(results[0]["sealing"]))
        view, _ = site.view(run)
        resolve = view.state.resolver("verifier")
        proofs = [proof for result in results if "found" in result for proof in read_found(result["found"], run, resolve)]
        proofs += combine([read_part(result["part"], run, resolve) for result in results if "part" in result])
        if not proofs:
            return {"run": run, "proofs": 0, "copies": []}
        cache = ChainCache(site.state)
        view = certify_once(site.coordination.store, view, proofs, site.signing_key("verifier"), site.clock, cache)
        site.remember(view)
        for name, why in spread(site.coordination.store, view, site.mirrors(run)).items():
            self.log.warning("the mirror in %s is behind: %s", name, why)
        copies = [{"sealing": result["sealing"], "store": result["store"], "result": result["result"]} for result in results]
        return {"run": run, "proofs": len(proofs), "copies": copies}
