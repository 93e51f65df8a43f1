"""The run's one ordered, signed history: entries, append, fold, mirrors, freshness."""
