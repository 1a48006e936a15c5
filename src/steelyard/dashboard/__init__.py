"""The dashboard: a live page with the workers of a stream and the moves between them.

slots (of a control path, a query or a simulation)     reader, runs, simulated
  -> owners of virtual workers in each slot            owners
  -> frames: the content of the page for a slot        frames, wording (without Bokeh)
  -> figures and tables in a browser                   figures, tables, page, server
"""
