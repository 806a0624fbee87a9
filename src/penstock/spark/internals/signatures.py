"""The private classes of Spark and Delta that penstock calls, with the signatures that the calls rely on.

The same in pyspark 4.0.1 to 4.2.0 with delta-spark 4.4.0. A constructor is `<init>`; types have their short names.
"""

from __future__ import annotations

_DELTA = "org.apache.spark.sql.delta"
_SQL = "org.apache.spark.sql"

EXPECTED: dict[str, tuple[str, ...]] = {
    f"{_DELTA}.DeltaLog": (
        "forTable(SparkSession,String)",
        "invalidateCache(SparkSession,Path)",
        "startTransaction()",
        "dataPath()",
        "createDataFrame(SnapshotDescriptor,Seq,boolean,Option)",
        "getSnapshotAt(long,Option,Option,boolean)",
    ),
    f"{_DELTA}.OptimisticTransaction": (
        "readVersion()",
        "metadata()",
        "filterFiles()",
        "snapshot()",
        "readTxn()",
        "commit(Seq,DeltaOperations$Operation)",
        "updateMetadata(Metadata,boolean)",
        "writeFiles(Dataset)",
        "registerSQLMetrics(SparkSession,Map)",
    ),
    f"{_DELTA}.Snapshot": (
        "filesForScan(Seq,boolean)",
        "deltaFileSizeInBytes()",
        "checkpointSizeInBytes()",
    ),
    f"{_DELTA}.stats.DeltaScan": ("files()",),
    f"{_DELTA}.DeltaOptions": ("<init>(Map,SQLConf)",),
    f"{_DELTA}.commands.WriteIntoDelta": (
        "<init>(DeltaLog,SaveMode,DeltaOptions,Seq,Map,Dataset,Option,Option,boolean)",
        "write(OptimisticTransaction,SparkSession,Option,boolean)",
    ),
    f"{_DELTA}.DeltaOperations$Write": ("<init>(SaveMode,Option,Option,Option,Option,Option,Option,Option,Option)",),
    f"{_DELTA}.DeltaOperations$Merge$": ("apply(Option,Seq,Seq,Seq)",),
    f"{_DELTA}.commands.DeletionVectorBitmapGenerator$": (
        "buildRowIndexSetsForFilesMatchingCondition(SparkSession,OptimisticTransaction,boolean,Dataset,Seq,Expression,Option,Option)",
    ),
    f"{_DELTA}.commands.DMLWithDeletionVectorsHelper$": (
        "generateCandidateFileMap(Path,Seq)",
        "findFilesWithMatchingRows(OptimisticTransaction,Map,Seq)",
        "processUnmodifiedData(SparkSession,Seq,Snapshot,int)",
    ),
    f"{_DELTA}.stats.StatsCollectionUtils$": ("getDataSkippingStringPrefixLength(SparkSession,Metadata)",),
    f"{_DELTA}.actions.Metadata": (
        "<init>(String,String,String,Format,String,Seq,Map,Option)",
        "id()",
        "name()",
        "description()",
        "format()",
        "schemaString()",
        "partitionColumns()",
        "configuration()",
        "createdTime()",
    ),
    f"{_DELTA}.actions.SetTransaction": ("<init>(String,long,Option)",),
    f"{_DELTA}.actions.AddFile": ("getFileSize()",),
    f"{_DELTA}.commands.cdc.CDCReader$": (
        "changesToBatchDF(DeltaLog,long,long,SparkSession,Option,Option,boolean,Option)",
    ),
    f"{_SQL}.execution.metric.SQLMetrics$": ("createMetric(SparkContext,String)",),
    f"{_SQL}.execution.metric.SQLMetric": ("set(long)",),
    f"{_SQL}.classic.SparkSession": (
        "getActiveSession()",
        "setActiveSession(SparkSession)",
        "clearActiveSession()",
        "sessionState()",
    ),
    f"{_SQL}.classic.Dataset": (
        "ofRows(SparkSession,LogicalPlan)",
        "queryExecution()",
        "as(Encoder)",
    ),
    f"{_SQL}.execution.QueryExecution": ("analyzed()",),
    f"{_SQL}.internal.SessionState": (
        "newHadoopConf()",
        "conf()",
    ),
    "org.apache.spark.SparkContext": ("cancelJobGroupAndFutureJobs(String)",),
    "org.apache.spark.api.python.PythonUtils": ("toScalaMap(Map)",),
    f"{_SQL}.catalyst.expressions.Literal": ("TrueLiteral()",),
    f"{_SQL}.catalyst.plans.logical.Filter": ("condition()",),
    "org.apache.spark.util.Utils": ("classIsLoadable(String)",),
    f"{_SQL}.execution.datasources.LogicalRelation": ("relation()",),
    f"{_SQL}.execution.datasources.HadoopFsRelation": ("location()",),
    f"{_SQL}.execution.datasources.FileIndex": ("inputFiles()",),
    f"{_SQL}.execution.datasources.v2.DataSourceV2Relation": ("table()",),
    f"{_SQL}.execution.datasources.v2.FileTable": ("fileIndex()",),
    f"{_SQL}.classic.DataFrameReader": (
        "csv(Dataset)",
        "json(Dataset)",
    ),
    "io.delta.package$": ("VERSION()",),
}
