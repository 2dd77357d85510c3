"""Programs over DataFrames: the Spark executor of 030."""
