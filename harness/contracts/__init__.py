"""What a plugin implements and sees: benchmarks, stages, models, judges, records, reports."""
