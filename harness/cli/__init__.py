"""The `harness` command: one small file a subcommand."""
