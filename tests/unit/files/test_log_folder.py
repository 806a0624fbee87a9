from __future__ import annotations

from penstock.api import connect
from penstock.sql.names import Name


def test_a_log_without_a_commit_is_no_table_yet(tmp_path):
    log = tmp_path / "bronze" / "events" / "_delta_log"
    log.mkdir(parents=True)
    lake = connect(str(tmp_path))
    assert lake.find(Name("bronze", "events")) is None
    (log / ".00000000000000000000.json.a1b2.tmp").write_text("{")
    assert lake.find(Name("bronze", "events")) is None
    (log / "00000000000000000007.json").write_text("garbage")
    assert lake.find(Name("bronze", "events")) is not None
