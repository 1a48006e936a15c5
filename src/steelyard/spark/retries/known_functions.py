"""Spark's functions by their behavior across task retries, under the names that EXPLAIN prints.

The sets cover Spark 4.1 to 4.3. The result of a function that is in none of these sets is doubtful.
Such functions are those of users, those of other versions, and a few that are rarely used.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    """
    abs acos acosh add_months aes_decrypt aggregate and array array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_join array_max
    array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2 atanh
    atleastnnonnulls base64 between bigint bin binary bit_count bit_get bit_length bitmap_and
    bitmap_andnot bitmap_bit_position bitmap_bucket_number bitmap_count bitmap_or bitmap_xor
    boolean bround btrim cardinality cast cbrt ceil ceiling char char_length character_length
    checkoverflow chr coalesce concat concat_ws contains conv convert_timezone cos cosh cot
    crc32 csc curdate current_batch_timestamp current_catalog current_database current_date
    current_path current_schema current_time current_timestamp current_timezone current_user
    date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees
    direct_shuffle_partition_id double e element_at elt encode endswith equal_null exists exp
    expm1 extract factorial filter find_in_set flatten float floor forall format_number
    format_string from_base32 from_csv from_json from_unixtime from_utc_timestamp from_xml get
    get_json_object getbit greatest hash hex hmac hour hypot if ifnull ilike in initcap instr
    int is_valid_utf8 is_variant_null isnan isnotnull isnull jaro_winkler_similarity
    json_array_length json_object_keys json_typeof knownfloatingpointnormalized knownnotnull
    knownnullable lambdafunction last_day lcase least left len length levenshtein like ln
    localtime localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
    make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 make_ym_interval makedecimal map map_concat
    map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
    map_zip_with mask md5 minute mod month monthname months_between multi_get_json_object
    named_struct nanvl negative next_day normalize normalizenanandzero not now null_index nullif
    nullifzero nvl nvl2 octet_length or outer overlay parse_json parse_url pi pmod position
    positive pow power precisetimestampconversion printf promote_precision quarter quote radians
    raise_error reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad
    rtrim schema_of_variant sec second sentences sequence session_user sha sha1 sha2 shiftleft
    shiftright shiftrightunsigned sign signum sin sinh size slice smallint sort_array soundex
    space split split_part sqrt startswith str_to_map string struct substr substring
    substring_index tan tanh time time_bucket time_diff time_from_micros time_from_millis
    time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp
    timestamp_micros timestamp_millis timestamp_nanos timestamp_seconds timestampadd
    timestampdiff tinyint to_base32 to_binary to_char to_csv to_date to_json to_number to_time
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
    to_variant_object to_xml transform transform_keys transform_values translate trim trim_array
    trunc truncate try_add try_aes_decrypt try_cast try_divide try_element_at try_make_interval
    try_make_timestamp try_mod try_multiply try_parse_json try_parse_url try_subtract
    try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_get typeof ucase unbase64 unhex unix_date unix_micros
    unix_millis unix_nanos unix_seconds unix_timestamp unscaledvalue update_fields upper
    url_decode url_encode user validate_utf8 varchar variant_get version weekday weekofyear
    width_bucket window window_time withfield xpath xpath_boolean xpath_double xpath_float
    xpath_int xpath_long xpath_number xpath_short xpath_string xxh3_128 xxh3_64 xxhash64 year
    zeroifnull zip_with
    """
)
"""Functions of one row that are deterministic.

The set contains types that EXPLAIN prints as calls, such as `decimal(10,2)`.
"""

GENERATORS = _words(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
    replicaterows stack variant_explode variant_explode_outer
    """
)
"""Functions that give the same rows for the same arguments."""

AGGREGATES = _words(
    """
    any bit_and bit_or bit_xor bool_and bool_or count count_if every grouping grouping_id max
    min pivotfirst regr_count some
    """
)
"""Aggregates that give the same value for the same rows in any order.

A sum does so too if nothing is rounded; the type of its result decides.
"""

RANKS = _words("cume_dist dense_rank percent_rank rank")
"""Window functions that give the same value to all rows that are equal in the window's order."""

BY_ORDER = _words(
    """
    any_value approx_percentile array_agg avg collect_list collect_set collect_union corr
    covar_pop covar_samp first first_value histogram_numeric kurtosis lag last last_value lead
    listagg max_by mean min_by mode nth_value ntile percentile_approx regr_avgx regr_avgy
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness std stddev stddev_pop
    stddev_samp string_agg try_avg try_sum var_pop var_samp variance
    """
)
"""Functions whose value depends on the order of rows, some of them by rounding."""

BY_POSITION = _words(
    """
    input_file_block_length input_file_block_start input_file_name monotonically_increasing_id
    rand randn random randstr shuffle spark_partition_id uniform uuid
    """
)
"""Functions whose value depends on the partition of a row or on its position there."""
