"""What `harness doctor` looks at before a run: plain functions that give findings."""
