"""`lace.datalog` as a library: a database, programs, answers, explanations, and facts that change.

Rule: whatever a caller meets here is exported by `lace.datalog`; nothing here knows records.
"""
