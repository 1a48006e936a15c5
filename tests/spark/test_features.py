"""Every feature runs on the installed Spark, or its error names the version of Spark that it needs.

`--features FOLDER` writes the results into a file of the folder, named by version and by mode; the
page docs/versions.md shows these files.
"""

import re

import pytest

from steelyard.spark.versions.supported import version_of
from tests.spark.features import FEATURES, SINCE

pytestmark = [pytest.mark.versions, pytest.mark.slow]


@pytest.mark.filterwarnings("ignore:Spark .* leaks a socket")
@pytest.mark.filterwarnings("ignore:.* workers share .* task slots")
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_runs_or_names_the_version_it_needs(
    request, spark, tmp_path, name, record_property
):
    """The result of the job is checked inside the job."""
    record_property("spark", spark.version)
    classic, connect = SINCE[name]
    since = connect if request.config.getoption("--connect") else classic
    if version_of(spark) >= since:
        FEATURES[name](spark, tmp_path)
        record_property(name, "yes")
        return
    needed = "{}.{}".format(*since)
    with pytest.raises(ValueError, match=re.escape(f"needs Spark {needed} or newer")):
        FEATURES[name](spark, tmp_path)
    record_property(name, f"needs {needed}")
