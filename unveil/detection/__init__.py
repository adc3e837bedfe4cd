"""A feature vector becomes a verdict."""
