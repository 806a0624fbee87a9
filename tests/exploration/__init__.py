"""Every interleaving of a few processes on one table, with a bounded number of preemptions, kills and false errors."""
