"""Ways to carry a plan out."""
