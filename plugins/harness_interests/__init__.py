"""The worked example: name a person's interests from a short history, and cite the evidence."""
