"""The live page: who is slow, and what happens about it.

slots (of a control path, a query or a simulation)     reader, runs, simulated
  -> owners of virtual workers at any slot             owners
  -> what the page shows of a slot: frames             frames, wording; these know no Bokeh
  -> figures and tables in a browser                   figures, tables, page, server
"""
