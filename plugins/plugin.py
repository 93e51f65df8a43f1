"""What Airflow loads. The application is made when the API server asks for it: workers and schedulers load plugins too, and need none."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from seawall.operators.links import CheckpointLink


class SeawallPlugin(AirflowPlugin):
    """The pages "Seawall" and "Integrity", their routes below ``/seawall``, and the link from a task to its checkpoint."""

    name = "seawall"
    # Airflow declares both as variables of the instance.
    operator_extra_links = [CheckpointLink()]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {"name": "Seawall", "href": "/seawall/", "destination": "nav", "category": "browse", "url_route": "seawall"},
        {"name": "Integrity", "href": "/seawall/integrity", "destination": "nav", "category": "browse", "url_route": "seawall-integrity"},
    ]

    @property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]  # a list in the base class; Airflow reads it from the instance
        from seawall.plugins.application import application

        return [{"app": application(), "url_prefix": "/seawall", "name": "Seawall"}]
