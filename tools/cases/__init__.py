"""Families of Datalog programs with results worked out by hand or by plain Python."""
