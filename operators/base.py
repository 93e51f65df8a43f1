"""What all operators share: when they act, with which site, and what their errors mean to Airflow."""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.definitions.context import Context
from airflow.sdk.exceptions import AirflowSkipException

from seawall.errors import SeawallError
from seawall.operators.links import CheckpointLink
from seawall.operators.outcomes import airflow_error
from seawall.operators.roles import RETRIES, RETRY_DELAY, TIME_LIMIT
from seawall.operators.window import is_past

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite


class SeawallOperator(BaseOperator):
    """A task around one verb of the library. It may run twice, at once, or again after a kill.

    ``seawall_config`` names seawall.toml on the worker, where Airflow's ``[seawall] config`` should not count.
    """

    template_fields: Sequence[str] = ("seawall_config",)
    operator_extra_links: Collection[Any] = (CheckpointLink(),)
    ui_color = "#d6e4ec"
    in_the_past = False
    """Whether the task does anything in a run that is about the past."""

    def __init__(
        self,
        *,
        seawall_config: str = "",
        retries: int | None = RETRIES,
        retry_delay: timedelta | float = RETRY_DELAY,
        execution_timeout: timedelta | None = TIME_LIMIT,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, retry_delay=retry_delay, execution_timeout=execution_timeout, **kwargs)
        self.seawall_config = seawall_config
        self.checkpoint = ("", "")
        """Run and sealing id that the task came to, for its link."""

    def execute(self, context: Context) -> Any:
        """Act, unless the run is about the past; errors of the library become Airflow's by their type."""
        if not self.in_the_past and is_past(context, datetime.now(UTC)):
            raise AirflowSkipException("a backfill, or a run of long ago, acts on nothing: what it would see is the present")
        from seawall.operators.site import airflow_site

        try:
            site = airflow_site(self.seawall_config)
            try:
                return self.act(site, context)
            finally:
                site.close()
        except SeawallError as error:
            raise airflow_error(error) from error

    @abstractmethod
    def act(self, site: "AirflowSite", context: Context) -> Any:
        """The verb. What it returns goes through XCom: a few words as JSON, no key, no list of files."""
