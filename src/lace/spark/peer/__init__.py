"""An archive that exchanges like any lace (050, 070): a host whose work is done by Spark jobs."""
