"""seawall: disaster recovery for LLM training.

The library knows nothing of Airflow and nothing of torch. The rooms, from the top floor down, are
``cli``, ``testing``, ``protect``, ``verify``, ``log``, ``checkpoint``, ``vault``, ``stores`` and the ground floor
``errors``, ``clock``, ``kernels``; each imports only from floors below it (docs/architecture.md).
"""

__version__ = "0.1.0"
