"""The operator that rebuilds a checkpoint from its copies."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.context import Context

from seawall.errors import StoreError, UsageError
from seawall.operators.base import SeawallOperator
from seawall.operators.settings import setting

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class RestoreOperator(SeawallOperator):
    """Rebuild at ``target``, a path that does not exist, the newest checkpoint proved to the run's level, unless another is named.

    ``step`` names one, ``level`` asks for the newest proved to that, ``store`` takes it from there only. ``unproved`` and ``quarantined``
    allow what is refused otherwise. Numbers and flags may be text, as a form or a template gives it. A restore that was stopped goes on by
    file. Returns ``run``, ``step``, ``sealing``, ``store``, ``level``, ``files``, ``plaintext_bytes``, ``path``, ``freshness``.
    """

    template_fields: Sequence[str] = ("run", "target", "step", "level", "store", "unproved", "quarantined", "seawall_config")
    # A person asks for it, and says which checkpoint.
    in_the_past = True

    def __init__(
        self,
        *,
        run: str,
        target: str,
        step: int | str | None = None,
        level: str = "",
        store: str = "",
        unproved: bool | str = False,
        quarantined: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.target = target
        self.step = step
        self.level = level
        self.store = store
        self.unproved = unproved
        self.quarantined = quarantined

    def act(self, site: "AirflowSite", context: Context) -> dict[str, Any]:
        from seawall.errors import NoSuchCopyError
        from seawall.protect.choose import Wanted, choose
        from seawall.protect.from_copies import restore_from_copies, soonest_first
        from seawall.verify.certify import read_proofs
        from seawall.verify.chain_cache import ChainCache
        from seawall.verify.levels import Level

        target = restore_target(self.target, setting("restore_folder"))
        settings = site.run(self.run)
        try:
            required = Level.parse(self.level or settings.required_level)
        except ValueError as error:
            raise UsageError(str(error)) from None
        view, report = site.view(self.run)
        known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
        places = []
        for name in [self.store] if self.store else settings.copies:
            try:
                places.append(site.place(name))
            except StoreError as error:
                if self.store:
                    raise
                self.log.warning("store %s is passed over: %s", name, error)
        if not places:
            raise NoSuchCopyError("no store of the run answers", where=self.run, do="run it again when one does")
        wanted = Wanted(step=number(self.step), quarantined=flag(self.quarantined), unproved=flag(self.unproved))
        ids = [place.id for place in places]
        chosen = choose(view.state, known.proofs, ids, site.clock.now(), site.config.verify.policy(), required, wanted)
        for warning in chosen.warnings:
            self.log.warning(warning)
        self.checkpoint = (self.run, chosen.commit.sealing)
        order = soonest_first(
            sorted((place for place in places if place.id in chosen.stores), key=lambda place: chosen.stores.index(place.id))
        )
        done, place = restore_from_copies(
            view,
            chosen.commit,
            order,
            site.unwrappers(),
            target,
            transfers=site.config.transfer.transfers,
            on_problem=lambda bad, error: self.log.error("the copy in %s cannot be used: %s", bad.name, error),
        )
        return {
            "run": self.run,
            "step": done.step,
            "sealing": chosen.commit.sealing,
            "store": place.name,
            "level": chosen.level.name if chosen.level is not None else None,
            "files": done.files,
            "plaintext_bytes": str(done.plaintext_bytes),
            "path": done.path,
            "freshness": report.freshness.value,
        }


def restore_target(text: str, below: str) -> Path:
    """The path that was asked for. With ``below`` it lies in that folder, whoever asks; without it, it must be absolute.

    A checkpoint holds files that a stranger may have named, and a folder that programs are loaded from is a bad place for them.
    """
    if not text.strip():
        raise UsageError("the restore has no target", do="name a path that does not exist")
    folder = Path(below).resolve() if below else None
    path = Path(text.strip())
    target = (folder / path if folder else path).parent.resolve() / path.name
    if path.name in ("", "..") or (folder is None and not path.is_absolute()):
        raise UsageError("the target is no absolute path", where=text, do="begin it with /, or set [seawall] restore_folder")
    if folder is not None and folder not in target.parents:
        raise UsageError("the target is outside of the folder for restores", where=text, why=f"[seawall] restore_folder is {folder}")
    return target


def number(text: int | str | None) -> int | None:
    """A step as a template gives it; None for an empty one."""
    if text is None or str(text).strip() in ("", "None"):
        return None
    if not str(text).strip().isdecimal():
        raise UsageError("a step is a number", where=str(text))
    return int(str(text).strip())


def flag(text: bool | str) -> bool:
    """A yes or no as a template gives it."""
    word = str(text).strip().lower()
    if word not in ("true", "false", ""):
        raise UsageError("this is neither true nor false", where=str(text))
    return word == "true"
