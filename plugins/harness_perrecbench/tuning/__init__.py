"""Fine-tuning: training data from held-out groups, a trainer's configuration, merged adapters."""
