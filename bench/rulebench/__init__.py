"""What `bench/datalog.py` measures, and how it runs each engine."""
