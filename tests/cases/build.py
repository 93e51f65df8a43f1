"""Build all checkpoint cases, the first set and every one that was added since.

    python -m tests.cases.build OUTDIR

Takes the same arguments as make_cases.py and writes the same cases.json.
"""

import importlib
from pathlib import Path

from tests.cases import make_cases

for module in sorted(Path(__file__).parent.glob("cases_*.py")):
    importlib.import_module(f"tests.cases.{module.stem}")

if __name__ == "__main__":
    make_cases.main()
