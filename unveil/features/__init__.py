"""A window becomes one number per feature."""
