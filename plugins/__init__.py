"""The Airflow plugin: pages, JSON routes, links. It reads; it decides nothing. Import it as ``seawall.plugins``.

Airflow loads this folder too (``plugins_folder`` in airflow.cfg). Two rules for whoever adds a page:

* Every route carries a dependency that checks rights. Airflow mounts a plugin's application without any, and answers
  anonymous callers.
* A page costs what it shows: it reads folded snapshots, never a whole log or a listing of a store.

The plugin arrives with the Airflow suite.
"""
