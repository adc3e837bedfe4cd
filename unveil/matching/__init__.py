"""Features, facts and shares are held against fingerprints; matches become episodes."""
