"""The rows of the lake's own tables, from its folders, logs and ledgers. No JVM starts, unless only Spark knows a column.

| module | tables |
|---|---|
| `information_schema` | `information_schema.schemata`, `tables` and `columns` |
| `relations`, `files`, `batches`, `changes`, `windows` | `penstock.relations`, … |
| `history` | the time line of one table, for `Lake.history` |

`lake/reserved.py` has the columns, and `spark/own_tables.py` brings the rows into statements.

>>> OwnTables(lake).rows(Name.parse("information_schema.tables")).num_rows    # doctest: +SKIP
12
"""

from penstock.own_tables.own_tables import OwnTables

__all__ = ["OwnTables"]
