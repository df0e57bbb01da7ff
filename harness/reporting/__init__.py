"""What a person sees: progress while a run goes on, tables when it is done."""
