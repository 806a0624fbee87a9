"""What a lake's logs and ledgers say, for people: the answers of the command `penstock`. Each is a value.

| module | what it answers |
|---|---|
| `table_ledger` | one table with its ledger, opened for reading |
| `relations_status` | where every relation stands, and what needs attention |
| `file_story` | the files of one table, and what happened to one of them |
| `history` | batches, merges, windows and commits of others in one time line |
| `planned` | what a run of one model would do now |
| `verification` | whether a table is what its model computes; the one answer that starts Spark |
| `repair` | a table's ledger against its log |
| `doctor` | whether this machine and the lake's store are fit for a run |

Nothing here prints, and only `verification` starts a JVM. Only `repair` writes, and `doctor` a hidden object.
"""
