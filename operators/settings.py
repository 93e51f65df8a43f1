"""Options of ``[seawall]`` in Airflow's configuration. Read while DAG files are parsed, so it imports nothing of the library."""

SECTION = "seawall"


def setting(option: str, default: str = "") -> str:
    """An option of ``[seawall]``, or ``AIRFLOW__SEAWALL__<OPTION>``."""
    from airflow.sdk.configuration import conf

    return str(conf.get(SECTION, option, fallback=default) or default)
