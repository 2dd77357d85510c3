"""The data pipeline: archives of records validated, turned into facts, evaluated and reconciled on Spark.

Rule: this is the only package that imports pyspark; nothing outside it needs a JVM.
"""
