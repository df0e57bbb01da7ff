"""From settings to a finished run: preparation, plan, desk, executor, batches."""
