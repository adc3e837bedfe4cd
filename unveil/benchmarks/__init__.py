"""What unveil costs, measured beside what it is compared with."""
