"""Airflow operators, sensors, triggers, hooks and notifiers. Import them as ``seawall.operators``.

A few lines each around one function of the library, and no decision of their own: what an operator does can be done from
the command line, with the same outcome. Together with ``seawall.plugins`` and the files in ``dags/`` this is all that
imports Airflow (an import contract holds it).

* Triggers only observe. Airflow rebuilds one from ``serialize()`` after its host dies, and runs it from the start.
* Operators read ``data_interval_start`` through one function, which falls back to ``run_after``: runs that were started by an
  asset or by hand have no interval.

The operators arrive with the Airflow suite.
"""
