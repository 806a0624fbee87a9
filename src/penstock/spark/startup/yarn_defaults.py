"""An empty `yarn-default.xml`, which Hadoop finds before its own.

Each task of Spark carries all settings of Hadoop, and half of them are YARN's defaults: to unpack them is a fifth of
the work of a small task. A local Spark has no YARN.
"""

from __future__ import annotations

YARN_DEFAULTS = "yarn-default.xml"
"""Its name among the files in `spark/java`; on a cluster, which may be YARN's, it is left out."""
