"""The executor `ray`: workers on the machines of a Ray cluster."""
