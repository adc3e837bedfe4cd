"""YAML becomes one validated, immutable knowledge base; and stays it while files change."""
