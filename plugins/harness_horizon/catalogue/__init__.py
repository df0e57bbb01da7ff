"""The catalogue: distinct titles, their index, and the kind of model `catalogue`."""
