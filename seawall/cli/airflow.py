"""The DAG files for an Airflow home. Knows where they lie; imports no Airflow."""

from dataclasses import dataclass, field
from pathlib import Path

from seawall.errors import UsageError


@dataclass
class WrittenDags:
    """Names of files: what was written, what was there already and is the same, what is there and is another."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def dag_folder() -> Path:
    """Where this installation keeps its DAG files: in the wheel, or beside the package in a checkout."""
    import seawall

    package = Path(seawall.__file__).resolve().parent
    for folder in (package / "dags", package.parent / "dags"):
        if (folder / "seawall_sync.py").is_file():
            return folder
    raise UsageError("this installation has no DAG files", where=str(package), do="install seawall from its wheel")


def write_dags(folder: Path) -> WrittenDags:
    """Copy the DAG files into ``folder``, Airflow's ``dags_folder``. A file there that differs is kept: it may have been edited.

    Copies, so that schedules can be changed where they run; what the tasks do comes from the installed package. Raises
    :class:`UsageError` when the folder is not there or cannot be written.
    """
    if not folder.is_dir():
        raise UsageError("there is no such folder", where=str(folder), do="name the dags_folder of your Airflow")
    done = WrittenDags()
    for source in sorted(dag_folder().glob("seawall_*.py")):
        text = source.read_bytes()
        target = folder / source.name
        try:
            if target.exists():
                (done.unchanged if target.read_bytes() == text else done.kept).append(source.name)
                continue
            # A DAG processor may read the folder at any moment: the file appears whole.
            fresh = target.with_name(f".{source.name}.new")
            fresh.write_bytes(text)
            fresh.replace(target)
        except OSError as error:
            raise UsageError("a DAG file cannot be written", where=str(target), why=error.strerror or "") from error
        done.written.append(source.name)
    return done
