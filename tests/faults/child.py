"""One run of a file model, or of one that follows changes, in a process of its own, which dies, or stops, at the step that its orders name.

python child.py '{"root": …, "landing": …, "kill": "planned"}'
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from penstock import changes, files
from penstock.api import connect
from penstock.sql.names import Name


def main(orders: dict) -> None:
    if orders.get("gateway"):
        join_jvm(*orders["gateway"])
    seen: dict[str, int] = {}

    def step(name: str) -> None:
        seen[name] = seen.get(name, 0) + 1
        if orders.get("tell"):
            print(f"step {name}", flush=True)
        if name == orders.get("kill") and seen[name] == orders.get("nth", 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if name == orders.get("stop") and seen[name] == orders.get("nth", 1):
            os.kill(os.getpid(), signal.SIGSTOP)

    lake = connect(orders["root"], session=orders["session"], storage_options=orders.get("storage_options"))
    if orders.get("ready"):
        lake.spark.sql("select 1").collect()
        print("ready", flush=True)
    if orders.get("at"):
        # Several processes begin together.
        time.sleep(max(0.0, orders["at"] - time.time()))
    if "changes" in orders:
        followed = changes.ChangeSource.from_mapping(orders["changes"])
        refresh = orders.get("full_refresh", False)
        changes.merge_changes(
            lake,
            Name.parse(orders["name"]),
            followed,
            orders["select"],
            runner=lake.runner,
            full_refresh=refresh,
            step=step,
        )
        return
    source = files.FileSource.from_mapping(
        {"source_roots": [orders["landing"]], "safety_buffer_seconds": 0, **orders.get("source", {})}
    )
    report = files.ingest(
        lake,
        Name.parse(orders["name"]),
        source,
        orders.get("select", "select * from @data"),
        runner=lake.runner,
        full_refresh=orders.get("full_refresh", False),
        step=step,
    )
    print(json.dumps({"rows": report.rows, "files": report.files, "batches": len(report.batches)}), flush=True)


def join_jvm(port: int, secret: str) -> None:
    """Use the JVM of another process: a start costs ten seconds, and a killed child leaves its write running there."""
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    jvm = gateway.jvm
    jsc = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    context = SparkContext(gateway=gateway, jsc=jsc, conf=SparkConf(_jconf=jsc.getConf()))
    SparkSession(context)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
