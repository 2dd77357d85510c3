"""Programs over DataFrames: the Spark executor of 030.

    executor     strata in order, each on the cluster or, if it is small, on the driver
    plans        one rule plan as one lazy frame
    joins        how two frames are joined, by their lengths: `JoinChoice`
    stars, pivot   what one record decides, as one pass over the wide table
    relations    relations of the driver and of the cluster, and how they grow
    query        `lace.spark.evaluate` and its kin
    guest        bounds for rules that a peer brought

What never happens here: a result differs from the embedded engine's; the driver takes more rows than its settings say.
"""
