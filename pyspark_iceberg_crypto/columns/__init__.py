"""Keys for the columns of files that Spark itself writes, those that are not Iceberg's."""
