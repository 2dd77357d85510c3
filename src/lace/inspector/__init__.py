"""A look into laces, archives, captures and a running node from a browser: `lace inspect`.

Rule: pages are made here and go to this machine only. A page is data first; its HTML and its JSON say the same. What a
record holds is shown as text and never runs.
"""
