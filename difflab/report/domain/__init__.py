"""Reports of comparisons over a domain: table, page, pictures, CSV and Parquet."""
