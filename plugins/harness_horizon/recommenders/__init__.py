"""Recommenders of the next item: training, checkpoints, and the kind of model `recommender`."""
