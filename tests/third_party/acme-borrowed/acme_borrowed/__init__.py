"""What the books that a person borrowed say about the next one."""
