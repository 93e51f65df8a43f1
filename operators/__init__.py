"""Airflow operators, sensors, triggers, hooks and notifiers: a few lines each around one function of the library."""
