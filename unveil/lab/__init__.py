"""The fault lab: real workloads under real, silent faults on this very kernel, recorded and labelled."""
