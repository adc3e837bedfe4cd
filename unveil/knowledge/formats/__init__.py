"""The YAML formats as JSON Schema, one file per kind of document; `schema_export` joins them."""
