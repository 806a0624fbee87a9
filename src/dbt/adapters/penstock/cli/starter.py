"""New projects: an empty one, and one with data to play with. No file is ever written over."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path

from penstock.errors import PenstockError

_PROJECT = """name: {name}
version: "1.0"
profile: {name}

model-paths: [models]
seed-paths: [seeds]
snapshot-paths: [snapshots]
test-paths: [tests]
macro-paths: [macros]
"""
_PROFILE = """# The lake is a folder beside this file. An object store is a URI: root: s3://bucket/lake
{name}:
  target: dev
  outputs:
    dev:
      type: penstock
      root: ./lake
      schema: main
      threads: 4
"""
_IGNORED = "lake/\ntarget/\nlogs/\ndbt_packages/\n"
_FIRST_MODEL = """-- A first model. Over files it would be: select * from @data, with `source_roots` in its config.
select 1 as id, current_timestamp() as built_at
"""
_DEMO_CONFIG = """
models:
  {name}:
    bronze:
      +schema: bronze
    silver:
      +schema: silver
      +materialized: incremental
      +incremental_strategy: cdf_merge
    gold:
      +schema: gold
      +materialized: incremental
      +incremental_strategy: cdf_merge
"""
_DEMO = {
    "models/bronze/bronze_orders.sql": """-- New files in landing/orders come in, each exactly once, two files a commit.
{{ config(alias='orders', materialized='incremental', source_roots=['./landing/orders'], max_files_per_trigger=2,
          safety_buffer_seconds=0, change_data_feed=true) }}

select order_id, customer, cast(order_day as date) as order_day, cast(amount as decimal(10, 2)) as amount, status,
       source_file_uri
from @data
""",
    "models/silver/silver_orders.sql": """-- Only the changes of bronze are merged.
{{ config(alias='orders', unique_key='order_id', change_data_feed=true) }}

select order_id, customer, order_day, amount
from {{ ref('bronze_orders') }}
where status != 'returned'
""",
    "models/gold/sales_by_day.sql": """-- Only the days are computed again whose orders have changed.
{{ config(unique_key='order_day') }}

select order_day, count(*) as orders, sum(amount) as amount
from {{ ref('silver_orders') }}
group by order_day
""",
    "README.md": """# A demo of dbt-penstock

    dbt build             # everything; a second run finds nothing new, and starts no JVM
    penstock status       # what the lake holds
    penstock plan         # what a run would do
    cp more/*.json landing/orders/
    penstock plan         # two files would come in
    dbt build
    penstock files demo_bronze.orders --why landing/orders/2026-04-05.json
    penstock history demo_gold.sales_by_day
""",
}
_CUSTOMERS = ("Ada", "Grace", "Edsger", "Barbara")
_FIRST, _DAYS, _MORE = date(2026, 4, 1), 4, 2


def write_empty(folder: Path) -> list[Path]:
    """The files of an empty project in a folder that has no files yet."""
    name = _name(folder)
    return _write(
        folder,
        {
            "dbt_project.yml": _PROJECT.format(name=name),
            "profiles.yml": _PROFILE.format(name=name),
            ".gitignore": _IGNORED,
            "models/first.sql": _FIRST_MODEL,
        },
    )


def write_demo(folder: Path) -> list[Path]:
    """The files of a project with data to play with, in a folder that has no files yet."""
    name = _name(folder)
    files = {
        "dbt_project.yml": _PROJECT.format(name=name) + _DEMO_CONFIG.format(name=name),
        "profiles.yml": _PROFILE.format(name=name).replace("schema: main", "schema: demo"),
        ".gitignore": _IGNORED,
        **_DEMO,
    }
    for day in range(_DAYS + _MORE):
        where = "landing/orders" if day < _DAYS else "more"
        files[f"{where}/{_FIRST + timedelta(days=day)}.json"] = _orders(day)
    return _write(folder, files)


def _orders(day: int) -> str:
    """The orders of one day, the same at each call."""
    lines = []
    for number in range(day * 25, day * 25 + 25):
        order = {
            "order_id": number,
            "customer": _CUSTOMERS[number % len(_CUSTOMERS)],
            "order_day": str(_FIRST + timedelta(days=day)),
            "amount": round(5 + number * 37 % 400 / 4, 2),
            "status": "returned" if number % 11 == 0 else "paid",
        }
        lines.append(json.dumps(order))
    return "\n".join(lines) + "\n"


def _name(folder: Path) -> str:
    """The project's name: the folder's, as dbt takes it.

    >>> _name(Path("/x/My shop-2"))
    'my_shop_2'
    """
    name = re.sub(r"\W+", "_", folder.resolve().name.lower(), flags=re.ASCII).strip("_")
    return name if name and not name[0].isdigit() else f"lake_{name}".rstrip("_")


def _write(folder: Path, files: dict[str, str]) -> list[Path]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PenstockError(
            "This folder has files already, and nothing is written over",
            where=str(folder),
            fix="Name a new folder: `penstock init DIR`, `penstock demo DIR`.",
        )
    written = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
