"""The rule language (030): text, tree, canonical form, checks, and what the built-ins mean.

From text: `annotations` (a file with comments) → `parser`, `lineparser` → `syntax` (the tree) → `validate` (a
`CheckedProgram`). To text: `formatting`, `canonical`. `comparisons` is the one truth about built-ins for all executors.

What never happens here: a text is repaired, or a fact is read.
"""
