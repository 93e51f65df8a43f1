"""The Airflow plugin: a page, JSON routes, links. It reads; it decides nothing. Import it as ``seawall.plugins``.

Airflow registers it by the entry point ``airflow.plugins``; ``.airflowignore`` keeps a ``plugins_folder`` that is this one from doing it a
second time. Rules for whoever adds a route:

* The application carries the dependency that asks for a user, so a new route has it. Airflow mounts a plugin's application without any, and
  answers anonymous callers (apache/airflow issue 72655).
* A route that changes something asks for the right to, and refuses what another site's page sends with the browser's cookie.
* A page costs what it shows: it reads folded snapshots, never a whole log or a listing of a store.
"""
