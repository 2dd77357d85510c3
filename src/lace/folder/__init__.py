"""A folder that follows a lace: files in, files out, kept up to date (082).

| word | what it is |
|---|---|
| *item* | what is at a path: a file, a link or an empty folder, known by the hash of its content |
| *lace tree* | what the heads of the lace say should be in the folder |
| *disk tree* | what a scan found there |
| *agreed tree* | what both were when they were last the same; kept in the folder, under `.lace` |
| *beside* | a file that shows a further head of a contested file next to it |
| *round* | look at both, plan, take the steps of the plan |

What never happens here: a byte is removed from the disk that the lace does not hold. A step is taken on a guess. A path
holds half a file. Something outside the folder is touched. A plan is kept: only what was seen is.
"""
