"""The catalogue: distinct titles, their vectors and an index, behind the kind of model `catalogue`."""
