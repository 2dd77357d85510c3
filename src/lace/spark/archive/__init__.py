"""An archive: tables of records under one address, grown by batches, each change one commit of a numbered log.

Rule: data files are never changed after they are written; what an archive holds is what its newest commit says.
"""
