"""Interlace (050): two laces converge on the records that both select. Pure; knows no streams and no stores."""
