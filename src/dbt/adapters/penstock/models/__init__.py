"""Models that the engine runs by itself: new files, windows of event time, and row changes."""
