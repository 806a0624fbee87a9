"""`make bench`: every benchmark, or those that are named."""

from __future__ import annotations

import sys

from benchmarks import against_dbt_spark, changes, commands, files, stores, windows

BENCHMARKS = {
    "dbt-spark": against_dbt_spark.main,
    "files": files.main,
    "ledger": files.ledger,
    "changes": changes.main,
    "windows": windows.main,
    "stores": stores.main,
    "commands": commands.main,
}


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHMARKS)
    for name in wanted:
        if name not in BENCHMARKS:
            raise SystemExit(f"{name} is no benchmark: {', '.join(BENCHMARKS)}")
        print(f"{name}:", flush=True)
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
