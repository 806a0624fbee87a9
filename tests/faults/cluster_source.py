"""One change of the source that `test_cluster.py` follows: rows are new, changed and deleted.

python cluster_source.py '{"root": …, "turn": 1, "rows": 6}'
"""

from __future__ import annotations

import json
import sys

from penstock.api import connect

orders = json.loads(sys.argv[1])
turn, rows = orders["turn"], orders["rows"]
lake = connect(orders["root"], session=orders["session"], storage_options=orders.get("storage_options"))
if turn == 1:
    lake.sql(
        "create table s.source tblproperties ('delta.enableChangeDataFeed' = 'true') as "
        f"select id, 0L as v from range(0, {rows}, 1, 2)"
    )
else:
    lake.sql(
        f"merge into s.source t using (select id from range({turn * rows})) s on t.id = s.id "
        "when matched and s.id % 3 = 0 then delete "
        f"when matched and s.id % 3 = 1 then update set v = {turn} "
        f"when not matched and s.id >= {(turn - 1) * rows} then insert (id, v) values (s.id, {turn})"
    )
