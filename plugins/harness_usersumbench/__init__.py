"""UserSumBench: summaries of people's activities, measured by the future that they predict."""
