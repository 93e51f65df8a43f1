"""Which errors Airflow tries again: every class of the library has its answer."""

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from seawall import errors
from seawall.operators.outcomes import airflow_error

SKIPPED = {errors.IncompleteError}
TRIED_AGAIN = {
    errors.StoreUnavailableError,
    errors.StoreAmbiguousError,
    errors.BusyError,
    errors.AlertUnavailableError,
    errors.AlertAmbiguousError,
}


def all_errors() -> list[type[errors.SeawallError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.SeawallError)]
    assert len(found) > 15
    return found


@pytest.mark.parametrize("kind", all_errors())
def test_the_type_decides(kind: type[errors.SeawallError]) -> None:
    answer = airflow_error(kind("what", where="where"))
    expected = AirflowSkipException if kind in SKIPPED else AirflowException if kind in TRIED_AGAIN else AirflowFailException
    assert type(answer) is expected
    assert "what [where]" in str(answer)
