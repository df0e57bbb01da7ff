"""Pages for people: reports and ranks as HTML that needs nothing else."""
