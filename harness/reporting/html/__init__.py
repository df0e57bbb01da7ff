"""Pages for people: reports, comparisons and leaderboards as HTML that needs nothing else."""
