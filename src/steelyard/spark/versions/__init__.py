"""All differences between the versions of Spark; no other package asks for a version.

    supported     the installed version, and refusals of what it cannot do
    partitions    a row to the partition with a given number
    arrow         frames and types as Arrow data, and back
    interfaces    calls, classes and settings that versions lack or name differently
    printed_plans constants that EXPLAIN does not print
    socket_leaks  warnings of versions with this defect

A call that some versions lack enters; what every supported version can do leaves. What a version
cannot do is refused in one sentence that names the version needed.
"""
