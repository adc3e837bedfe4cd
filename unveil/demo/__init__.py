"""The demo: a recording of a real workload under a real fault, and the script that made it."""
