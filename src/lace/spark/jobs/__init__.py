"""The steps of the pipeline: each a function from frames to frames, named by what comes out."""
