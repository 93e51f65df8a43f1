"""What an outcome of the library is to Airflow: failed for good, tried again, or skipped. The error's type decides."""

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from seawall.errors import IncompleteError, SeawallError, SourceChangedError


def airflow_error(error: SeawallError) -> Exception:
    """The exception to raise for ``error``.

    * A checkpoint that is not finished is no failure: the task is skipped, and the next run looks again. One that changed while it was
      being sealed is: somebody writes into, or prunes, what a commit mark says is finished.
    * A permanent error fails at once: a digest that does not match, a refused request or a missing key is the same after a retry.
    * A transient or ambiguous one is tried again. Every task reads the state back before it acts, which is what an ambiguous outcome asks
      for.
    """
    if isinstance(error, IncompleteError) and not isinstance(error, SourceChangedError):
        return AirflowSkipException(str(error))
    if error.outcome == "permanent":
        return AirflowFailException(f"{type(error).__name__}: {error}")
    return AirflowException(f"{type(error).__name__} ({error.outcome}): {error}")
