"""Two real laces and the wire between them, for a page in a browser tab.

Rule: nothing here knows a browser. Questions and answers are JSON (`door`), time and chance come from the scene, and
the same scene gives the same bytes wherever it runs.
"""
