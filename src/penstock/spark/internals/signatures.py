"""The private classes of Spark and Delta that penstock calls, with the signatures that the calls rely on.

The same in pyspark 4.1.0 to 4.2.0 with delta-spark 4.4.0. A constructor is `<init>`; types have their short names.
"""

from __future__ import annotations

_DELTA = "org.apache.spark.sql.delta"
_SQL = "org.apache.spark.sql"

# The comment beside a class names the modules of this folder that call it.
EXPECTED: dict[str, tuple[str, ...]] = {
    f"{_DELTA}.DeltaLog": (  # delta_log, row_images, transaction
        "forTable(SparkSession,String)",
        "invalidateCache(SparkSession,Path)",
        "startTransaction()",
        "dataPath()",
        "createDataFrame(SnapshotDescriptor,Seq,boolean,Option)",
        "getSnapshotAt(long,Option,Option,boolean)",
    ),
    f"{_DELTA}.OptimisticTransaction": (  # transaction
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
    f"{_DELTA}.Snapshot": (  # transaction
        "filesForScan(Seq,boolean)",
        "deltaFileSizeInBytes()",
        "checkpointSizeInBytes()",
    ),
    f"{_DELTA}.stats.DeltaScan": ("files()",),  # transaction
    f"{_DELTA}.DeltaOptions": ("<init>(Map,SQLConf)",),  # transaction
    f"{_DELTA}.commands.WriteIntoDelta": (  # transaction
        "<init>(DeltaLog,SaveMode,DeltaOptions,Seq,Map,Dataset,Option,Option,boolean)",
        "write(OptimisticTransaction,SparkSession,Option,boolean)",
    ),
    f"{_DELTA}.DeltaOperations$Write": (  # transaction
        "<init>(SaveMode,Option,Option,Option,Option,Option,Option,Option,Option)",
    ),
    f"{_DELTA}.DeltaOperations$Merge$": ("apply(Option,Seq,Seq,Seq)",),  # transaction
    f"{_DELTA}.DeltaOperations$ManualUpdate$": (),  # transaction
    f"{_DELTA}.commands.DeletionVectorBitmapGenerator$": (  # transaction
        "buildRowIndexSetsForFilesMatchingCondition(SparkSession,OptimisticTransaction,boolean,Dataset,Seq,Expression,Option,Option)",
    ),
    f"{_DELTA}.commands.DMLWithDeletionVectorsHelper$": (  # transaction
        "generateCandidateFileMap(Path,Seq)",
        "findFilesWithMatchingRows(OptimisticTransaction,Map,Seq)",
        "processUnmodifiedData(SparkSession,Seq,Snapshot,int)",
    ),
    f"{_DELTA}.stats.StatsCollectionUtils$": (  # transaction
        "getDataSkippingStringPrefixLength(SparkSession,Metadata)",
    ),
    f"{_DELTA}.actions.Metadata": (  # transaction
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
    f"{_DELTA}.actions.SetTransaction": ("<init>(String,long,Option)",),  # transaction
    f"{_DELTA}.actions.AddFile": ("getFileSize()",),  # transaction
    f"{_DELTA}.commands.cdc.CDCReader$": (  # row_images
        "changesToBatchDF(DeltaLog,long,long,SparkSession,Option,Option,boolean,Option)",
    ),
    f"{_SQL}.execution.metric.SQLMetrics$": ("createMetric(SparkContext,String)",),  # metrics
    f"{_SQL}.execution.metric.SQLMetric": ("set(long)",),  # metrics
    f"{_SQL}.classic.SparkSession": (  # active_session, hadoop, table_cache, transaction
        "getActiveSession()",
        "setActiveSession(SparkSession)",
        "clearActiveSession()",
        "sessionState()",
        "sharedState()",
    ),
    f"{_SQL}.classic.Dataset": (  # analyzed_plan, file_index, java_frames, table_cache, text_schema
        "ofRows(SparkSession,LogicalPlan)",
        "queryExecution()",
        "as(Encoder)",
    ),
    f"{_SQL}.execution.QueryExecution": ("analyzed()",),  # analyzed_plan, file_index, java_frames, table_cache
    f"{_SQL}.internal.SessionState": (  # hadoop, table_cache, transaction
        "newHadoopConf()",
        "conf()",
        "resourceLoader()",
        "catalog()",
    ),
    f"{_SQL}.catalyst.catalog.SessionCatalog": (  # table_cache
        "cacheTable(QualifiedTableName,LogicalPlan)",
        "invalidateCachedTable(QualifiedTableName)",
    ),
    f"{_SQL}.catalyst.QualifiedTableName": ("<init>(String,String,String)",),  # table_cache
    f"{_SQL}.internal.SharedState": ("jarClassLoader()",),  # class_path
    f"{_SQL}.internal.SessionResourceLoader": ("addJar(String)",),  # class_path
    "org.apache.spark.SparkContext": ("cancelJobGroupAndFutureJobs(String)",),
    "org.apache.spark.api.python.PythonUtils": ("toScalaMap(Map)",),  # jvm
    f"{_SQL}.catalyst.expressions.Literal": ("TrueLiteral()",),  # transaction
    f"{_SQL}.catalyst.plans.logical.Filter": ("condition()",),  # analyzed_plan
    "org.apache.spark.util.Utils": ("classIsLoadable(String)",),  # class_path
    f"{_SQL}.execution.datasources.LogicalRelation": ("relation()",),  # file_index
    f"{_SQL}.execution.datasources.HadoopFsRelation": ("location()",),  # file_index
    f"{_SQL}.execution.datasources.FileIndex": ("inputFiles()",),  # file_index
    f"{_SQL}.execution.datasources.v2.DataSourceV2Relation": ("table()",),  # file_index
    f"{_SQL}.execution.datasources.v2.FileTable": ("fileIndex()",),  # file_index
    f"{_SQL}.classic.DataFrameReader": (  # text_schema
        "csv(Dataset)",
        "json(Dataset)",
    ),
    "io.delta.package$": ("VERSION()",),  # probe
    "org.codehaus.janino.SimpleCompiler": (  # analyzed_plan
        "cook(String)",
        "getClassLoader()",
    ),
}
