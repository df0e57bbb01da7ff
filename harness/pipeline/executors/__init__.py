"""How the stages of a plan are run: in this process, or by workers on a cluster."""
