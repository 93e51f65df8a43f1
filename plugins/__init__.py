"""The Airflow plugin: pages, JSON routes, links. It reads; it decides nothing."""
