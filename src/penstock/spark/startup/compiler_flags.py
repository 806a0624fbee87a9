"""Flags for the JVM's compilers: most of Spark's code runs a few hundred times, and not again.

The optimizing compiler (C2) is kept for code that is truly hot, and until then code records less about itself.
"""

from __future__ import annotations

COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 "
    "-XX:-C1ProfileInlinedCalls -XX:-C1ProfileCheckcasts"
)
