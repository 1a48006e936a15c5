"""The Spark layer: DataFrames enter and DataFrames leave.

It adapts data and makes no decisions. Objects that do not know Spark make the decisions.
"""
