"""Airflow operators and hooks. Import them as ``seawall.operators``.

A few lines each around one function of the library, and no decision of their own: what an operator does can be done from
the command line, with the same outcome. Together with ``seawall.plugins`` and the files in ``dags/`` this is all that
imports Airflow (an import contract holds it).

* :mod:`.base` — what all share: runs about the past act on nothing, errors become Airflow's by their type.
* :mod:`.sync` — plan, seal a batch, commit, fill. :mod:`.verify` — due, check, certify. :mod:`.matrix` — judge, settle.
  :mod:`.respond` — heal, quarantine. :mod:`.restore`. :mod:`.retention`. :mod:`.audit`. :mod:`.runs`.
* :mod:`.notifiers`, :mod:`.tell` — who hears of it.
* :mod:`.work` — from what mapped tasks returned to what the next ones get.
* :mod:`.window` — the one place that reads data intervals: runs that were started by an asset or by hand have none.
* :mod:`.site`, :mod:`.settings`, :mod:`.store_hook`, :mod:`.roles` — seawall.toml, Airflow's connections, pools and queues.
"""
