"""Servers of our own: started at the first call, asked, kept, ended."""
